// What rows give to columns, added up while a block's warps go over them (StepKind::Fold).
#pragma once

#include <vector>

#include "tiny_compile/loops/asked_ahead.h"
#include "tiny_compile/tile/lowering.h"

namespace tiny_compile {

// A pass of one such step. All threads of the block come to it.
void fold_pass(Lowering& l, int number);

// What each pass keeps. Where rows take turns, a thread has all its registers for what is a row's; what
// all rows read (a weight) is in the caches.
std::vector<std::vector<int>> kept_by(const Lowering& l,
                                      const std::vector<std::vector<int>>& passes);

// What is done behind `first` is done for each of a warp's rows.
void repeat_rows(Body& body, size_t first, const Share& rows);

// Memory that passes read is asked for before they do, and comes to the L2 cache: with a row, what passes
// behind the first read of it, and in front of the first that stores what the first reads of the warp's
// next row.
Body ask_for_later_passes(const Lowering& l, const std::vector<AskedOfRow>& passes);
Body ask_for_next_turn(const Lowering& l, const AskedOfRow& first);

}  // namespace tiny_compile
