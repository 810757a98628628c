// Which kernels are calls of a matrix library, which are not, and why.
#include "tiny_compile/loops/library_matmul.h"

#include "tests/loops/library_calls.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/windows.h"

using namespace tiny_compile;
using tests::for_library;
using tests::ForLibrary;
using tests::In;
using tests::Out;

namespace {

// The function of x [33,17], w [17,40] and a bias [40] is this one call.
void require_call(const TensorFunction& function, const std::string& call,
                  DType dtype = DType::f32) {
  const ForLibrary f = for_library(
      function, {randn({33, 17}).to(dtype), randn({17, 40}).to(dtype), randn({40}).to(dtype)});
  INFO(print(f.program) << f.refusals);
  REQUIRE(f.calls == std::vector<std::string>{call});
}

// It is a call of the bare product and this many other kernels, for this reason.
void require_bare(const TensorFunction& function, const std::string& reason,
                  std::vector<Tensor> inputs = {},
                  const char* call = "f32 40x33x17 (m x n x k)") {
  if (inputs.empty()) inputs = {randn({33, 17}), randn({17, 40}), randn({40}), randn({33, 40})};
  const ForLibrary f = for_library(function, inputs);
  INFO(print(f.program) << f.refusals);
  REQUIRE(f.calls == std::vector<std::string>{call, ""});
  REQUIRE_THAT(f.refusals,
               Catch::Matchers::ContainsSubstring("matmul is left to the library: " + reason));
}

// It is no call at all, for this reason.
void require_generated(const TensorFunction& function, const std::vector<Tensor>& inputs,
                       const std::string& reason) {
  const ForLibrary f = for_library(function, inputs);
  INFO(print(f.program) << f.refusals);
  REQUIRE(f.calls == std::vector<std::string>(f.calls.size(), ""));
  for (const Kernel& kernel : f.program.kernels) {
    if (kernel.name.find("matmul") == std::string::npos) continue;
    REQUIRE(library_matmul(f.program, kernel).reason == reason);
  }
}

}  // namespace

TEST_CASE("a product, scaled, with bias, relu or gelu, is one call", "[library]") {
  const std::string size = "40x33x17 (m x n x k)";
  for (const auto& [dtype, name] :
       {std::pair{DType::f32, "f32 "}, {DType::bf16, "bf16 "}, {DType::f16, "f16 "}}) {
    const std::string plain = name + size;
    require_call([](In i) { return Out{matmul(i[0], i[1])}; }, plain, dtype);
    require_call([](In i) { return Out{matmul(i[0], i[1]) * 0.25}; }, plain + ", times 0.25",
                 dtype);
    require_call([](In i) { return Out{i[2] + matmul(i[0], i[1])}; }, plain + ", + bias",
                 dtype);
    require_call([](In i) { return Out{matmul(i[0], i[1]) * 2 + i[2]}; },
                 plain + ", times 2, + bias", dtype);
    require_call([](In i) { return Out{relu(matmul(i[0], i[1]))}; }, plain + ", relu", dtype);
    require_call([](In i) { return Out{relu(matmul(i[0], i[1]) + i[2])}; },
                 plain + ", + bias, relu", dtype);
    require_call([](In i) { return Out{gelu(matmul(i[0], i[1]), "tanh")}; }, plain + ", gelu",
                 dtype);
    require_call([](In i) { return Out{gelu(matmul(i[0], i[1]) + i[2], "tanh")}; },
                 plain + ", + bias, gelu", dtype);
  }
}

TEST_CASE("halves may give f32, and gelu may save what it is taken of", "[library]") {
  require_call([](In i) { return Out{matmul(i[0], i[1]).to(DType::f32)}; },
               "bf16 40x33x17 (m x n x k) to f32", DType::bf16);
  require_call([](In i) { return Out{relu(matmul(i[0], i[1]).to(DType::f32))}; },
               "f16 40x33x17 (m x n x k) to f32, relu", DType::f16);
  for (DType dtype : {DType::f32, DType::bf16}) {
    auto both = [](In i) {
      const Tensor z = matmul(i[0], i[1]) + i[2];
      return Out{gelu(z, "tanh"), z};
    };
    require_call(both, str(dtype, " 40x33x17 (m x n x k), + bias, gelu of what it saves"),
                 dtype);
  }
}

