// Which elements has a thread? Each part of a layout is some bits of a number: of the block's,
// the warp's, the lane's, a register's or a turn's.
//
//   rows grid · lane 32 · vector 4   =>   row_first = block*128 + lane*4, and v_row of 4
#include "tiny_compile/tile/share.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/laid_out.h"

namespace tiny_compile {

Body in_turns(const Share& k, Body body) {
  return k.turns == 1 ? body : Body{for_each(k.turn_name(), k.turns, false, std::move(body))};
}

// Neighbours that keep step are one term.
Expr spread(const Expr& number, const std::vector<int64_t>& places) {
  Expr sum = 0;
  const size_t n = places.size();  // places[0] is of the highest bit
  for (size_t from = 0; from < n;) {
    size_t to = from + 1;
    while (to < n && places[to] * 2 == places[to - 1]) to++;
    const int64_t low = int64_t{1} << (n - to), width = int64_t{1} << (to - from);
    sum = sum + mod(floor_div(number, low), width) * places[to - 1];
    from = to;
  }
  return sum;
}

namespace {

// The places of the bits of a level, highest of that level's number first.
std::vector<int64_t> strides_of(const std::vector<Bit>& order, Level level) {
  std::vector<int64_t> strides;
  for (const Bit& bit : order) {
    if (bit.level == level) strides.push_back(bit.stride);
  }
  return strides;
}

// What is added for the turn; the first turns are those whose results wait for the next.
Expr of_turn(const Share& share) {
  std::vector<int64_t> strides = strides_of(share.bits, Level::Serial);
  std::reverse(strides.begin(), strides.end());
  return spread(share.turn(), strides);
}

Expr number_of(const Tile& tile, Level level) {
  return level == Level::Cluster ? rank_of(tile)
         : level == Level::Warp  ? warp_of(tile)
                                 : lane_of_warp();
}

Expr of_part(const Tile& tile, const Part& part, int64_t stride, const Expr& block) {
  if (part.level == Level::Grid) return block * stride;
  if (!is_numbered(part.level)) return 0;
  const Expr number = number_of(tile, part.level);
  return mod(floor_div(number, part.step), part.extent) * stride;
}

// Bits of a number of `extent` that the parts of a level do not name, as indices of their own.
void add_unused(const Expr& number, int64_t extent, Level level,
                const std::vector<Layout>& used, std::vector<Expr>& unused) {
  int64_t taken = 0;
  for (const Layout& layout : used) taken |= bits_taken(layout, level);
  for (int64_t low = 1; low < extent;) {
    int64_t end = low;
    while (end < extent && !(taken & end)) end *= 2;
    if (end > low) unused.push_back(mod(floor_div(number, low), end / low));
    low = std::max(end, 2 * low);
  }
}

}  // namespace

Expr Share::start() const { return first + spread(r(), strides_of(bits, Level::Register)); }

Expr Share::at() const { return start() + v(); }

Expr Share::number() const {
  std::vector<int64_t> of_r, of_v;
  int64_t place = registers * vector;
  for (const Bit& bit : bits) {
    if (!is_own(bit.level)) continue;
    place /= 2;
    (bit.level == Level::Register ? of_r : of_v).push_back(place);
  }
  return spread(r(), of_r) + spread(v(), of_v);
}

Expr Share::place(const Expr& number) const {
  std::vector<int64_t> places;
  for (const Bit& bit : bits) {
    if (is_own(bit.level)) places.push_back(bit.stride);
  }
  return spread(number, places);
}

Expr Share::chunk(const Expr& live) const {
  std::vector<int64_t> places;
  for (const Bit& bit : bits) {
    if (is_own(bit.level) && bit.stride >= kChunk) places.push_back(bit.stride / kChunk);
  }
  return floor_div(first, kChunk) + spread(live, places);
}

Expr packed(const Expr& number, int64_t mask) {
  Expr sum = 0;
  int64_t place = 1;
  for (int64_t low = 1; low <= mask;) {
    int64_t end = low;
    while (mask & end) end *= 2;
    if (end > low) sum = sum + mod(floor_div(number, low), end / low) * place;
    place *= end / low;
    low = 2 * end;
  }
  return sum;
}

Share share_of(const Tile& tile, const std::string& name, const Expr& count,
               const Layout& layout, const Expr& block) {
  Share share;
  share.name = name;
  share.count = count;
  share.layout = layout;
  share.registers = extent_of(layout, Level::Register);
  share.vector = extent_of(layout, Level::Vector);
  share.turns = extent_of(layout, Level::Serial);
  share.bits = bits_in_order(layout);
  int64_t stride = 1;
  for (size_t p = layout.size(); p-- > 0; stride *= layout[p].extent)
    share.first = share.first + of_part(tile, layout[p], stride, block);
  share.first = share.first + of_turn(share);
  const bool has_grid = !layout.empty() && layout[0].level == Level::Grid;
  share.covers_more = !(has_grid ? mod(count, stride).is_constant(0) : count == Expr(stride));
  return share;
}

std::vector<Expr> unused_bits(const Tile& tile, const std::vector<Layout>& used) {
  std::vector<Expr> unused;
  add_unused(lane_of_warp(), 32, Level::Lane, used, unused);
  add_unused(warp_of(tile), power_of_two_from(tile.warps), Level::Warp, used, unused);
  add_unused(rank_of(tile), tile.cluster, Level::Cluster, used, unused);
  return unused;
}

}  // namespace tiny_compile
