// What is compared while a row is sorted: a key and its place, as words of a tile.
#pragma once

#include <string>

#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Scalars: a word, or where it has no room for the place, the key and the place beside it, an i64.
struct SortWord {
  int key = -1, place = -1;
};

// Arrays of these.
struct SortWordArray {
  int keys = -1, places = -1;
};

// Words of integers, of which the lesser stands first; no two of a row are equal. What a function computes is
// defined at the end of its `body`.
class SortWords {
 public:
  // Of keys of `dtype` whose places are below `count`; the greatest first, if `down`.
  SortWords(Tile& tile, DType dtype, bool down, int64_t count);

  // Of keys that are u32 of so many bits.
  SortWords(Tile& tile, const WordBits& bits);

  DType type() const { return type_; }  // u32 or u64
  bool is_wide() const { return bits_.place == 0; }
  int key_bits() const { return bits_.key; }
  int shift() const { return bits_.place; }  // of the key in the word

  SortWord of(Body& body, int key, int place) const;  // `place`: an i64
  SortWord behind_all(Body& body, int place) const;   // of no element; it comes last
  int place(Body& body, const SortWord& word) const;  // an i64
  // What a step of this dtype stores of it: the place, or all.
  int stored(Body& body, const SortWord& word, DType dtype) const;
  int key(Body& body,
          const SortWord& word) const;  // the key's bits, where places stand below them
  int is_before(Body& body, const SortWord& a, const SortWord& b) const;
  SortWord either(Body& body, int which, const SortWord& a, const SortWord& b) const;

  // New ones, or those that are the same already.
  SortWordArray array(const std::string& name, const Expr& size, Space space) const;
  SortWord read(Body& body, const SortWordArray& from, const Expr& index,
                const Expr& lane_xor = 0) const;
  void put(Body& body, const SortWordArray& to, const Expr& index, const SortWord& word) const;

  int make(Body& body, Op op, DType dtype, std::vector<int> operands) const;
  int number(DType dtype, int64_t value) const;

 private:
  int ordered(Body& body, int key) const;
  int ordered_float(Body& body, int key) const;

  Tile& tile_;
  const DType dtype_;
  const bool down_;
  const WordBits bits_;
  const DType type_;
};

}  // namespace tiny_compile
