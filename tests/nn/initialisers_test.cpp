// Initial weights: their bounds, moments and shares, and what cannot be drawn.
#include "tiny_compile/nn/initialisers.h"

#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tiny_compile/trace/tracer.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Moments {
  double mean = 0, deviation = 0, kurtosis = 0, low = 0, high = 0;
};

Moments moments_of(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_vector<double>();
  Moments m;
  const double n = static_cast<double>(values.size());
  for (const double x : values) m.mean += x / n;
  double fourth = 0, variance = 0;
  for (const double x : values) {
    variance += std::pow(x - m.mean, 2) / n;
    fourth += std::pow(x - m.mean, 4) / n;
  }
  m.deviation = std::sqrt(variance);
  m.kurtosis = fourth / variance / variance;
  m.low = *std::min_element(values.begin(), values.end());
  m.high = *std::max_element(values.begin(), values.end());
  return m;
}

// 1.8 is the kurtosis of a uniform distribution, 3 that of a normal one.
void check_uniform(const Tensor& tensor, double bound) {
  const Moments m = moments_of(tensor);
  CHECK(std::fabs(m.mean) < 0.01 * bound);
  CHECK(m.deviation == Catch::Approx(bound / std::sqrt(3.0)).epsilon(0.01));
  CHECK(m.kurtosis == Catch::Approx(1.8).epsilon(0.02));
  CHECK((m.low >= -bound && m.low < -0.999 * bound));
  CHECK((m.high <= bound && m.high > 0.999 * bound));
}

void check_normal(const Tensor& tensor, double mean, double deviation) {
  const Moments m = moments_of(tensor);
  CHECK(std::fabs(m.mean - mean) < 0.01 * deviation);
  CHECK(m.deviation == Catch::Approx(deviation).epsilon(0.01));
  CHECK(m.kurtosis == Catch::Approx(3).epsilon(0.05));
  CHECK(m.high > 4 * deviation + mean);
}

}  // namespace

TEST_CASE("fans count what an output is a sum of, with the window", "[nn]") {
  CHECK(nn::fans({10, 784}).in == 784);
  CHECK(nn::fans({10, 784}).out == 10);
  CHECK(nn::fans({16, 3, 5, 5}).in == 75);
  CHECK(nn::fans({16, 3, 5, 5}).out == 400);
  CHECK_THROWS_WITH(nn::fans({7}), ContainsSubstring("initialisers_test.cpp") &&
                                       ContainsSubstring("[7] has no fan_in"));
}

TEST_CASE("kaiming and xavier weights have PyTorch's bounds and moments", "[nn]") {
  manual_seed(5);
  const Sizes shape = {400, 250};
  check_uniform(nn::kaiming_uniform(shape, std::sqrt(5.0)), 1 / std::sqrt(250.0));
  check_uniform(nn::kaiming_uniform(shape), std::sqrt(6.0 / 250));
  check_uniform(nn::kaiming_uniform(shape, 0, nn::Fan::Out), std::sqrt(6.0 / 400));
  check_normal(nn::kaiming_normal(shape), 0, std::sqrt(2.0 / 250));
  check_normal(nn::kaiming_normal(shape, 2, nn::Fan::Out), 0, std::sqrt(2.0 / 5 / 400));
  check_uniform(nn::xavier_uniform(shape), std::sqrt(6.0 / 650));
  check_normal(nn::xavier_normal(shape, 5.0 / 3), 0, 5.0 / 3 * std::sqrt(2.0 / 650));
  check_normal(nn::normal(shape, 3, 0.02, DType::f64), 3, 0.02);
  check_uniform(nn::uniform(shape, -2, 2, DType::f64), 2);
}

TEST_CASE("a truncated normal keeps its bounds and a normal's shape inside", "[nn]") {
  manual_seed(6);
  const Tensor x = nn::truncated_normal({100000}, 1, 2, -1, 3);
  const Moments m = moments_of(x);
  CHECK((m.low >= -1 && m.high <= 3 && m.low < -0.99 && m.high > 2.99));
  CHECK(m.mean == Catch::Approx(1).margin(0.01));
  // Of a standard normal distribution in [-1, 1]: 1 - 2 phi(1) / (2 Phi(1) - 1).
  CHECK(m.deviation ==
        Catch::Approx(2 * std::sqrt(1 - 2 * 0.24197072 / 0.68268949)).epsilon(0.01));
  CHECK_THROWS_WITH(nn::truncated_normal({3}, 0, 1, 2, 2),
                    ContainsSubstring("nothing lies in"));
}

TEST_CASE("weights are the seed's, and are floats", "[nn]") {
  manual_seed(7);
  const Tensor first = nn::xavier_normal({3, 4}), second = nn::xavier_normal({3, 4});
  CHECK(!same_bits(first, second));
  manual_seed(7);
  CHECK(same_bits(nn::xavier_normal({3, 4}), first));
  CHECK(nn::normal({2}, 0, 1, DType::bf16).dtype() == DType::bf16);
  CHECK(nn::uniform({0, 3}, 0, 1).numel() == 0);
  CHECK_THROWS_WITH(nn::normal({2}, 0, 1, DType::i32),
                    ContainsSubstring("initialisers_test.cpp") && ContainsSubstring("i32"));
}
