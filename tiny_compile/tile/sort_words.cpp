// What is compared while a row is sorted? One word: the key's bits in the order of the values, then the place:
//
//   f32 key, place           =>   u64: -1.5 at 3, 2.0 at 1 =>  0x403fffff'00000003 < 0xc0000000'00000001
//
// so that a comparison is one of integers, NaN comes last and equals stay in order. A float's bits are in order
// where of negative ones all are transposed, of others the sign; f16 and bf16 are f32 whose low bits are 0. Keys of 64
// bits leave no room for a place: it stands beside them.
#include "tiny_compile/tile/sort_words.h"

#include <algorithm>

#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {

SortWords::SortWords(Tile& tile, DType dtype, bool down, int64_t count)
    : tile_(tile),
      dtype_(dtype),
      down_(down),
      bits_(word_bits(dtype, count)),
      type_(dtype_of(bits_)) {}

SortWords::SortWords(Tile& tile, const WordBits& bits)
    : tile_(tile), dtype_(DType::u32), down_(false), bits_(bits), type_(dtype_of(bits_)) {}

int SortWords::make(Body& body, Op op, DType dtype, std::vector<int> operands) const {
  return computed(tile_, body, op, dtype, std::move(operands));
}

int SortWords::number(DType dtype, int64_t value) const {
  return add_constant(tile_, Literal::of_integer(dtype, value));
}

// -0 = 0, and NaN is above all.
int SortWords::ordered_float(Body& body, int key) const {
  const bool is_double = dtype_ == DType::f64;
  const DType real = is_double ? DType::f64 : DType::f32,
              bits = is_double ? DType::u64 : DType::u32,
              whole = is_double ? DType::i64 : DType::i32;
  const int value = is_half(dtype_) ? make(body, Op::cast, real, {key}) : key;
  const int plus =
      make(body, Op::add, real, {value, add_constant(tile_, Literal::of(real, 0.0))});
  const int sign =
      make(body, Op::shift_right, whole,
           {make(body, Op::bitcast, whole, {plus}), number(whole, is_double ? 63 : 31)});
  const int transposed = make(body, Op::bitwise_or, bits,
                              {make(body, Op::bitcast, bits, {sign}),
                               number(bits, is_double ? INT64_MIN : int64_t{1} << 31)});
  const int in_order =
      make(body, Op::bitwise_xor, bits, {make(body, Op::bitcast, bits, {plus}), transposed});
  const int is_nan = make(body, Op::ne, DType::boolean, {value, value});
  return make(body, Op::where, bits, {is_nan, number(bits, -1), in_order});
}

// The key as an unsigned number in the order of the values.
int SortWords::ordered(Body& body, int key) const {
  if (is_float(dtype_)) return ordered_float(body, key);
  const bool is_narrow = size_of(dtype_) < 4, is_signed = category(dtype_) == Category::Signed;
  if (is_narrow && !is_signed) return make(body, Op::cast, DType::u32, {key});
  if (!is_signed) return key;
  const auto least = static_cast<int64_t>(uint64_t{1} << (8 * size_of(dtype_) - 1));
  if (is_narrow) {
    const int above =
        make(body, Op::add, DType::i32,
             {make(body, Op::cast, DType::i32, {key}), number(DType::i32, least)});
    return make(body, Op::bitcast, DType::u32, {above});
  }
  const DType bits = size_of(dtype_) == 8 ? DType::u64 : DType::u32;
  return make(body, Op::bitwise_xor, bits,
              {make(body, Op::bitcast, bits, {key}), number(bits, least)});
}

SortWord SortWords::of(Body& body, int key, int place) const {
  int bits = ordered(body, key);
  DType type = size_of(dtype_) == 8 ? DType::u64 : DType::u32;
  if (down_) bits = make(body, Op::bitwise_not, type, {bits});
  if (!is_wide() && bits_.dropped > 0)
    bits = make(body, Op::shift_right, type, {bits, number(type, bits_.dropped)});
  if (type != type_) bits = make(body, Op::cast, type_, {bits});
  if (is_wide()) return {bits, place};
  const int high = make(body, Op::shift_left, type_, {bits, number(type_, bits_.place)}),
            low = make(body, Op::cast, type_, {place});
  return {make(body, Op::bitwise_or, type_, {high, low})};
}

SortWord SortWords::behind_all(Body& body, int place) const {
  if (is_wide()) return {number(type_, -1), place};
  const int low = make(body, Op::cast, type_, {place});
  const auto all = static_cast<int64_t>(~uint64_t{0} << bits_.place);
  return {make(body, Op::bitwise_or, type_, {number(type_, all), low})};
}

int SortWords::place(Body& body, const SortWord& word) const {
  if (is_wide()) return word.place;
  const int64_t mask = (int64_t{1} << bits_.place) - 1;
  const int low = bits_.place == 32
                      ? make(body, Op::cast, DType::u32, {word.key})
                      : make(body, Op::bitwise_and, type_, {word.key, number(type_, mask)});
  return make(body, Op::cast, DType::i64, {low});
}

int SortWords::stored(Body& body, const SortWord& word, DType dtype) const {
  return dtype == DType::i64 ? place(body, word) : word.key;
}

int SortWords::key(Body& body, const SortWord& word) const {
  return make(body, Op::shift_right, type_, {word.key, number(type_, bits_.place)});
}

int SortWords::is_before(Body& body, const SortWord& a, const SortWord& b) const {
  const auto ask = [&](Op op, int x, int y) { return make(body, op, DType::boolean, {x, y}); };
  const int before = ask(Op::lt, a.key, b.key);
  if (!is_wide()) return before;
  const int same = ask(Op::eq, a.key, b.key), sooner = ask(Op::lt, a.place, b.place);
  return ask(Op::bitwise_or, before, ask(Op::bitwise_and, same, sooner));
}

SortWord SortWords::either(Body& body, int which, const SortWord& a, const SortWord& b) const {
  const int key = make(body, Op::where, type_, {which, a.key, b.key});
  return {key, is_wide() ? make(body, Op::where, DType::i64, {which, a.place, b.place}) : -1};
}

SortWordArray SortWords::array(const std::string& name, const Expr& size, Space space) const {
  return {array_once(tile_, {name, type_, size, space}),
          is_wide() ? array_once(tile_, {name + "_places", DType::i64, size, space}) : -1};
}

SortWord SortWords::read(Body& body, const SortWordArray& from, const Expr& index,
                         const Expr& lane_xor) const {
  const auto element = [&](int array) {
    return read_element(tile_, body, array, index, lane_xor);
  };
  const int key = element(from.keys);
  return {key, is_wide() ? element(from.places) : -1};
}

void SortWords::put(Body& body, const SortWordArray& to, const Expr& index,
                    const SortWord& word) const {
  body.push_back(set(to.keys, index, word.key));
  if (is_wide()) body.push_back(set(to.places, index, word.place));
}

}  // namespace tiny_compile
