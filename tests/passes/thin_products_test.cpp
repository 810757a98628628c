// Which products become sums, and what are these?
#include "tests/fuzz/random_graph.h"
#include "tests/passes/rewrites.h"
#include "tiny_compile/compile/explain.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

// Weights of bytes with a scale for each row, beside `rows` rows.
std::string of_bytes(int64_t rows, int64_t k, int64_t n) {
  return str("graph g(%0 x: bf16[", rows, ",", k, "], %1 q: i8[", n, ",", k, "], %2 s: bf16[",
             n, ",1]) {\n  %3: bf16[", n, ",", k, "] = cast %1\n  %4: bf16[", n, ",", k,
             "] = expand %2\n  %5: bf16[", n, ",", k, "] = mul %3, %4\n  %6: bf16[", k, ",", n,
             "] = permute %5 {axes=[1,0]}\n  %7: bf16[", rows, ",", n,
             "] = matmul %0, %6\n  return %7\n}\n");
}

std::string product(const std::string& a, const std::string& b, const std::string& result) {
  return str("graph g(%0 x: ", a, ", %1 w: ", b, ") {\n  %2: ", result,
             " = matmul %0, %1\n  return %2\n}\n");
}

bool has_product(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op == Op::matmul; });
}

bool becomes_sums(const std::string& text) {
  return !has_product(thin_products(parse_graph(text)));
}

// Small whole numbers, whose sums are exact in any order.
std::vector<Tensor> whole_numbers(const Graph& graph) {
  std::vector<Tensor> inputs;
  int64_t next = 3;
  for (const int id : graph.inputs()) {
    const Type& type = graph[id].type;
    const int64_t count = tiny_compile::product(type.shape).constant();
    std::string text;
    for (int64_t i = 0; i < count; i++) text += str((next = next * 7 % 11) - 5, " ");
    inputs.push_back(tensor_of(type, text));
  }
  return inputs;
}

}  // namespace

TEST_CASE("a product of one row is a sum along the other's rows", "[thin_products]") {
  const Graph graph = graph_of(
      "%0 x: bf16[1,24], %1 w: bf16[7,24]",
      "%2: bf16[24,7] = permute %1 {axes=[1,0]}; %3: bf16[1,7] = matmul %0, %2; return %3");
  CHECK(print(dce(simplify(thin_products(graph)))) ==
        print(graph_of("%0 x: bf16[1,24], %1 w: bf16[7,24]",
                       "%2: f32[1,24] = cast %0; %3: f32[7,24] = cast %1; "
                       "%4: f32[7,24] = expand %2; %5: f32[7,24] = mul %4, %3; "
                       "%6: f32[7] = sum %5 {axes=[1]}; %7: f32[] = constant {value=0.0}; "
                       "%8: f32[7] = expand %7; %9: f32[7] = add %6, %8; "
                       "%10: bf16[7] = cast %9; %11: bf16[1,7] = reshape %10; return %11")));
}

TEST_CASE("few rows are sums where the library does badly", "[thin_products]") {
  CHECK(becomes_sums(of_bytes(4, 64, 32)));
  CHECK_FALSE(becomes_sums(of_bytes(5, 64, 32)));
  const auto turned = [](const char* dtype, int64_t terms, int64_t rows = 4) {
    return str("graph g(%0 x: ", dtype, "[", rows, ",", terms, "], %1 w: ", dtype, "[32,",
               terms, "]) {\n  %2: ", dtype, "[", terms,
               ",32] = permute %1 {axes=[1,0]}\n  %3: ", dtype, "[", rows,
               ",32] = matmul %0, %2\n  return %3\n}\n");
  };
  CHECK(becomes_sums(turned("bf16", 65)));  // odd rows
  CHECK_FALSE(becomes_sums(turned("bf16", 65, 5)));
  CHECK_FALSE(becomes_sums(turned("bf16", 64)));
  CHECK_FALSE(becomes_sums(turned("f32", 65)));
  CHECK_FALSE(becomes_sums(product("bf16[4,65]", "bf16[65,32]", "bf16[4,32]")));
  CHECK_FALSE(becomes_sums(product("f32[4,65]", "f32[65,32]", "f32[4,32]")));
  CHECK(becomes_sums(product("f32[40,65]", "f32[65,1]", "f32[40,1]")));  // a column
  CHECK_FALSE(becomes_sums(product("f64[1,65]", "f64[65,32]", "f64[1,32]")));
  CHECK_FALSE(becomes_sums(product("f32[1,0]", "f32[0,32]", "f32[1,32]")));  // no sum at all
  CHECK_FALSE(
      becomes_sums("graph g[n: 1..64](%0 x: f32[1,n], %1 w: f32[n,32]) {\n"
                   "  %2: f32[1,32] = matmul %0, %1\n  return %2\n}\n"));
}

