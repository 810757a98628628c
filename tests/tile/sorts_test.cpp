// Sorts by blocks, their merges, and sorts by a thread each: the interpreter's bits, thread by thread.
#include "tiny_compile/trace/sorts.h"
#include "tests/codegen/cuda_threads.h"
#include "tests/codegen/emit_programs.h"
#include "tests/fuzz/mutate.h"
#include "tests/tile/cpp_tiles.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/split_sort.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/tiles.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char *kRuns = "theirs[", *kMerges = "cuts[";

Out both_ways(In i) { return {argsort(i[0], -1), argsort(i[0], -1, true)}; }

void check_compiles(const std::string& text) {
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
}

// Few values, so that many are equal, zeros of both signs, infinities and NaNs where there are any.
Tensor ties(const Sizes& shape, DType type) {
  const Tensor x = (rand(shape) * 40.0).to(int64);
  if (!is_float(type)) return x.to(type);
  Tensor all = x.to(type) - 20.0;
  for (const auto& [number, value] :
       {std::pair{7, std::nan("")}, {8, -0.0}, {9, HUGE_VAL}, {10, -HUGE_VAL}})
    all = where(x == number, value, all);
  return all.to(type);
}

Program merging() {
  return parse_program(R"(program f on cuda {
    input x: f32[2,9]
    temp p: i64[2,9]
    temp q: i64[2,9]
    output y: i64[2,9]
    kernel runs rows(i0: 2) {
      sort p[i0*9 + j0] for (j0: 9) = argsort load x[i0*9 + j0] in 4
    }
    kernel pairs rows(i0: 2) {
      sort q[i0*9 + j0] for (j0: 9) = argsort load x[i0*9 + j0] in 8 from load p[i0*9 + j0]
    }
    kernel all rows(i0: 2) {
      sort y[i0*9 + j0] for (j0: 9) = argsort load x[i0*9 + j0] in 16 from load q[i0*9 + j0]
    }
    launch runs
    launch pairs
    launch all
    return y
  })");
}

