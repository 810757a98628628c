// The order of launches: never one that needs more memory, sometimes one that needs less.
#include "tiny_compile/loops/order.h"

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"

using namespace tiny_compile;

namespace {

// All long values first, then their sums: the order in which a user may write it.
Program breadth_first(int branches) {
  std::string buffers = "program f {\n  input x: f32[1024]\n", first, second, launches, last;
  for (int k = 0; k < branches; k++) {
    buffers += str("  temp t", k, ": f32[1024]\n  output y", k, ": f32[1]\n");
    first += str("  kernel exp_", k, " rows(i0: 1024) {\n    store t", k,
                 "[i0] = mul(exp(load x[i0]), f32 ", k, ".0)\n  }\n");
    second += str("  kernel sum_", k, " rows(i0: 1) {\n    r0: f32 = sum(j0: 1024) load t", k,
                  "[j0]\n    store y", k, "[i0] = r0\n  }\n");
    launches += str("  launch exp_", k, "\n");
    last += str("  launch sum_", k, "\n");
  }
  std::string outputs = "y0";
  for (int k = 1; k < branches; k++) outputs += str(", y", k);
  return parse_program(buffers + first + second + launches + last + "  return " + outputs +
                       "\n}\n");
}

}  // namespace

TEST_CASE("a long value is read before the next one is made", "[order]") {
  const Program program = breadth_first(5);
  REQUIRE(peak_bytes(program) == 5 * 4096);
  const Program better = order_launches(program);
  verify(better);
  REQUIRE(peak_bytes(better) == 4096);
  REQUIRE(plan_memory(program).arena_bytes == 4096);
  REQUIRE(better.kernels[0].name == "exp_0");
  REQUIRE(better.kernels[1].name == "sum_0");
}

TEST_CASE("an order that saves nothing is left as it is", "[order]") {
  const Program program = breadth_first(1);
  REQUIRE(order_launches(program) == program);
}

TEST_CASE("random programs keep their results and need no more memory", "[order]") {
  const Pipeline pipeline = until(default_pipeline(), "fuse");
  int better = 0;
  for (uint64_t seed = 4180; seed < 4330; seed++) {
    const Graph graph = random_graph(seed);
    const Program program = run_pipeline(pipeline, graph, false).program;
    const Program ordered = order_launches(program);
    INFO(print(program));
    verify(ordered);
    REQUIRE(peak_bytes(ordered) <= peak_bytes(program));
    if (ordered == program) continue;
    better++;
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    std::vector<Tensor> want, got;
    try {
      want = interpret(program, inputs);
    } catch (const Error&) {
      continue;  // inputs that no order likes
    }
    got = interpret(ordered, inputs);
    for (size_t k = 0; k < want.size(); k++) REQUIRE(same_bits(want[k], got[k]));
  }
  REQUIRE(better > 0);
}
