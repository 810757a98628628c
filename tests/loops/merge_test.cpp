// When do the loops of two kernels become one? Each way in which they do not, and its reason.
#include "tiny_compile/loops/merge.h"

#include "tests/loops/refusals.h"

using namespace tiny_compile;
using tests::require_refusal;

namespace {

// The one kernel that a graph becomes.
std::string fused_kernel(const std::string& graph) {
  const Program program = fuse(lower(parse_graph(graph)));
  verify(program);
  INFO(print(program) << join(program.refusals, "\n"));
  REQUIRE(program.kernels.size() == 1);
  return print(program, program.kernels[0]);
}

}  // namespace

TEST_CASE("a reader of a row's result joins the row", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[8,4]) {
    %1: f32[8,1] = max %0 {axes=[1], keepdim=1}
    %2: f32[8,4] = expand %1
    %3: f32[8,4] = sub %0, %2
    return %3
  })") == R"(  kernel max_sub_3 rows(i0: 8) {
    $0 = load x[i0*4 + j0]
    r0: f32 = max(j0: 4) $0
    store y3[i0*4 + j0] for (j0: 4) = sub($0, r0)
  }
)");
}

TEST_CASE("a reshape's loops are cut until both sides have them", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[12], %1 y: f32[3,4]) {
    %2: f32[12] = exp %0
    %3: f32[3,4] = reshape %2
    %4: f32[3,4] = add %3, %1
    return %4, %2
  })") == R"(  kernel exp_add_4 rows(i0: 3, i1: 4) {
    $1 = exp(load x[i0*4 + i1])
    store y2[i0*4 + i1] = $1
    store y4[i0*4 + i1] = add($1, load y[i0*4 + i1])
  }
)");
}

TEST_CASE("a loop goes over what one as long was cut into", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[8,4], %1 y: f32[8,2,2], %2 z: f32[8,4]) {
    %3: f32[8,1] = max %0 {axes=[1], keepdim=1}
    %4: f32[8,4] = expand %3
    %5: f32[8,4] = sub %0, %4
    %6: f32[8,2,2] = reshape %5
    %7: f32[8,2,2] = mul %6, %1
    %8: f32[8,4] = sub %2, %4
    return %7, %8
  })") == R"(  kernel max_sub_mul_sub_8 rows(i0: 8) {
    $0 = load x[i0*4 + j0*2 + j1]
    r0: f32 = max(j0: 2, j1: 2) $0
    store y7[i0*4 + j0*2 + j1] for (j0: 2, j1: 2) = mul(sub($0, r0), load y[i0*4 + j0*2 + j1])
    store y8[i0*4 + j0*2 + j1] for (j0: 2, j1: 2) = sub(load z[i0*4 + j0*2 + j1], r0)
  }
)");
}

TEST_CASE("reductions over the same rows share their reads", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[8,4]) {
    %1: f32[8] = sum %0 {axes=[1]}
    %2: f32[8] = max %0 {axes=[1]}
    return %1, %2
  })") == R"(  kernel sum_max_2 rows(i0: 8) {
    $0 = load x[i0*4 + j0]
    r0: f32 = sum(j0: 4) $0
    store y1[i0] = r0
    r2: f32 = max(j0: 4) $0
    store y2[i0] = r2
  }
)");
}

TEST_CASE("rows with gaps share their reads where all have the same", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[8,4] {strides=[10,2]}) {
    %1: f32[8] = sum %0 {axes=[1]}
    %2: f32[8] = max %0 {axes=[1]}
    return %1, %2
  })") == R"(  kernel sum_max_2 rows(i0: 8) {
    $0 = load x[i0*10 + j0*2]
    r0: f32 = sum(j0: 4) $0
    store y1[i0] = r0
    r2: f32 = max(j0: 4) $0
    store y2[i0] = r2
  }
)");
  require_refusal(R"(graph f(%0 x: f32[8,4] {strides=[10,2]}) {
    %1: f32[8,2] = slice %0 {axis=1, start=0, stop=4, step=2}
    %2: f32[8] = sum %1 {axes=[1]}
    %3: f32[8] = max %0 {axes=[1]}
    return %2, %3
  })",
                  "they read other places", 2);
}