void check_refused(const std::function<void(Program&)>& spoil, const std::string& message) {
  Program program = merging();
  spoil(program);
  CHECK_THROWS_WITH(verify(program), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("rows of every type are sorted by a block each", "[tile][threads][sort]") {
  manual_seed(1);
  for (DType type : {float32, float64, bfloat16, float16, int8, uint8, int32, int64, uint32,
                     uint64, boolean}) {
    INFO(c_type(type));
    const Function both_lengths = [](In i) {
      return Out{argsort(i[0], 1), argsort(i[0], 1, true), argsort(i[1], 1),
                 argsort(i[1], 1, true)};
    };
    const std::string text = check(both_lengths, {ties({5, 100}, type), ties({2, 1001}, type)},
                                   "rows rows rows rows");
    CHECK_THAT(text, ContainsSubstring(kRuns) && !ContainsSubstring(kMerges));
    CHECK_THAT(
        text, ContainsSubstring(
                  str(size_of(type) == 4 ? "unsigned long long" : "unsigned int", " words[")) ||
                  ContainsSubstring("long long words_places["));
    CHECK((text.find("words_places[") != std::string::npos) == (size_of(type) == 8));
    check_compiles(text);
  }
}

TEST_CASE("rows of any length that registers hold are sorted, several by a block",
          "[tile][threads][sort]") {
  manual_seed(2);
  for (int64_t length : {1, 2, 3, 7, 8, 31, 32, 33, 64, 65, 127, 128, 129, 257, 1000, 2048})
    check_bits(both_ways, {ties({length < 100 ? 131 : 3, length}, float32)});
  check_bits(both_ways, {empty_tensor(float32, {3, 0})});
}

TEST_CASE("of rows of which the first are wanted no others are kept", "[tile][threads][sort]") {
  manual_seed(8);
  for (const auto& [k, length] : {std::pair{1, 33},
                                  {2, 64},
                                  {5, 65},
                                  {8, 128},
                                  {20, 100},
                                  {50, 1000},
                                  {100, 1000},
                                  {1077, 1100},
                                  {3, 4}}) {
    INFO(k << " of " << length);
    const Function first = [k = k](In i) {
      const auto [values, places] = topk(i[0], k, 1);
      return Out{values / values.sum({1}, true), places};
    };
    const auto checked = check_bits(first, {ties({9, length}, float32)});
    const std::string& text = checked.source.text;
    const std::vector<Kernel>& kernels = checked.program.kernels;
    const auto sort = std::find_if(kernels.begin(), kernels.end(), [](const Kernel& kernel) {
      return kernel.steps[0].kind == StepKind::Sort;
    });
    REQUIRE(sort != kernels.end());
    const SortShape shape(length, k, sort->schedule->each);
    if (shape.bits() == 0)
      CHECK_THAT(text, !ContainsSubstring(kRuns));
    else
      CHECK_THAT(text, ContainsSubstring(kRuns) &&
                           ContainsSubstring(str("; h < ", std::min(shape.bits(), 5), ";")) &&
                           ContainsSubstring(str(", ", 1 << shape.list_bits(), ");")));
    check_compiles(text);
  }
  check_bits(
      [](In i) {
        return Out{topk(i[0], 5, 1).first, topk(i[1], 6, 1, false).second};
      },
      {ties({3, 3000}, bfloat16), ties({7, 300}, float64)});
  check_bits(
      [](In i) {
        return Out{topk(i[0], 5, 0).first, topk(i[0], 8, 1).second + 1};
      },
      {ties({60, 40}, int8)});
}

TEST_CASE("a sort keeps the first places of whole rows that fit a block", "[loops][sort]") {
  const Program program = parse_program(R"(program f on cuda {
    input x: f32[2,9]
    output y: i64[2,4]
    kernel firsts rows(i0: 2) {
      sort y[i0*4 + j0] for (j0: 9) = argsort load x[i0*9 + j0] where lt(index[j0], i64 4)
    }
    launch firsts
    return y
  })");
  CHECK(parse_program(print(program)) == program);
  const Tensor x = ties({2, 9}, float32);
  CHECK(same_bits(interpret(program, std::vector<Tensor>{x})[0], argsort(x, 1).slice(1, 0, 4)));
  const auto check_text = [&](const std::string& from, const std::string& to,
                              const std::string& message) {
    std::string text = print(program);
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    CHECK_THROWS_WITH(parse_program(text), ContainsSubstring(message));
  };
  check_text("i64 4)", "i64 3)", "not seen to write each of 8 elements once");
  check_text("i64 4)", "i64 10)", "does not cover its row");
  check_text(" where", " in 4 where", "keeps the first places of runs");
  check_text("index[j0]", "index[j0 + 1]", "leaves the buffer's 8 elements");
  check_text("9", "2049", "keeps the first places of 2049, not of a row of at most 2048");
  CHECK_THROWS_WITH(parse_program(R"(program f on cuda {
    input x: f32[2,9]
    output y: i64[10]
    kernel firsts rows(i0: 2) {
      sort y[i0*9 + j0] for (j0: 9) = argsort load x[i0*9 + j0] where lt(index[i0*9 + j0], i64 10)
    }
    launch firsts
    return y
  })"),
                    ContainsSubstring("keeps places that are not the first of its loop"));
}

TEST_CASE("longer rows are merged from runs by many blocks", "[tile][threads][sort]") {
  manual_seed(3);
  for (int64_t length : {2049, 4096, 4097, 9000}) {
    const std::string text = check_bits(both_ways, {ties({2, length}, float32)}).source.text;
    CHECK_THAT(text, ContainsSubstring(kRuns) && ContainsSubstring(kMerges));
    check_compiles(text);
  }
  check_bits(both_ways, {ties({5000}, bfloat16)});
  check_bits(both_ways, {ties({4100}, uint64)});
  check_bits(both_ways, {ones({5000})});
  check_bits(both_ways, {arange(5000)});
}

