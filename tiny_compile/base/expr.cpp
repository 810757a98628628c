// Question: what is a size or an index, before its value is known?
//
//   i*1024 + j  =>  Add(Mul(i, 1024), j), bounds [0, 4194303]
//
// An Expr is a constant or a pointer to an immutable node that carries its hash and its bounds.
// Every constructor returns a canonical form (expr_parts.h); sums are built in expr_sum.cpp,
// divisions in expr_divide.cpp, text in expr_text.cpp. No rule applies to a built node, so that
// rebuilding it from its parts, or from its text, gives it back.
#include "tiny_compile/base/expr.h"

#include <algorithm>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/expr_parts.h"

namespace tiny_compile {

using namespace parts;

struct ExprNode {
  ExprKind kind;
  bool has_sizes = false;
  int depth = 1;
  int64_t size = 1;
  Interval bounds = {};
  size_t hash = 0;
  Symbol symbol = "";               // of a Symbol
  std::vector<Expr> operands = {};  // of the other kinds; of an index: its extent
};

namespace {

size_t mix(size_t seed, size_t value) {
  return (seed ^ (value + 0x9e3779b97f4a7c15 + (seed << 6) + (seed >> 2))) * 0x100000001b3;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto is_word = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word);
}

Interval combine(ExprKind kind, Interval a, Interval b) {
  switch (kind) {
    case ExprKind::Add: return sum_bounds(a, b);
    case ExprKind::Mul: return product_bounds(a, b);
    case ExprKind::FloorDiv: return quotient_bounds(a, b);
    case ExprKind::Mod: return remainder_bounds(a, b);
    case ExprKind::Min: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    default: return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
}

int64_t combine(ExprKind kind, int64_t lhs, int64_t rhs) {
  switch (kind) {
    case ExprKind::Add: return checked_add(lhs, rhs);
    case ExprKind::Mul: return checked_multiply(lhs, rhs);
    case ExprKind::FloorDiv: return floor_quotient(lhs, rhs);
    case ExprKind::Mod: return floor_remainder(lhs, rhs);
    case ExprKind::Min: return std::min(lhs, rhs);
    default: return std::max(lhs, rhs);
  }
}

Expr combine(ExprKind kind, const Expr& lhs, const Expr& rhs) {
  switch (kind) {
    case ExprKind::Add: return lhs + rhs;
    case ExprKind::Mul: return lhs * rhs;
    case ExprKind::FloorDiv: return floor_div(lhs, rhs);
    case ExprKind::Mod: return mod(lhs, rhs);
    case ExprKind::Min: return min(lhs, rhs);
    default: return max(lhs, rhs);
  }
}

}  // namespace

Expr make_node(ExprKind kind, std::vector<Expr> operands) {
  ExprNode node{.kind = kind, .bounds = operands[0].bounds()};
  node.hash = mix(static_cast<size_t>(kind), operands[0].hash());
  for (size_t i = 1; i < operands.size(); ++i) {
    node.bounds = combine(kind, node.bounds, operands[i].bounds());
    node.hash = mix(node.hash, operands[i].hash());
  }
  for (const Expr& operand : operands) {
    if (operand.node()) node.depth = std::max(node.depth, operand.node()->depth + 1);
    node.has_sizes |= operand.has_sizes();
    node.size += operand.size();
  }
  if (node.depth > kMaxDepth) fail("an index expression is nested deeper than ", kMaxDepth);
  if (node.size > kMaxSize) fail("an index expression has more than ", kMaxSize, " nodes");
  node.operands = std::move(operands);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

// --- the value ------------------------------------------------------------------------------

Expr Expr::symbol(Symbol symbol, int64_t low, int64_t high) {
  CHECK(is_name(symbol.name), "not a symbol's name: '", symbol.name, "'");
  ExprNode node{.kind = ExprKind::Symbol};
  node.bounds = {clamp_to_bounds(low), clamp_to_bounds(std::max(low, high))};
  node.hash = mix(std::hash<std::string>()(symbol.name), static_cast<size_t>(symbol.kind));
  node.has_sizes = symbol.kind == SymbolKind::Size;
  node.symbol = std::move(symbol);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

Expr Expr::index(Symbol symbol, const Expr& extent) {
  const int64_t end = extent.bounds().high;
  Expr plain = Expr::symbol(std::move(symbol), 0, end == kUnbounded ? end : end - 1);
  if (extent.is_constant()) return plain;
  ExprNode node = *plain.node_;
  node.operands = {extent};
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

bool Expr::has_sizes() const { return node_ && node_->has_sizes; }

ExprKind Expr::kind() const { return node_ ? node_->kind : ExprKind::Constant; }

int64_t Expr::constant() const {
  CHECK(is_constant(), "not a constant: ", *this);
  return value_;
}

const Symbol& Expr::symbol() const {
  CHECK(kind() == ExprKind::Symbol, "not a symbol: ", *this);
  return node_->symbol;
}

const std::string& Expr::name() const { return symbol().name; }

const std::vector<Expr>& Expr::operands() const {
  CHECK(node_, "a constant has no operands: ", *this);
  return node_->operands;
}

Interval Expr::bounds() const {
  if (node_) return node_->bounds;
  return {clamp_to_bounds(value_), clamp_to_bounds(value_)};
}

size_t Expr::hash() const { return node_ ? node_->hash : mix(0, static_cast<size_t>(value_)); }

int64_t Expr::size() const { return node_ ? node_->size : 1; }

bool Expr::operator==(const Expr& other) const {
  if (node_ == other.node_) return value_ == other.value_;
  if (!node_ || !other.node_ || node_->hash != other.node_->hash) return false;
  const bool same_head = node_->kind == other.node_->kind &&
                         node_->symbol == other.node_->symbol &&
                         node_->bounds == other.node_->bounds;
  return same_head && node_->operands == other.node_->operands;
}

// --- min, max -------------------------------------------------------------------------------

namespace {

// Flat, sorted, and without what another operand beats: min(i, min(i + 1, j)) => min(i, j).
Expr extremum(ExprKind kind, const Expr& lhs, const Expr& rhs) {
  const bool is_min = kind == ExprKind::Min;
  const auto makes_superfluous = [&](const Expr& kept, const Expr& other) {
    return is_min ? is_at_most(kept, other) : is_at_most(other, kept);
  };
  std::vector<Expr> kept;
  for (const Expr& side : {lhs, rhs}) {
    const std::span<const Expr> all = side.kind() == kind
                                          ? std::span<const Expr>(side.operands())
                                          : std::span<const Expr>(&side, 1);
    for (const Expr& candidate : all) {
      const auto beats = [&](const Expr& one) { return makes_superfluous(one, candidate); };
      if (std::any_of(kept.begin(), kept.end(), beats)) continue;
      std::erase_if(kept, [&](const Expr& one) { return makes_superfluous(candidate, one); });
      kept.push_back(candidate);
    }
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), comes_before);
  return make_node(kind, std::move(kept));
}

}  // namespace

Expr min(const Expr& lhs, const Expr& rhs) { return extremum(ExprKind::Min, lhs, rhs); }
Expr max(const Expr& lhs, const Expr& rhs) { return extremum(ExprKind::Max, lhs, rhs); }

// --- walks ----------------------------------------------------------------------------------

std::vector<Term> terms(const Expr& expr) {
  std::vector<Term> result;
  if (expr.is_constant(0)) return result;
  for (const Expr& term : summands(expr)) {
    const Expr factor = term.is_constant() ? Expr(1) : with_coefficient(term, 1);
    result.push_back({coefficient_of(term), factor});
  }
  return result;
}

int64_t coefficient(const Expr& expr, const Expr& symbol) {
  for (const Term& term : terms(expr)) {
    if (term.factor == symbol) return term.coefficient;
  }
  return 0;
}

Expr substitute(const Expr& expr, const Substitution& substitution) {
  if (expr.is_constant()) return expr;
  if (expr.kind() == ExprKind::Symbol) {
    for (const auto& [symbol, value] : substitution) {
      if (symbol == expr.symbol()) return value;
    }
    return expr;
  }
  std::vector<Expr> operands;
  bool is_same = true;
  for (const Expr& operand : expr.operands()) {
    operands.push_back(substitute(operand, substitution));
    is_same = is_same && operands.back().node() == operand.node();
  }
  if (is_same) return expr;
  Expr result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    result = combine(expr.kind(), result, operands[i]);
  }
  return result;
}

bool depends_on(const Expr& expr, const Symbol& symbol) {
  if (expr.is_constant()) return false;
  if (expr.kind() == ExprKind::Symbol) return expr.symbol() == symbol;
  const auto& operands = expr.operands();
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Expr& operand) { return depends_on(operand, symbol); });
}

