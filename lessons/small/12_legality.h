// Which layouts are legal? Each element must be somebody's, a block has at most 32 warps of 32 lanes,
// and a thread's turns are bits that a sum takes one after the other. No more: what is legal gives the
// same bits.
//
//   k < 4096   warp 4 · lane 32 · register 16    =>  "k: covers 2048 of 4096"
#pragma once

#include "lessons/small/11_cuda.h"

namespace small {

inline bool is_chunked(const Kernel& kernel) {  // its results are the chunks' (12_split)
  return kernel.stores[0].at.along.back().text.s == "chunk";
}

inline bool is_product(const Kernel& kernel) {
  return std::ranges::any_of(kernel.values, [](const Value& v) { return v.op == Op::Matmul; });
}

// "" or what is wrong with a loop's layout.
inline std::string why_illegal(const Layout& layout, int64_t size, bool is_k, bool in_chunks) {
  int64_t stride = 1, serial = 0, registers = 1;
  for (size_t p = layout.size(); p-- > 0;) {
    const auto [level, extent] = layout[p];
    if (extent < 1 || extent > 1 << 20 || padded(extent) != extent)
      return str("a part of ", extent, ": no power of two");
    if (level == Grid && p > 0) return "the grid's part is not the highest";
    if (level == Vector && stride > 1) return "a vector is not the lowest part";
    if (level == Vector && size % extent != 0) return str("vectors of ", extent, " in ", size);
    if (level == Grid && is_k && !in_chunks) return "blocks share out k, but store no chunks";
    if (level == Serial && extent > 1 && is_k) {
      if (serial++ > 0) return "k has turns twice";
      int64_t digit = 1024;
      while (digit <= stride) digit *= 1024;
      if (stride * extent > digit) return "turns over more than one digit of 1024";
    }
    const bool owned = level == Register || level == Vector;
    if (owned && (registers *= extent) > 256) return "more than 256 registers";
    stride *= extent;
    if (stride > kMost) return "parts of too much";
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
    if (is_k && is_product(kernel)) {  // k is a thread's own
      if (schedule[d].size() != 1 || schedule[d][0].level != Serial)
        return "k: a product's is serial";
      continue;
    }
    const std::string why = why_illegal(schedule[d], kernel.sizes[d], is_k, is_chunked(kernel));
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
