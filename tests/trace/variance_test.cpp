#include "tests/codegen/cuda_threads.h"
#include "tests/trace/agree.h"
#include "tiny_compile/trace/nn.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;

namespace {

Tensor noise(const Sizes& shape, double mean, DType dtype = DType::f32) {
  manual_seed(31);
  return is_half(dtype) ? (randn(shape) + mean).to(dtype) : randn(shape, dtype) + mean;
}

// In double precision, two passes, of rows [n, width].
Values exact(const Tensor& rows, int correction) {
  const Values x = rows.to_vector<double>();
  const size_t width = static_cast<size_t>(rows.size(1));
  Values result;
  for (size_t row = 0; row < static_cast<size_t>(rows.size(0)); row++) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < width; i++) mean += x[row * width + i] / static_cast<double>(width);
    for (size_t i = 0; i < width; i++) squares += std::pow(x[row * width + i] - mean, 2);
    result.push_back(squares / (static_cast<double>(width) - correction));
  }
  return result;
}

// The compiled kernels' bits are those of the ops one by one; the variances are exact to the
// relative tolerance.
void check_rows(const Tensor& rows, double tolerance) {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{var(x, {1}), var(x.t(), {0}, 0, true)};
      },
      rows);
  const Values one = exact(rows, 1), none = exact(rows, 0);
  for (size_t k = 0; k < one.size(); k++) {
    CAPTURE(k, rows.shape());
    CHECK(std::abs(y[0].to_vector<double>()[k] / one[k] - 1) < tolerance);
    CHECK(std::abs(y[1].to_vector<double>()[k] / none[k] - 1) < tolerance);
  }
}

}  // namespace

TEST_CASE("a variance keeps its digits where the mean is a million deviations", "[nn][var]") {
  for (int64_t width : {7, 1024, 1025, 4097, 32768, 32769})
    check_rows(concat({noise({2, width}, 0), noise({1, width}, 1e3), noise({1, width}, 1e6)}),
               2e-6);
  check_rows(noise({2, 50257}, 1e6), 2e-6);
  check_rows(noise({2, 2049}, 1e5, DType::f64), 1e-12);
  check_rows(noise({2, 2049}, 100, DType::f32) * 1e-6, 2e-6);
}

TEST_CASE("a first element far from the others costs a variance nothing", "[nn][var]") {
  const Tensor outlier = noise({2, 4096}, 0) + (arange(4096) == 0).to(float32) * 1e5;
  check_rows(outlier, 2e-6);
  check_rows(noise({2, 4096}, 0) + (arange(4096) < 1024).to(float32) * 1e5, 2e-6);
  check_rows(noise({2, 4100}, 0) + arange(4100) * 10, 2e-6);
}

TEST_CASE("a variance over any axes is that of their elements", "[nn][var]") {
  const Tensor x = noise({3, 5, 33, 41}, 1e4);
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{var(x, {0, 2, 3}),
                                   var(x, {0, 1}, 0),
                                   var(x, {1, 3}, 1, true),
                                   var(x),
                                   var(x, {2}),
                                   tiny_compile::std(x, {-1, 0, 1, 2})};
      },
      x);
  auto of = [&](const Sizes& order, int64_t rows, int correction) {
    return exact(reshape(permute(x, order), {rows, -1}), correction);
  };
  check_near(y[0], {5}, of({1, 0, 2, 3}, 5, 1));
  check_near(y[1], {33, 41}, of({2, 3, 0, 1}, 33 * 41, 0));
  check_near(y[2], {3, 1, 33, 1}, of({0, 2, 1, 3}, 99, 1));
  check_near(y[3], {}, of({0, 1, 2, 3}, 1, 1));
  check_near(y[4], {3, 5, 41}, of({0, 1, 3, 2}, 3 * 5 * 41, 1));
  check_near(y[5], {}, {std::sqrt(of({0, 1, 2, 3}, 1, 1)[0])});
}

