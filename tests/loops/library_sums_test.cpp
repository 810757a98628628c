// Which sums the library makes beside a product, which it does not, and why.
#include "tiny_compile/loops/library_sums.h"

#include "tests/loops/library_calls.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/trace/nn.h"

using namespace tiny_compile;
using tests::for_library;
using tests::ForLibrary;
using tests::In;
using tests::Out;

namespace {

constexpr int64_t kBatch = 48, kIn = 16, kHidden = 40, kLast = 24;

Tensor transposed(const Tensor& x) { return transpose(x, 0, 1); }

// x, its weights w [in, hidden], z = x w + b before gelu, the second weights v [hidden, last],
// the gradient of what comes out, and h = gelu(z).
std::vector<Tensor> inputs_of(DType dtype) {
  return {randn({kBatch, kIn}).to(dtype),     randn({kIn, kHidden}).to(dtype),
          randn({kBatch, kHidden}).to(dtype), randn({kHidden, kLast}).to(dtype),
          randn({kBatch, kLast}).to(dtype),   randn({kBatch, kHidden}).to(dtype)};
}

Tensor gradient_of_z(In i) {
  return gelu_backward(matmul(i[4], transposed(i[3])), i[2], "tanh");
}

ForLibrary require_calls(const TensorFunction& function, const std::vector<Tensor>& inputs,
                         const std::vector<std::string>& calls) {
  const ForLibrary f = for_library(function, inputs);
  INFO(print(f.program) << f.refusals);
  REQUIRE(f.calls == calls);
  return f;
}

// The product and the sums are two launches, for this reason.
void require_apart(const TensorFunction& function, const std::vector<Tensor>& inputs,
                   const std::string& reason) {
  const ForLibrary f = for_library(function, inputs);
  INFO(print(f.program) << f.refusals);
  for (const LibraryCall& call : library_kernels(f.program)) REQUIRE(call.sums == -1);
  REQUIRE(f.program.launches.size() == f.program.kernels.size());
  REQUIRE_THAT(f.refusals,
               Catch::Matchers::ContainsSubstring("matmul is left to the library: " + reason));
}

}  // namespace

TEST_CASE("the sums of a result times gelu' are made with it", "[library]") {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const ForLibrary f = require_calls(
        [](In i) {
          const Tensor dz = gradient_of_z(i);
          return Out{dz, sum(dz, {0})};
        },
        inputs_of(dtype),
        {str(dtype, " 40x48x24 (m x n x k), A transposed, times gelu', sums of D"), "of D"});
    REQUIRE(f.program.launches == std::vector<std::vector<int>>{{0, 1}});
  }
}

TEST_CASE("the sums of a factor are made beside the gradient of weights", "[library]") {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const std::vector<Tensor> inputs = inputs_of(dtype);  // x is inputs[0], dy is inputs[4]
    require_calls(
        [](In i) {
          return Out{matmul(transposed(i[0]), i[4]), sum(i[4], {0})};
        },
        inputs, {str(dtype, " 24x16x48 (m x n x k), B transposed, sums of A"), "of A"});
    require_calls(
        [](In i) {  // weights as PyTorch's linear has them
          return Out{matmul(transposed(i[4]), i[0]), sum(i[4], {0})};
        },
        inputs, {str(dtype, " 16x24x48 (m x n x k), B transposed, sums of B"), "of B"});
    const ForLibrary f = require_calls(
        [](In i) {  // the sums come first, and are kept in order
          const Tensor db = sum(i[4], {0});
          return Out{db, matmul(transposed(i[0]), i[4])};
        },
        inputs, {"of A", str(dtype, " 24x16x48 (m x n x k), B transposed, sums of A")});
    REQUIRE(f.program.launches == std::vector<std::vector<int>>{{1, 0}});
  }
}

