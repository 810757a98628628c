// Which threads of a GPU scatter the rows of a kernel?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

//   Thread   each has a row
//   Runs     a block owns a run of the result: one base and one scatter into several targets of it,
//            without a mask, whose index is free of the rows (an embedding's gradient):
//              rows(i0: C) { store y[j0*C + i0] for (j0: D) = base
//                            scatter y[at0*C + i0; at0 = index(j1) < D] for (j1: U) = update }
//   Tables   a block has a row and its sums in shared memory: one base and one scatter_add of integers
//            into all of it, whose index lies along memory (a histogram)
//   Chunks   some threads have a row, and sort its updates by place, a chunk at a time: stores and scatters alone,
//            and either rows that are too few for a thread each or updates that go in chunks
enum class ScatterBy : uint8_t { Thread, Runs, Tables, Chunks };

ScatterBy scatters_by(const Program& program, const Kernel& kernel);

// Of ScatterBy::Chunks: `threads` have a row and hold `own` of its chunk's updates each (Schedule::each; its default
// leaves a shorter row as many as there are), and a block has `rows` (Schedule::beside; its default as many as a warp
// needs).
struct ScatterShape {
  explicit ScatterShape(const Kernel& kernel);

  int most_own, own, threads, rows;  // `most_own`: all of a chunk
  int fewest_rows() const;           // that a warp needs
  int chunk() const { return own * threads; }
  int slots() const {
    return chunk() + (chunk() + 31) / 32;
  }  // of a chunk in order, where lanes meet in no bank
};

inline constexpr int kThreadsOfTable = 256;  // of a block that shares one

inline constexpr int64_t kMostTargetsOfBlock =
    2048;  // that own a run: it keeps where each one's updates begin

// Of ScatterBy::Runs: the result in packs of neighbours, target after target, of which each block of `threads` owns a
// run (Schedule::run). Where a pack would be a point, because a target's columns begin anywhere, it is `apart` points
// instead, as far from each other as a target has packs, so that what is done once a pack is done for several.
struct RunShape {
  RunShape(const Program& program, const Kernel& kernel);

  static constexpr int threads = 256;
  int widest = 1, vector;  // points of a pack: what 16 bytes hold; at most Schedule::each
  int most_apart = 1,
      apart;               // or columns that are no neighbours: how many there may be, and are
  int64_t columns, packs;  // of a target
  int64_t targets, updates;  // of all
  int64_t run;               // packs of a block
  bool is_ordered;           // an earlier kernel has sorted the updates
  int of_pack() const { return vector * apart; }
  int64_t points() const { return targets * packs; }
  int64_t most_targets() const;  // that a block has a share in
};

// The most updates that blocks of such a kernel find by themselves: of more the order is found sooner.
inline constexpr int64_t kMostListed = 1 << 13;
// And of those whose order is found.
inline constexpr int64_t kMostOrdered = 1 << 30;

// "" where a schedule of rows that are scattered together says what their threads can do; else why not.
std::string why_illegal_scatter(const Program& program, const Kernel& kernel);

// Whether neighbouring rows' updates lie side by side, and not those of a row.
bool scatters_across(const Kernel& kernel);

// Whether all updates of a step go to the row's one place.
bool is_chain(const Kernel& kernel, const Step& step);

// Whether neighbouring rows choose the same places for what goes in chunks, and lie side by side there: a CPU may
// have them as lanes.
bool shares_places(const Kernel& kernel);

// Whether a step has more updates than a chunk, and their order shows.
bool goes_in_chunks(const Kernel& kernel, const Step& step);

}  // namespace tiny_compile
