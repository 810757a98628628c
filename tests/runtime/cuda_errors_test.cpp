// What a reader is told of an index out of range that kernels on a GPU met.
#include "tiny_compile/runtime/cuda_errors.h"

#include "tests/codegen/cuda_on_cpu.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/compile/bad_index.h"
#include "tiny_compile/tiny_compile.h"
//
#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Found {
  unsigned bits;
  long long index, size;
};

// The generated CUDA, thread by thread on the CPU, with what its kernels leave behind.
Found found_by(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Staged all = run_pipeline(default_pipeline(), graph, true, Target::Cuda);
  std::string text = for_cpu(all.source);
  const std::string silent = "#define TC_FAIL(code)\n";
  text.replace(text.find(silent), silent.size(),
               "struct Found { unsigned bits; long long index, size; };\n"
               "extern \"C\" { Found found = {}; }\n"
               "static unsigned set_bits(unsigned code) {\n"
               "  const unsigned before = found.bits;\n"
               "  found.bits |= code;\n"
               "  return before;\n}\n"
               "#define TC_FAIL(code) set_bits(code)\n"
               "#define TC_BAD_INDEX(i, limit) \\\n"
               "  if (!(TC_FAIL(1u) & 1u)) found.index = i, found.size = limit\n");
  Threads threads(text, names_of(all.source));
  run_on(threads, all.program, all.source, inputs);
  return *static_cast<Found*>(threads.symbol("found"));
}

constexpr const char* kTwoGathers =
    "graph f(%0 t: f32[5], %1 u: f32[9], %2 i: i64[4]) {\n"
    "  %3: f32[4] = gather %0, %2 {axis=0}  # mlp.cpp:14\n"
    "  %4: f32[4] = gather %1, %2 {axis=0}  # mlp.cpp:15\n"
    "  %5: f32[4] = add %3, %4  # mlp.cpp:16\n  return %5\n}\n";

}  // namespace

TEST_CASE("an index out of range on a GPU is told with op, line, value and size",
          "[cuda-errors]") {
  const Graph graph = parse_graph(kTwoGathers);
  const CalledProgram called{"f", "kernel add_5 (mlp.cpp:14 mlp.cpp:15)", index_uses(graph)};
  CHECK(
      bad_index_in_words(called, 7, 5) ==
      "f: mlp.cpp:14: gather: an index is out of range: 7 for size 5; check the values of the "
      "index tensor");
  CHECK_THAT(bad_index_in_words(called, -1, 9),
             ContainsSubstring("mlp.cpp:15: gather: an index "
                               "is out of range: -1 for"));
  CHECK_THAT(bad_index_in_words(called, 4, 3),  // no op has that size: the kernels
             ContainsSubstring("f: an index is out of range: 4 for size 3: in kernel add_5"));
}

TEST_CASE("ops of one size that take indices are all named, each once", "[cuda-errors]") {
  const CalledProgram called{"f",
                             "",
                             {{"a.cpp:1: gather", 5},
                              {"a.cpp:2: scatter_add", 5},
                              {"a.cpp:1: gather", 5},
                              {"a.cpp:3: gather", 6}}};
  CHECK(bad_index_in_words(called, 5, 5) ==
        "f: a.cpp:1: gather or a.cpp:2: scatter_add: an index is out of range: 5 for size 5; "
        "check the values of the index tensor");
}

TEST_CASE("a kernel notes the value and the size of one index out of range", "[cuda-errors]") {
  const Graph graph = parse_graph(kTwoGathers);
  const Tensor t = zeros({5}), u = zeros({9});
  const auto index = [](std::vector<int64_t> at) { return from_vector<int64_t>(at); };
  CHECK(found_by(graph, {t, u, index({0, 1, 4, 2})}).bits == 0);
  const Found far = found_by(graph, {t, u, index({0, 7, 4, 2})});
  CHECK((far.bits == 1 && far.index == 7 && far.size == 5));
  const Found below = found_by(graph, {t, u, index({0, 1, 4, -3})});
  CHECK((below.bits == 1 && below.index == -3));
  const Graph scatter = parse_graph(
      "graph g(%0 x: f32[3,8], %1 i: i64[2,8], %2 v: f32[2,8]) {\n"
      "  %3: f32[3,8] = scatter_add %0, %1, %2 {axis=0}\n  return %3\n}\n");
  const Tensor rows = expand(index({2, 1 << 20}).unsqueeze(1), {2, 8});
  const Found row = found_by(scatter, {zeros({3, 8}), contiguous_copy(rows), ones({2, 8})});
  CHECK((row.bits == 1 && row.index == 1 << 20 && row.size == 3));
  const Graph sums = parse_graph(
      "graph h(%0 x: f32[5,8], %1 i: i64[70,8]) {\n"
      "  %2: f32[70,8] = gather %0, %1 {axis=0}\n  %3: f32[8] = sum %2 {axes=[0]}\n"
      "  return %3\n}\n");
  std::vector<int64_t> chosen(70 * 8, 4);
  const auto sum_of = [&] {
    return found_by(sums, {zeros({5, 8}), from_vector(chosen, {70, 8})});
  };
  CHECK(sum_of().bits == 0);
  chosen[69 * 8 + 7] = 5;
  const Found last = sum_of();  // noted by one thread, told at the kernel's end
  CHECK((last.bits == 1 && last.index == 5 && last.size == 5));
}

TEST_CASE("a GPU's index error names op, line, value and size, call after call",
          "[cuda-errors][cuda]") {
  NEEDS_GPU;
  int line = 0;
  const auto f = compile([&](Tensor table, Tensor index) {
    const Tensor ones = gather(table, 0, index * 0) + 1;
    line = __LINE__ + 1;
    return gather(table.slice(0, 0, 3), 0, index + 1) * ones;
  });
  const Tensor table = from_vector<float>({1, 2, 3, 4}).to(cuda);
  const auto at = [](int64_t i) { return from_vector<int64_t>({i}).to(cuda); };
  for (int64_t wrong : {6, 9, 6, -5}) {
    CHECK(f(table, at(1)).to(cpu).item<float>() == 6);
    const std::string message = ::tests::message_of([&] { f(table, at(wrong)).to(cpu); });
    CHECK_THAT(message, ContainsSubstring(str(":", line, ": gather: an index is out of range: ",
                                              wrong + 1, " for size 3; check")));
  }
}
