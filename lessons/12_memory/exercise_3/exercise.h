// 12-3 ★★ In place
//
//   kernel exp_3 rows(i0: 257) { store t3[i0] = exp(load t2[i0]) }      nobody reads t2 afterwards
// t2 and t3 meet in one launch, so no planner lets them share bytes. But element i0 of t2 is read
// before element i0 of t3 is written, and never again: t3 may lie where t2 is.
//
// Find such pairs. A buffer `to` may overwrite a buffer `from` in a kernel where
//   * both are temporaries of the same size and of the same bytes an element;
//   * the kernel loads `from`, does not write it, and no kernel behind this one touches it;
//   * `to` is written by the kernel's last step, a Store, and by no other step;
//   * each load of `from` in the kernel is at the very index of that store, and its place is not
//     chosen by data (operands is empty).
// Each `to` takes one `from`: of several, the buffer with the lowest number. (None is given away
// twice. Why not?) Chains are fine: t3 over t2, then t4 over t3.
//
// Buffer, Scalar and Step are in tiny_compile/loops/program.h, with buffers_read(program, kernel)
// and buffers_written: a bool for each buffer. Expressions compare with ==.
//
// (The verifier does not let buffers that meet share bytes, for the C++ kernels promise the
// compiler that they do not overlap: __restrict. So the check interprets the plan.)
#pragma once

#include <utility>

#include "lessons/12_memory/lives.h"
#include "tiny_compile/compile/pipeline.h"

namespace exercise {

using namespace tiny_compile;

struct Pair {
  int from = -1, to = -1;  // buffers
  bool operator==(const Pair&) const = default;
};

// In the order of the kernels. Launches have one kernel each.
std::vector<Pair> overwrites(const Program& program);

// A plan in which they share a place: they are one life.
inline Program plan_in_place(const Program& program, const std::vector<Pair>& pairs) {
  std::vector<int> owner(program.buffers.size());
  for (size_t b = 0; b < owner.size(); b++) owner[b] = static_cast<int>(b);
  for (const Pair& pair : pairs) owner[pair.to] = owner[pair.from];
  std::vector<lessons::Life> joined, all = lessons::lives_of(program);
  for (const lessons::Life& life : all) {
    auto same = [&](const lessons::Life& other) {
      return owner[other.buffer] == owner[life.buffer];
    };
    const auto at = std::find_if(joined.begin(), joined.end(), same);
    if (at == joined.end())
      joined.push_back(life);
    else
      at->last = std::max(at->last, life.last);
  }
  for (lessons::Life& life : joined) {  // the lowest place that is free
    life.place = 0;
    for (size_t k = 0; k < joined.size(); k++) {
      const lessons::Life& other = joined[k];
      const bool apart = other.place < 0 || life.place + life.bytes <= other.place ||
                         other.place + other.bytes <= life.place;
      if (&other == &life || apart || !meet(life, other)) continue;
      life.place = other.place + other.bytes;
      k = static_cast<size_t>(-1);  // look again from the start
    }
  }
  for (lessons::Life& life : all) {
    for (const lessons::Life& whole : joined) {
      if (owner[whole.buffer] == owner[life.buffer]) life.place = whole.place;
    }
  }
  return lessons::with_places(program, all);
}

}  // namespace exercise
