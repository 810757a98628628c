#include "lessons/tools/check.h"
#include "exercise.h"
#include "lessons/tools/threads.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// An array that counts how often it is read, and how often outside.
const char* kInput = R"(
static long tc_counts[2];
extern "C" long* tc_counted() { return tc_counts; }
struct input {
  const float* data;
  long size;
  float operator[](long at) const {
    tc_counts[0]++;
    const bool inside = at >= 0 && at < size;
    tc_counts[1] += !inside;
    return inside ? data[at] : 0;
  }
};
static inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
)";

struct Input {
  const float* data;
  long size;
};

struct Product {
  std::string trouble;
  long reads = 0, outside = 0;
};

Product multiplied(const std::vector<float>& a, const std::vector<float>& b, int rows,
                   int depth, int columns) {
  Threads threads(kInput + exercise::multiply_kernel(), {{"multiply", 6}});
  const int side = exercise::tile_side();
  const auto tiles = [&](int size) { return (size + side - 1) / side; };
  Walled<float> c(static_cast<size_t>(rows * columns), -77.0f);
  Input from_a{a.data(), rows * depth}, from_b{b.data(), depth * columns};
  void* to = c.data();
  long* counts = reinterpret_cast<long* (*)()>(threads.symbol("tc_counted"))();
  counts[0] = counts[1] = 0;
  threads.run("multiply", int64_t{tiles(rows)} * tiles(columns), 256,
              {&from_a, &from_b, &to, &rows, &depth, &columns});
  Product result{c.broken_wall(), counts[0], counts[1]};
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++) {
      float sum = 0;
      for (int k = 0; k < depth; k++)
        sum = std::fma(a[static_cast<size_t>(i * depth + k)],
                       b[static_cast<size_t>(k * columns + j)], sum);
      const float got = c[static_cast<size_t>(i * columns + j)];
      const bool same =
          std::isnan(sum) ? std::isnan(got) : std::memcmp(&got, &sum, sizeof sum) == 0;
      if (result.trouble.empty() && !same)
        result.trouble = str(rows, " x ", depth, " times ", depth, " x ", columns, ": c[", i,
                             "][", j, "] is ", got, ", should be ", sum);
    }
  }
  return result;
}

std::vector<float> numbers(int rows, int columns) {
  manual_seed(static_cast<uint64_t>(7 * rows + columns));
  return randn({rows, columns}).to_vector<float>();
}

Product multiplied(int rows, int depth, int columns) {
  return multiplied(numbers(rows, depth), numbers(depth, columns), rows, depth, columns);
}

}  // namespace

TEST_CASE("one tile") {
  const int side = exercise::tile_side();
  EXPECT(multiplied(side, 8, side).trouble);
}

TEST_CASE("many slices") { EXPECT(multiplied(64, 100, 64).trouble); }

TEST_CASE("every size gives every element") {
  EXPECT(multiplied(1, 1, 1).trouble);
  EXPECT(multiplied(70, 37, 130).trouble);
  EXPECT(multiplied(65, 1, 63).trouble);
}

TEST_CASE("nothing outside is read") {
  for (int rows : {1, 33, 70}) {
    INFO("reads outside of a and b:");
    CHECK(multiplied(rows, 37, 41).outside == 0);
  }
}

TEST_CASE("an infinity stays in its row and column") {
  std::vector<float> a = numbers(40, 19), b = numbers(19, 50);
  a[3 * 19] = std::numeric_limits<float>::infinity();
  b[18 * 50 + 7] = -std::numeric_limits<float>::infinity();
  EXPECT(multiplied(a, b, 40, 19, 50).trouble);
}

TEST_CASE("a read serves 16 products") {
  const Product product = multiplied(128, 96, 128);
  EXPECT(product.trouble);
  score("reads for 1000 products", 1000 * product.reads / (128 * 96 * 128), 31);
  CHECK(16 * product.reads <= 128 * 96 * 128);
}
