#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>
#include <memory>

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::View;

namespace {

template <typename T>
View<T> view(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.strides()};
}

// The result of choose() in a walled room, against where() of the library.
std::string chooses(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const Sizes shape = a.shape();
  Walled<float> room(static_cast<size_t>(element_count(shape)));
  exercise::choose(shape, view<bool>(condition), view<float>(a), view<float>(b), room.data());
  if (const std::string wall = room.broken_wall(); !wall.empty())
    return str("shape [", join(shape, ","), "]: ", wall);
  const Tensor got =
      from_vector(std::vector<float>(room.data(), room.data() + room.size()), shape);
  const Tensor want = where(condition, a, b);
  if (same_bits(got, want)) return "";
  return str("condition ", condition, "\na ", a, "\nb ", b, "\nyours ", got, "\nwanted ", want);
}

Tensor mask(const Sizes& shape) { return (randint(0, 2, shape) == 1).contiguous(); }

}  // namespace

TEST_CASE("row-major operands") {
  manual_seed(1);
  EXPECT(chooses(mask({257}), randn({257}), randn({257})));
  EXPECT(chooses(mask({3, 5, 7}), randn({3, 5, 7}), randn({3, 5, 7})));
}

TEST_CASE("what is not chosen is not seen") {
  const Tensor condition = tensor({true, true, true, false, false, false, true, false});
  const Tensor a = tensor({1.0f, -0.0f, 2.0f, NAN, INFINITY, -INFINITY, NAN, 0.0f});
  const Tensor b = tensor({NAN, 0.0f, INFINITY, 3.0f, 4.0f, -0.0f, 1.0f, -0.0f});
  EXPECT(chooses(condition, a, b));
}

TEST_CASE("each operand has strides of its own") {
  manual_seed(2);
  const Tensor transposed = randn({7, 5}).t(), plain = randn({5, 7});
  EXPECT(chooses(mask({5, 7}), transposed, plain));
  EXPECT(chooses(mask({7, 5}).t(), plain, transposed));
  EXPECT(chooses(mask({5, 3}), plain.slice(1, 1, 4), transposed.slice(1, 0, 7, 3)));
}

TEST_CASE("a repeated axis does not step") {
  manual_seed(3);
  EXPECT(chooses(mask({5, 1}).expand({5, 7}), randn({7}).expand({5, 7}), randn({5, 7})));
  EXPECT(chooses(mask({}).expand({257}), randn({}).expand({257}), randn({257})));
}

TEST_CASE("strides may be negative") {
  manual_seed(4);
  EXPECT(chooses(mask({5, 7}).flip({0}), randn({5, 7}).flip({0, 1}), randn({5, 7}).flip({1})));
}

TEST_CASE("a number is one element") {
  EXPECT(chooses(full({}, 1, boolean), full({}, 5), full({}, 7)));
  EXPECT(chooses(full({}, 0, boolean), full({}, 5), full({}, 7)));
}

TEST_CASE("a shape without elements writes nothing") {
  EXPECT(chooses(zeros({0}, boolean), zeros({0}), zeros({0})));
  EXPECT(chooses(zeros({3, 0, 2}, boolean), zeros({3, 0, 2}), zeros({3, 0, 2})));
}
