// The ways around memory that small random programs do not take by themselves: streamed
// outputs, squares that are transposed, rows of more than 1024 chunks.
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"
#include "tests/codegen/scheduled.h"
#include "tests/fuzz/random_graph.h"

namespace {

using namespace tiny_compile;

// What the generated code gives with every output streamed, or not.
std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs, bool stream,
                        std::string* text = nullptr) {
  const Pipeline pipeline = scheduled([=](Schedule& s) { s.stream = stream; });
  const Staged staged = run_pipeline(pipeline, graph, true);
  if (text) *text = staged.source.text;
  return Executable(staged.program, staged.source,
                    build_cpp(staged.source.text, default_toolchain()))
      .run(inputs);
}

void check_both(const std::string& text, const std::string& mentions) {
  const Graph graph = parse_graph(text);
  const std::vector<Tensor> inputs = random_inputs(graph, 7);
  const std::vector<Tensor> want = interpret(graph, inputs);
  for (bool stream : {false, true}) {
    INFO(text << "stream " << stream);
    std::string source;
    const std::vector<Tensor> got = run(graph, inputs, stream, &source);
    for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
    CHECK((mentions.empty() || source.find(mentions) != std::string::npos));
    CHECK((source.find("tc_stream(") != std::string::npos) == stream);
  }
}

}  // namespace

TEST_CASE("streamed outputs have the same bits at any length and width", "[cpp_store]") {
  for (const char* n : {"1", "15", "127", "129", "1000"}) {
    for (const char* dtype : {"f32", "bf16", "f64", "i8"})
      check_both(str("graph g(%0 x: ", dtype, "[3,", n, "]) {\n  %1: ", dtype, "[3,", n,
                     "] = add %0, %0\n  return %1\n}\n"),
                 "");
  }
}

TEST_CASE("streamed rows come after their reductions", "[cpp_store]") {
  check_both(
      "graph g(%0 x: f32[5,300]) {\n  %1: f32[5] = sum %0 {axes=[1]}\n  %2: f32[5,1] = reshape "
      "%1\n  %3: f32[5,300] = expand %2\n  %4: f32[5,300] = div "
      "%0, %3\n  return %4\n}\n",
      "");
}

TEST_CASE("transposed operands are read in squares", "[cpp_transposed]") {
  for (const char* dtype : {"f32", "f64", "bf16", "i8", "i32"}) {
    check_both(str("graph g(%0 x: ", dtype, "[150,300], %1 y: ", dtype, "[300,150]) {\n  %2: ",
                   dtype, "[300,150] = permute %0 {axes=[1,0]}\n  %3: ", dtype,
                   "[300,150] = add %2, %1\n  return %3\n}\n"),
               "tc_turn(");
  }
}

TEST_CASE("a transposed mask is read in squares", "[cpp_transposed]") {
  check_both(
      "graph g(%0 x: bool[50,130], %1 y: f32[130,50]) {\n  %2: bool[130,50] = permute %0 "
      "{axes=[1,0]}\n  %3: f32[130,50] = neg %1\n  %4: f32[130,50] = where %2, %1, %3\n"
      "  return %4\n}\n",
      "tc_turn(");
}

TEST_CASE("squares leave batches and short axes right", "[cpp_transposed]") {
  check_both(
      "graph g(%0 x: f32[3,20,17], %1 y: f32[3,17,20]) {\n  %2: f32[3,17,20] = permute %0 "
      "{axes=[0,2,1]}\n  %3: f32[3,17,20] = mul %2, %1\n  return %3\n}\n",
      "tc_turn(");
  check_both(
      "graph g(%0 x: f32[40,33], %1 y: f32[40,33], %2 z: f32[33,40]) {\n  %3: f32[33,40] = "
      "permute %0 {axes=[1,0]}\n  %4: f32[33,40] = permute %1 {axes=[1,0]}\n  %5: f32[33,40] = "
      "mul %3, %2\n  %6: f32[33,40] = add %4, %5\n  return %6\n}\n",
      "tc_turn(");
}

TEST_CASE("a row of more than 1024 chunks follows the tree", "[cpp_reduce]") {
  Program program = parse_program(
      "program p {\n  input x: f32[1100001]\n  output y: f32[1]\n  kernel k rows(i0: 1) {\n    "
      "r0: f32 = sum(j0: 1100001) load x[j0]\n    store y[i0] = r0\n  }\n  launch k\n  return "
      "y\n}\n");
  const Graph graph = parse_graph(
      "graph g(%0 x: f32[1100001]) {\n  %1: f32[] = sum %0 {axes=[0]}\n  %2: f32[1] = reshape "
      "%1\n  return "
      "%2\n}\n");
  const std::vector<Tensor> inputs = random_inputs(graph, 3);
  const Source source = emit_cpp(lower_to_tiles(program));
  CHECK(source.text.find("tc_fold_") != std::string::npos);
  const Executable executable(program, source, build_cpp(source.text, default_toolchain()));
  CHECK(same_bits(interpret(graph, inputs)[0], executable.run(inputs)[0]));
}