TEST_CASE("the backward of two layers is four launches, its sums among the products",
          "[library]") {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ForLibrary f = for_library(
        [](In i) {
          const Tensor dz = gradient_of_z(i);
          return Out{matmul(transposed(i[5]), i[4]), sum(i[4], {0}),
                     matmul(transposed(i[0]), dz), sum(dz, {0}), matmul(dz, transposed(i[1]))};
        },
        inputs_of(dtype));
    INFO(print(f.program) << f.refusals);
    std::vector<std::string> calls = f.calls;
    std::sort(calls.begin(), calls.end());
    const std::string name = str(dtype, " ");
    REQUIRE(calls == std::vector<std::string>{
                         name + "16x48x40 (m x n x k), A transposed",
                         name + "24x40x48 (m x n x k), B transposed, sums of A",
                         name + "40x16x48 (m x n x k), B transposed",
                         name + "40x48x24 (m x n x k), A transposed, times gelu', sums of D",
                         "of A", "of D"});
    REQUIRE(f.program.launches.size() == 4);
  }
}

TEST_CASE("batch and length are one axis to the sums as well", "[library]") {
  require_calls(
      [](In i) {
        const Tensor flat = reshape(i[1], {-1, 24});
        return Out{matmul(transposed(reshape(i[0], {-1, 16})), flat), sum(i[1], {0, 1})};
      },
      {randn({3, 8, 16}), randn({3, 8, 24})},
      {"f32 24x16x24 (m x n x k), B transposed, sums of A", "of A"});
}

TEST_CASE("long sums beside a product are not split, others are", "[library]") {
  const std::vector<Tensor> inputs = {randn({16384, 8}), randn({16384, 8})};
  auto gradients = [](In i) { return Out{matmul(transposed(i[0]), i[1]), sum(i[1], {0})}; };
  const Graph graph = trace(gradients, inputs, "f").graph;
  const Pipeline pipeline = until(tests::library_pipeline(Matmul::Library), "plan_memory");
  const Program with = run_pipeline(pipeline, graph, true, Target::Cuda).program;
  INFO(print(with));
  CHECK(with.kernels.size() == 2);
  CHECK(library_kernels(with)[0].sums == 1);
  const Pipeline usual =
      until(with_library(default_pipeline(), Matmul::Library), "plan_memory");
  CHECK(run_pipeline(usual, graph, true, Target::Cuda).program.kernels.size() == 3);
}

TEST_CASE("the source has the sums' kernel for a library that cannot", "[library]") {
  const std::vector<Tensor> inputs = inputs_of(DType::bf16);
  auto both = [](In i) {
    const Tensor dz = gradient_of_z(i);
    return Out{dz, sum(dz, {0})};
  };
  const Staged staged = run_pipeline(tests::library_pipeline(Matmul::Library),
                                     trace(both, inputs, "f").graph, true, Target::Cuda);
  REQUIRE(staged.source.kernels.size() == 2);
  CHECK(staged.source.kernels[0].library);
  CHECK(staged.source.kernels[0].sums == 1);
  CHECK(staged.source.kernels[1].grid.constant() > 0);
  CHECK_THAT(staged.source.text,
             Catch::Matchers::ContainsSubstring("A transposed, times gelu', sums of D\n"
                                                "// or without sums, which k_sum_"));
}

TEST_CASE("sums in a temporary have bytes of their own from the product on", "[library]") {
  const ForLibrary f = for_library(
      [](In i) {
        const Tensor t = exp(i[0]);  // last read by the product: its bytes would be free
        const Tensor dw = matmul(transposed(t), i[1]), db = sum(i[1], {0});
        return Out{dw, matmul(db, i[2]), matmul(db, i[3])};
      },
      {randn({64, 16}), randn({64, 24}), randn({24, 8}), randn({24, 8})});
  INFO(print(f.program) << f.refusals);  // the verifier has seen the plan
  const std::vector<LibraryCall> calls = library_kernels(f.program);
  CHECK(std::any_of(calls.begin(), calls.end(),
                    [](const LibraryCall& c) { return c.sums >= 0; }));
}

