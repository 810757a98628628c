#include "lessons/tools/check.h"
#include "exercise.h"
#include "lessons/tools/threads.h"

#include <cmath>

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// What a float4 saw. x .. x_end and y .. y_end are the arrays.
struct Traffic {
  const char *x, *x_end, *y, *y_end;
  long long reads, writes, outside, crooked;
};

// A float4 that is copied from x or to y says so. What is behind an array belongs to it, for
// 256 bytes.
const char* kFloat4 = R"(
struct tc_watch { const char *x, *x_end, *y, *y_end; long long reads, writes, outside, crooked; };
static tc_watch tc_seen;
extern "C" tc_watch* tc_watched() { return &tc_seen; }
struct alignas(4) float4 {
  float x, y, z, w;
  float4() = default;
  float4(float a, float b, float c, float d) : x(a), y(b), z(c), w(d) {}
  float4(const float4& from) { copy(from); }
  float4& operator=(const float4& from) { copy(from); return *this; }
  void copy(const float4& from) {
    const char *read = (const char*)&from, *written = (const char*)this;
    if (read >= tc_seen.x && read < tc_seen.x_end + 256) {
      tc_seen.reads++;
      tc_seen.outside += read + 16 > tc_seen.x_end;
      tc_seen.crooked += (unsigned long long)read % 16 != 0;
      if (read + 16 > tc_seen.x_end) return;
    }
    if (written >= tc_seen.y && written < tc_seen.y_end + 256) {
      tc_seen.writes++;
      tc_seen.crooked += (unsigned long long)written % 16 != 0;
    }
    const float a = from.x, b = from.y, c = from.z, d = from.w;
    x = a, y = b, z = c, w = d;
  }
};
static inline float4 make_float4(float a, float b, float c, float d) { return {a, b, c, d}; }
)";

struct Run {
  std::vector<float> x, y;
  Traffic seen;
  std::string wall;
};

Run run(int n) {
  const size_t size = static_cast<size_t>(n), room = size + 128;
  alignas(16) static float x[4400 + 128], y[4400 + 128];
  for (size_t i = 0; i < room; i++) x[i] = i < size ? static_cast<float>(i) + 0.5f : NAN;
  for (size_t i = 0; i < room; i++) y[i] = -1;
  Threads threads(kFloat4 + exercise::twice_kernel(), {{"twice", 3}});
  Traffic& watch = *reinterpret_cast<Traffic* (*)()>(threads.symbol("tc_watched"))();
  watch = {reinterpret_cast<char*>(x),
           reinterpret_cast<char*>(x + n),
           reinterpret_cast<char*>(y),
           reinterpret_cast<char*>(y + n),
           0,
           0,
           0,
           0};
  void *from = x, *to = y;
  threads.run("twice", (n + 1023) / 1024, 256, {&from, &to, &n});
  Run result{{x, x + n}, {y, y + n}, watch, ""};
  for (size_t i = size; i < room; i++) {
    if (!(y[i] == -1)) result.wall = str("you wrote y[", i, "] of ", n, " elements");
  }
  return result;
}

std::string other_values(int n) {
  const Run result = run(n);
  for (size_t i = 0; i < result.x.size(); i++)
    if (!(result.y[i] == 2 * result.x[i]))
      return str("of ", n, " elements y[", i, "] is ", result.y[i], ", not ", 2 * result.x[i]);
  return "";
}

constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8, 1023, 1024, 1025, 4096, 4099};

}  // namespace

TEST_CASE("every size gives every element") {
  for (int n : kSizes) EXPECT(other_values(n));
}

TEST_CASE("nothing outside is read") {
  for (int n : {1, 5, 1023, 4099}) {
    INFO("of " << n << " elements, float4s that reach behind x:");
    CHECK(run(n).seen.outside == 0);
  }
}

TEST_CASE("nothing outside is written") {
  for (int n : kSizes) EXPECT(run(n).wall);
}

TEST_CASE("addresses are multiples of 16") {
  INFO("float4s at other addresses:");
  CHECK(run(4096).seen.crooked == 0);
}

TEST_CASE("four that are inside are moved at once") {
  for (int n : {4, 8, 1025, 4096, 4099}) {
    const Traffic seen = run(n).seen;
    INFO("of " << n << " elements");
    CHECK(seen.reads == n / 4);
    CHECK(seen.writes == n / 4);
  }
  score("reads of 4099 elements", run(4099).seen.reads + 3, 1027);
}
