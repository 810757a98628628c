// 12-1 ★ The tightest gap
//
// The planner of the lesson puts a buffer at the lowest place that is free for its whole life. A
// small buffer may so break up a large gap, while a gap of just its size lies higher up.
//
//   bytes        0               4096 5120 6144
//   # is taken   |...............|####|....|####...      1024 bytes wanted: at 0, or at 5120?
//
// Write best fit: the start of the smallest gap that holds `bytes`, of two equal gaps the lower
// one. Behind the last taken byte there is room without end, but it makes the arena larger:
// only where no gap fits. `taken` are the ranges that are in use in some launch of the buffer's
// life, sorted by start. Two of them may overlap, for they need not be alive together.
#pragma once

#include "lessons/12_memory/lives.h"
#include "tiny_compile/compile/pipeline.h"

namespace exercise {

using namespace tiny_compile;

struct Range {
  int64_t start = 0, end = 0;  // end is not part of it
};

int64_t best_place(int64_t bytes, const std::vector<Range>& taken);

// The lesson's planner, with your choice.
inline Program plan_best_fit(const Program& program) {
  std::vector<lessons::Life> placed;
  for (lessons::Life life : lessons::lives_of(program)) {
    std::vector<Range> taken;
    for (const lessons::Life& other : placed) {
      if (meet(life, other)) taken.push_back({other.place, other.place + other.bytes});
    }
    std::sort(taken.begin(), taken.end(),
              [](const Range& a, const Range& b) { return a.start < b.start; });
    life.place = best_place(life.bytes, taken);
    placed.push_back(life);
  }
  return lessons::with_places(program, placed);
}

inline Pipeline with_mine() {
  return replace(default_pipeline(), "plan_memory", ProgramPass(plan_best_fit));
}

}  // namespace exercise
