// Which layouts are good of rows of several chunks that are held in registers?
#pragma once

#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

inline constexpr int64_t kMostOfRow = 16;  // warps of a block of a cluster that hold a row

// A warp has a chunk.
Deal hold_chunks(const Along& loops, int64_t warps);

// The same by two blocks of a cluster, where a block would have many warps that wait for each other.
Deal hold_by_two(const Machine& machine, const Along& loops, int64_t chunks);

// The same of a cluster's blocks, where chunks are more than a block's warps; and in turns, where they are more than a
// cluster's.
Deal hold_in_clusters(const Machine& machine, const Outline& shape, const Along& loops);

// In turns, and read again.
Deal hold_in_turns(const Machine& machine, const Outline& shape, const Along& loops);

// One row alone: as many blocks as have a chunk.
Deal hold_alone(const Machine& machine, const Along& loops, int64_t chunks);

}  // namespace tiny_compile