TEST_CASE("the same part of each row is read once", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[8,100]) {
    %1: f32[8,60] = slice %0 {axis=1, start=40, stop=100, step=1}
    %2: f32[8] = sum %1 {axes=[1]}
    %3: f32[8] = max %1 {axes=[1]}
    return %2, %3
  })") == R"(  kernel sum_max_3 rows(i0: 8) {
    $0 = load x[i0*100 + j0 + 40]
    r0: f32 = sum(j0: 60) $0
    store y2[i0] = r0
    r2: f32 = max(j0: 60) $0
    store y3[i0] = r2
  }
)");
  require_refusal(R"(graph f(%0 x: f32[8,100]) {
    %1: f32[8,60] = slice %0 {axis=1, start=40, stop=100, step=1}
    %2: f32[8,60] = slice %0 {axis=1, start=30, stop=90, step=1}
    %3: f32[8] = sum %1 {axes=[1]}
    %4: f32[8] = max %2 {axes=[1]}
    return %3, %4
  })",
                  "they read other places", 2);
}

TEST_CASE("rows that lie in pieces are read once where both have the same pieces", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[6,4,10]) {
    %1: f32[4,6,10] = permute %0 {axes=[1,0,2]}
    %2: f32[4,3,20] = reshape %1
    %3: f32[4,3] = sum %2 {axes=[2]}
    %4: f32[4,3] = max %2 {axes=[2]}
    return %3, %4
  })")
              .find("r2: f32 = max(") != std::string::npos);
}

TEST_CASE("an element chosen by data is computed again at its place", "[merge]") {
  REQUIRE(fused_kernel(R"(graph f(%0 x: f32[8,4], %1 k: i64[8,1]) {
    %2: f32[8,1] = max %0 {axes=[1], keepdim=1}
    %3: f32[8,4] = expand %2
    %4: f32[8,4] = sub %0, %3
    %5: f32[8,1] = gather %4, %1 {axis=1}
    return %5
  })") == R"(  kernel max_sub_gather_5 rows(i0: 8) {
    r0: f32 = max(j0: 4) load x[i0*4 + j0]
    store y5[i0] = sub(load x[at0 + i0*4; at0 = load k[i0] < 4], r0)
  }
)");
}

TEST_CASE("a running sum's readers wait until its row is finished", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8,64] = cumsum %0 {axis=1}
    %2: f32[8,64] = exp %1
    return %2
  })",
                  "its result is known only once the row is finished", 2);
}

TEST_CASE("a GPU's scatter does not go down columns with sums", "[merge]") {
  const Graph graph =
      parse_graph(R"(graph f(%0 x: f32[512,16], %1 p: i64[512,1], %2 w: f32[40,16]) {
    %3: f32[512,16] = exp %0
    %4: f32[16] = sum %3 {axes=[0]}
    %5: i64[512,16] = expand %1
    %6: f32[40,16] = scatter_add %2, %5, %3 {axis=0}
    return %4, %6
  })");
  const Program gpu = fuse(for_machine(lower(graph), default_machine(Target::Cuda)));
  INFO(print(gpu));
  REQUIRE(gpu.kernels.size() == 2);
  CHECK(gpu.kernels[1].steps.size() == 2);  // its base and itself
}

TEST_CASE("a matmul's operands are computed before it", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,16], %1 y: f32[16,8]) {
    %2: f32[8,16] = exp %0
    %3: f32[8,8] = matmul %2, %1
    return %3
  })",
                  "a matmul reads its operands many times: they stay in memory", 2);
}

TEST_CASE("a reduction of a matmul's rows is a kernel of its own", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,16], %1 y: f32[16,8]) {
    %2: f32[8,8] = matmul %0, %1
    %3: f32[8] = sum %2 {axes=[1]}
    return %3
  })",
                  "a matmul's epilogue works on one element at a time", 2);
}

TEST_CASE("two matmuls of one input stay two", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,16], %1 y: f32[16,8], %2 z: f32[16,8]) {
    %3: f32[8,8] = matmul %0, %1
    %4: f32[8,8] = matmul %0, %2
    return %3, %4
  })",
                  "matmuls share no loops", 2);
}

TEST_CASE("sums along two axes do not become one loop", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8] = sum %0 {axes=[1]}
    %2: f32[64] = sum %0 {axes=[0]}
    return %1, %2
  })",
                  "their rows differ", 2);
}

TEST_CASE("a sum across rows that are still being made waits for them", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8,1] = max %0 {axes=[1], keepdim=1}
    %2: f32[8,64] = expand %1
    %3: f32[8,64] = sub %0, %2
    %4: f32[64] = sum %3 {axes=[0]}
    return %3, %4
  })",
                  "their rows differ", 2);
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8] = max %0 {axes=[1]}
    %2: f32[] = sum %1 {axes=[0]}
    return %2
  })",
                  "their rows differ", 2);
}