TEST_CASE("threads sort and merge as many elements as a schedule says",
          "[tile][threads][sort]") {
  manual_seed(9);
  const std::vector<Tensor> inputs = {ties({2, 2500}, float32)};
  const Graph graph = trace(both_ways, inputs, "f").graph;
  Program program = run_pipeline(default_pipeline(), graph, true, Target::Cuda).program;
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (const auto& [sorted, merged] : {std::pair{2, 1}, {4, 2}, {8, 4}}) {
    for (Kernel& kernel : program.kernels)
      kernel.schedule->each = kernel.steps[0].rhs < 0 ? sorted : merged;
    CHECK(parse_program(print(program)) == program);
    const Source source = emit_cuda(program);
    const std::vector<Tensor> got = run(program, source, inputs, false);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
    check_compiles(source.text);
  }
}

TEST_CASE("a row is sorted by threads of any number of elements", "[tile][threads][sort]") {
  manual_seed(10);
  const Function sorts = [](In i) {
    return Out{argsort(i[0], 1), argsort(i[1], 1, true), topk(i[0], 6, 1).second};
  };
  const std::vector<Tensor> inputs = {ties({3, 700}, float32), ties({3, 700}, int64)};
  const Graph graph = trace(sorts, inputs, "f").graph;
  Program program = run_pipeline(default_pipeline(), graph, true, Target::Cuda).program;
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (const int each : {1, 2, 4, 8, 16}) {
    for (Kernel& kernel : program.kernels) {
      if (kernel.steps[0].kind == StepKind::Sort)
        kernel.schedule->each = std::min(each, most_sorted(kernel, kernel.steps[0]));
    }
    verify(program);
    const Source source = emit_cuda(program);
    const std::vector<Tensor> got = run(program, source, inputs, false);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
    check_compiles(source.text);
  }
}

TEST_CASE("a run that no registers hold has a schedule", "[schedule][sort]") {
  const Program program = schedule(parse_program(R"(program f on cuda {
    input x: f32[512,4096]
    output y: i64[512,4096]
    kernel all rows(i0: 512) {
      sort y[i0*4096 + j0] for (j0: 4096) = argsort load x[i0*4096 + j0] in 4096
    }
    launch all
    return y
  })"));
  CHECK_NOTHROW(verify(program));
}

TEST_CASE("a thread has one element of few, and several of many", "[schedule][sort]") {
  const auto each_of = [](const Sizes& shape) {
    const Graph graph = trace([](In i) { return Out{argsort(i[0], 1)}; },
                              std::vector<Tensor>{empty_tensor(float32, shape)}, "f")
                            .graph;
    std::vector<int> each;
    for (const Kernel& kernel :
         run_pipeline(default_pipeline(), graph, true, Target::Cuda).program.kernels)
      each.push_back(kernel.schedule->each);
    return each;
  };
  CHECK(each_of({2, 512}) == std::vector<int>{4});
  CHECK(each_of({5000, 512}) == std::vector<int>{16});
  CHECK(each_of({50000, 100}) == std::vector<int>{16});
  CHECK(each_of({200000, 7}) ==
        std::vector<int>{4});  // of one row alone no two lanes read side by side
  CHECK(each_of({2, 5000}) == std::vector<int>{4, 1, 1});
  CHECK(each_of({100, 5000}) == std::vector<int>{16, 4, 4});
}