TEST_CASE("a factor that a batch shares is used by all of it", "[thin_products]") {
  const auto shared = [](int64_t batch, int64_t rows) {
    return str("graph g(%0 x: f32[", batch, ",", rows, ",8], %1 w: f32[8,32]) {\n  %2: f32[",
               batch, ",8,32] = expand %1\n  %3: f32[", batch, ",", rows,
               ",32] = matmul %0, %2\n  return %3\n}\n");
  };
  CHECK(becomes_sums(shared(1, 1)));
  CHECK_FALSE(becomes_sums(shared(64, 1)));
  CHECK_FALSE(becomes_sums(shared(2, 1)));
  CHECK_FALSE(becomes_sums(shared(2, 4)));
}

TEST_CASE("a sum of nothing but negative zeros is a positive one", "[thin_products]") {
  const Graph graph = parse_graph(product("f32[1,2]", "f32[2,3]", "f32[1,3]"));
  const std::vector<Tensor> inputs = {tensor_of(graph[0].type, "0 0"),
                                      tensor_of(graph[1].type, "-1 -1 -1 -1 -1 -1")};
  CHECK(same_bits(interpret(graph, inputs)[0], interpret(thin_products(graph), inputs)[0]));
}

TEST_CASE("beside a size, products keep their bits and their rows", "[thin_products]") {
  const Graph graph = parse_graph(
      "graph g[n: 1..64](%0 x: bf16[1,64], %1 w: bf16[64,32], %2 y: f32[n]) {\n"
      "  %3: bf16[1,32] = matmul %0, %1\n  %4: f32[n] = exp %2\n  return %3, %4\n}\n");
  const Pipeline pipeline = with_library(default_pipeline(), Matmul::Library);
  CHECK(has_product(run_pipeline(pipeline, graph, true, Target::Cuda).graph));
}

TEST_CASE("products of windows are left alone", "[thin_products]") {
  const std::string windows =
      "graph g(%0 x: f32[40], %1 w: f32[3,1]) {\n"
      "  %2: f32[38,3] = window %0 {axis=0, step=1, size=3}\n"
      "  %3: f32[38,1] = matmul %2, %1\n  return %3\n}\n";
  CHECK_FALSE(becomes_sums(windows));
}

TEST_CASE("sums are the product, whichever factor has few rows", "[thin_products]") {
  for (const std::string& text : {of_bytes(1, 13, 7), of_bytes(3, 13, 7),
                                  product("f16[3,1,5]", "f16[3,5,9]", "f16[3,1,9]"),
                                  product("bf16[3,9,5]", "bf16[3,5,3]", "bf16[3,9,3]"),
                                  product("f32[2,3,9,5]", "f32[2,3,5,1]", "f32[2,3,9,1]"),
                                  product("f32[1,1]", "f32[1,1]", "f32[1,1]")}) {
    const Graph graph = parse_graph(text), sums = thin_products(graph);
    INFO(print(sums));
    REQUIRE_NOTHROW(verify(sums));
    CHECK_FALSE(has_product(sums));
    CHECK(sums[sums.outputs[0]].type == graph[graph.outputs[0]].type);
    const std::vector<Tensor> inputs = whole_numbers(graph);
    CHECK(same_bits(interpret(graph, inputs)[0], interpret(sums, inputs)[0]));
  }
}

TEST_CASE("weights of bytes are read where they are multiplied", "[thin_products]") {
  for (const int64_t rows : {1, 4}) {
    const Graph graph = parse_graph(of_bytes(rows, 896, 688));
    const Program program = run_pipeline(with_library(default_pipeline(), Matmul::Library),
                                         graph, true, Target::Cuda)
                                .program;
    INFO(print(program));
    CHECK(program.kernels.size() == 1);
  }
}

TEST_CASE("a sum in a product's place is told as an exception to the contract",
          "[thin_products]") {
  const auto exceptions = [](const std::string& text) {
    return explain_for(parse_graph(text), default_machine(Target::Cuda),
                       with_library(default_pipeline(), Matmul::Library))
        .exceptions;
  };
  REQUIRE(exceptions(of_bytes(1, 64, 32)).size() == 1);
  CHECK(exceptions(of_bytes(1, 64, 32))[0].starts_with("products of few rows that are sums"));
  const std::string inside =
      "graph g(%0 x: bf16[1,64], %1 w: bf16[64,32]) {\n  %2: (bf16[1,32]) = call %0, %1 {\n"
      "    graph f(%0 a: bf16[1,64], %1 b: bf16[64,32]) {\n"
      "      %2: bf16[1,32] = matmul %0, %1\n      return %2\n    }\n  }\n"
      "  %3: bf16[1,32] = item %2 {index=0}\n  return %3\n}\n";
  CHECK(exceptions(inside).size() == 1);
  REQUIRE(exceptions(of_bytes(16, 64, 32)).size() == 1);
  CHECK(exceptions(of_bytes(16, 64, 32))[0].find("cuBLASLt") != std::string::npos);
}
