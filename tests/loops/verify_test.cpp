// Each way in which a Program can be wrong is refused, and its kernel named.
#include <functional>

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/program.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// Scalars of rows_0: 0 load x, 1 r0, 2 sub. Of last_1: 0 load t, 1 neg.
Program sound() {
  return parse_program(R"(program f {
    input x: f32[8,4]
    temp t: f32[8,4]
    output y: f32[8,4]
    kernel rows_0 rows(i0: 8) {
      $0 = load x[i0*4 + j0]
      r0: f32 = max(j0: 4) $0
      store t[i0*4 + j0] for (j0: 4) = sub($0, r0)
    }
    kernel last_1 rows(i0: 32) {
      store y[i0] = neg(load t[i0])
    }
    launch rows_0
    launch last_1
    return y
  })");
}

void require_refused(const std::function<void(Program&)>& spoil, const std::string& message) {
  Program program = sound();
  spoil(program);
  INFO(message);
  REQUIRE_THROWS_WITH(verify(program), ContainsSubstring(message));
}

Expr beyond(int64_t count) { return Expr::index("i0", count); }

}  // namespace

TEST_CASE("a sound program passes", "[loops]") { REQUIRE_NOTHROW(verify(sound())); }

TEST_CASE("a schedule of another family is refused", "[loops]") {
  require_refused(
      [](Program& p) { p.kernels[0].schedule = Schedule{.strategy = Strategy::Tiles}; },
      "kernel rows_0: schedule tiles is for one dot and stores");
  require_refused(
      [](Program& p) { p.kernels[0].schedule = Schedule{.strategy = Strategy::Pointwise}; },
      "kernel rows_0: schedule pointwise is for stores alone");
}

TEST_CASE("an axis without elements is refused", "[loops]") {
  require_refused([](Program& p) { p.kernels[0].axes[1].extent = 0; },
                  "kernel rows_0: j0 counts to 0: what is empty has no kernel");
  require_refused([](Program& p) { p.kernels[1].axes[0].extent = 0; },
                  "kernel last_1: i0 counts to 0");
}

TEST_CASE("kernels run once, after what they read is written", "[loops]") {
  require_refused([](Program& p) { std::swap(p.launches[0], p.launches[1]); },
                  "kernel last_1 reads t before it is written");
  require_refused([](Program& p) { p.launches.pop_back(); },
                  "kernel last_1 is launched 0 times");
  require_refused([](Program& p) { p.launches = {{0, 1}}; }, "reads t before it is written");
  require_refused([](Program& p) { p.launches.push_back({7}); },
                  "kernel 7, which is not there");
  require_refused([](Program& p) { p.launches.push_back({1}); }, "writes y, which is complete");
  require_refused(
      [](Program& p) {
        p.outputs.push_back(0), p.outputs[0] = 1;
        p.launches.clear(), p.kernels.clear();
      },
      "output t is never written");
  require_refused([](Program& p) { p.outputs[0] = 1; },
                  "returns t, a temporary, which ends with the call");
}

TEST_CASE("axes have names of their own, and kernels have steps", "[loops]") {
  require_refused([](Program& p) { p.kernels[0].axes[1].name = "i0"; },
                  "kernel rows_0: two axes have one name");
  require_refused([](Program& p) { p.kernels[1].rows = 2; }, "more rows than axes");
  require_refused([](Program& p) { p.kernels[1].steps.clear(); }, "");
}