TEST_CASE("what no threads hold while they sort it is refused", "[loops][sort][refused]") {
  const auto refused = [](int each, int64_t count, const std::string& message) {
    Program program = parse_program(
        str("program f on cuda {\n  input x: f32[", count, "]\n  output y: i64[", count,
            "]\n  kernel all rows() {\n    sort y[j0] for (j0: ", count,
            ") = argsort load x[j0]\n    schedule rows\n", "  }\n  launch all\n  return y\n}"));
    program.kernels[0].schedule->each = each;
    CHECK_THROWS_WITH(verify(program), ContainsSubstring(message));
  };
  refused(3, 100,
          "schedule rows each=3: a power of two, 1 to 16, of elements that a thread sorts");
  refused(32, 100, "schedule rows each=32: a power of two, 1 to 16, of elements");
  refused(1, 2000, "schedule rows each=1: 2000 elements are more than 1024 threads hold");
  refused(8, 3000, "schedule rows each=8: 3000 elements are more than 1024 threads hold");
  const auto merge = [](int each) {
    return [each](Program& p) { p.kernels[1].schedule = Schedule{.each = each}; };
  };
  check_refused(
      merge(8),
      "schedule rows each=8: a power of two, 1 to 4, of elements that a thread merges");
  CHECK_THROWS_WITH(parse_program(R"(program f[n: 1..64] on cuda {
    input x: f32[n,100]
    output y: i64[n,100]
    kernel all rows(i0: n) {
      sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
      schedule rows each=2
    }
    launch all
    return y
  })"),
                    ContainsSubstring("where sizes are symbols, a thread has an element"));
  CHECK_THROWS_WITH(parse_program(R"(program f on cuda {
    input x: f32[9]
    output y: f32[9]
    kernel copy rows(i0: 9) {
      store y[i0] = load x[i0]
      schedule rows each=2
    }
    launch copy
    return y
  })"),
                    ContainsSubstring("schedule rows each=2: for rows that are sorted"));
}

TEST_CASE("columns, views and formulas are sorted", "[tile][threads][sort]") {
  manual_seed(4);
  const Function others = [](In i) {
    return Out{sort(i[0] * 2.0, 0).first, argsort(i[0].t(), 0), topk(flip(i[0], {1}), 3).first,
               argsort(i[0].slice(1, 1, 30, 2), 0)};
  };
  check_compiles(check_bits(others, {ties({70, 33}, float32)}).source.text);
  check_bits(
      [](In i) {
        return Out{argsort(i[0], 0), argsort(i[0].unsqueeze(1), 1)};
      },
      {ties({2500, 2}, float32)});
}

TEST_CASE("of a row that nobody split a thread has an element, and counts those before it",
          "[tile][threads][sort]") {
  manual_seed(5);
  Pipeline unscheduled = default_pipeline();
  std::erase_if(unscheduled, [](const Stage& stage) { return stage.name == "schedule"; });
  const std::string text =
      check_bits(both_ways, {ties({2, 3000}, float32)}, unscheduled).source.text;
  CHECK_THAT(text, !ContainsSubstring(kRuns) && !ContainsSubstring(kMerges));
  check_compiles(text);
}

namespace {

// A CPU's tile of a sort means what its kernel does, reads back as it prints, and runs.
void check_on_cpu(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Tiles tiles = run_pipeline(until(default_pipeline(), "tile"), graph, true).tiles;
  for (const std::optional<Tile>& tile : tiles.of_kernel) CHECK(tile.has_value());
  CHECK(parse_tiles(print(tiles)) == tiles);
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  CHECK(all_same(interpret(tiles, inputs), wanted));
  CHECK(all_same(run(tiles, inputs), wanted));
}

}  // namespace

TEST_CASE("a CPU's rows are ranked, or sorted by digits", "[tile][sort]") {
  manual_seed(11);
  for (DType type : {float32, float64, bfloat16, float16, int8, uint8, int32, int64, uint32,
                     uint64, boolean}) {
    for (const int64_t length : {1, 7, 64, 300}) {
      INFO(type << " " << length);
      check_on_cpu(both_ways, {ties({3, length}, type)});
    }
  }
  for (const int64_t length : {2, 33, 120, 140, 1001, 2049, 9000}) {
    INFO(length);
    check_on_cpu(both_ways, {ties({2, length}, float32)});
    check_on_cpu(both_ways, {randn({2, length})});
  }
  check_on_cpu(both_ways, {ties({120000}, float32)});  // in memory
  check_on_cpu(both_ways, {empty_tensor(float32, {3, 0})});
  check_on_cpu(both_ways, {full({3, 500}, 2.0)});
  check_on_cpu(both_ways, {(rand({3, 500}) * 1e15).to(int64)});
  check_on_cpu(
      [](In i) {
        return Out{argsort(i[0].t(), 0), topk(flip(i[0], {1}), 3).second};
      },
      {ties({70, 33}, float32)});
  for (const int64_t k : {1, 5, 64}) {
    check_on_cpu(
        [k](In i) {
          return Out{topk(i[0], k, 1).second, topk(i[1], k, 1).second};
        },
        {ties({4, 65}, float32), ties({4, 1500}, bfloat16)});
  }
}

