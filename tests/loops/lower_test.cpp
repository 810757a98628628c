// What each op becomes: one kernel, before => after.
#include "tiny_compile/loops/lower.h"

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"

using namespace tiny_compile;

namespace {

Program lowered(const std::string& graph) {
  const Program program = lower(parse_graph("graph f" + graph));
  verify(program);
  return program;
}

// The text of the last kernel.
std::string kernel_of(const std::string& graph) {
  const Program program = lowered(graph);
  return print(program, program.kernels.back());
}

}  // namespace

TEST_CASE("an op on each element is rows and a store", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[8,4]) {
    %1: f32[8,4] = exp %0
    return %1
  })") == R"(  kernel exp_1 rows(i0: 8, i1: 4) {
    store y1[i0*4 + i1] = exp(load x[i0*4 + i1])
  }
)");
}

TEST_CASE("a view is no kernel: it is where its readers look", "[lower]") {
  const Program program = lowered(R"((%0 x: f32[4,6]) {
    %1: f32[6,4] = permute %0 {axes=[1,0]}
    %2: f32[6,4] = flip %1 {axes=[0]}
    %3: f32[3,4] = slice %2 {axis=0, start=0, stop=6, step=2}
    %4: f32[12] = reshape %3
    %5: f32[12] = neg %4
    return %5
  })");
  REQUIRE(program.kernels.size() == 1);
  REQUIRE(print(program, program.kernels[0]) == R"(  kernel neg_5 rows(i0: 12) {
    store y5[i0] = neg(load x[-(i0/4)*2 + (i0%4)*6 + 5])
  }
)");
}

TEST_CASE("windows and expanded axes read elements again", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[10], %1 y: f32[3]) {
    %2: f32[4,3] = window %0 {axis=0, size=3, step=2}
    %3: f32[4,3] = expand %1
    %4: f32[4,3] = mul %2, %3
    return %4
  })") == R"(  kernel mul_4 rows(i0: 4, i1: 3) {
    store y4[i0*3 + i1] = mul(load x[i0*2 + i1], load y[i1])
  }
)");
}

TEST_CASE("a reduction's axes are the step's loops, in the order listed", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[8,4,2]) {
    %1: f32[4] = sum %0 {axes=[2,0]}
    return %1
  })") == R"(  kernel sum_1 rows(i0: 4) {
    r0: f32 = sum(j0: 2, j1: 8) load x[i0*2 + j0 + j1*8]
    store y1[i0] = r0
  }
)");
}

TEST_CASE("axes of one element are no loops", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[1,4,1]) {
    %1: f32[1,1,1] = max %0 {axes=[0,1], keepdim=1}
    return %1
  })") == R"(  kernel max_1 rows() {
    r0: f32 = max(j0: 4) load x[j0]
    store y1[0] = r0
  }
)");
}

TEST_CASE("a matmul is a dot product an element", "[lower]") {
  REQUIRE(kernel_of(R"((%0 a: f32[8,4], %1 b: f32[4,6]) {
    %2: f32[8,6] = matmul %0, %1
    return %2
  })") == R"(  kernel matmul_2 rows(i0: 8, i1: 6) {
    r0: f32 = dot(j0: 4) load a[i0*4 + j0], load b[i1 + j0*6]
    store y2[i0*6 + i1] = r0
  }
)");
}

TEST_CASE("padding masks what lies outside", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[4]) {
    %1: f32[7] = pad %0 {low=[1], high=[2], value=3}
    return %1
  })") == R"(  kernel pad_1 rows(i0: 7) {
    $0 = index[i0 - 1]
    store y1[i0] = load x[i0 - 1] if bitwise_and(ge($0, i64 0), lt($0, i64 4)) else 3.0
  }
)");
}

TEST_CASE("a place chosen by data is at0, within its limit", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[9,4], %1 k: i32[5,4]) {
    %2: f32[5,4] = gather %0, %1 {axis=0}
    return %2
  })") == R"(  kernel gather_2 rows(i0: 5, i1: 4) {
    store y2[i0*4 + i1] = load x[at0*4 + i1; at0 = cast<i64>(load k[i0*4 + i1]) < 9]
  }
)");
}

