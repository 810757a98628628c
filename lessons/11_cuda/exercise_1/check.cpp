#include "lessons/tools/check.h"
#include "exercise.h"
#include "lessons/tools/threads.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// Runs the kernel; `wanted` says what an element should be afterwards.
std::string runs(const std::string& body, int64_t grid, int block, int n,
                 const std::function<int(int)>& wanted) {
  const std::string text = exercise::grid_stride_kernel(body);
  Threads threads(text, {{"k", 2}});
  Walled<int> out(static_cast<size_t>(n), 0);
  void* address = out.data();
  threads.run("k", grid, block, {&address, &n});
  const std::string where = str(n, " elements, ", grid, " blocks of ", block, " threads: ");
  if (!out.broken_wall().empty()) return where + out.broken_wall() + text;
  for (int i = 0; i < n; i++) {
    const int got = out[static_cast<size_t>(i)];
    if (got != wanted(i))
      return str(where, "element ", i, " is ", got, " and should be ", wanted(i), text);
  }
  return "";
}

const char* kOnce = "out[i] += 1;";
const char* kWho = "out[i] = (int)(blockIdx.x * blockDim.x + threadIdx.x);";

int one(int) { return 1; }

}  // namespace

TEST_CASE("every element is done once") {
  for (int n : {2048, 2049, 5000, 100003}) EXPECT(runs(kOnce, 8, 256, n, one));
}

TEST_CASE("more threads than elements") {
  for (int n : {0, 1, 255, 257}) EXPECT(runs(kOnce, 8, 256, n, one));
}

TEST_CASE("any grid does") {
  EXPECT(runs(kOnce, 1, 32, 1000, one));
  EXPECT(runs(kOnce, 3, 96, 1000, one));
  EXPECT(runs(kOnce, 7, 1, 1000, one));
}

TEST_CASE("neighbouring threads take neighbouring elements") {
  EXPECT(runs(kWho, 8, 256, 5000, [](int i) { return i % 2048; }));
  EXPECT(runs(kWho, 3, 96, 1001, [](int i) { return i % 288; }));
}

TEST_CASE("nothing is written behind the end") {
  for (int n : {256, 2048, 4096}) EXPECT(runs(kOnce, 8, 256, n, one));
}

TEST_CASE("a body of several statements") {
  EXPECT(runs("const int twice = 2 * i; out[i] = twice; out[i] += 1;", 2, 64, 1000,
              [](int i) { return 2 * i + 1; }));
}
