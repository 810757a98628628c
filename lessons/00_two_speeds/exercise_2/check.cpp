#include "lessons/tools/check.h"
#include "exercise.h"

#include <cstdint>
#include <random>

using exercise::calls_until_paid;
using tiny_compile::str;

namespace {

std::string wrong(int64_t compile, int64_t eager, int64_t compiled,
                  std::optional<int64_t> want) {
  const std::optional<int64_t> got = calls_until_paid(compile, eager, compiled);
  if (got == want) return "";
  const auto text = [](const std::optional<int64_t>& n) { return n ? str(*n) : "never"; };
  return str("compile ", compile, ", eager ", eager, ", compiled ", compiled, ": you say ",
             text(got), ", wanted ", text(want));
}

// By trying every n up to 1000.
std::optional<int64_t> tried(int64_t compile, int64_t eager, int64_t compiled) {
  for (int64_t n = 1; n <= 1000; n++) {
    if (compile + n * compiled <= n * eager) return n;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("the two examples") {
  EXPECT(wrong(1000, 30, 10, 50));
  EXPECT(wrong(1001, 30, 10, 51));
}

TEST_CASE("one nanosecond more takes one call more") {
  EXPECT(wrong(7 * 13, 20, 7, 7));
  EXPECT(wrong(7 * 13 + 1, 20, 7, 8));
  EXPECT(wrong(7 * 13 - 1, 20, 7, 7));
}

TEST_CASE("what saves nothing is never paid") {
  EXPECT(wrong(1, 10, 10, std::nullopt));
  EXPECT(wrong(1, 10, 11, std::nullopt));
  EXPECT(wrong(0, 10, 11, std::nullopt));
}

TEST_CASE("at least one call") {
  EXPECT(wrong(0, 10, 3, 1));
  EXPECT(wrong(0, 10, 10, 1));
  EXPECT(wrong(1, 10, 3, 1));
}

TEST_CASE("every small case, by trying") {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; i++) {
    const int64_t compile = random() % 1000, eager = random() % 50, compiled = random() % 50;
    EXPECT(wrong(compile, eager, compiled, tried(compile, eager, compiled)));
  }
}

TEST_CASE("a century of compiling") {
  EXPECT(wrong(INT64_MAX, INT64_MAX, 0, 1));
  EXPECT(wrong(INT64_MAX, INT64_MAX - 1, 1, 2));
}
