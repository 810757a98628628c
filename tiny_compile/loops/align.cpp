// Two kernels may become one where a point of the one is a point of the other. Both touch a
// buffer; if the writer visits it as rows (i: 8192) and the reader as (b: 8, t: 1024), cutting
// i into (8, 1024) makes every axis of the reader an axis of the writer.
#include "tiny_compile/loops/align.h"

#include <algorithm>

namespace tiny_compile {

std::optional<Nest> nest_of(const Kernel& kernel, const Expr& index,
                            const std::vector<Expr>& limits) {
  Nest nest;
  for (const Term& term : terms(index)) {
    if (term.factor.is_constant()) {
      if (term.coefficient != 0) return std::nullopt;
      continue;
    }
    if (term.factor.kind() != ExprKind::Symbol || term.coefficient <= 0) return std::nullopt;
    Loop loop{-1, term.coefficient, 1};
    for (size_t a = 0; a < kernel.axes.size(); a++) {
      if (Symbol(kernel.axes[a].name) == term.factor.symbol()) loop.axis = static_cast<int>(a);
    }
    const bool indirect = loop.axis < 0;
    if (indirect && limits.size() != 1) return std::nullopt;
    const Expr& extent = indirect ? limits[0] : kernel.axes[loop.axis].extent;
    if (!extent.is_constant()) return std::nullopt;
    loop.extent = extent.constant();
    nest.push_back(loop);
  }
  std::stable_sort(nest.begin(), nest.end(),
                   [](const Loop& a, const Loop& b) { return a.stride > b.stride; });
  return nest;
}

bool covers(const Nest& nest, int64_t size) {
  int64_t expected = 1;
  for (size_t k = nest.size(); k-- > 0;) {
    if (nest[k].stride != expected) return false;
    expected *= nest[k].extent;
  }
  return expected == size;
}

bool same_loops(const Nest& first, const Nest& second) {
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const Loop& a, const Loop& b) {
                      return a.stride == b.stride && a.extent == b.extent;
                    });
}

std::optional<std::vector<Piece>> common_pieces(const Nest& first, const Nest& second) {
  std::vector<Piece> pieces;
  int i = static_cast<int>(first.size()) - 1, j = static_cast<int>(second.size()) - 1;
  int64_t left = i < 0 ? 1 : first[i].extent, right = j < 0 ? 1 : second[j].extent;
  while (i >= 0 && j >= 0) {  // from the fastest loop outwards
    const int64_t extent = std::min(left, right);
    if (extent == 0 || left % extent != 0 || right % extent != 0) return std::nullopt;
    pieces.push_back({i, j, extent});
    left /= extent;
    right /= extent;
    if (left == 1 && --i >= 0) left = first[i].extent;
    if (right == 1 && --j >= 0) right = second[j].extent;
  }
  if (i >= 0 || j >= 0) return std::nullopt;
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace tiny_compile