TEST_CASE("a CPU sorts runs and rows of any length", "[tile][sort]") {
  manual_seed(12);
  for (const int64_t length : {4, 33, 300, 512}) {
    INFO(length);
    const std::string sort = str(
        "sort y[i0*700 + j0] for (j0: 700) = argsort load x[i0*700 + j0] in ", length, "\n");
    const Program program = parse_program(
        "program f {\n  input x: f32[3,700]\n  output y: i64[3,700]\n  kernel k rows(i0: 3) "
        "{\n    " +
        sort + "  }\n  launch k\n  return y\n}\n");
    const std::vector<Tensor> inputs = {ties({3, 700}, float32)},
                              wanted = interpret(program, inputs);
    const Tiles tiles = lower_to_tiles(program);
    CHECK(all_same(interpret(tiles, inputs), wanted));
    CHECK(all_same(run(tiles, inputs), wanted));
  }
  const Program any = parse_program(
      "program f[n: 0..100000] {\n  input x: f32[2,n]\n  output y: i64[2,n]\n"
      "  kernel k rows(i0: 2) {\n    sort y[i0*n + j0] for (j0: n) = argsort load x[i0*n + "
      "j0]\n  }\n"
      "  launch k\n  return y\n}\n");
  const Tiles tiles = lower_to_tiles(any);
  CHECK_THAT(print(tiles), ContainsSubstring("memory words: u64[n]"));
  CHECK(parse_tiles(print(tiles)) == tiles);
  const Source source = emit(tiles);
  for (const int64_t n : {0, 1, 5, 1000, 30000}) {
    INFO(n);
    const std::vector<Tensor> inputs = {ties({2, n}, float32)};
    CHECK(all_same(interpret(tiles, inputs), interpret(any, inputs)));
    CHECK(all_same(run(tiles, source, inputs), interpret(any, inputs)));
  }
}

TEST_CASE("a GPU sorts runs that are no power of two, and that do not divide the row",
          "[tile][sort]") {
  manual_seed(13);
  for (const auto& [type, count, run] : {std::tuple{"f16", 8192, 1500},
                                         {"f32", 5000, 3000},
                                         {"u8", 700, 33},
                                         {"f16", 700, 2100}}) {
    INFO(type << " " << count << " in " << run);
    const Program program = parse_program(
        str("program f on cuda {\n  input x: ", type, "[", count, "]\n  output y: i64[", count,
            "]\n  kernel k rows() {\n    sort y[j0] for (j0: ", count,
            ") = argsort load x[j0] in ", run, "\n  }\n  launch k\n  return y\n}\n"));
    Tensor x = ties({count}, *dtype_from(type));
    if (std::string(type) != "u8")  // nothing is behind these but what is missing
      x = where(arange(count) < count - 600, x, std::nan("")).to(x.dtype());
    else
      x = where(arange(count) < count - 60, x, 255).to(x.dtype());
    const Tiles tiles = lower_to_tiles(program);
    CHECK_NOTHROW(parse_tiles(print(tiles)));
    CHECK(all_same(interpret(tiles, std::vector<Tensor>{x}),
                   interpret(program, std::vector<Tensor>{x})));
  }
}