std::vector<Symbol> symbols(const Expr& expr) {
  if (expr.is_constant()) return {};
  if (expr.kind() == ExprKind::Symbol) return {expr.symbol()};
  std::vector<Symbol> result;
  for (const Expr& operand : expr.operands()) {
    for (Symbol& symbol : symbols(operand)) {
      const bool is_new = std::find(result.begin(), result.end(), symbol) == result.end();
      if (is_new) result.push_back(std::move(symbol));
    }
  }
  return result;
}

void collect_symbols(const Expr& expr, std::vector<Expr>& found) {
  std::vector<Expr> pending = {expr};
  while (!pending.empty()) {
    const Expr next = pending.back();
    pending.pop_back();
    if (next.is_constant()) continue;
    if (next.kind() != ExprKind::Symbol) {
      pending.insert(pending.end(), next.operands().rbegin(), next.operands().rend());
    } else if (std::find(found.begin(), found.end(), next) == found.end()) {
      found.push_back(next);
    }
  }
}

int64_t evaluate(const Expr& expr, const SymbolValues& values) {
  if (expr.is_constant()) return expr.constant();
  if (expr.kind() == ExprKind::Symbol) {
    const auto is_it = [&](const auto& value) { return value.first == expr.symbol(); };
    const auto found = std::find_if(values.begin(), values.end(), is_it);
    CHECK(found != values.end(), "no value given for ", expr);
    return found->second;
  }
  const std::vector<Expr>& operands = expr.operands();
  int64_t result = evaluate(operands[0], values);
  for (size_t i = 1; i < operands.size(); ++i) {
    result = combine(expr.kind(), result, evaluate(operands[i], values));
  }
  return result;
}

Expr product(const Shape& shape) {
  Expr result = 1;
  for (const Expr& size : shape) result = result * size;
  return result;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace tiny_compile
