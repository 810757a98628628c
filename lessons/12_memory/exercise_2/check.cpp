#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Life life(int buffer, int first, int last, int64_t bytes) {
  return {buffer, first, last, bytes, -1};
}

// A program of buffers b0, b1, ..., for their names.
Program names(size_t count) {
  Program program;
  for (size_t b = 0; b < count; b++) {
    program.buffers.emplace_back();
    program.buffers.back().name = str("b", b);
  }
  return program;
}

int64_t arena_of(const std::vector<Life>& lives) {
  int64_t end = 0;
  for (const Life& life : lives) end = std::max(end, life.place + life.bytes);
  return end;
}

std::string unsound(const std::vector<Life>& given, const std::vector<Life>& got) {
  if (got.size() != given.size())
    return str("of ", given.size(), " lives you return ", got.size());
  for (const Life& life : got) {
    if (life.place < 0 || life.place % 64 != 0)
      return str("b", life.buffer, " is at ", life.place, ", which is no multiple of 64");
  }
  return clash(names(given.size()), got);
}

std::string takes(const std::vector<Life>& lives, int64_t wanted) {
  const std::vector<Life> got = exercise::place_all(lives);
  if (const std::string trouble = unsound(lives, got); !trouble.empty()) return trouble;
  if (arena_of(got) <= wanted) return "";
  return str("your arena has ", arena_of(got), " bytes; ", wanted, " are enough");
}

std::vector<Life> random_lives(uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15ull;
  auto below = [&](uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<int>((state >> 20) % n);
  };
  std::vector<Life> lives;
  for (int k = 0; k < 40; k++) {
    const int first = below(40);
    const bool is_short = below(4) > 0;
    const int last = std::min(40, first + 1 + below(is_short ? 4 : 30));
    const bool is_small = below(3) > 0;
    lives.push_back(life(k, first, last, 64 * (1 + below(is_small ? 16 : 256))));
  }
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.first < b.first; });
  return lives;
}

}  // namespace

TEST_CASE("nothing needs nothing") { EXPECT(takes({}, 0)); }

TEST_CASE("lives that do not meet share bytes") {
  EXPECT(takes({life(0, 0, 1, 4096), life(1, 2, 3, 4096), life(2, 4, 5, 2048)}, 4096));
}

TEST_CASE("a value that is read in a launch is not overwritten in it") {
  EXPECT(takes({life(0, 0, 1, 4096), life(1, 1, 2, 4096)}, 8192));
}

TEST_CASE("lives that begin in between are seen") {
  EXPECT(takes({life(0, 0, 9, 64), life(1, 3, 4, 4096), life(2, 5, 6, 4096)}, 4096 + 64));
}

TEST_CASE("a chain needs the room of two") {
  std::vector<Life> lives;
  for (int k = 0; k < 30; k++) lives.push_back(life(k, k, k + 1, 1024));
  EXPECT(takes(lives, 2048));
}

TEST_CASE("a small early buffer does not break up the room of a large one") {
  EXPECT(takes({life(0, 0, 1, 1024), life(1, 0, 5, 64), life(2, 2, 3, 2048)}, 2048 + 64));
}

TEST_CASE("five hundred random sets of lives are kept apart") {
  for (uint64_t seed = 1; seed <= 500; seed++) {
    const std::vector<Life> lives = random_lives(seed);
    EXPECT(unsound(lives, exercise::place_all(lives)));
  }
}

TEST_CASE("two hundred random programs keep their bits in the arena") {
  EXPECT(other_bits_made([](const Graph& graph) { return exercise::plan(lower(graph)); }));
}

TEST_CASE("arenas are at most 4 % above the bound") {
  int64_t yours = 0, bound = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    const std::vector<Life> lives = random_lives(seed);
    yours += arena_of(exercise::place_all(lives));
    bound += peak_of(lives);
  }
  score("arena bytes of 100 programs", yours, bound * 1012 / 1000);
  INFO("at least " << bound << " bytes; yours: " << yours);
  CHECK(yours <= bound * 104 / 100);
}
