#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::expanded_strides;

namespace {

std::string text(const Sizes& sizes) { return "[" + join(sizes, ",") + "]"; }

// Calls visit(index) for each index of a shape.
template <typename Visit>
void for_each_index(const Sizes& shape, Visit visit) {
  Sizes index(shape.size());
  for (int64_t left = element_count(shape); left > 0; left--) {
    visit(index);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

int64_t offset(const Sizes& index, const Sizes& strides) {
  int64_t result = 0;
  for (size_t k = 0; k < index.size(); k++) result += index[k] * strides[k];
  return result;
}

// Whether every element is read from where it lies.
std::string reads_elsewhere(const Sizes& shape, const Sizes& strides, const Sizes& to) {
  const Sizes got = expanded_strides(shape, strides, to);
  const std::string what =
      "shape " + text(shape) + ", strides " + text(strides) + ", to " + text(to);
  if (got.size() != to.size())
    return str(what, ": you give ", got.size(), " strides for ", to.size(), " axes");
  std::string trouble;
  const size_t added = to.size() - shape.size();
  for_each_index(to, [&](const Sizes& index) {
    Sizes source(index.begin() + static_cast<std::ptrdiff_t>(added), index.end());
    for (size_t k = 0; k < source.size(); k++) source[k] = shape[k] == 1 ? 0 : source[k];
    const int64_t want = offset(source, strides), have = offset(index, got);
    if (trouble.empty() && want != have)
      trouble = str(what, ": with your strides ", text(got), " element ", text(index),
                    " is read from ", have, ", not from ", want);
  });
  return trouble;
}

}  // namespace

TEST_CASE("the same shape keeps its strides") {
  EXPECT(reads_elsewhere({3, 4}, {4, 1}, {3, 4}));
  EXPECT(reads_elsewhere({3, 4}, {1, 3}, {3, 4}));
}

TEST_CASE("a repeated axis does not step") {
  EXPECT(reads_elsewhere({3, 1}, {4, 1}, {3, 4}));
  EXPECT(reads_elsewhere({1, 5}, {7, 1}, {3, 5}));
  EXPECT(reads_elsewhere({1, 1}, {9, 9}, {2, 3}));
}

TEST_CASE("axes are matched from the last") {
  EXPECT(reads_elsewhere({3, 1}, {4, 1}, {2, 3, 4}));
  EXPECT(reads_elsewhere({5}, {2}, {5, 5, 5}));
  EXPECT(reads_elsewhere({}, {}, {3, 2}));
}

TEST_CASE("views of views keep what they are") {
  EXPECT(reads_elsewhere({3, 1}, {-4, 1}, {3, 7}));
  EXPECT(reads_elsewhere({3, 5}, {0, 2}, {2, 3, 5}));
}

TEST_CASE("an axis of 1 may be repeated no times") {
  CHECK(expanded_strides({1, 5}, {5, 1}, {0, 5}).size() == 2);
  CHECK(expanded_strides({0, 5}, {5, 1}, {2, 0, 5}).size() == 3);
}

TEST_CASE("a size that does not fit is refused") {
  CHECK_THROWS_AS(expanded_strides({3}, {1}, {4}), Error);
  CHECK_THROWS_AS(expanded_strides({3}, {1}, {1}), Error);
  CHECK_THROWS_AS(expanded_strides({2, 3}, {3, 1}, {3, 2}), Error);
  CHECK_THROWS_AS(expanded_strides({0}, {1}, {2}), Error);
}

TEST_CASE("fewer axes are refused") {
  CHECK_THROWS_AS(expanded_strides({1, 3}, {3, 1}, {3}), Error);
}

TEST_CASE("every small shape") {
  for (int code = 0; code < 64; code++) {
    const Sizes to = {2, 1 + code % 3, 4};
    Sizes shape = {code & 8 ? 1 : to[1], code & 16 ? 1 : to[2]};
    if (code & 32) shape.insert(shape.begin(), code & 4 ? 1 : 2);
    EXPECT(reads_elsewhere(shape, contiguous_strides(shape), to));
  }
}
