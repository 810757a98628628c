// Which layouts are good of rows that a chunk holds?
#pragma once

#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"

namespace tiny_compile {

inline constexpr int64_t kRowWarps = 4;  // of a block where lanes are elements
inline constexpr int64_t kSideBySide =
    16;  // elements of a row that lanes read at a time, at least
inline constexpr int64_t kMostOdd = 128;  // of a row that lies oddly and is short
// Elements of a thread, at least, where accesses are of one element; 4 of few, and of halves of a whole warp.
inline constexpr int64_t kHeldOdd = 8;

// Of all rows.
int64_t threads_of(const Outline& shape, const Deal& deal);

// In registers. `beside`: rows lie in each other, as windows do, and each lane may have one.
Deal hold_rows(const Machine& machine, const Outline& shape, const Along& loops,
               bool beside = false);

// The same of windows, of which a thread may have several.
Deal hold_windows(const Machine& machine, const Outline& shape, const Along& loops,
                  bool beside);

}  // namespace tiny_compile