TEST_CASE("f64 only multiplies; tf32 is asked for", "[library]") {
  require_call([](In i) { return Out{matmul(i[0], i[1]) * 3}; },
               "f64 40x33x17 (m x n x k), times 3", DType::f64);
  require_bare([](In i) { return Out{matmul(i[0], i[1]) + i[2]}; }, "in f64 it multiplies only",
               {randn({33, 17}).to(DType::f64), randn({17, 40}).to(DType::f64),
                randn({40}).to(DType::f64)},
               "f64 40x33x17 (m x n x k)");
  const ForLibrary f = for_library([](In i) { return Out{matmul(i[0], i[1])}; },
                                   {randn({3, 4}), randn({4, 5})}, Matmul::LibraryTf32);
  REQUIRE(f.calls == std::vector<std::string>{"tf32 5x3x4 (m x n x k)"});
  REQUIRE_THAT(print(f.program), Catch::Matchers::ContainsSubstring("matmul library_tf32\n"));
}

TEST_CASE("what the library cannot do stays behind it, in one kernel", "[library]") {
  const std::string able =
      "it scales, adds a bias, and does relu or gelu (tanh), in this order";
  require_bare([](In i) { return Out{matmul(i[0], i[1]) + i[3]}; },
               "what it adds is no bias, one number a column");
  require_bare([](In i) { return Out{gelu(matmul(i[0], i[1]) + i[2])}; }, able);
  require_bare([](In i) { return Out{relu(matmul(i[0], i[1])) + i[2]}; }, able);
  require_bare([](In i) { return Out{maximum(matmul(i[0], i[1]), 0.5)}; }, able);
  require_bare([](In i) { return Out{softmax(matmul(i[0], i[1]) + i[2], -1)}; },
               "a matmul's epilogue works on one element at a time");
  require_bare(
      [](In i) {
        return Out{matmul(i[0], i[1]) + i[2], relu(matmul(i[0], i[1]) + i[2])};
      },
      "of two results, one must be the other's gelu");
  require_bare([](In i) { return Out{matmul(i[0], i[1]).to(DType::bf16)}; }, able);
}

TEST_CASE("a result that several kernels read is stored", "[library]") {
  const ForLibrary f = for_library(
      [](In i) {
        const Tensor y = matmul(i[0], i[1]);
        return Out{matmul(y, i[2]), sum(y, {0})};
      },
      {randn({33, 17}), randn({17, 40}), randn({40, 8})});
  INFO(print(f.program) << f.refusals);
  REQUIRE_THAT(f.refusals,
               Catch::Matchers::ContainsSubstring("several kernels read its result"));
}

TEST_CASE("transposed factors and results are the call's orientation", "[library]") {
  auto call = [](const TensorFunction& f, std::vector<Tensor> in) {
    const ForLibrary result = for_library(f, in);
    INFO(print(result.program) << result.refusals);
    REQUIRE(result.calls.size() == 1);
    return result.calls[0];
  };
  auto t = [](const Tensor& x) { return transpose(x, 0, 1); };
  REQUIRE(call([&](In i) { return Out{matmul(i[0], t(i[1]))}; },
               {randn({3, 4}), randn({5, 4})}) == "f32 5x3x4 (m x n x k), A transposed");
  REQUIRE(call([&](In i) { return Out{matmul(t(i[0]), i[1])}; },
               {randn({4, 3}), randn({4, 5})}) == "f32 5x3x4 (m x n x k), B transposed");
  REQUIRE(
      call([&](In i) { return Out{t(matmul(i[0], i[1]))}; }, {randn({3, 4}), randn({4, 5})}) ==
      "f32 3x5x4 (m x n x k), A transposed, B transposed");
  REQUIRE(call([&](In i) { return Out{t(matmul(i[0], i[1]) + i[2])}; },
               {randn({3, 4}), randn({4, 5}), randn({3, 1})}) ==
          "f32 3x5x4 (m x n x k), A transposed, B transposed, + bias");
}

