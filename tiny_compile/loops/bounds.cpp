// Does an index stay within its buffer wherever its mask is true?
//
//   load x[i0 - 3] if and(ge(index[i0], i64 3), lt(index[i0], i64 11))   of 8 elements
//   =>  i0 - 3 >= 0 and 10 - i0 >= 0 imply  i0 - 3 >= 0  and  7 - (i0 - 3) >= 0
//
// A mask is taken apart into the ways in which it can be true (a disjunction of conjunctions of
// facts f >= 0); the index must be within bounds in each of them. A conjunction implies goal >= 0
// where the goal's interval says so once the facts have narrowed its parts, or where what is
// left of it without a multiple of a fact (of two, of three) is never negative.
//
// Invariant: all that is forgotten for brevity are facts, so that no wrong index is accepted.
#include "tiny_compile/loops/bounds.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tiny_compile {
namespace {

constexpr int kRounds = 4;          // of narrowing one factor by what is known of the others
constexpr int kMostSubtracted = 3;  // facts that one goal is the sum of

// The first and the last of `all` whose remainder by d is in `rest`.
Interval ends_with(const Interval& all, int64_t d, const Interval& rest) {
  const int64_t low = floor_remainder(all.low, d), high = floor_remainder(all.high, d);
  Wide first = all.low, last = all.high;
  if (low < rest.low) first += rest.low - low;
  if (low > rest.high) first += d - low + rest.low;
  if (high > rest.high) last -= high - rest.high;
  if (high < rest.low) last -= high + d - rest.high;
  return {clamp_to_bounds(first), clamp_to_bounds(last)};
}

bool is_finite(const Interval& interval) {
  return interval.low > -kUnbounded && interval.high < kUnbounded;
}

Wide magnitude(const Interval& interval) { return std::max(interval.high, -interval.low); }

void walk(const Expr& expr, std::unordered_map<const ExprNode*, bool>& seen, Wide& largest) {
  const Interval own = expr.bounds();
  if (!is_finite(own)) largest = kUnbounded;
  largest = std::max(largest, magnitude(own));
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return;
  if (!seen.emplace(expr.node(), true).second) return;
  Wide together = 0;
  for (const Expr& operand : expr.operands()) {
    walk(operand, seen, largest);
    together += magnitude(operand.bounds());
  }
  if (expr.kind() == ExprKind::Add) largest = std::max(largest, together);
}

Interval both(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

// n / d towards minus infinity, for d > 0.
Wide down(Wide n, Wide d) { return n / d - (n % d < 0); }

// 6*i - 4*j + 5 >= 0  =>  3*i - 2*j + 2 >= 0
Expr without_factor(const Expr& fact) {
  int64_t factor = 0, constant = 0;
  const std::vector<Term> parts = terms(fact);
  for (const Term& part : parts) {
    if (part.factor.is_constant())
      constant = part.coefficient;
    else
      factor = std::gcd(factor, part.coefficient);
  }
  if (factor < 2) return fact;
  Expr least = floor_quotient(constant, factor);
  for (const Term& part : parts) {
    if (!part.factor.is_constant()) least = least + part.factor * (part.coefficient / factor);
  }
  return least;
}

}  // namespace

int64_t largest_part(const Expr& expr) {
  std::unordered_map<const ExprNode*, bool> seen;
  Wide largest = 0;
  walk(expr, seen, largest);
  return clamp_to_bounds(largest);
}

bool has_size(const Expr& expr) {
  const std::vector<Symbol> parts = symbols(expr);
  return std::any_of(parts.begin(), parts.end(),
                     [](const Symbol& symbol) { return symbol.kind == SymbolKind::Size; });
}

const Expr* doubtful_divisor(const Expr& expr) {
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return nullptr;
  const bool divides = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod;
  const Expr* divisor = divides ? &expr.operands()[1] : nullptr;
  if (divides && (has_size(*divisor) ? divisor->bounds().high : divisor->bounds().low) < 1)
    return divisor;
  for (const Expr& operand : expr.operands()) {
    if (const Expr* found = doubtful_divisor(operand)) return found;
  }
  return nullptr;
}

// --- facts ----------------------------------------------------------------------------------

int64_t distance(const Expr& index, const Expr& symbol) {
  for (const Term& term : terms(index)) {
    if (term.factor != symbol && depends_on(term.factor, symbol.symbol())) return -1;
  }
  return coefficient(index, symbol);
}

bool is_contiguous(const Expr& index, const Expr& symbol, int vector) {
  bool found = false;
  for (const Term& term : terms(index)) {
    if (term.factor == symbol) {
      if (term.coefficient != 1) return false;
      found = true;
    } else if (term.coefficient % vector != 0 || depends_on(term.factor, symbol.symbol())) {
      return false;
    }
  }
  return found;
}

namespace {

// The index of one of `vector` neighbours, by their number and its own.
struct OfNeighbours {
  Expr index, element;
};

OfNeighbours of_neighbours(const Expr& index, const Expr& symbol, int64_t vector) {
  const Expr start = Expr::index("start", floor_div(symbol.bounds().high + 1, vector)),
             element = Expr::index(Symbol("element", SymbolKind::Tile), vector);
  return {substitute(index, {{symbol.symbol(), start * vector + element}}), element};
}

}  // namespace

bool is_one_place(const Expr& index, const Expr& symbol, int64_t vector) {
  if (!depends_on(index, symbol.symbol())) return false;
  const OfNeighbours of = of_neighbours(index, symbol, vector);
  return !depends_on(of.index, of.element.symbol());
}

bool is_pack(const Expr& index, const Expr& symbol, int vector) {
  if (is_contiguous(index, symbol, vector)) return true;
  if (vector == 1 || distance(index, symbol) >= 0) return false;
  const OfNeighbours of = of_neighbours(index, symbol, vector);
  return is_contiguous(of.index, of.element, vector);
}

bool has_neighbours(const Expr& index, const Expr& symbol) {
  return is_contiguous(index, symbol, 1) || is_pack(index, symbol, 2);
}

Facts::Facts(std::vector<Expr> at_least_zero) : facts_(std::move(at_least_zero)) {
  for (Expr& fact : facts_) fact = without_factor(fact);
  for (const Expr& fact : std::vector<Expr>(facts_)) {
    add_quotients_of(fact);
    add_digits_of(fact);
  }
  bool learnt = true;
  for (int round = 0; round < kRounds && learnt && !contradict_; round++) {
    learnt = false;
    for (size_t f = 0; f < facts_.size(); f++) learnt = learn(Expr(facts_[f])) || learnt;
    learnt = learn_from_remainders() || learnt;
  }
}

// Where a fact speaks of i/d: d*(i/d) <= i <= d*(i/d) + d - 1.
void Facts::add_quotients_of(const Expr& fact) {
  for (const Term& part : terms(fact)) {
    if (part.factor.kind() != ExprKind::FloorDiv || facts_.size() + 2 > kMostFacts) continue;
    const Expr &divided = part.factor.operands()[0], &divisor = part.factor.operands()[1];
    if (!divisor.is_constant()) continue;
    facts_.push_back(divided - part.factor * divisor);
    facts_.push_back(part.factor * divisor + divisor - 1 - divided);
  }
}

// Of what is counted in several digits, the higher ones: 69 - 10*i - 10*j - k >= 0 with k >= 0
// says that 6 - i - j >= 0.
void Facts::add_digits_of(const Expr& fact) {
  const std::vector<Term> parts = terms(fact);
  int64_t done = 1;
  for (const Term& digit : parts) {
    const int64_t unit = std::abs(digit.coefficient);
    if (digit.factor.is_constant() || unit == done || facts_.size() >= kMostFacts) continue;
    done = unit;
    Expr higher = 0, lower = 0;
    for (const Term& part : parts) {
      const bool is_higher = !part.factor.is_constant() && part.coefficient % unit == 0;
      Expr& digits = is_higher ? higher : lower;
      digits = digits + part.factor * (is_higher ? part.coefficient / unit : part.coefficient);
    }
    const Interval rest = lower.bounds();
    if (!lower.is_constant() && is_finite(rest))
      facts_.push_back(higher + floor_quotient(rest.high, unit));
  }
}

Interval Facts::bounds(const Expr& expr) const {
  std::unordered_map<const ExprNode*, Interval> known;
  return bounds(expr, known);
}

Interval Facts::bounds(const Expr& expr,
                       std::unordered_map<const ExprNode*, Interval>& known) const {
  if (expr.is_constant() || facts_.empty()) return expr.bounds();
  if (const auto found = known.find(expr.node()); found != known.end()) return found->second;
  Interval result = both(expr.bounds(), plain_bounds(expr, known));
  for (const Bound& bound : bounds_) {
    if (bound.factor == expr) result = both(result, bound.interval);
  }
  if (result.low > result.high) result = expr.bounds();  // of what never holds
  known.emplace(expr.node(), result);
  return result;
}

// From the narrower bounds of the operands.
Interval Facts::plain_bounds(const Expr& expr,
                             std::unordered_map<const ExprNode*, Interval>& known) const {
  if (expr.kind() == ExprKind::Symbol) return expr.bounds();
  const std::vector<Expr>& operands = expr.operands();
  Interval result = bounds(operands[0], known);
  if (expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod)
    result = as_facts_say(operands[0], result);
  for (size_t k = 1; k < operands.size(); k++) {
    const Interval next = bounds(operands[k], known);
    switch (expr.kind()) {
      case ExprKind::Add: result = sum_bounds(result, next); break;
      case ExprKind::Mul: result = product_bounds(result, next); break;
      case ExprKind::FloorDiv: result = quotient_bounds(result, next); break;
      case ExprKind::Mod:
        if (next.low == next.high && next.low > 0 && is_finite(result) &&
            floor_quotient(result.low, next.low) == floor_quotient(result.high, next.low))
          result = {floor_remainder(result.low, next.low),
                    floor_remainder(result.high, next.low)};
        else
          result = remainder_bounds(result, next);
        break;
      case ExprKind::Min:
        result = {std::min(result.low, next.low), std::min(result.high, next.high)};
        break;
      default: result = {std::max(result.low, next.low), std::max(result.high, next.high)};
    }
  }
  return result;
}

// i + j - 1 >= 0 and 7 - i - j >= 0 say that i + j + 2 is in [3, 9].
Interval Facts::as_facts_say(const Expr& sum, Interval interval) const {
  if (sum.kind() != ExprKind::Add) return interval;
  for (const Expr& fact : facts_) {
    const Expr above = sum - fact, below = sum + fact;
    if (above.is_constant()) interval.low = std::max(interval.low, above.constant());
    if (below.is_constant()) interval.high = std::min(interval.high, below.constant());
  }
  return interval;
}

// 3*i - j + 5 >= 0 with j >= 2 says that i >= -1.
bool Facts::learn(const Expr& fact) {
  bool learnt = false;
  const std::vector<Term> parts = terms(fact);
  for (const Term& part : parts) {
    if (part.factor.is_constant()) continue;
    Wide rest = 0;  // the most that the other terms come to
    bool known = true;
    for (const Term& other : parts) {
      if (other.factor == part.factor) continue;
      const Interval interval = bounds(other.factor);
      const int64_t end = other.coefficient > 0 ? interval.high : interval.low;
      known = known && std::abs(end) < kUnbounded;
      rest += Wide{other.coefficient} * end;
    }
    if (!known || rest > kUnbounded || rest < -kUnbounded) continue;
    const Wide c = part.coefficient;
    const Interval all = {-kUnbounded, kUnbounded};
    const Interval interval = c > 0 ? Interval{clamp_to_bounds(-down(rest, c)), all.high}
                                    : Interval{all.low, clamp_to_bounds(down(rest, -c))};
    learnt = narrow(part.factor, interval) || learnt;
  }
  if (parts.empty() || (fact.is_constant() && fact.constant() >= 0)) return learnt;
  contradict_ = contradict_ || bounds(fact).high < 0;
  return learnt;
}

// What is known of a quotient is known of what was divided, and of a sum's terms.
bool Facts::narrow(const Expr& factor, const Interval& interval) {
  const Interval before = bounds(factor), now = both(before, interval);
  if (now == before) return false;
  if (now.low > now.high) return contradict_ = true;
  const auto same = [&](const Bound& bound) { return bound.factor == factor; };
  const auto found = std::find_if(bounds_.begin(), bounds_.end(), same);
  if (found != bounds_.end())
    found->interval = now;
  else if (bounds_.size() < kMostFacts)
    bounds_.push_back({factor, now});
  if (facts_.size() + 2 > kMostFacts) return true;
  if (factor.kind() == ExprKind::Add && is_finite(now)) {
    facts_.push_back(factor - now.low);
    facts_.push_back(Expr(now.high) - factor);
  }
  if (factor.kind() != ExprKind::FloorDiv) return true;
  const Expr &divided = factor.operands()[0], &divisor = factor.operands()[1];
  if (!divisor.is_constant() || !is_finite(now)) return true;
  facts_.push_back(divided - divisor * now.low);
  facts_.push_back(divisor * now.high + divisor - 1 - divided);
  return true;
}

// i % 20 < 4 with i < 20 says that i < 4, and with i < 100 that i < 84.
bool Facts::learn_from_remainders() {
  bool learnt = false;
  for (const Bound& bound : std::vector<Bound>(bounds_)) {
    if (bound.factor.kind() != ExprKind::Mod) continue;
    const Expr &divided = bound.factor.operands()[0], &divisor = bound.factor.operands()[1];
    const Interval all = bounds(divided);
    if (!divisor.is_constant() || !is_finite(all) || !is_finite(bound.interval)) continue;
    learnt = narrow(divided, ends_with(all, divisor.constant(), bound.interval)) || learnt;
  }
  return learnt;
}

bool Facts::implied_by_difference(const Expr& goal, int depth) const {
  if (bounds(goal).low >= 0) return true;
  if (depth == 0) return false;
  for (const Expr& fact : facts_) {
    for (const Term& part : terms(fact)) {
      if (part.factor.is_constant()) continue;
      const int64_t wanted = coefficient(goal, part.factor);
      if (wanted % part.coefficient != 0 || wanted / part.coefficient < 1) continue;
      const Expr left = goal - fact * (wanted / part.coefficient);
      if (left.size() > goal.size() + fact.size()) continue;
      if (implied_by_difference(left, depth - 1)) return true;
      break;
    }
  }
  return false;
}

bool Facts::imply_at_least_zero(const Expr& expr) const {
  const int depth = facts_.size() > 32 ? 1 : facts_.size() > 16 ? 2 : kMostSubtracted;
  return contradict_ || implied_by_difference(expr, depth);
}

}  // namespace tiny_compile