TEST_CASE("scalars use earlier ones, of dtypes that suit", "[loops]") {
  require_refused([](Program& p) { p.kernels[0].scalars[2].operands[0] = 2; },
                  "scalar $2 uses $2, which is not earlier");
  require_refused([](Program& p) { p.kernels[0].scalars[2].operands.pop_back(); },
                  "sub with 1 operands");
  require_refused([](Program& p) { p.kernels[0].scalars[2].dtype = DType::f64; },
                  "$2 is f64, not f32");
  require_refused([](Program& p) { p.kernels[0].scalars[0].dtype = DType::i32; },
                  "$0 is i32 but its buffer is not");
  require_refused([](Program& p) { p.kernels[0].scalars[0].buffer = 9; },
                  "$0 loads from no buffer");
  require_refused([](Program& p) { p.kernels[1].scalars[1].op = Op::bitwise_not; },
                  "bitwise_not of f32");
  require_refused([](Program& p) { p.kernels[1].scalars[1].mask = 0; },
                  "the mask of $1 is no bool");
  require_refused([](Program& p) { p.kernels[0].scalars[0].limits.push_back(4); },
                  "places without limits");
}

TEST_CASE("registers are made before they are read", "[loops]") {
  require_refused([](Program& p) { p.kernels[0].scalars[1].step = 1; },
                  "reads a register that no step makes");
  require_refused([](Program& p) { p.kernels[0].steps[0].dtype = DType::f64; },
                  "$1 reads a register of another dtype");
  require_refused([](Program& p) { p.kernels[0].steps[0].value = 2; },
                  "step 0 reads a register before it is made");
}

TEST_CASE("no access leaves its buffer, no symbol its loop", "[loops]") {
  require_refused([](Program& p) { p.kernels[1].scalars[0].index = beyond(33); },
                  "leaves the buffer's 32 elements");
  require_refused([](Program& p) { p.kernels[1].steps[0].index = beyond(32) - 1; },
                  "leaves the buffer's 32 elements");
  require_refused([](Program& p) { p.kernels[0].steps[1].inner.clear(); },
                  "step 1 uses j0 outside its loop");
  require_refused([](Program& p) { p.kernels[0].steps[0].inner = {0}; },
                  "step 0 loops over a row");
}

TEST_CASE("steps have a value, and somewhere to put it", "[loops]") {
  require_refused([](Program& p) { p.kernels[1].steps[0].value = -1; }, "step 0 has no value");
  require_refused([](Program& p) { p.buffers[2].type.dtype = DType::f64; },
                  "stores another dtype than its buffer's");
}

TEST_CASE("points do not share a place", "[loops]") {
  require_refused([](Program& p) { p.kernels[1].steps[0].index = 7; },
                  "step 0 stores 32 values of i0 in one place");
  require_refused([](Program& p) { p.kernels[0].steps[1].index = Expr::index("j0", 4); },
                  "step 1 stores 8 values of i0 in one place");
  require_refused([](Program& p) { p.kernels[0].steps[1].index = Expr::index("i0", 8); },
                  "step 1 stores 4 values of j0 in one place");
}

TEST_CASE("temporaries that live together have room apart, within the arena", "[loops]") {
  require_refused([](Program& p) { p.buffers[1].place = 0; }, "t ends beyond the arena");
}

TEST_CASE("every stage of random graphs is sound", "[loops]") {
  for (uint64_t seed = 1; seed <= 150; seed++)
    REQUIRE_NOTHROW(run_pipeline(default_pipeline(), random_graph(seed, 30), true));
}

// Found by random graphs: the mask of what stands at a place that data chooses.
TEST_CASE("what is gathered from a concat is read where it is proved to be", "[loops]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[3]) {
  %1: f32[2048] = constant {value=1.0}
  %2: f32[2051] = concat %0, %1 {axis=0}
  %3: f32[1] = max %2 {axes=[0], keepdim=1}
  %4: f32[2051] = expand %3
  %5: f32[2051] = maximum %2, %4
  %6: i64[3] = cast %0
  %7: i64[3] = constant {value=2051}
  %8: i64[3] = remainder %6, %7
  %9: f32[3] = gather %5, %8 {axis=0}
  return %9, %5
})");
  const std::vector<Tensor> inputs = random_inputs(graph, 7);
  const Program program = run_pipeline(default_pipeline(), graph, true).program;
  REQUIRE(same_bits(interpret(program, inputs)[0], interpret(graph, inputs)[0]));
}