TEST_CASE("what stands at a cummax's places is the cummax's values", "[lower]") {
  const auto scans_of = [](const std::string& results) {
    const Program program = lowered(str("(%0 x: f32[9,4], %1 z: f32[9,4]) {\n",
                                        "%2: i64[9,4] = cummax %0 {axis=0}\n", results, "\n}"));
    std::string scans;
    for (const Kernel& kernel : program.kernels)
      if (kernel.steps[0].kind == StepKind::Scan) scans += print(program, kernel);
    return scans;
  };
  const std::string values = R"(  kernel gather_3 rows(i0: 4) {
    scan y3[i0 + j0*4] for (j0: 9) = cummax values load x[i0 + j0*4]
  }
)",
                    places = R"( rows(i0: 4) {
    scan y2[i0 + j0*4] for (j0: 9) = cummax load x[i0 + j0*4]
  }
)";
  CHECK(scans_of("%3: f32[9,4] = gather %0, %2 {axis=0}\nreturn %3") == values);
  CHECK(scans_of("%3: f32[9,4] = gather %0, %2 {axis=0}\nreturn %2, %3") ==
        "  kernel cummax_2" + places + values);
  CHECK(scans_of("%3: f32[9,4] = gather %1, %2 {axis=0}\nreturn %2, %3") ==
        "  kernel cummax_2" + places);
  CHECK(scans_of("%3: f32[9,4] = gather %0, %2 {axis=1}\nreturn %2, %3") ==
        "  kernel cummax_2" + places);
}

TEST_CASE("scatter_add copies its data, then adds updates in order", "[lower]") {
  REQUIRE(kernel_of(R"((%0 x: f32[9,4], %1 k: i64[5,4], %2 u: f32[5,4]) {
    %3: f32[9,4] = scatter_add %0, %1, %2 {axis=0}
    return %3
  })") == R"(  kernel scatter_add_3 rows(i0: 4) {
    store y3[i0 + j0*4] for (j0: 9) = load x[i0 + j0*4]
    scatter y3[at0*4 + i0; at0 = load k[i0 + j1*4] < 9] for (j1: 5) = scatter_add load u[i0 + j1*4]
  }
)");
}

TEST_CASE("constants and counters are scalars, not buffers", "[lower]") {
  REQUIRE(kernel_of(R"(() {
    %0: i64[5] = iota
    %1: i64[5] = constant {value=2}
    %2: i64[5] = mul %0, %1
    return %2
  })") == R"(  kernel mul_2 rows(i0: 5) {
    store y2[i0] = mul(index[i0], i64 2)
  }
)");
}

TEST_CASE("a strided input is read where it lies", "[lower]") {
  const Program program = lowered(R"((%0 x: f32[3,4] {strides=[1,8]}) {
    %1: f32[3,4] = exp %0
    return %1
  })");
  REQUIRE(program.buffers[0].size == Expr(2 + 24 + 1));
  REQUIRE(print(program, program.kernels[0]) == R"(  kernel exp_1 rows(i0: 3, i1: 4) {
    store y1[i0*4 + i1] = exp(load x[i0 + i1*8])
  }
)");
}

TEST_CASE("a tensor without elements gets no kernel, a sum of nothing is zero", "[lower]") {
  REQUIRE(lowered(R"((%0 x: f32[0,4]) {
    %1: f32[0,4] = exp %0
    return %1
  })")
              .kernels.empty());
  REQUIRE(kernel_of(R"((%0 x: f32[0,4]) {
    %1: f32[4] = sum %0 {axes=[0]}
    return %1
  })") == R"(  kernel sum_1 rows(i0: 4) {
    store y1[i0] = f32 0.0
  }
)");
}

TEST_CASE("reshapes that do not nest end in a copy before their index explodes", "[lower]") {
  std::string text = "(%0 x: f32[15015]) {\n";
  int last = 0;
  for (int k = 0; k < 30; k++, last += 2) {
    const char* shape = k % 2 ? "35,33,13" : "39,55,7";
    const char* transposed = k % 2 ? "13,35,33" : "7,39,55";
    text += str("%", last + 1, ": f32[", shape, "] = reshape %", last, "\n%", last + 2,
                ": f32[", transposed, "] = permute %", last + 1, " {axes=[2,0,1]}\n");
  }
  const Program program = lowered(text + str("return %", last, "\n}"));
  REQUIRE(program.kernels.size() > 1);
  REQUIRE(program.kernels.size() < 20);
  for (const Kernel& kernel : program.kernels) {
    for (const Scalar& scalar : kernel.scalars) REQUIRE(scalar.index.size() <= 64);
  }
}

TEST_CASE("chains of views keep every value", "[lower]") {
  for (uint64_t seed = 1; seed <= 150; seed++) {
    const Graph graph = random_graph(seed, 24);
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    const std::vector<Tensor> want = interpret(graph, inputs),
                              got = interpret(lower(graph), inputs);
    for (size_t k = 0; k < want.size(); k++) {
      INFO(print(graph));
      REQUIRE(same_bits(want[k], got[k]));
    }
  }
}
