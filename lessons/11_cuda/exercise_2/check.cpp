#include "lessons/tools/check.h"
#include "exercise.h"
#include "lessons/tools/threads.h"

#include <cmath>
#include <cstdio>

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

float tree(std::vector<float> v) {
  for (size_t half = v.size() / 2; half > 0; half /= 2)
    for (size_t t = 0; t < half; t++) v[t] += v[t + half];
  return v[0];
}

std::string bits_of(float value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", static_cast<double>(value));
  return text;
}

std::vector<float> sums_of(std::vector<float> x, int64_t* barriers = nullptr,
                           bool last_first = false) {
  Threads threads(exercise::block_sum_kernel(), {{"block_sum", 2}});
  if (last_first) threads.go_last_first();
  const size_t blocks = x.size() / 256;
  Walled<float> out(blocks, NAN);
  void *from = x.data(), *to = out.data();
  threads.run("block_sum", static_cast<int64_t>(blocks), 256, {&from, &to});
  EXPECT(out.broken_wall());
  if (barriers) *barriers = threads.barriers() / static_cast<int64_t>(blocks);
  return {out.data(), out.data() + blocks};
}

std::string other_sums(const std::vector<float>& x, bool last_first = false) {
  const std::vector<float> got = sums_of(x, nullptr, last_first);
  for (size_t b = 0; b < got.size(); b++) {
    const float wanted = tree({x.begin() + static_cast<std::ptrdiff_t>(256 * b),
                               x.begin() + static_cast<std::ptrdiff_t>(256 * b + 256)});
    if (std::memcmp(&got[b], &wanted, sizeof wanted) != 0)
      return str("block ", b, ": your sum is ", got[b], " (", bits_of(got[b]),
                 "), the tree's is ", wanted, " (", bits_of(wanted), ")");
  }
  return "";
}

}  // namespace

TEST_CASE("numbers that all threads hold are all added") {
  EXPECT(other_sums(std::vector<float>(256, 1.0f)));
}

TEST_CASE("each block has its own numbers") {
  std::vector<float> x;
  for (int i = 0; i < 5 * 256; i++) x.push_back(static_cast<float>(1 + i / 256));
  EXPECT(other_sums(x));
}

TEST_CASE("a number of any thread arrives") {
  for (size_t t : {0, 1, 31, 32, 127, 128, 200, 255}) {
    std::vector<float> x(256, 0.0f);
    x[t] = static_cast<float>(t + 1);
    EXPECT(other_sums(x));
  }
}

TEST_CASE("the order is the contract's") {
  manual_seed(11);
  for (double scale : {1.0, 1e6}) {
    std::vector<float> x = randn({8 * 256}).to_vector<float>();
    for (size_t i = 0; i < x.size(); i += 3) x[i] = static_cast<float>(x[i] * scale);
    EXPECT(other_sums(x));
  }
}

TEST_CASE("no thread counts on coming last") {
  manual_seed(12);
  INFO("thread 255 goes first here, thread 0 last");
  EXPECT(other_sums(randn({8 * 256}).to_vector<float>(), true));
}

TEST_CASE("every thread comes to every barrier") {
  int64_t barriers = 0;
  try {
    sums_of(std::vector<float>(512, 1.0f), &barriers);
  } catch (const Error& error) {
    FAIL(error.what());
  }
  score("barriers a block", barriers, 4);
}
