// Scans apart from reductions and from each other: which kernels come of it, the same bits, and
// what stays whole.
#include "tiny_compile/loops/part_scans.h"

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;

namespace {

const char* const kSoftmaxSums = R"(graph f(%0 x: f32[5,300]) {
  %1: f32[5,1] = max %0 {axes=[1], keepdim=1}
  %2: f32[5,300] = expand %1
  %3: f32[5,300] = sub %0, %2
  %4: f32[5,300] = cumsum %3 {axis=1}
  return %4
})";

Program fused(const std::string& graph, Target target = Target::Cuda) {
  return fuse(for_machine(lower(parse_graph(graph)), default_machine(target)));
}

bool parts(const Program& program) {
  REQUIRE(program.kernels.size() == 1);
  return can_part_scans(program, program.kernels[0]);
}

Program parted(Program program) {
  REQUIRE(parts(program));
  const Kernel whole = program.kernels[0];
  program.kernels = part_scans(program, whole);
  program.launches.clear();
  for (int k = 0; k < static_cast<int>(program.kernels.size()); k++)
    program.launches.push_back({k});
  verify(program);
  return program;
}

std::string kernels_of(const Program& program) {
  std::string text;
  for (const Kernel& kernel : program.kernels) text += print(program, kernel);
  return text;
}

void check_bits(const std::string& text) {
  INFO(text);
  const Graph graph = parse_graph(text);
  const Program whole = fused(text), apart = parted(whole);
  INFO(print(apart));
  CHECK(print(parse_program(print(apart))) == print(apart));
  CHECK(apart.kernels.size() > 1);
  for (uint32_t seed : {1, 2}) {
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    const std::vector<Tensor> wanted = interpret(graph, inputs),
                              before = interpret(whole, inputs),
                              after = interpret(apart, inputs);
    for (size_t k = 0; k < wanted.size(); k++) {
      CHECK(same_bits(before[k], wanted[k]));
      CHECK(same_bits(after[k], wanted[k]));
    }
  }
}

}  // namespace

TEST_CASE("a register that a parted scan loads is printed as it is", "[scan]") {
  const Program whole = fused(R"(graph f(%0 x: bf16[7,8]) {
  %1: bool[7,8] = cast %0
  %2: bool[1,1] = any %1 {axes=[0,1], keepdim=1}
  %3: f32[1,1] = cast %2
  %4: f32[1,1] = cumsum %3 {axis=0}
  return %4
})");
  const Program apart = parted(whole);
  CHECK(parse_program(print(apart)) == apart);
}

TEST_CASE("reductions store what a scan needs, and the scan loads it", "[scan]") {
  CHECK(kernels_of(parted(fused(kSoftmaxSums))) ==
        R"(  kernel max_sub_cumsum_4_reduced rows(i0: 5) {
    r0: f32 = max(j0: 300) load x[i0*300 + j0]
    store r2_max_sub_cumsum_4[i0] = r0
  }
  kernel max_sub_cumsum_4_cumsum_1 rows(i0: 5) {
    scan y4[i0*300 + j0] for (j0: 300) = cumsum sub(load x[i0*300 + j0], load r2_max_sub_cumsum_4[i0])
  }
)");
}