TEST_CASE("var_mean has var's bits, and the mean that they are about", "[nn][var]") {
  const Tensor x = noise({3, 5, 33, 41}, 1e4);
  for (const Sizes& axes : {Sizes{0, 2, 3}, Sizes{1, 3}, Sizes{2}, Sizes{}}) {
    CAPTURE(axes);
    const auto y = agreed(
        [&](Tensor x) {
          const auto [variance, centre] = var_mean(x, axes, 0);
          return std::vector<Tensor>{variance, centre};
        },
        x);
    CHECK(same_bits(y[0], var(x, axes, 0)));
    const Values want = mean(x.to(float64), axes).to_vector<double>();
    check_near(y[1], y[0].shape(), want, 1e-7);
  }
  const auto [wide, at] = var_mean(noise({2, 4100}, 3, DType::bf16), {1}, 1, true);
  CHECK((wide.dtype() == DType::bf16 && at.dtype() == DType::bf16));
  CHECK(at.shape() == Sizes{2, 1});
  const auto [none, nowhere] = var_mean(full({0, 2}, 1), {0}, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check_near(none, {2}, {nan, nan});
  check_near(nowhere, {2}, {nan, nan});
}

TEST_CASE("var_mean's derivative is that of the mean and of the variance", "[nn][var]") {
  const Tensor x = noise({4, 1500}, 2, DType::f64);
  const auto both = [](Tensor x) {
    const auto [variance, centre] = var_mean(x, {1});
    return sum(variance * variance) + sum(centre * centre * centre);
  };
  const auto apart = [](Tensor x) {
    const Tensor centre = mean(x, {1}), off = x - mean(x, {1}, true);
    const Tensor variance = sum(off * off, {1}) / 1499.0;
    return sum(variance * variance) + sum(centre * centre * centre);
  };
  const Values got = grad(both)(x).to_vector<double>(),
               want = grad(apart)(x).to_vector<double>();
  for (size_t k = 0; k < got.size(); k++) CHECK(std::abs(got[k] - want[k]) < 1e-12);
}

TEST_CASE("statistics of a batch read it once, and once more for what is made of them",
          "[nn][var]") {
  const Graph graph = trace(
                          [](std::span<const Tensor> in) -> std::vector<Tensor> {
                            const auto [variance, centre] = var_mean(in[0], {0, 2}, 0, true);
                            return {(in[0] - centre) * rsqrt(variance + 1e-5)};
                          },
                          std::vector<Tensor>{zeros({64, 256, 3136})}, "f")
                          .graph;
  const Program program =
      run_pipeline(until(default_pipeline(), "schedule"), graph, true, Target::Cuda).program;
  constexpr int64_t once = int64_t{64} * 256 * 3136 * 4;
  int64_t bytes = 0;
  for (const Kernel& kernel : program.kernels) bytes += bytes_moved(program, kernel);
  CHECK(bytes < 3 * once + once / 50);
}

TEST_CASE("variances of nothing, of one, of constants, NaN and Inf are PyTorch's",
          "[nn][var]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto y = agreed(
      [](Tensor one, Tensor none, Tensor wide) {
        return std::vector<Tensor>{var(one, {}),      var(one, {}, 0),
                                   var(none, {0}),    var(none, {1}),
                                   var(none),         var(none, {0, 1}, 0, true),
                                   var(wide, {1}, 0), var(2., {}, 0)};
      },
      full({}, 3), full({0, 2}, 1),
      concat({full({1, 2050}, .1), full({1, 2050}, nan), full({1, 2050}, infinity),
              where(arange(2050) == 2049, infinity, 1.).reshape({1, 2050})}));
  check_near(y[0], {}, {nan});
  check_near(y[1], {}, {0});
  check_near(y[2], {2}, {nan, nan});
  check_near(y[3], {0}, {});
  check_near(y[4], {}, {nan});
  check_near(y[5], {1, 1}, {nan});
  check_near(y[6], {4}, {0, nan, nan, nan}, 1e-12);
  check_near(y[7], {}, {0});
}

TEST_CASE("a half's variance is rounded once", "[nn][var]") {
  for (DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = noise({2, 1500}, 3, dtype);
    const auto y = agreed(
        [](Tensor x) {
          return std::vector<Tensor>{var(x, {1}), var(x.to(float32), {1})};
        },
        x);
    CHECK(y[0].dtype() == dtype);
    CHECK(same_bits(y[0], y[1].to(dtype)));
  }
}

