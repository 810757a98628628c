// Question: what is a size before its number is known, and what if code needs the number?
//
//   int64_t k = x.size(0);   x: f32[n,3], example n = 37   =>   37, guard n == 37
//   if (x.size(0) > 64) ..                                 =>   false, guard not n > 64
//
// Arithmetic stays symbolic. A comparison that the bounds decide needs no guard.
#include "tiny_compile/tensor/size.h"

#include <algorithm>

namespace tiny_compile {
namespace {

thread_local SizeTrace* current_sizes = nullptr;

// The line that made the size; inside a composite, the line that called it.
Location place_of(const Size& size) {
  const Location here = {size.here().file_name(), static_cast<int>(size.here().line())};
  return current_sizes && current_sizes->place ? current_sizes->place(here) : here;
}

// With what the trace knows by now.
Expr simplified(const Expr& expr) {
  const bool knows = current_sizes && !current_sizes->known.empty() && !expr.is_constant();
  return knows ? substitute(expr, current_sizes->known) : expr;
}

// The traced example's values, or the error of a line that needs some.
SymbolValues example(const Size& wanted, const std::string& what) {
  if (!current_sizes)
    fail_at(place_of(wanted),
            str("the size ", wanted.expr(), " belongs to a trace that has ended"));
  if (!current_sizes->example)
    fail_at(place_of(wanted),
            str(what,
                ", and the size is symbolic: compute with tc::Size instead of int64_t, or "
                "trace with an example"));
  return *current_sizes->example;
}

bool relates(int64_t lhs, Relation relation, int64_t rhs) {
  switch (relation) {
    case Relation::Equal: return lhs == rhs;
    case Relation::Less: return lhs < rhs;
    default: return lhs <= rhs;
  }
}

// From here on `symbol` is `value`, in what was known before as well.
void learn(const Symbol& symbol, const Expr& value) {
  for (auto& [earlier, meaning] : current_sizes->known)
    meaning = substitute(meaning, {{symbol, value}});
  current_sizes->known.push_back({symbol, value});
}

// What the bounds of lhs - rhs say.
std::optional<bool> decided(const Expr& lhs, Relation relation, const Expr& rhs) {
  const Interval difference = (lhs - rhs).bounds();
  const int64_t most = relation == Relation::Less ? -1 : 0;  // of a difference that is at most
  if (relation == Relation::Equal) {
    if (difference.low == 0 && difference.high == 0) return true;
    if (difference.low > 0 || difference.high < 0) return false;
    return std::nullopt;
  }
  if (difference.high <= most) return true;
  if (difference.low > most) return false;
  return std::nullopt;
}

void check_divisor(const Size& lhs, const Size& rhs) {
  if (rhs < 1)
    fail_at(place_of(lhs),
            str("the size ", lhs, " divided by ", rhs, ", which is not positive"));
}

}  // namespace

Size::Size(const Expr& expr, Here here) : expr_(simplified(expr)), here_(here) {}

Size::operator int64_t() const {
  const Expr expr = simplified(expr_);
  if (expr.is_constant()) return expr.constant();
  const SymbolValues values = example(*this, str("a number is needed for ", expr));
  std::vector<Expr> pinned;
  collect_symbols(expr, pinned);
  for (const Expr& symbol : pinned) {
    const int64_t value = evaluate(symbol, values);
    current_sizes->guards.push_back({symbol, Relation::Equal, value});
    learn(symbol.symbol(), value);
  }
  return evaluate(expr, values);
}

// The place of a result is the symbolic operand's.
static Size combined(const Expr& expr, const Size& lhs, const Size& rhs) {
  return Size(expr, lhs.is_number() ? rhs.here() : lhs.here());
}

Size operator+(const Size& lhs, const Size& rhs) {
  return combined(lhs.expr() + rhs.expr(), lhs, rhs);
}
Size operator-(const Size& lhs, const Size& rhs) {
  return combined(lhs.expr() - rhs.expr(), lhs, rhs);
}
Size operator*(const Size& lhs, const Size& rhs) {
  return combined(lhs.expr() * rhs.expr(), lhs, rhs);
}
Size operator/(const Size& lhs, const Size& rhs) {
  check_divisor(lhs, rhs);
  return combined(floor_div(lhs.expr(), rhs.expr()), lhs, rhs);
}
Size operator%(const Size& lhs, const Size& rhs) {
  check_divisor(lhs, rhs);
  return combined(mod(lhs.expr(), rhs.expr()), lhs, rhs);
}
Size max(const Size& lhs, const Size& rhs) {
  return combined(max(lhs.expr(), rhs.expr()), lhs, rhs);
}
Size min(const Size& lhs, const Size& rhs) {
  return combined(min(lhs.expr(), rhs.expr()), lhs, rhs);
}

bool holds(const Size& lhs, Relation relation, const Size& rhs) {
  if (lhs.is_number() && rhs.is_number())
    return relates(lhs.expr().constant(), relation, rhs.expr().constant());
  const Expr left = simplified(lhs.expr()), right = simplified(rhs.expr());
  if (const std::optional<bool> known = decided(left, relation, right)) return *known;
  SizeGuard guard{left, relation, right};
  const SymbolValues values =
      example(lhs.is_number() ? rhs : lhs, str("whether ", guard.str(), " must be known"));
  guard.outcome = relates(evaluate(left, values), relation, evaluate(right, values));
  current_sizes->guards.push_back(guard);
  if (relation == Relation::Equal && guard.outcome) {
    const bool is_left = left.kind() == ExprKind::Symbol;
    const Expr &symbol = is_left ? left : right, &other = is_left ? right : left;
    const bool is_bound =
        symbol.kind() == ExprKind::Symbol && !depends_on(other, symbol.symbol());
    if (is_bound) learn(symbol.symbol(), other);
  }
  return guard.outcome;
}

std::optional<bool> holds_if_known(const Size& lhs, Relation relation, const Size& rhs) {
  const bool has_example = current_sizes && current_sizes->example;
  if (has_example || (lhs.is_number() && rhs.is_number())) return holds(lhs, relation, rhs);
  return decided(simplified(lhs.expr()), relation, simplified(rhs.expr()));
}

std::ostream& operator<<(std::ostream& out, const Size& size) { return out << size.expr(); }

SizeList::SizeList(const Shape& shape, Here here) {
  for (const Expr& size : shape) push_back(Size(size, here));
}

Shape SizeList::exprs() const {
  Shape result;
  for (const Size& size : *this) result.push_back(size.expr());
  return result;
}

std::string SizeGuard::str() const {
  const char* sign = relation == Relation::Equal  ? (outcome ? " == " : " != ")
                     : relation == Relation::Less ? (outcome ? " < " : " >= ")
                                                  : (outcome ? " <= " : " > ");
  return tiny_compile::str(lhs, sign, rhs);
}

bool SizeGuard::admits(const SymbolValues& sizes) const {
  return relates(evaluate(lhs, sizes), relation, evaluate(rhs, sizes)) == outcome;
}

SizeTraceScope::SizeTraceScope(SizeTrace* trace) : outer_(current_sizes) {
  current_sizes = trace;
}
SizeTraceScope::~SizeTraceScope() { current_sizes = outer_; }

}  // namespace tiny_compile
