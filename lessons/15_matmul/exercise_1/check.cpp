#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

struct Product {
  std::string trouble;
  long loads = 0, fmas = 0, stores = 0;
};

// Multiplies numbers of very different sizes, so that another order is another sum.
Product multiplied(long rows, long depth, long columns) {
  manual_seed(static_cast<uint64_t>(rows + 100 * columns));
  std::vector<float> a = randn({rows, depth}).to_vector<float>();
  const std::vector<float> b = randn({depth, columns}).to_vector<float>();
  for (size_t i = 0; i < a.size(); i += 3) a[i] *= 4096.0f;
  Walled<float> c(static_cast<size_t>(rows * columns), NAN);
  exercise::Processor processor(rows, depth, columns, a.data(), b.data(), c.data());
  Product result;
  try {
    exercise::multiply(processor);
  } catch (const Error& error) {
    result.trouble = error.what();
    return result;
  }
  result = {c.broken_wall(), processor.loads, processor.fmas, processor.stores};
  for (long i = 0; i < rows; i++) {
    for (long j = 0; j < columns; j++) {
      float sum = 0;
      for (long k = 0; k < depth; k++)
        sum = std::fma(a[static_cast<size_t>(i * depth + k)],
                       b[static_cast<size_t>(k * columns + j)], sum);
      const float got = c[static_cast<size_t>(i * columns + j)];
      if (result.trouble.empty() && std::memcmp(&got, &sum, sizeof sum) != 0)
        result.trouble = str(rows, " x ", depth, " times ", depth, " x ", columns, ": c[", i,
                             "][", j, "] is ", got, ", should be ", sum);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("there are 32 registers") { EXPECT(multiplied(12, 3, 12).trouble); }

TEST_CASE("each tile begins from zero") { EXPECT(multiplied(60, 2, 60).trouble); }

TEST_CASE("the order is ascending") { EXPECT(multiplied(20, 100, 20).trouble); }

TEST_CASE("every size gives every element") {
  for (long rows : {1, 2, 3, 5, 7, 17})
    for (long columns : {1, 4, 5, 6, 19}) EXPECT(multiplied(rows, 9, columns).trouble);
}

TEST_CASE("a depth of zero gives zeros") { EXPECT(multiplied(7, 0, 9).trouble); }

TEST_CASE("each element is stored once") {
  CHECK(multiplied(17, 9, 19).stores == 17 * 19);
  CHECK(multiplied(17, 9, 19).fmas == 17 * 9 * 19);
}

TEST_CASE("half a load for each fma") {
  const Product result = multiplied(60, 50, 60);
  EXPECT(result.trouble);
  score("loads for 100 fmas", result.fmas ? 100 * result.loads / result.fmas : 0, 40);
  CHECK(2 * result.loads <= result.fmas);
}
