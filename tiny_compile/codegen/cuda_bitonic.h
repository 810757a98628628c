// Sorts in the registers of a GPU's threads: what is compared, how a row is dealt to threads, and
// the network of exchanges that they call.
#pragma once

#include <set>
#include <string>

#include "tiny_compile/base/dtype.h"
#include "tiny_compile/codegen/calls.h"

namespace tiny_compile {

// A key and its place as one word, of which the lesser stands first; no two of a row are equal.
class SortWord {
 public:
  // Of keys of `dtype` whose places are below `count`; the greatest first, if `down`.
  SortWord(DType dtype, bool down, int64_t count);

  std::string type;  // "unsigned", "unsigned long long" or "tc_wide_word"
  std::string of(const std::string& key, const std::string& place) const;
  std::string behind_all(const std::string& place) const;  // of no element; it comes last
  std::string place(const std::string& word) const;
  bool is_wide() const { return bits_ == 0; }

 private:
  bool down_;
  int dropped_ = 0;  // low bits of a key that are 0 in all of its type
  int bits_ = 0;     // of a place, low in the word; 0: a tc_wide_word
};

// Who has which elements while a row of `count` is sorted, of which the first `wanted` are kept:
// `threads` hold `own` words each: `each`, or all of a shorter row.
struct SortShape {
  SortShape(int64_t count, int64_t wanted, int each);

  int own, threads, rows;  // rows of a block
  int kept;                // words of a sorted list that are not dropped: a power of two
  int padded() const { return own * threads; }
  int block() const { return rows * threads; }
  bool is_in_warp() const { return threads <= 32; }
};

// The functions that sorts of such keys call; they call others of the prelude.
std::string bitonic_helpers(const std::set<DType>& keys, Calls& calls);

}  // namespace tiny_compile