TEST_CASE("a long column's variance reads it in one kernel", "[nn][var]") {
  for (const auto& [shape, axis] :
       {std::pair{Sizes{64, 40000}, 1}, std::pair{Sizes{8192, 64}, 0}}) {
    const Graph graph = trace(
                            [&](std::span<const Tensor> in) -> std::vector<Tensor> {
                              return {var(in[0], {axis})};
                            },
                            std::vector<Tensor>{zeros(shape)}, "f")
                            .graph;
    const Program program = run_pipeline(default_pipeline(), graph, true, Target::Cpp).program;
    const std::string text = print(program);
    const size_t first = text.find("sum(j0: 1024)"), second = text.rfind("sum(j0: 1024)");
    REQUIRE(second != std::string::npos);  // the mean and the squares of a chunk
    CHECK(text.substr(first, second - first).find("kernel") == std::string::npos);
    CHECK(program.launches.size() == 2);
  }
}

TEST_CASE("a row that a kernel can hold needs one kernel, with the mean too", "[nn][var]") {
  const auto kernels = [](const Sizes& shape, const Sizes& axes) {
    const Graph graph =
        trace(
            [&](std::span<const Tensor> in) -> std::vector<Tensor> {
              return {(in[0] - mean(in[0], axes, true)) * var(in[0], axes, 1, true)};
            },
            std::vector<Tensor>{zeros(shape)}, "f")
            .graph;
    return run_pipeline(default_pipeline(), graph, true, Target::Cuda).program.kernels.size();
  };
  CHECK(kernels({9000, 2048}, {1}) == 1);
  CHECK(kernels({9000, 3300}, {1}) == 1);
  CHECK(kernels({900, 64, 64}, {1, 2}) == 1);
  CHECK(kernels({900, 5120}, {1}) == 1);
  CHECK(kernels({90, 32768}, {1}) == 1);
  CHECK(kernels({90, 32769}, {1}) > 1);
}

TEST_CASE("a dynamic row's variance has the bits of a fixed one, held or in chunks",
          "[nn][var][sizes]") {
  CompileOptions options;
  options.dynamic = {{0, 1}};
  const auto rows = compile([](Tensor x) { return var(x, {1}); }, options);
  const auto all = compile([](Tensor x) { return var(x); }, options);
  for (const int64_t length : {37, 16384, 16385, 32768, 32769, 40000}) {
    CAPTURE(length);
    const Tensor x = noise({2, length}, 1e3);
    CHECK(same_bits(rows(x), var(x, {1})));
    CHECK(same_bits(all(x), var(x)));
  }
}

TEST_CASE("axes of one element do not change a variance's bits", "[nn][var]") {
  const Tensor x = noise({3, 5000}, 1e3);
  const Tensor y = var(x, {1});
  CHECK(same_bits(var(x.reshape({3, 5000, 1}), {1}).reshape({3}), y));
  CHECK(same_bits(var(x.reshape({3, 5000, 1, 1}), {1, 3}).reshape({3}), y));
  CHECK(same_bits(var(x.reshape({1, 3, 5000}), {0, 2}).reshape({3}), y));
}

TEST_CASE("variances thread by thread on CUDA", "[nn][var][codegen][threads]") {
  for (const Sizes& shape : {Sizes{3, 1000}, Sizes{2, 3001}, Sizes{2, 40000}})
    for (const Sizes& axes : {Sizes{1}, Sizes{0}, Sizes{0, 1}}) {
      CAPTURE(shape, axes);
      threads::check_bits([&](threads::In i) { return threads::Out{var(i[0], axes)}; },
                          {noise(shape, 1e3)});
    }
}

TEST_CASE("variances of rows, of columns and of everything compile for sm_90",
          "[nn][var][cuda]") {
  if (!why_no_nvrtc().empty()) return;
  for (const Sizes& axes : {Sizes{1}, Sizes{0}, Sizes{0, 1}}) {
    const Graph graph = trace(
                            [&](std::span<const Tensor> in) -> std::vector<Tensor> {
                              return {var(in[0], axes)};
                            },
                            std::vector<Tensor>{zeros({2049, 4097})}, "f")
                            .graph;
    const Source source = run_pipeline(default_pipeline(), graph, true, Target::Cuda).source;
    CHECK(compile_cuda(source.text, "sm_90").size() > 4);
  }
}