TEST_CASE("sums that the library does not make, and why", "[library]") {
  const std::vector<Tensor> f32 = inputs_of(DType::f32);
  auto weights = [](const Tensor& dw, const Tensor& db) { return Out{dw, db}; };
  require_apart(
      [](In i) {
        const Tensor y = matmul(i[0], i[1]);
        return Out{y, sum(y, {0})};
      },
      f32, "it sums a result only behind gelu'");
  require_apart(
      [&](In i) { return weights(matmul(transposed(i[0]), i[4]) * 0.5, sum(i[4], {0})); }, f32,
      "it sums a factor only beside a plain product");
  require_apart(
      [&](In i) { return weights(relu(matmul(transposed(i[0]), i[4])), sum(i[4], {0})); }, f32,
      "it sums a factor only beside a plain product");
  require_apart(
      [&](In i) {
        return weights(matmul(transposed(i[0]), slice(i[4], 1, 0, 16)), sum(i[4], {0}));
      },
      f32, "it sums another part, or along another axis");
  require_apart([&](In i) { return weights(matmul(i[1], i[3]), sum(i[1], {0})); }, f32,
                "it sums another part, or along another axis");
  require_apart([&](In i) { return weights(matmul(transposed(i[0]), i[4]), sum(i[4], {0})); },
                inputs_of(DType::f64),
                "the sums, the factors and the result are not of one dtype");
  require_apart(
      [&](In i) {
        return weights(matmul(transposed(i[0]), i[4]), sum(i[4].to(DType::f32), {0}));
      },
      inputs_of(DType::bf16), "the sums, the factors and the result are not of one dtype");
  require_apart(
      [](In i) {  // whose result needs the sums
        const Tensor db = sum(i[4], {0});
        return Out{matmul(transposed(i[0] + sum(db)), i[4]), db};
      },
      f32, "its sums are read before it");
}

TEST_CASE("sums of rounded values are not the library's", "[library]") {
  auto count = [](const TensorFunction& function, DType dtype) {
    int sums = 0;
    for (const LibraryCall& call :
         library_kernels(for_library(function, inputs_of(dtype)).program))
      sums += call.sums >= 0;
    return sums;
  };
  auto beside = [](const std::function<Tensor(const Tensor&)>& db) {
    return [db](In i) { return Out{matmul(transposed(i[0]), i[4]), db(i[4])}; };
  };
  const DType f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16;
  for (DType dtype : {f32, bf16})
    CHECK(count(beside([](const Tensor& x) { return sum(x, {0}); }), dtype) == 1);
  CHECK(count(beside([&](const Tensor& x) { return sum(x.to(bf16).to(f32), {0}); }), f32) == 0);
  CHECK(count(beside([&](const Tensor& x) { return sum(x, {0}).to(bf16).to(f32); }), f32) == 0);
  CHECK(count(beside([&](const Tensor& x) { return sum(x.to(f16).to(f32), {0}).to(bf16); }),
              bf16) == 0);
}

TEST_CASE("where kernels are generated, nothing moves", "[library]") {
  const std::vector<Tensor> inputs = inputs_of(DType::f32);
  auto both = [](In i) {
    const Tensor dz = gradient_of_z(i);
    return Out{dz, sum(dz, {0})};
  };
  const Graph graph = trace(both, inputs, "f").graph;
  const Program program =
      run_pipeline(until(default_pipeline(), "plan_memory"), graph, true, Target::Cuda).program;
  CHECK(library_sums(program) == program);
  for (const LibraryCall& call : library_kernels(program)) CHECK(!call.matmul);
}

TEST_CASE("where an input may lie anywhere, sums and gelu' are other kernels", "[library]") {
  auto with_align = [](const TensorFunction& function, const char* input, int align) {
    Program program = for_library(function, inputs_of(DType::f32)).program;
    for (Buffer& buffer : program.buffers) {
      if (buffer.name == input) buffer.align = align;
    }
    return program;
  };
  auto weights = [](In i) { return Out{matmul(transposed(i[0]), i[4]), sum(i[4], {0})}; };
  CHECK(library_kernels(with_align(weights, "x4", 16))[0].sums == 1);
  CHECK(library_kernels(with_align(weights, "x4", 8))[0].sums == -1);
  CHECK(library_kernels(with_align(weights, "x4", 8))[0].matmul);
  auto slope = [](In i) {
    return Out{gelu_backward(matmul(i[4], transposed(i[3])), i[2], "tanh")};
  };
  const Program aligned = with_align(slope, "x2", 16), shifted = with_align(slope, "x2", 4);
  CHECK(library_matmul(aligned, aligned.kernels[0]).matmul);
  CHECK(library_matmul(shifted, shifted.kernels[0]).reason ==
        "what gelu' is taken of is not aligned, or contiguous along another axis");
}
