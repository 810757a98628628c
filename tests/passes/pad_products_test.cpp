// Which factors of a product get zeros behind them, and what that leaves of the result.
#include "tests/fuzz/random_graph.h"
#include "tests/passes/rewrites.h"
#include "tiny_compile/graph/interpreter.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

Graph always(const Graph& graph) { return pad_products(graph, true); }
Graph as_it_is(const Graph& graph) { return pad_products(graph); }

}  // namespace

TEST_CASE("both factors get zeros behind the axis that is summed over", "[pad_products]") {
  check_becomes(always, "%0 x: bf16[3,13], %1 w: bf16[13,16]",
                "%2: bf16[3,16] = matmul %0, %1; return %2",
                "%2: bf16[3,16] = pad %0 {low=[0,0], high=[0,3], value=0.0}; "
                "%3: bf16[16,16] = pad %1 {low=[0,0], high=[3,0], value=0.0}; "
                "%4: bf16[3,16] = matmul %2, %3; return %4");
}

TEST_CASE("columns of zeros are cut off the result", "[pad_products]") {
  check_becomes(always, "%0 x: f16[3,16], %1 w: f16[16,9]",
                "%2: f16[3,9] = matmul %0, %1; return %2",
                "%2: f16[16,16] = pad %1 {low=[0,0], high=[0,7], value=0.0}; "
                "%3: f16[3,16] = matmul %0, %2; "
                "%4: f16[3,9] = slice %3 {axis=1, start=0, stop=9, step=1}; return %4");
}

TEST_CASE("a narrow result's rows are whole 16 bytes too, whichever way its factor lies",
          "[pad_products]") {
  check_becomes(
      always, "%0 x: bf16[11,16], %1 w: bf16[9,16]",
      "%2: bf16[16,9] = permute %1 {axes=[1,0]}; %3: bf16[11,9] = matmul %0, %2; return %3",
      "%2: bf16[16,16] = pad %1 {low=[0,0], high=[7,0], value=0.0}; "
      "%3: bf16[16,16] = permute %2 {axes=[1,0]}; %4: bf16[11,16] = matmul %0, %3; "
      "%5: bf16[11,9] = slice %4 {axis=1, start=0, stop=9, step=1}; return %5");
}

TEST_CASE("a wide result's factor stays, where it is even as it lies", "[pad_products]") {
  check_stays(always, "%0 x: bf16[2,16], %1 w: bf16[9,16]",
              "%2: bf16[16,9] = permute %1 {axes=[1,0]}; %3: bf16[2,9] = matmul %0, %2; "
              "return %3");
}

TEST_CASE("a transposed factor keeps its order in memory", "[pad_products]") {
  check_becomes(
      always, "%0 x: bf16[16,9], %1 w: bf16[16,24]",
      "%2: bf16[9,16] = permute %0 {axes=[1,0]}; %3: bf16[9,24] = matmul %2, %1; return %3",
      "%2: bf16[16,16] = pad %0 {low=[0,0], high=[0,7], value=0.0}; "
      "%3: bf16[16,16] = permute %2 {axes=[1,0]}; %4: bf16[16,24] = matmul %3, %1; "
      "%5: bf16[9,24] = slice %4 {axis=0, start=0, stop=9, step=1}; return %5");
}

TEST_CASE("a factor of two products is padded once", "[pad_products]") {
  check_becomes(always, "%0 x: bf16[8,13], %1 w: bf16[13,16], %2 v: bf16[13,16]",
                "%3: bf16[8,16] = matmul %0, %1; %4: bf16[8,16] = matmul %0, %2; return %3, %4",
                "%3: bf16[8,16] = pad %0 {low=[0,0], high=[0,3], value=0.0}; "
                "%4: bf16[16,16] = pad %1 {low=[0,0], high=[3,0], value=0.0}; "
                "%5: bf16[8,16] = matmul %3, %4; "
                "%6: bf16[16,16] = pad %2 {low=[0,0], high=[3,0], value=0.0}; "
                "%7: bf16[8,16] = matmul %3, %6; return %5, %7");
}

TEST_CASE("whole 16 bytes, floats of four and axes that do not lie side by side stay",
          "[pad_products]") {
  for (const char* types :
       {"%0 x: bf16[3,16], %1 w: bf16[16,8]", "%0 x: f16[7,8], %1 w: f16[8,24]"})
    check_stays(always, types,
                std::string("%2: ") + (types[6] == 'b' ? "bf16[3,8]" : "f16[7,24]") +
                    " = matmul %0, %1; return %2");
  check_stays(always, "%0 x: f32[3,13], %1 w: f32[13,9]",
              "%2: f32[3,9] = matmul %0, %1; return %2");
  check_stays(always, "%0 x: bf16[13,16], %1 w: bf16[13,8]",
              "%2: bf16[16,13] = permute %0 {axes=[1,0]}; %3: bf16[16,8] = matmul %2, %1; "
              "return %3");
}

TEST_CASE("it must be worth the copies", "[pad_products]") {
  const auto padded = [](int64_t m, int64_t k, int64_t n, int64_t batches = 1) {
    const Graph graph =
        parse_graph(str("graph g(%0 x: bf16[", batches, ",", m, ",", k, "], %1 w: bf16[",
                        batches, ",", k, ",", n, "]) {\n  %2: bf16[", batches, ",", m, ",", n,
                        "] = matmul %0, %1\n  return %2\n}\n"));
    return !(as_it_is(graph) == graph);
  };
  CHECK(padded(4096, 2389, 1024));
  CHECK(padded(2048, 1025, 2048));
  CHECK(padded(1807, 1536, 3071));
  CHECK(padded(256, 2389, 256));  // 2389 steps, one after another
  CHECK(padded(257, 257, 128, 1024));
  CHECK_FALSE(padded(32768, 1001, 64));  // each of x is used 64 times
  CHECK_FALSE(padded(300, 300, 300));    // rows of whole 8 bytes lose less
  CHECK_FALSE(padded(64, 65, 64));       // two launches take longer
}

TEST_CASE("the padded product is the same bits", "[pad_products]") {
  for (const auto& [m, k, n] : {std::tuple{7, 13, 9}, {1, 1, 1}, {16, 31, 8}, {9, 8, 17}}) {
    for (const bool transposed : {false, true}) {
      const std::string x = transposed ? str(k, ",", m) : str(m, ",", k);
      const Graph graph = parse_graph(str(
          "graph g(%0 x: bf16[2,", x, "], %1 w: bf16[2,", k, ",", n, "]) {\n",
          transposed
              ? str("  %2: bf16[2,", m, ",", k, "] = permute %0 {axes=[0,2,1]}\n  %3: bf16[2,",
                    m, ",", n, "] = matmul %2, %1\n  return %3\n}\n")
              : str("  %2: bf16[2,", m, ",", n, "] = matmul %0, %1\n  return %2\n}\n")));
      INFO(print(graph));
      const Graph padded = always(graph);
      verify(padded);
      const std::vector<Tensor> inputs = random_inputs(graph, 3);
      CHECK(same_bits(interpret(graph, inputs)[0], interpret(padded, inputs)[0]));
    }
  }
}
