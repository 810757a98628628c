// Who owns which bit of an index? A layout cuts a loop's variable into parts, each made by a level of
// the GPU: blocks of the grid, warps, lanes, registers of a thread (an unrolled loop), its turns, or
// vectors: registers that are read and written in one access.
//
//   i0 < 4096    grid · warp 4 · lane 8          =>  i0 = block * 32 + warp % 4 * 8 + lane % 8
//   k < 4096     warp 4 · lane 32 · register 16  =>  "k: covers 2048 of 4096"
//
// A legal layout gives each element to somebody, in blocks of at most 32 warps of 32 lanes; each
// legal one gives the same bits. Left out: shared memory, clusters of blocks.
#pragma once

#include "lessons/small/10_cpp.h"

namespace small {

enum class Level { Grid, Warp, Lane, Register, Vector, Serial };
struct Part {
  Level level;
  int64_t extent;  // a power of two; the grid's is 1: it is what remains, so it stands first
};
using Layout = std::vector<Part>;      // highest bits first
using Schedule = std::vector<Layout>;  // of each loop, k last
using enum Level;

inline std::string print(const Schedule& schedule) {
  constexpr const char* kNames[] = {"grid",      "warp ",   "lane ",
                                    "register ", "vector ", "serial "};
  std::string text, between;
  for (const Layout& layout : schedule) {
    for (const auto& [level, extent] : layout) {
      if (level != Grid && extent == 1) continue;
      text += between + kNames[static_cast<int>(level)] + (level == Grid ? "" : str(extent));
      between = " · ";
    }
    between = "; ";
  }
  return text;
}

inline bool is_product(const Kernel& kernel) {
  return std::ranges::any_of(kernel.values, [](const Value& v) { return v.op == Op::Matmul; });
}

inline int bits_of(int64_t extent) { return std::countr_zero(static_cast<uint64_t>(extent)); }

// "" or what is wrong with a loop's layout.
inline std::string why_illegal(const Layout& layout, int64_t size, bool is_k, bool in_chunks) {
  int64_t stride = 1, serial = 0, registers = 1;
  for (size_t p = layout.size(); p-- > 0;) {
    const auto [level, extent] = layout[p];
    if (extent < 1 || extent > 1 << 20 || power_of_two_from(extent) != extent)
      return str("a part of ", extent, ": no power of two");
    if (level == Grid && extent > 1) return "the grid's part is what remains, 1";
    if (level == Grid && p > 0) return "the grid's part is not the highest";
    if (level == Grid && is_k && !in_chunks) return "blocks share out k, but store no chunks";
    if (level == Vector && stride > 1) return "a vector is not the lowest part";
    if (level == Vector && size % extent != 0) return str("vectors of ", extent, " in ", size);
    if (level == Serial && extent > 1 && is_k) {  // all its bits are added at one place (12)
      if (serial++ > 0) return "k has turns twice";
      if (bits_of(stride) / 10 != (bits_of(stride * extent) - 1) / 10)
        return "turns over more than one digit of 1024";
    }
    const bool owned = level == Register || level == Vector;
    if (owned && (registers *= extent) > 256) return "more than 256 registers";
    if ((stride *= extent) > kMost) return "covers too much";
  }
  const bool has_grid = !layout.empty() && layout[0].level == Grid;
  if (is_k && in_chunks && (!has_grid || stride != 1024)) return "a chunk is grid and 1024";
  if (!has_grid && stride < size) return str("covers ", stride, " of ", size);
  return "";
}

inline std::string why_illegal(const Schedule& schedule, const Kernel& kernel) {
  if (schedule.size() != kernel.sizes.size()) return "not a layout for each loop";
  int64_t lanes = 1, warps = 1;
  for (size_t d = 0; d < schedule.size(); d++) {
    const bool is_k = d + 1 == schedule.size();
    if (is_k && is_product(kernel)) continue;  // one fma after the other in any layout
    const std::string why = why_illegal(schedule[d], kernel.sizes[d], is_k, kernel.in_chunks);
    if (!why.empty()) return (is_k ? "k: " : str("i", d, ": ")) + why;
    for (const auto& [level, extent] : schedule[d]) {
      lanes *= level == Lane ? extent : 1;
      warps *= level == Warp ? extent : 1;
    }
  }
  if (lanes > 32 || warps > 32) return str(warps, " warps of ", lanes, " lanes");
  return "";
}

}  // namespace small