// Found by random gradients: pads of slices of pads, windows over them, and sums cut in chunks.
TEST_CASE("a mask speaks of sums, of quotients and of remainders", "[verify]") {
  for (const char* text :
       {"graph f(%0 x: f32[16]) {\n%1: f32[17] = pad %0 {low=[0], high=[1], value=0.0}\n"
        "%2: f32[16] = slice %1 {axis=0, start=1, stop=17, step=1}\n"
        "%3: f32[18] = pad %2 {low=[0], high=[2], value=0.0}\nreturn %3\n}\n",
        "graph f(%0 x: f32[3,85]) {\n%1: f32[85,3] = permute %0 {axes=[1,0]}\n"
        "%2: f32[255] = reshape %1\n%3: f32[256] = pad %2 {low=[0], high=[1], value=0.0}\n"
        "%4: f32[16,8,2] = reshape %3\nreturn %4\n}\n",
        "graph f(%0 x: f32[3,2]) {\n%1: f32[5,2] = pad %0 {low=[1,0], high=[1,0], value=0.0}\n"
        "%2: f32[10] = reshape %1\n%3: f32[4,4] = window %2 {axis=0, step=2, size=4}\n"
        "return %3\n}\n",
        "graph f(%0 x: f32[2,1]) {\n%1: f32[2,20000] = expand %0\n"
        "%2: f32[] = prod %1 {axes=[0,1]}\nreturn %2\n}\n"}) {
    INFO(text);
    REQUIRE_NOTHROW(run_pipeline(default_pipeline(), parse_graph(text), true));
  }
}

// Found by random shapes: sums over all of a product with a tensor that is the same along a middle axis.
TEST_CASE("a mask speaks of quotients of quotients", "[verify]") {
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    for (const char* text :
         {"graph f(%0 x: f32[300,65,32], %1 y: f32[300,1,32]) {\n%2: f32[300,65,32] = expand "
          "%1\n"
          "%3: f32[300,65,32] = mul %0, %2\n%4: f32[] = sum %3 {axes=[0,1,2]}\nreturn %4\n}\n",
          "graph f(%0 x: f32[128,75,2], %1 y: f32[128,75,1]) {\n"
          "%2: f32[128,74,2] = slice %0 {axis=1, start=1, stop=75, step=1}\n"
          "%3: f32[128,74,1] = slice %1 {axis=1, start=1, stop=75, step=1}\n"
          "%4: f32[128,74,2] = expand %3\n%5: f32[128,74,2] = mul %2, %4\n"
          "%6: f32[] = prod %5 {axes=[0,1,2]}\nreturn %6\n}\n"}) {
      INFO(text);
      REQUIRE_NOTHROW(run_pipeline(default_pipeline(), parse_graph(text), true, target));
    }
  }
}

// Found by GPT-2's step: the square of a transposed gradient's norm, in chunks for a GPU's blocks.
TEST_CASE("a mask speaks of the higher digits of what it counts", "[verify]") {
  const Graph plain = parse_graph(
      "graph f(%0 x: f32[3,1024,768]) {\n%1: f32[768,3,1024] = permute %0 {axes=[2,0,1]}\n"
      "%2: f32[] = sum %1 {axes=[0,1,2]}\nreturn %2\n}\n");
  REQUIRE_NOTHROW(run_pipeline(default_pipeline(), plain, true, Target::Cuda));
  const Graph padded = parse_graph(
      "graph f(%0 x: bf16[768,64], %1 y: bf16[64,50257]) {\n%2: bf16[768,50257] = matmul %0, "
      "%1\n"
      "%3: bf16[50257,768] = permute %2 {axes=[1,0]}\n%4: f32[50257,768] = cast %3\n"
      "%5: f32[] = sum %4 {axes=[0,1]}\nreturn %5\n}\n");
  const Pipeline library = with_library(default_pipeline(), Matmul::Library);
  REQUIRE_NOTHROW(run_pipeline(library, padded, true, Target::Cuda));
}