TEST_CASE("slices, vectors and single rows are strides too", "[library]") {
  auto call = [](const TensorFunction& f, std::vector<Tensor> in) {
    const ForLibrary result = for_library(f, in);
    INFO(print(result.program) << result.refusals);
    REQUIRE(result.calls.size() == 1);
    return result.calls[0];
  };
  REQUIRE(call([](In i) { return Out{matmul(slice(i[0], 1, 3, 10), slice(i[1], 0, 5, 12))}; },
               {randn({9, 20}), randn({16, 6})}) == "f32 6x9x7 (m x n x k)");
  REQUIRE(call([](In i) { return Out{matmul(slice(i[0], 0, 0, 9, 2), i[1])}; },
               {randn({9, 20}), randn({20, 6})}) == "f32 6x5x20 (m x n x k)");
  REQUIRE(call([](In i) { return Out{matmul(i[0], i[1])}; }, {randn({9, 20}), randn({20})}) ==
          "f32 9x1x20 (m x n x k), A transposed");
  REQUIRE(call([](In i) { return Out{matmul(i[0], i[1])}; }, {randn({20}), randn({20, 6})}) ==
          "f32 6x1x20 (m x n x k)");
  REQUIRE(call([](In i) { return Out{matmul(i[0], i[1])}; }, {randn({9, 1}), randn({1, 6})}) ==
          "f32 6x9x1 (m x n x k)");
}

TEST_CASE("batches: one stride is the library's, others are loops", "[library]") {
  auto call = [](const TensorFunction& f, std::vector<Tensor> in) {
    const ForLibrary result = for_library(f, in);
    INFO(print(result.program) << result.refusals);
    REQUIRE(result.calls.size() == 1);
    return result.calls[0];
  };
  auto product = [](In i) { return Out{matmul(i[0], i[1])}; };
  REQUIRE(call(product, {randn({2, 3, 4, 5}), randn({2, 3, 5, 6})}) ==
          "f32 6x4x5 (m x n x k), batch 6");
  REQUIRE(call(product, {randn({2, 3, 4, 5}), randn({5, 6})}) == "f32 6x24x5 (m x n x k)");
  REQUIRE(call(product, {randn({4, 5}), randn({3, 5, 6})}) == "f32 6x4x5 (m x n x k), batch 3");
  REQUIRE(call(
              [](In i) {
                return Out{matmul(permute(i[0], {0, 2, 1, 3}), i[1])};
              },
              {randn({2, 4, 3, 5}), randn({2, 3, 5, 6})}) ==
          "f32 6x4x5 (m x n x k), batch 3, loop 2");
  const ForLibrary many = for_library(
      [](In i) {
        return Out{matmul(permute(i[0], {0, 2, 1, 3}), i[1])};
      },
      {randn({70, 2, 71, 3}), randn({70, 71, 3, 2})});
  REQUIRE(many.calls == std::vector<std::string>{"", "f32 2x2x3 (m x n x k), batch 4970"});
}

TEST_CASE("integers, empty products, windows and computed factors stay generated",
          "[library]") {
  auto product = [](In i) { return Out{matmul(i[0], i[1])}; };
  require_generated(product, {randint(0, 9, {3, 4}), randint(0, 9, {4, 5})},
                    "the library multiplies floats of one dtype");
  require_generated([](In i) { return Out{conv2d(i[0], i[1])}; },
                    {randn({2, 3, 8, 8}), randn({4, 3, 3, 3})},
                    "strides do not describe its operands");
  require_generated(
      [](In i) {
        return Out{matmul(expand(i[0], {3, 4}), i[1])};
      },
      {randn({3, 1}), randn({4, 5})}, "strides do not describe its operands");
}

