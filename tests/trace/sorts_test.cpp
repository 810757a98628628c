// sort, argsort and topk by PyTorch's names, beside std::stable_sort.
#include <algorithm>
#include <numeric>

#include "tests/trace/agree.h"
#include "tiny_compile/trace/sorts.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const double kInf = std::numeric_limits<double>::infinity(), kNan = std::nan("");

// The places of the values from begin on, `step` apart.
Values places_of(const Values& all, size_t begin, size_t step, size_t count, bool descending) {
  Values places(count);
  std::iota(places.begin(), places.end(), 0);
  const auto rank = [](double value) { return std::isnan(value) ? 2 : 1; };
  std::stable_sort(places.begin(), places.end(), [&](double i, double j) {
    double a = all[begin + static_cast<size_t>(i) * step],
           b = all[begin + static_cast<size_t>(j) * step];
    if (descending) std::swap(a, b);
    return rank(a) != rank(b) ? rank(a) < rank(b) : a < b;
  });
  return places;
}

// Sorted along each axis both ways, as std::stable_sort does it.
void check_sorts(const Tensor& x) {
  const Values all = x.to_vector<double>();
  for (int64_t axis = 0; axis < x.rank(); axis++) {
    for (bool descending : {false, true}) {
      const auto y = agreed(
          [&](Tensor in) {
            const auto [values, places] = sort(in, axis, descending);
            return std::vector<Tensor>{values, places};
          },
          x);
      Values wanted(all.size()), values(all.size());
      const size_t count = static_cast<size_t>(x.size(axis));
      size_t step = 1;
      for (int64_t k = axis + 1; k < x.rank(); k++) step *= static_cast<size_t>(x.size(k));
      for (size_t at = 0; at < all.size(); at++) {
        if (at / step % count > 0) continue;
        const Values places = places_of(all, at, step, count, descending);
        for (size_t k = 0; k < count; k++) {
          wanted[at + k * step] = places[k];
          values[at + k * step] = all[at + static_cast<size_t>(places[k]) * step];
        }
      }
      CHECK(y[0].dtype() == x.dtype());
      check_near(y[0], x.shape(), values, 0);
      check_is(y[1], int64, x.shape(), wanted);
    }
  }
}

Tensor few_values(const Sizes& shape, DType dtype) {  // many ties
  return (rand(shape) * 9.0).to(int64).to(dtype);
}

std::string message_at_line(const std::function<void()>& action) {
  std::string message;
  try {
    action();
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("sorts_test.cpp:"));
  return message;
}

}  // namespace

TEST_CASE("a sort has equals in order and NaN after all numbers", "[sort]") {
  check_sorts(tensor({0., kNan, -0., kInf, -kInf, 1., kNan, 0.}));
  check_sorts(tensor({{3., 1., 3.}, {kNan, 1., -2.}}));
}

TEST_CASE("sorts of every dtype are std::stable_sort's", "[sort]") {
  manual_seed(3);
  for (DType dtype : {float32, float64, float16, bfloat16, int8, uint8, int32, int64, uint32,
                      uint64, boolean}) {
    INFO(name(dtype));
    check_sorts(few_values({5, 7, 6}, dtype));
  }
  check_sorts(randn({2, 4097}));
  check_sorts(few_values({1001}, float16));
}

TEST_CASE("sorts of views, of formulas, of nothing and of one", "[sort]") {
  manual_seed(4);
  const Tensor x = randn({40, 30});
  check_sorts(x.t());
  check_sorts(x.slice(1, 3, 29, 2));
  check_sorts(flip(x, {0}));
  check_sorts(zeros({3, 0}));
  check_sorts(randn({1, 5}));
  const auto y = agreed(
      [](Tensor in) {
        return std::vector<Tensor>{argsort(in * 2.0 - 1.0, 0, true),
                                   sort(exp(in), 1).first.sum(1)};
      },
      x);
  CHECK(same_bits(y[0], x.argsort(0, true)));
}

TEST_CASE("one number is sorted", "[sort]") {
  const auto y = agreed(
      [](Tensor x) {
        const auto [values, places] = x.sort();
        const auto [most, at] = x.topk(1);
        return std::vector<Tensor>{values, places, most, at, x.topk(0).second};
      },
      full({}, 2.5));
  check_near(y[0], {}, {2.5});
  check_is(y[1], int64, {}, {0});
  check_near(y[2], {}, {2.5});
  check_is(y[3], int64, {}, {0});
  CHECK(y[4].shape() == Sizes{0});
}

TEST_CASE("topk gives the first of a sort", "[sort]") {
  const auto y = agreed(
      [](Tensor x) {
        const auto [most, at] = topk(x, 3);
        const auto [least, place] = topk(x, 1, 0, false);
        return std::vector<Tensor>{
            most, at, least, place, topk(x, 0).first, x.topk(4, -1).second};
      },
      tensor({{3., kNan, 3., 1.}, {2., 2., kInf, 5.}}));
  check_near(y[0], {2, 3}, {kNan, 3, 3, kInf, 5, 2});
  check_is(y[1], int64, {2, 3}, {1, 0, 2, 2, 3, 0});
  check_near(y[2], {1, 4}, {2, 2, 3, 1});
  check_is(y[3], int64, {1, 4}, {1, 1, 0, 0});
  CHECK(y[4].shape() == Sizes{2, 0});
  check_is(y[5], int64, {2, 4}, {1, 0, 2, 3, 2, 3, 0, 1});
}

TEST_CASE("topk of long rows is the first of a sort too", "[sort]") {
  manual_seed(6);
  for (const Tensor& x : {few_values({3, 9001}, float32), randn({20000}), randn({9000, 2})}) {
    for (bool largest : {false, true}) {
      const auto y = agreed(
          [&](Tensor in) {
            const auto [values, places] = topk(in, 8, 0, largest);
            const auto [of_row, at] = topk(in, 2, -1, largest);
            return std::vector<Tensor>{values, places, of_row, at};
          },
          x.rank() == 2 && x.size(0) == 3 ? x.t() : x);
      const Tensor whole = x.rank() == 2 && x.size(0) == 3 ? x.t() : x;
      CHECK(same_bits(y[0], sort(whole, 0, largest).first.slice(0, 0, 8).contiguous()));
      CHECK(same_bits(y[1], argsort(whole, 0, largest).slice(0, 0, 8).contiguous()));
      CHECK(same_bits(y[3], argsort(whole, -1, largest).slice(-1, 0, 2).contiguous()));
    }
  }
}

TEST_CASE("sorts along no axis, and topk of too many, are refused", "[sort]") {
  const Tensor x = tensor({1., 2.});
  CHECK_THAT(message_at_line([&] { sort(x, 1); }), ContainsSubstring("axis 1"));
  CHECK_THAT(message_at_line([&] { x.argsort(-2); }), ContainsSubstring("axis -2"));
  CHECK_THAT(message_at_line([&] { topk(x, 3); }),
             ContainsSubstring("k = 3 of the 2 elements"));
  CHECK_THAT(message_at_line([&] { topk(x, -1); }), ContainsSubstring("k = -1"));
  CHECK_THAT(message_at_line([&] { topk(full({}, 1.0), 2); }), ContainsSubstring("k = 2"));
}