TEST_CASE("a reversed row is read elsewhere than it is written", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8] = max %0 {axes=[1]}
    %2: f32[8] = flip %1 {axes=[0]}
    %3: f32[8] = exp %2
    return %3
  })",
                  "it reads other places than the ones written at the same point", 2);
}

TEST_CASE("loops of 6 by 10 and of 4 by 15 have no common pieces", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[6,10,4]) {
    %1: f32[6,10] = max %0 {axes=[2]}
    %2: f32[4,15] = reshape %1
    %3: f32[4] = sum %2 {axes=[1]}
    return %3
  })",
                  "their loops do not divide each other", 2);
}

TEST_CASE("rows chosen by data are not those at hand", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[8,4], %1 k: i64[5]) {
    %2: f32[8] = max %0 {axes=[1]}
    %3: f32[5] = gather %2, %1 {axis=0}
    return %3
  })",
                  "it reads rows chosen by data", 2);
}

TEST_CASE("data's choice among all elements of two loops is two choices", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[6,10], %1 k: i64[5]) {
    %2: f32[6,1] = max %0 {axes=[1], keepdim=1}
    %3: f32[6,10] = expand %2
    %4: f32[6,10] = sub %0, %3
    %5: f32[60] = reshape %4
    %6: f32[5] = gather %5, %1 {axis=0}
    return %6, %4
  })",
                  "it chooses two places by data", 2);
}

TEST_CASE("a vector repeated over rows of reductions is not made for each", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[4], %1 y: f32[16,4]) {
    %2: f32[4] = exp %0
    %3: f32[16,4] = expand %2
    %4: f32[16,4] = mul %1, %3
    %5: f32[16] = sum %4 {axes=[1]}
    return %5
  })",
                  "it repeats the whole result, outside its loops", 2);
}

TEST_CASE("one long row is not worked through alone", "[merge]") {
  require_refusal(R"(graph f(%0 x: f32[100000]) {
    %1: f32[1] = max %0 {axes=[0], keepdim=1}
    %2: f32[100000] = expand %1
    %3: f32[100000] = sub %0, %2
    return %3
  })",
                  "few rows would each run a long loop alone", 2);
}

TEST_CASE("a kernel has no more than 32 reductions", "[merge]") {
  std::string text = "graph f(%0 x: f32[8,4]) {\n";
  int last = 0;
  for (int k = 0; k < 40; k++, last += 3) {
    text += str("%", last + 1, ": f32[8,1] = max %", last, " {axes=[1], keepdim=1}\n");
    text += str("%", last + 2, ": f32[8,4] = expand %", last + 1, "\n");
    text += str("%", last + 3, ": f32[8,4] = sub %", last, ", %", last + 2, "\n");
  }
  require_refusal(text + str("return %", last, "\n}"), "together they have too many reductions",
                  2);
}

TEST_CASE("a long kernel is not copied into an earlier one", "[merge]") {
  std::string text =
      "graph f(%0 x: f32[4], %1 z: f32[4]) {\n%2: f32[4] = cumsum %0 {axis=0}\n"
      "%3: f32[4] = exp %1\n%4: f32[4] = sin %2\n";
  int last = 4;
  for (; last < 1100; last++) text += str("%", last + 1, ": f32[4] = sin %", last, "\n");
  text += str("%", last + 1, ": f32[4] = add %", last, ", %3\nreturn %", last + 1, "\n}");
  require_refusal(text, "it is too long to be copied", 3);
}

TEST_CASE("a channel that memory alone holds is not gone over by one block", "[merge]") {
  const auto kernels = [](const std::string& shape, Target target) {
    const std::string x = "f32" + shape, mean = "f32[1,192,1,1]";
    Graph graph = parse_graph("graph f(%0 x: " + x + ") {\n%1: " + mean +
                              " = sum %0 {axes=[0,2,3], keepdim=1}\n%2: " + x +
                              " = expand %1\n%3: " + x + " = sub %0, %2\nreturn %3\n}");
    return fuse(for_machine(lower(graph), default_machine(target))).kernels.size();
  };
  CHECK(kernels("[32,192,96,96]", Target::Cuda) == 2);
  CHECK(kernels("[32,192,32,32]", Target::Cuda) == 1);   // the blocks of a cluster hold it
  CHECK(kernels("[184,192,28,28]", Target::Cuda) == 1);  // its last chunk is no whole one
  CHECK(kernels("[32,192,96,96]", Target::Cpp) == 1);
}