TEST_CASE("two scans part, and stores stay with the first", "[scan]") {
  CHECK(kernels_of(parted(fused(R"(graph f(%0 x: f32[5,300]) {
    %1: f32[5,300] = cumsum %0 {axis=1}
    %2: f32[5,300] = cumprod %0 {axis=1}
    %3: f32[5,300] = exp %0
    return %1, %2, %3
  })"))) == R"(  kernel cumsum_cumprod_exp_3 rows(i0: 5) {
    $0 = load x[i0*300 + j0]
    scan y1[i0*300 + j0] for (j0: 300) = cumsum $0
    store y3[i0*300 + j0] for (j0: 300) = exp($0)
  }
  kernel cumsum_cumprod_exp_3_cumprod_1 rows(i0: 5) {
    scan y2[i0*300 + j0] for (j0: 300) = cumprod load x[i0*300 + j0]
  }
)");
}

TEST_CASE("places and what stands there are one scan", "[scan]") {
  const std::string both = R"(graph f(%0 x: f32[5,300]) {
    %1: i64[5,300] = cummax %0 {axis=1}
    %2: f32[5,300] = gather %0, %1 {axis=1}
)",
                    three = both + "%3: i64[5,300] = cummin %0 {axis=1}\nreturn %1, %2, %3\n}";
  CHECK(!parts(fused(both + "return %1, %2\n}")));
  CHECK(kernels_of(parted(fused(three))) ==
        R"(  kernel cummax_gather_cummin_3 rows(i0: 5) {
    $0 = load x[i0*300 + j0]
    scan y1[i0*300 + j0] for (j0: 300) = cummax $0
    scan y2[i0*300 + j0] for (j0: 300) = cummax values $0
  }
  kernel cummax_gather_cummin_3_cummin_2 rows(i0: 5) {
    scan y3[i0*300 + j0] for (j0: 300) = cummin load x[i0*300 + j0]
  }
)");
  check_bits(three);
}

TEST_CASE("a scan that stores stand around is named after itself", "[scan]") {
  const Program program = parse_program(R"(program f on cuda {
  input x: f32[5,300]
  output a: f32[5,300]
  output b: f32[5,300]
  output c: f32[5,300]
  output d: f32[5,300]
  kernel f rows(i0: 5) {
    $0 = load x[i0*300 + j0]
    store a[i0*300 + j0] for (j0: 300) = neg($0)
    scan b[i0*300 + j0] for (j0: 300) = cumsum $0
    store c[i0*300 + j0] for (j0: 300) = exp($0)
    scan d[i0*300 + j0] for (j0: 300) = cumprod $0
  }
  launch f
  return a, b, c, d
})");
  const Program apart = parted(program);
  CHECK(apart.kernels[0].name == "f_cumsum_1");
  CHECK(apart.kernels[0].steps.size() == 3);
  CHECK(apart.kernels[1].name == "f_cumprod_3");
}

TEST_CASE("scans apart have the bits of the whole", "[scan]") {
  check_bits(kSoftmaxSums);
  for (const char* op : {"cumsum", "cumprod", "logcumsumexp"}) {
    for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
      for (const char* shape : {"[3,1025]", "[1,40]"}) {
        const std::string type = str(dtype, shape),
                          row = str(dtype, shape[1] == '3' ? "[3,1]" : "[1,1]");
        check_bits(str("graph f(%0 x: ", type, ") {\n%1: ", row,
                       " = sum %0 {axes=[1], keepdim=1}\n%2: ", row,
                       " = min %0 {axes=[1], keepdim=1}\n%3: ", type, " = expand %1\n%4: ",
                       type, " = expand %2\n%5: ", type, " = sub %0, %4\n%6: ", type, " = ", op,
                       " %5 {axis=1}\n%7: ", type, " = ", op, " %0 {axis=1}\n%8: ", type,
                       " = mul %0, %3\nreturn %6, %7, %8\n}"));
      }
    }
  }
}

TEST_CASE("what one thread does in no time, or threads do together, is not parted", "[scan]") {
  CHECK(parts(fused(kSoftmaxSums)));
  CHECK(!parts(fused(kSoftmaxSums, Target::Cpp)));
  const auto of_rows = [](int64_t length, const std::string& body) {
    const std::string type = str("f32[5,", length, "]");
    return fused(str("graph f(%0 x: ", type, ") {\n%1: ", type,
                     " = cumsum %0 {axis=1}\n%2: ", type, " = ", body, "\nreturn %1, %2\n}"));
  };
  CHECK(parts(of_rows(5, "cumprod %0 {axis=1}")));
  CHECK(!parts(of_rows(4, "cumprod %0 {axis=1}")));
  CHECK(!parts(of_rows(300, "exp %0")));
}
