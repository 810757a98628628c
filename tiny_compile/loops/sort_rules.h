// Which sorts mean something?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether threads of a GPU sort a row, or a run of one, together: runs that a block's registers hold, or pairs of runs
// that are sorted; and sizes are numbers.
bool is_sorted_together(const Program& program, const Kernel& kernel);

// What is sorted, and whereto, but for the length of the runs, the buffer and its dtype.
Kernel essence_of_sort(Kernel kernel);

// The kernel that sorts into this buffer and does nothing else, or none.
const Kernel* sorter_of(const Program& program, int buffer);

// "" where the Sort step is alone in its kernel, over one loop, and merges, if it merges, what an
// earlier kernel has sorted of the very same values, or keeps, under a mask lt(j0, k), the first k
// places of a row that a block of a GPU sorts; else the reason.
std::string why_wrong_sort(const Program& program, const Kernel& kernel, int number);

// How many of each row's places such a step stores, at most: k, or all.
int64_t first_places(const Kernel& kernel, const Step& step);

// How many elements of a row are sorted apart: `limit`, or all.
Expr sorted_run(const Kernel& kernel, const Step& step);

// How a key and its place are one word, a place's bits below the key's: of f16 and bf16 the bits of an f32, but those
// that are 0 in all of them. Keys of 64 bits, and rows of more places than 32 bits count, have the place beside them.
struct WordBits {
  int dropped = 0, key = 64, place = 0;
  int words = 4;  // of 32 bits
};
WordBits word_bits(DType key, int64_t count);
DType dtype_of(const WordBits& bits);  // of a word: u32 or u64
// Of keys that are unsigned numbers below `keys`, at most 32 bits.
WordBits word_bits_of_numbers(int64_t keys, int64_t count);

// Below what the places of a row's elements are, at most: with those that fill up its last run to a power of two.
int64_t most_places(const Kernel& kernel, const Step& step);

// Who has which elements while threads of a GPU sort a row of `count`, of which the first `wanted` are kept: `threads`
// hold `own` words each: `each`, or all of a shorter row.
struct SortShape {
  SortShape(int64_t count, int64_t wanted, int each);

  int own, threads, rows;  // rows of a block; its threads may share more
  int kept;                // words of a sorted list that are not dropped: a power of two
  int padded() const { return own * threads; }
  bool is_in_warp() const { return threads <= 32; }
  // Of a thread's number: its bits, and those that tell a list's threads apart.
  int bits() const;
  int list_bits() const;
};

// How many threads of a GPU merge where each has so many elements of a tile.
int merging_threads(int each);

// The most elements that a thread of a GPU sorts, or merges (Schedule::each): its registers and a block's shared
// memory hold their words.
int most_sorted(const Kernel& kernel, const Step& step);

}  // namespace tiny_compile
