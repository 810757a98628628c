#include "exercise.h"
#include "lessons/12_memory/lives.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Range;

namespace {

std::string goes_to(int64_t bytes, const std::vector<Range>& taken, int64_t wanted) {
  const int64_t got = exercise::best_place(bytes, taken);
  if (got == wanted) return "";
  std::string text = str(bytes, " bytes, taken:");
  for (const Range& range : taken) text += str(" ", range.start, "..", range.end);
  return str(text, "; you say ", got, ", wanted ", wanted);
}

}  // namespace

TEST_CASE("an empty arena begins at 0") { EXPECT(goes_to(64, {}, 0)); }

TEST_CASE("without a gap it goes behind the last") {
  EXPECT(goes_to(64, {{0, 128}, {128, 256}}, 256));
}

TEST_CASE("a gap is better than a larger arena") {
  EXPECT(goes_to(64, {{0, 128}, {256, 512}}, 128));
  EXPECT(goes_to(64, {{192, 512}}, 0));
}

TEST_CASE("a gap of just the right size fits") {
  EXPECT(goes_to(128, {{0, 128}, {256, 512}}, 128));
}

TEST_CASE("a gap that is too small is none") {
  EXPECT(goes_to(192, {{0, 128}, {256, 512}, {1024, 1088}}, 512));
}

TEST_CASE("the smallest gap that fits is taken") {
  EXPECT(goes_to(1024, {{4096, 5120}, {6144, 7168}}, 5120));
  EXPECT(goes_to(64, {{512, 1024}, {1152, 2048}, {2112, 4096}}, 2048));
}

TEST_CASE("of two equal gaps the lower one is taken") {
  EXPECT(goes_to(64, {{0, 64}, {128, 192}, {256, 320}}, 64));
}

TEST_CASE("ranges that overlap leave no gap") {
  EXPECT(goes_to(64, {{0, 1024}, {128, 256}, {512, 640}}, 1024));
}

TEST_CASE("two hundred random programs keep their bits in the arena") {
  EXPECT(other_bits_made(
      [](const Graph& graph) { return exercise::plan_best_fit(lower(graph)); }));
}

TEST_CASE("the arenas of random programs are no larger on the whole") {
  int64_t yours = 0, lowest = 0;
  for (int seed = 1; seed <= 300; seed++) {
    const Program program = lower(flat_random_graph(static_cast<uint64_t>(seed), 40));
    yours += exercise::plan_best_fit(program).arena_bytes;
    lowest += lowest_places(program, lives_of(program)).arena_bytes;
  }
  score("arena bytes of 300 programs", yours, lowest);
  CHECK(yours <= lowest + lowest / 100);
}
