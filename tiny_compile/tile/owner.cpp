// Where does an element's number go? Bit by bit to the number of the level that owns the bit; what
// no part covers is the block's.
//
//   loop register 2 · warp 2 · lane 8, element 27 = 0b1'1'011   =>   register 1, warp 1, lane 3
//
// Registers and turns are numbered in the order of a reduction: its first halves are registers p
// and p + registers / 2, and the turns come in bit-reversed order.
#include "tiny_compile/tile/owner.h"

#include <bit>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

// Adds to the owner what the element's bits under one of the layouts say.
void add_bits(Owner& owner, const Layout& layout, int64_t element, int64_t scale) {
  int64_t place = own_elements(layout), turn = 1;
  for (const Bit& bit : bits_in_order(layout)) {
    const bool is_set = element / bit.stride % 2 != 0;
    if (is_own(bit.level)) place /= 2;
    if (is_set && is_own(bit.level)) owner.reg += place * scale;
    if (is_set && bit.level == Level::Serial) owner.turn += turn;
    if (is_set && bit.level == Level::Cluster) owner.rank += bit.step;
    if (is_set && bit.level == Level::Warp) owner.warp += bit.step;
    if (is_set && bit.level == Level::Lane) owner.lane += bit.step;
    if (bit.level == Level::Serial) turn *= 2;
  }
}

}  // namespace

Owner owner_of(const Layout& rows, const Layout& loop, int64_t row, int64_t k) {
  Owner owner;
  owner.block = row / covered_by(rows);
  add_bits(owner, rows, row, 1);
  add_bits(owner, loop, k, own_elements(rows));
  return owner;
}

int64_t copies_of_element(const Layout& rows, const Layout& loop, int warps) {
  int64_t copies = 32 * std::bit_ceil(static_cast<uint64_t>(warps));
  for (Level level : {Level::Warp, Level::Lane})
    copies /= power_of_two_from(extent_of(rows, level) * extent_of(loop, level));
  return copies;
}

}  // namespace tiny_compile