TEST_CASE("a merge is verified to merge the same sort in runs half as long", "[loops][sort]") {
  const Program program = merging();
  CHECK(parse_program(print(program)) == program);
  manual_seed(6);
  const Tensor x = ties({2, 9}, float32);
  CHECK(same_bits(interpret(program, std::vector<Tensor>{x})[0], argsort(x, 1)));
  const char* no_runs = "which is not seen to be the same sort in runs half as long";
  check_refused([](Program& p) { p.kernels[1].steps[0].limit = 6; }, no_runs);
  check_refused([](Program& p) { p.kernels[2].steps[0].limit = 0; }, no_runs);
  check_refused([](Program& p) { p.kernels[0].steps[0].op = Op::argsort_descending; }, no_runs);
  check_refused(
      [](Program& p) {
        Scalar& load = p.kernels[0].scalars[p.kernels[0].steps[0].value];
        load.index = load.index * 0 + Expr::index("j0", 9);
      },
      no_runs);
  check_refused(
      [](Program& p) {
        for (Scalar& s : p.kernels[1].scalars) s.index = Expr::index("j0", 9);
      },
      "merges what does not lie as its result does");
  check_refused([](Program& p) { p.kernels[1].steps[0].op = Op::cumsum; }, "cumsum is no sort");
  check_refused([](Program& p) { p.kernels[0].steps[0].limit = -4; }, "sorts in runs of -4");
}

// Nine of x in runs of four, whose words go out, and pairs of runs.
std::string words_text(const std::string& dtype, const std::string& p, const std::string& q,
                       const std::string& op) {
  const auto kernel = [&](const char* name, const char* to, const char* rest) {
    return str("  kernel ", name, " rows() {\n    sort ", to, "[j0] for (j0: 9) = ", op,
               " load x[j0] in ", rest, "\n  }\n");
  };
  return str("program f on cuda {\n  input x: ", dtype, "[9]\n  output p: ", p,
             "[9]\n  output q: ", q, "[9]\n  output y: i64[9]\n", kernel("runs", "p", "4"),
             kernel("pairs", "q", "8 from load p[j0]"),
             kernel("all", "y", "16 from load q[j0]"),
             "  launch runs\n  launch pairs\n  launch all\n  return p, q, y\n}\n");
}

// One kernel that does this; y of u64.
std::string one_sort(const char* target, const char* sort) {
  return str("program f", target, " {\n  input x: f32[9]\n  output y: u64[9]\n",
             "  kernel all rows() {\n    sort y[j0] for (j0: 9) = ", sort,
             "\n  }\n  launch all\n  return y\n}\n");
}

TEST_CASE("a merge takes words of keys and places", "[tile][threads][sort]") {
  manual_seed(12);
  for (const auto& [type, words] : {std::pair{float32, "u64"},
                                    {int32, "u64"},
                                    {uint32, "u64"},
                                    {float16, "u32"},
                                    {bfloat16, "u32"},
                                    {int8, "u32"},
                                    {uint8, "u32"},
                                    {int64, "i64"}}) {
    for (const char* op : {"argsort", "argsort_descending"}) {
      CAPTURE(str(type), op);
      const std::vector<Tensor> inputs = {ties({9}, type)};
      const Program program = parse_program(words_text(str(type), words, words, op));
      CHECK(parse_program(print(program)) == program);
      const Tiles tiles = lower_to_tiles(program);
      const std::vector<Tensor> want = interpret(program, inputs);
      CHECK(all_same(interpret(tiles, inputs), want));
      CHECK(all_same(run(program, emit_cuda(program), inputs, false), want));
      CHECK(same_bits(want[2], argsort(inputs[0], 0, std::string(op) == "argsort_descending")));
    }
  }
}

TEST_CASE("runs of places and of words are merged alike", "[tile][sort]") {
  manual_seed(13);
  const std::vector<Tensor> inputs = {ties({9}, float32)};
  for (const auto& [p, q] : {std::pair{"i64", "u64"}, {"u64", "i64"}}) {
    const Program program = parse_program(words_text("f32", p, q, "argsort"));
    const std::vector<Tensor> want = interpret(program, inputs);
    CHECK(all_same(interpret(lower_to_tiles(program), inputs), want));
    CHECK(same_bits(want[2], argsort(inputs[0], 0)));
  }
}

