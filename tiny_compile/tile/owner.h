// Which thread has an element? What share.h says of one thread, asked the other way round.
//
//   rows grid · lane 4, loop register 2 · warp 2 · lane 8 from 4
//   element 19 of row 6   =>   block 1, warp 0, lane 14, register 1
#pragma once

#include <cstdint>

#include "tiny_compile/loops/layout.h"

namespace tiny_compile {

struct Owner {
  int64_t block = 0, warp = 0, lane = 0;
  int64_t reg = 0;  // among the thread's values of a loop, numbered as the tile's arrays are
  int64_t turn = 0;
  int64_t rank = 0;  // of the block in its cluster
  bool operator==(const Owner&) const = default;
};

// Of the loop's element `k` in the row; the first of the threads, where several have the same.
Owner owner_of(const Layout& rows, const Layout& loop, int64_t row, int64_t k);

// Threads of a block of so many warps that have the same element.
int64_t copies_of_element(const Layout& rows, const Layout& loop, int warps);

}  // namespace tiny_compile
