// When is a value computed again rather than stored for another kernel?
#include "tiny_compile/loops/inline.h"

#include "tests/loops/refusals.h"
#include "tiny_compile/compile/pipeline.h"

using namespace tiny_compile;
using tests::require_refusal;

TEST_CASE("a cheap formula is computed where another place of it is read", "[inline]") {
  const Program program = fuse(lower(parse_graph(R"(graph f(%0 x: f32[8]) {
    %1: f32[8] = neg %0
    %2: f32[8] = flip %1 {axes=[0]}
    %3: f32[8] = exp %2
    return %3
  })")));
  REQUIRE(print(program) == R"(program f {
  input x: f32[8]
  output y3: f32[8]
  kernel exp_3 rows(i0: 8) {
    store y3[i0] = exp(neg(load x[-i0 + 7]))
  }
  launch exp_3
  return y3
}
)");
}

TEST_CASE("a cheap vector is computed again for each row that repeats it", "[inline]") {
  const Program program = fuse(lower(parse_graph(R"(graph f(%0 x: f32[4], %1 y: f32[8,4]) {
    %2: f32[4] = neg %0
    %3: f32[8,4] = expand %2
    %4: f32[8,4] = add %1, %3
    return %4
  })")));
  REQUIRE(program.kernels.size() == 1);
  REQUIRE(bytes_moved(program) == 4 * (4 + 32 + 32));
}

TEST_CASE("what a mask hides is not loaded when its formula is inlined", "[inline]") {
  const Program program = fuse(lower(parse_graph(R"(graph f(%0 x: f32[3]) {
    %1: f32[3] = neg %0
    %2: f32[5] = pad %1 {low=[1], high=[1], value=2}
    return %2
  })")));
  verify(program);
  INFO(print(program));
  REQUIRE(program.kernels.size() == 1);
  for (const Scalar& scalar : program.kernels[0].scalars)
    REQUIRE((scalar.kind != ScalarKind::Load || scalar.mask >= 0));
}

TEST_CASE("a number of each row needs no mask of its elements", "[inline]") {
  const auto loads = [](const std::string& low) {
    const Program program =
        fuse(lower(parse_graph(R"(graph f(%0 x: f32[4,5], %1 s: f32[4,1]) {
      %2: f32[4,5] = expand %1
      %3: f32[4,5] = mul %0, %2
      %4: f32[)" + std::string(low == "[0,0]" ? "4,8" : "7,8") +
                               "] = pad %3 {low=" + low + R"(, high=[0,3], value=0}
      return %4
    })")));
    verify(program);
    INFO(print(program));
    REQUIRE(program.kernels.size() == 1);
    std::vector<bool> masked;
    for (const Scalar& scalar : program.kernels[0].scalars)
      if (scalar.kind == ScalarKind::Load) masked.push_back(scalar.mask >= 0);
    return masked;
  };
  CHECK(loads("[0,0]") == std::vector{true, false});
  CHECK(loads("[3,0]") == std::vector{true, true});  // nor of rows that are not there
}

TEST_CASE("a reduction is not computed again", "[inline]") {
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8] = max %0 {axes=[1]}
    %2: f32[8] = flip %1 {axes=[0]}
    %3: f32[8] = exp %2
    return %3
  })",
                  "a reduction is not computed again", 2);
}

TEST_CASE("a costly formula is computed once an element", "[inline]") {
  require_refusal(R"(graph f(%0 x: f32[4], %1 y: f32[16,4]) {
    %2: f32[4] = exp %0
    %3: f32[16,4] = expand %2
    %4: f32[16,4] = mul %1, %3
    return %4
  })",
                  "it would be computed many times over", 2);
}

