#include "tiny_compile/loops/pad_rows.h"

#include "tests/fuzz/random_graph.h"
#include "tests/loops/library_calls.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/library_matmul.h"
//
#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// A language model's last product and what reads it.
Graph head(int64_t columns, const char* last) {
  return parse_graph(str("graph g(%0 x: bf16[64,48], %1 w: bf16[48,", columns,
                         "], %2 at: i64[64,1]) {\n  %3: bf16[64,", columns,
                         "] = matmul %0, %1\n  %4: f32[64,", columns,
                         "] = cast %3\n  %5: f32[64] = sum_exp %4 {axes=[1]}\n", last, "}\n"));
}

Program with_padding(const Graph& graph) {
  return run_pipeline(with_library(default_pipeline(), Matmul::Library), graph, true,
                      Target::Cuda)
      .program;
}

int64_t size_of_product(const Program& program) {
  for (const Kernel& kernel : program.kernels) {
    const LibraryMatch match = library_matmul(program, kernel);
    if (match.matmul) return program.buffers[match.matmul->d.buffer].size.constant();
  }
  return 0;
}

}  // namespace

TEST_CASE("the rows of a product that is read again start at 16 bytes", "[pad_rows]") {
  const char* gather = "  %6: bf16[64,1] = gather %3, %2 {axis=1}\n  return %5, %6\n";
  const Graph graph = head(197, gather);
  const Program program = with_padding(graph);
  CHECK(size_of_product(program) == 64 * 200);
  CHECK(parse_program(print(program)) == program);
  std::vector<Tensor> inputs = random_inputs(head(197, "  return %5\n"), 3);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < 64; i++) chosen.push_back(i * 31 % 197);
  inputs[2] = from_vector(chosen, Sizes{64, 1});
  const std::vector<Tensor> want = interpret(graph, inputs), got = interpret(program, inputs);
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
}

TEST_CASE("the rows of a product's operand start at 16 bytes, and it may lie over the product",
          "[pad_rows]") {
  const Graph graph = parse_graph(R"(graph g(%0 x: bf16[64,48], %1 w: bf16[48,197]) {
  %2: bf16[64,197] = matmul %0, %1
  %3: bf16[64,197] = exp %2
  %4: bf16[197,48] = permute %1 {axes=[1,0]}
  %5: bf16[64,48] = matmul %3, %4
  return %5
}
)");
  const Program program = with_padding(graph);
  INFO(print(program));
  int padded = 0, over = 0;
  for (const Buffer& buffer : program.buffers) {
    padded += buffer.size.is_constant(64 * 200);
    over += buffer.over >= 0;
  }
  CHECK(padded == 2);
  CHECK(over == 1);
  const std::vector<Tensor> inputs = random_inputs(graph, 3);
  CHECK(same_bits(interpret(graph, inputs)[0], interpret(program, inputs)[0]));
}

TEST_CASE("rows that suit, results and short rows keep their layout", "[pad_rows]") {
  CHECK(size_of_product(with_padding(head(200, "  return %5\n"))) == 64 * 200);
  CHECK(size_of_product(with_padding(head(197, "  return %5, %3\n"))) == 64 * 197);
  CHECK(size_of_product(with_padding(head(33, "  return %5\n"))) == 64 * 33);
}

TEST_CASE("a result of odd rows goes by way of longer ones, which others read", "[pad_rows]") {
  const auto graph = [](const char* last) {
    return parse_graph(
        str("graph g(%0 x: bf16[48,512], %1 w: bf16[197,512]) {\n"
            "  %2: bf16[512,197] = permute %1 {axes=[1,0]}\n"
            "  %3: bf16[48,197] = matmul %0, %2\n",
            last, "}\n"));
  };
  const Graph alone = graph("  return %3\n"),
              read = graph("  %4: bf16[48] = max %3 {axes=[1]}\n  return %3, %4\n");
  for (const Graph& g : {alone, read}) {
    const Program program = with_padding(g);
    INFO(print(program));
    CHECK(size_of_product(program) == 48 * 200);
    CHECK(program.kernels.back().name.starts_with("copy_"));
    int readers = 0;  // of what is given to the caller
    for (const Kernel& kernel : program.kernels)
      readers += buffers_read(program, kernel)[program.outputs[0]];
    CHECK(readers == 0);
    CHECK(parse_program(print(program)) == program);
    const std::vector<Tensor> inputs = random_inputs(g, 3);
    const std::vector<Tensor> want = interpret(g, inputs), got = interpret(program, inputs);
    for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
  }
}

TEST_CASE("a padded product's columns beyond 16 bytes are a call of their own", "[pad_rows]") {
  const Program program = with_padding(head(197, "  return %5\n"));
  for (const Kernel& kernel : program.kernels) {
    const LibraryMatch match = library_matmul(program, kernel);
    if (!match.matmul) continue;
    const std::vector<LibraryMatmul> calls = library_calls(*match.matmul);
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].m == 192);
    CHECK(calls[1].m == 5);
    CHECK(calls[1].d.offset == 192);
    std::vector<std::vector<double>> whole;
    for (const Buffer& buffer : program.buffers)
      whole.push_back(tests::doubles(randn({buffer.size.constant()})));
    std::vector<std::vector<double>> parts = whole;
    tests::call_library(*match.matmul, whole);
    for (const LibraryMatmul& call : calls) tests::call_library(call, parts);
    CHECK(parts == whole);
  }
}