TEST_CASE("how many places a row has says how wide words are", "[schedule][sort]") {
  for (const auto& [type, count, words] : {std::tuple{float16, 8192, DType::u32},
                                           {float16, 8193, DType::u64},
                                           {bfloat16, 65536, DType::u32},
                                           {bfloat16, 65537, DType::u64},
                                           {float32, 4096, DType::u64},
                                           {int64, 4096, DType::i64}}) {
    CAPTURE(str(type), count);
    const Graph graph = trace([](In i) { return Out{argsort(i[0], 1)}; },
                              std::vector<Tensor>{zeros({3, count}).to(type)}, "f")
                            .graph;
    const Program program = run_pipeline(default_pipeline(), graph, true, Target::Cuda).program;
    REQUIRE(program.kernels.size() > 1);
    const Step& runs = program.kernels[0].steps[0];
    CHECK(program.buffers[runs.buffer].type.dtype == words);
    CHECK(runs.dtype == words);
  }
}

TEST_CASE("a word is a key's bits in order and its place", "[loops][sort]") {
  const Program program = parse_program(words_text("f32", "u64", "u64", "argsort"));
  const Tensor x = tensor({3.0, -1.5, 0.0, -0.0, std::nan(""), 1.0, 1.0, 1.0, 1.0}).to(float32);
  const Tensor words = interpret(program, std::vector<Tensor>{x})[0];
  const uint64_t want[] = {0x403fffff00000001, 0x8000000000000002, 0x8000000000000003,
                           0xc040000000000000};
  for (int k = 0; k < 4; k++) CHECK(words.data<uint64_t>()[k] == want[k]);
  CHECK(words.data<uint64_t>()[7] == 0xffffffff00000004);
}

TEST_CASE("words are of the sort that stores them", "[loops][sort][refused]") {
  const auto check = [](const std::string& text, const char* why) {
    CHECK_THROWS_WITH(parse_program(text), ContainsSubstring(why));
  };
  const char *other = "stores another dtype than its buffer's",
             *alone = "stores words, which only blocks of a GPU do";
  check(words_text("f32", "u32", "u32", "argsort"), other);
  check(words_text("i64", "u64", "u64", "argsort"), other);
  check(one_sort("", "argsort load x[j0] in 4"), alone);
  check(one_sort(" on cuda", "argsort load x[j0]"), alone);
  check(R"(program f on cuda {
  input x: f32[9]
  input p: u32[9]
  output q: u64[9]
  kernel pairs rows() {
    sort q[j0] for (j0: 9) = argsort load x[j0] in 8 from load p[j0]
  }
  launch pairs
  return q
})",
        "merges words of u32, where its own are u64");
}

TEST_CASE("a sort is alone in its kernel", "[loops][sort]") {
  CHECK_THROWS_WITH(parse_program(R"(program f {
    input x: f32[9]
    output y: i64[9]
    output z: f32[9]
    kernel all rows() {
      sort y[j0] for (j0: 9) = argsort load x[j0]
      store z[j0] for (j0: 9) = load x[j0]
    }
    launch all
    return y, z
  })"),
                    ContainsSubstring("a sort has its kernel alone"));
}

TEST_CASE("mutated merges are refused, or have the interpreter's bits",
          "[loops][sort][refused]") {
  manual_seed(7);
  const Tensor x = ties({2, 9}, float32);
  int accepted = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    const std::string text = mutated(print(merging()), seed);
    INFO(text);
    try {
      const Program program = parse_program(text);
      if (program.buffers[0].type != merging().buffers[0].type || program.outputs.size() != 1)
        continue;
      const std::vector<Tensor> wanted = interpret(program, std::vector<Tensor>{x});
      const std::vector<Tensor> got = run(program, emit_cuda(program), {x}, false);
      CHECK(same_bits(got[0], wanted[0]));
      accepted++;
      if (accepted == 4) break;  // each is a run of the compiler
    } catch (const Error&) {
    }
  }
  CHECK(accepted == 4);
}