TEST_CASE("a GPU computes a costly vector again where that takes less than a launch",
          "[inline]") {
  const auto kernels = [](int64_t rows) {
    const std::string wide = str("f32[", rows, ",64]");
    const Graph graph = parse_graph(
        "graph f(%0 x: f32[64], %1 y: " + wide + ") {\n%2: f32[64] = exp %0\n%3: " + wide +
        " = expand %2\n%4: " + wide + " = mul %1, %3\nreturn %4\n}");
    return run_pipeline(until(default_pipeline(), "fuse"), graph, true, Target::Cuda)
        .program.kernels.size();
  };
  CHECK(kernels(1 << 10) == 1);
  CHECK(kernels(1 << 20) == 2);
  const Graph any = parse_graph(R"(graph f[n](%0 x: f32[64], %1 y: f32[n,64]) {
    %2: f32[64] = exp %0
    %3: f32[n,64] = expand %2
    %4: f32[n,64] = mul %1, %3
    return %4
  })");
  CHECK(run_pipeline(until(default_pipeline(), "fuse"), any, true, Target::Cuda)
            .program.kernels.size() == 2);
}

TEST_CASE("a costly part of a concat is computed where it is joined", "[inline][join]") {
  const auto kernels = [](const std::string& axis, Target target) {
    const Graph graph = parse_graph(R"(graph f(%0 x: f32[32,32], %1 y: f32[32,32]) {
      %2: f32[32,32] = tanh %0
      %3: f32[)" + std::string(axis == "0" ? "96,32" : "32,96") +
                                    R"(] = concat %1, %2, %1 {axis=)" + axis + R"(}
      return %3
    })");
    const Program program =
        run_pipeline(until(default_pipeline(), "fuse"), graph, true, target).program;
    INFO(print(program));
    return program.kernels.size();
  };
  for (const char* axis : {"0", "1"}) {
    CHECK(kernels(axis, Target::Cuda) == 1);
    CHECK(kernels(axis, Target::Cpp) == 1);
  }
}

TEST_CASE("a costly part that is joined twice is computed once", "[inline][join]") {
  const Graph graph = parse_graph(R"(graph f(%0 x: f32[2048,2048], %1 y: f32[2048,2048]) {
    %2: f32[2048,2048] = tanh %0
    %3: f32[6144,2048] = concat %2, %1, %2 {axis=0}
    return %3
  })");
  const Program program =
      run_pipeline(until(default_pipeline(), "fuse"), graph, true, Target::Cuda).program;
  INFO(print(program));
  CHECK(program.kernels.size() == 2);
}

TEST_CASE("a result that others read is not made again from more than itself", "[inline]") {
  require_refusal(R"(graph f(%0 x: f32[65536], %1 y: f32[65536]) {
    %2: f32[65536] = add %0, %1
    %3: f32[65536] = flip %2 {axes=[0]}
    %4: f32[65536] = neg %3
    return %2, %4
  })",
                  "others need it in memory, and reading its inputs again costs more", 2);
}

TEST_CASE("elements chosen by data are computed where they are chosen", "[inline]") {
  const Program program = fuse(lower(parse_graph(R"(graph f(%0 x: f32[8,100], %1 k: i64[8,1]) {
    %2: f32[8,100] = neg %0
    %3: f32[8,1] = gather %2, %1 {axis=1}
    %4: f32[] = sum %3 {axes=[0,1]}
    %5: f32[] = sum %2 {axes=[0,1]}
    return %4, %5
  })")));
  REQUIRE(print(program).find("neg(load x[at0 + j0*100; at0 = load k[j0] < 100])") !=
          std::string::npos);
  const auto stays = [](const char* body) {
    require_refusal(body, "it is read at a place chosen by data", 2);
  };
  stays(R"(graph f(%0 x: f32[96], %1 k: i64[8]) {
    %2: f32[100] = pad %0 {low=[2], high=[2], value=0.0}
    %3: f32[8] = gather %2, %1 {axis=0}
    return %3
  })");
  stays(R"(graph f(%0 x: f32[], %1 k: i64[8]) {
    %2: f32[100] = expand %0
    %3: f32[100] = exp %2
    %4: f32[8] = gather %3, %1 {axis=0}
    return %4
  })");  // nobody would look whether k is in [0, 100)
}

TEST_CASE("matmuls read finished operands", "[inline]") {
  require_refusal(R"(graph f(%0 x: f32[8,16], %1 y: f32[16,8]) {
    %2: f32[8,16] = neg %0
    %3: f32[8,8] = matmul %2, %1
    return %3
  })",
                  "a matmul reads its operands many times: they stay in memory", 2);
}