TEST_CASE("a product times gelu' is one call, whichever is multiplied first", "[library]") {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const std::string name = str(dtype, " 40x33x17 (m x n x k), ");
    const std::vector<Tensor> inputs = {randn({33, 17}).to(dtype), randn({17, 40}).to(dtype),
                                        randn({33, 40}).to(dtype)};
    auto require_times = [&](const TensorFunction& function, const std::string& call) {
      const ForLibrary f = for_library(function, inputs);
      INFO(print(f.program) << f.refusals);
      REQUIRE(f.calls == std::vector<std::string>{call});
    };
    require_times([](In i) { return Out{gelu_backward(matmul(i[0], i[1]), i[2], "tanh")}; },
                  name + "times gelu'");
    require_times(
        [](In i) { return Out{gelu_backward(matmul(i[0], i[1]) * 0.25, i[2], "tanh")}; },
        name + "times 0.25, times gelu'");
  }
  for (DType dtype : {DType::f32, DType::bf16}) {
    // gelu'(z) alone is what comes back of ones.
    const ForLibrary transposed = for_library(
        [&](In i) {
          const Tensor one = full({33, 40}, 1.0, DType::f32);
          const Tensor slope = gelu_backward(one, i[2].to(DType::f32), "tanh");
          return Out{(slope * matmul(i[0], i[1]).to(DType::f32)).to(dtype)};
        },
        {randn({33, 17}).to(dtype), randn({17, 40}).to(dtype), randn({33, 40}).to(dtype)});
    INFO(print(transposed.program) << transposed.refusals);
    REQUIRE(transposed.calls ==
            std::vector<std::string>{str(dtype, " 40x33x17 (m x n x k), times gelu'")});
  }
}

TEST_CASE("a product times gelu' that the library does not multiply, and why", "[library]") {
  const std::string able =
      "it scales, adds a bias, and does relu or gelu (tanh), in this order, or scales and "
      "multiplies by gelu'";
  auto times = [](const Tensor& y, const Tensor& z) {
    return Out{gelu_backward(y, z, "tanh")};
  };
  require_bare([&](In i) { return times(matmul(i[0], i[1]) + i[2], i[3]); }, able);
  require_bare([&](In i) { return times(matmul(i[0], i[1]), i[3] + 1.0); }, able);
  require_bare([](In i) { return Out{gelu_backward(matmul(i[0], i[1]), i[3])}; }, able);
  require_bare(
      [&](In i) {
        return times(matmul(i[0], i[1]), expand(i[2], {33, 40}));
      },
      "what gelu' is taken of is not aligned, or contiguous along another axis");
  require_bare(
      [](In i) {
        const Tensor y = matmul(i[0], i[1]);
        return Out{gelu_backward(y, i[3], "tanh"), y};
      },
      "of two results, one must be the other's gelu");
  const std::vector<Tensor> ragged = {randn({33, 17}), randn({17, 42}), randn({33, 42})};
  require_bare([&](In i) { return times(matmul(i[0], i[1]), i[2]); },
               "what gelu' is taken of is not aligned, or contiguous along another axis",
               ragged, "f32 42x33x17 (m x n x k)");
  const std::vector<Tensor> outer = {randn({33, 1}), randn({1, 40}), randn({33, 40})};
  require_bare([&](In i) { return times(matmul(i[0], i[1]), i[2]); },
               "gelu' wants a sum behind it, of more than one term", outer,
               "f32 40x33x1 (m x n x k)");
  const std::vector<Tensor> halves = {randn({33, 17}).to(DType::bf16),
                                      randn({17, 40}).to(DType::bf16), randn({33, 40})};
  require_bare([&](In i) { return times(matmul(i[0], i[1]), i[2]); },
               "what gelu' is taken of has another dtype than the result or the factors",
               halves, "bf16 40x33x17 (m x n x k)");
  const std::vector<Tensor> wide = {randn({33, 17}).to(DType::f64),
                                    randn({17, 40}).to(DType::f64),
                                    randn({33, 40}).to(DType::f64)};
  require_bare([&](In i) { return times(matmul(i[0], i[1]), i[2]); },
               "in f64 it multiplies only", wide, "f64 40x33x17 (m x n x k)");
}
