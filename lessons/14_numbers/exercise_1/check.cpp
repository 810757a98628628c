#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>
#include <cstdio>
#include <limits>

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

std::vector<float> row_of(int64_t count) { return randn({count}).to_vector<float>(); }

std::string other_sum(const std::vector<float>& row) {
  const float wanted = from_vector(row).sum().item<float>(), got = exercise::sum_row(row);
  const Literal want = Literal::of(float32, double(wanted)),
                have = Literal::of(float32, double(got));
  if (want == have) return "";
  char text[120];
  std::snprintf(text, sizeof text, "%zu elements: your sum is %a, the interpreter's %a",
                row.size(), double(got), double(wanted));
  return text;
}

}  // namespace

TEST_CASE("32 elements, one a thread, are combined by halves") {
  for (int row = 0; row < 20; row++) EXPECT(other_sum(row_of(32)));
}

TEST_CASE("a thread adds its own elements by halves") {
  for (int t : {0, 5, 31}) {
    std::vector<float> row(1024, -0.0f);
    const std::vector<float> own = row_of(32);
    for (int k = 0; k < 32; k++) row[size_t(32 * k + t)] = own[size_t(k)];
    const float wanted = from_vector(row).sum().item<float>();
    INFO("thread " << t);
    CHECK(exercise::partial(row.data(), 1024, t) == wanted);
  }
}

TEST_CASE("a thread reads its own elements only") {
  for (int t = 0; t < 32; t++) {
    std::vector<float> row(1024, std::numeric_limits<float>::quiet_NaN());
    for (size_t i = size_t(t); i < 1000; i += 32) row[i] = 1;
    INFO("thread " << t << " of a row of 1000; the others' elements are NaN");
    CHECK(!std::isnan(exercise::partial(row.data(), 1000, t)));
  }
}

TEST_CASE("every length to 200 has the interpreter's bits") {
  for (int64_t count = 0; count <= 200; count++) EXPECT(other_sum(row_of(count)));
}

TEST_CASE("a row longer than a chunk has the interpreter's bits") {
  for (int64_t count : {1000, 1023, 1024, 1025, 2049, 100003}) EXPECT(other_sum(row_of(count)));
}

TEST_CASE("a row of -0 sums to -0") {
  for (size_t count : {1, 31, 33, 1000}) {
    INFO(count << " elements, all -0");
    CHECK(std::signbit(exercise::sum_row(std::vector<float>(count, -0.0f))));
  }
}

TEST_CASE("NaN and Inf pass through") {
  std::vector<float> row = row_of(257);
  row[100] = std::numeric_limits<float>::infinity();
  CHECK(std::isinf(exercise::sum_row(row)));
  row[200] = -row[100];
  CHECK(std::isnan(exercise::sum_row(row)));
}
