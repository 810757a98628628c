// Two kernels may become one where a point of the one is a point of the other. Both touch a
// buffer; if the writer visits it as rows (i: 8192) and the reader as (b: 8, t: 1024), cutting
// i into (8, 1024) makes every axis of the reader an axis of the writer.
#include "tiny_compile/loops/align.h"

#include <algorithm>

namespace tiny_compile {
namespace {

bool is_made_of_sizes(const Expr& expr) {
  const std::vector<Symbol> in = symbols(expr);
  return std::all_of(in.begin(), in.end(),
                     [](const Symbol& symbol) { return symbol.kind == SymbolKind::Size; });
}

// The one symbol of a term that is no size, and what it is multiplied with: 2*n*i => i, 2*n.
std::optional<std::pair<Expr, Expr>> loop_of(const Term& term) {
  const bool several = term.factor.kind() == ExprKind::Mul;
  const std::vector<Expr> factors = several ? term.factor.operands() : std::vector{term.factor};
  Expr stride = term.coefficient;
  std::optional<Expr> loop;
  for (const Expr& factor : factors) {
    if (is_made_of_sizes(factor)) {
      stride = stride * factor;
      continue;
    }
    if (loop || factor.kind() != ExprKind::Symbol) return std::nullopt;
    loop = factor;
  }
  if (!loop || term.coefficient <= 0) return std::nullopt;
  return std::pair{*loop, stride};
}

// How often `part` goes into the whole; nothing where that leaves a rest, or may.
std::optional<Expr> quotient(const Expr& whole, const Expr& part) {
  if (part.bounds().low < 1) return std::nullopt;
  const Expr times = floor_div(whole, part);
  return times * part == whole ? std::optional(times) : std::nullopt;
}

}  // namespace

std::optional<Nest> nest_of(const Kernel& kernel, const Expr& index,
                            const std::vector<Expr>& limits) {
  Nest nest;
  for (const Term& term : terms(index)) {
    if (term.factor.is_constant()) {
      if (term.coefficient != 0) return std::nullopt;
      continue;
    }
    const auto found = loop_of(term);
    if (!found) return std::nullopt;
    Loop loop{-1, found->second, 1};
    for (size_t a = 0; a < kernel.axes.size(); a++) {
      if (Symbol(kernel.axes[a].name) == found->first.symbol()) loop.axis = static_cast<int>(a);
    }
    const auto is_same = [&](const Loop& other) { return other.axis == loop.axis; };
    if (std::any_of(nest.begin(), nest.end(), is_same)) return std::nullopt;  // n*i + 2*i
    const bool indirect = loop.axis < 0;
    if (indirect && limits.size() != 1) return std::nullopt;
    loop.extent = indirect ? limits[0] : kernel.axes[loop.axis].extent;
    nest.push_back(loop);
  }
  std::stable_sort(nest.begin(), nest.end(), [](const Loop& a, const Loop& b) {
    return a.stride.bounds().high > b.stride.bounds().high;
  });
  return nest;
}

bool covers(const Nest& nest, const Expr& size) {
  Expr expected = 1;
  for (size_t k = nest.size(); k-- > 0;) {
    if (nest[k].stride != expected) return false;
    expected = expected * nest[k].extent;
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
  Expr left = i < 0 ? 1 : first[i].extent, right = j < 0 ? 1 : second[j].extent;
  while (i >= 0 && j >= 0) {  // from the fastest loop outwards
    if (left.is_constant(0) || right.is_constant(0)) return std::nullopt;
    const bool equal = left == right;
    const auto more = equal ? std::nullopt : quotient(left, right),
               others = equal || more ? std::nullopt : quotient(right, left);
    if (!equal && !more && !others) return std::nullopt;
    pieces.push_back({i, j, others ? left : right});
    left = more.value_or(1), right = others.value_or(1);
    if (left.is_constant(1) && --i >= 0) left = first[i].extent;
    if (right.is_constant(1) && --j >= 0) right = second[j].extent;
  }
  if (i >= 0 || j >= 0) return std::nullopt;
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace tiny_compile
