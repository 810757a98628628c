// Question: is this integer what its name says, at this place?
//
//   k: 100 = r_k*16 + warp               may be 127
//   if r_k*16 + warp < 100 { j0: 100 = k }   here it is below 100
//
// A name is written out in block, rank, warp, lane and the names of loops; then its interval, with the
// steps between its values, or the conditions around it must show that it is small enough.
#include "tiny_compile/tile/known.h"

#include <algorithm>
#include <utility>

#include "tiny_compile/tile/quotients.h"
#include "tiny_compile/tile/range.h"

namespace tiny_compile {
namespace {

// a and b of max(a, b), if that is its kind.
std::vector<Expr> parts_of(const Expr& value, ExprKind kind) {
  return value.is_constant() || value.kind() != kind ? std::vector<Expr>() : value.operands();
}

bool divides(const Expr& fact) {
  const std::vector<Term> parts = terms(fact);
  return std::any_of(parts.begin(), parts.end(), [](const Term& part) {
    return !part.factor.is_constant() && part.factor.kind() == ExprKind::FloorDiv;
  });
}

// No number, maximum or minimum, of which bounds and what it is given as tell as much.
bool is_sum(const Expr& value) {
  return !value.is_constant() && value.kind() != ExprKind::Max && value.kind() != ExprKind::Min;
}

// A sum of multiples of integers.
bool is_linear(const Expr& value) {
  const std::vector<Term> parts = terms(value);
  return std::all_of(parts.begin(), parts.end(), [](const Term& part) {
    return part.factor.is_constant() || part.factor.kind() == ExprKind::Symbol;
  });
}

// An integer that may be more than its name says: another symbol, whose bounds are its value's.
Expr given_as(const std::string& name, const Interval& bounds) {
  return Expr::symbol(Symbol(name, SymbolKind::Tile), bounds.low,
                      std::max(bounds.low, bounds.high));
}

// Facts about these integers; in two steps, also about those in such facts.
std::vector<Expr> facts_near(std::vector<Expr> names, const std::vector<Expr>& facts,
                             int steps) {
  std::vector<Expr> near;
  for (int step = 0; step < steps; step++) {
    near.clear();
    for (const Expr& fact : facts) {
      const auto names_it = [&](const Expr& name) { return depends_on(fact, name.symbol()); };
      const bool never_comes = fact.is_constant() && fact.constant() < 0;
      if (never_comes || std::any_of(names.begin(), names.end(), names_it))
        near.push_back(fact);
    }
    for (const Expr& fact : near) collect_symbols(fact, names);
  }
  return near;
}

// Facts about these integers alone.
std::vector<Expr> facts_among(const std::vector<Expr>& names, const std::vector<Expr>& facts) {
  std::vector<Expr> among;
  for (const Expr& fact : facts) {
    const std::vector<Symbol> parts = symbols(fact);
    const auto is_one = [&](const Symbol& part) {
      return std::any_of(names.begin(), names.end(),
                         [&](const Expr& name) { return name.symbol() == part; });
    };
    if (!parts.empty() && std::all_of(parts.begin(), parts.end(), is_one))
      among.push_back(fact);
  }
  return among;
}

bool is_below(const std::vector<Range>& ranges, const Expr& count) {
  return count.is_constant() &&
         std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return range.is_below(count.constant()); });
}

}  // namespace

Known::Known(const Tile& tile) : alone_(goes_alone(tile)) {
  for (const Expr& symbol : given(tile))
    names_.push_back({symbol.name(), symbol, symbol, symbol, false, true, symbol.bounds()});
}

void Known::back_to(const Mark& mark) {
  names_.resize(mark.names);
  conditions_.resize(mark.conditions);
}

const Known::Name* Known::find(const std::string& name) const {
  const auto found = std::find_if(names_.begin(), names_.end(),
                                  [&](const Name& known) { return known.name == name; });
  return found == names_.end() ? nullptr : &*found;
}

bool Known::has(const std::string& name) const { return find(name) != nullptr; }

void Known::add_let(const std::string& name, const Expr& extent, const Expr& value) {
  Name known{name, Expr::index(name, extent), in_threads(value), in_near(value)};
  known.proven = is_within(value, extent);
  if (known.proven && !is_below(ranges_of(value), extent)) known.near = known.symbol;
  if (!alone_) return names_.push_back(std::move(known));
  known.most = bounds_of(value);
  const Expr own = known.proven ? known.symbol : given_as(name, known.most);
  known.given = std::exchange(known.value, own);
  const bool is_proven = known.proven;
  names_.push_back(std::move(known));
  for (const Expr& part : parts_of(value, ExprKind::Max)) say(own - in_threads(part));
  for (const Expr& part : parts_of(value, ExprKind::Min)) say(in_threads(part) - own);
  if (is_proven && is_linear(value)) say(own - value), say(value - own);
}

void Known::add_chosen(const std::string& name, const Expr& extent) {
  const Expr symbol = Expr::index(name, extent);
  Name known{name, symbol, symbol, symbol};
  known.most = symbol.bounds();
  known.chosen = true;
  names_.push_back(std::move(known));
}

void Known::add_loop(const Statement& loop) {
  const Expr symbol = Expr::index(loop.name, loop.place);
  if (!alone_) {
    names_.push_back({loop.name, symbol, symbol, symbol, loop.unrolled});
    if (is_even(loop)) return;
    add_choice();  // threads have turns of their own
    say(symbol - in_threads(loop.from));
    return say(in_threads(loop.index) - 1 - symbol);
  }
  const Interval first = bounds_of(loop.from), last = bounds_of(loop.index);
  const Expr from = in_threads(loop.from), to = in_threads(loop.index);
  names_.push_back(
      {loop.name, symbol, symbol, symbol, loop.unrolled, true, {first.low, last.high - 1}});
  if (!from.is_constant()) say(symbol - from);
  if (!to.is_constant()) say(to - 1 - symbol);
  for (const Expr& part : parts_of(as_given(from), ExprKind::Max)) {
    if (is_sum(part)) say(symbol - part);
  }
  for (const Expr& part : parts_of(as_given(to), ExprKind::Min)) {
    if (is_sum(part)) say(part - 1 - symbol);
  }
  if (first.low > symbol.bounds().low) say(symbol - first.low);
  if (last.high - 1 < symbol.bounds().high) say(Expr(last.high - 1) - symbol);
}

// From what the names in it were found to be.
Interval Known::bounds_of(const Expr& value) const {
  Substitution found;
  for (const Symbol& symbol : symbols(value)) {
    if (const Name* known = find(symbol.name))
      found.push_back({symbol, Expr::symbol(symbol, known->most.low,
                                            std::max(known->most.low, known->most.high))});
  }
  return substitute(value, found).bounds();
}

bool Known::has_said(const Expr& fact) const {
  return std::any_of(conditions_.begin(), conditions_.end(),
                     [&](const Condition& condition) { return condition.fact == fact; });
}

void Known::add_choice() { conditions_.push_back({0, 0, true, true, true}); }

void Known::add_condition(const Expr& lesser, const Expr& greater) {
  for (const Expr& part : parts_of(lesser, ExprKind::Max)) add_condition(part, greater);
  for (const Expr& part : parts_of(greater, ExprKind::Min)) add_condition(lesser, part);
  const Expr fact = in_threads(greater) - in_threads(lesser) - 1;
  const Range range = range_of(fact);
  const bool decides = range.low < 0 && range.high >= 0;  // else all threads come, or none
  const bool by_data = std::any_of(names_.begin(), names_.end(), [&](const Name& known) {
    return known.chosen && depends_on(fact, known.name);
  });
  const auto by = [&](const char* name) {
    return decides && (by_data || depends_on(fact, name));
  };
  conditions_.push_back({fact, greater - lesser - 1, by("lane") || by("thread"),
                         by("warp") || by("thread"), by("rank")});
}

Expr Known::in_threads(const Expr& index) const {
  Substitution values;
  for (const Symbol& symbol : symbols(index)) {
    const Name* known = find(symbol.name);
    if (known && !(known->value == known->symbol)) values.push_back({symbol, known->value});
  }
  return values.empty() ? index : substitute(index, values);
}

Expr Known::in_near(const Expr& index) const {
  Substitution values;
  for (const Symbol& symbol : symbols(index)) {
    const Name* known = find(symbol.name);
    if (known && !(known->near == known->symbol)) values.push_back({symbol, known->near});
  }
  return joined_quotients(values.empty() ? index : substitute(index, values));
}

std::vector<Range> Known::ranges_of(const Expr& index) const {
  return {range_of(index), range_of(in_threads(index)), range_of(in_near(index))};
}

std::string Known::why_unreadable(const Expr& index, size_t places) {
  if (const Expr* divisor = doubtful_divisor(index))
    return str(index, " divides by ", *divisor, ", which is not always positive");
  if (largest_part(index) >= kUnbounded) return str(index, " leaves 64 bits");
  std::vector<Expr> parts;
  collect_symbols(index, parts);
  for (const Expr& part : parts) {
    bool is_place = false;
    for (size_t k = 0; k < places; k++) is_place = is_place || part.symbol() == indirect(k);
    if (is_place) continue;
    const Name* known = find(part.name());
    if (!known) return str("no integer ", part, " is named above");
    if (!(known->symbol == part))
      return str(part, " is below ", known->symbol.bounds().high + 1, ", not below ",
                 part.bounds().high + 1);
    if (known->proven) continue;
    const int64_t extent = part.bounds().high + 1;
    const Expr value = alone_ ? known->given : known->value, own = known->value;
    const Expr room = Expr(extent - 1) - own;
    if (alone_ && has_said(own) && has_said(room)) continue;
    if (!is_within(value, extent))
      return str(part, " may be ", range_of(value).high, " here, and is to be below ", extent);
    if (alone_) say(own), say(room);
  }
  return "";
}

// A maximum is below what all of it is below, and not negative where some of it is not; of a minimum
// likewise.
bool Known::is_within(const Expr& index, const Expr& count) const {
  if (!count.is_constant()) return false;
  if (is_below(ranges_of(index), count)) return true;
  const auto is_low = [&](const Expr& part) { return is_at_least_zero(part); };
  const auto is_high = [&](const Expr& part) { return is_at_least_zero(count - part - 1); };
  if (const auto parts = parts_of(index, ExprKind::Max); !parts.empty())
    return std::any_of(parts.begin(), parts.end(), is_low) &&
           std::all_of(parts.begin(), parts.end(), is_high);
  if (const auto parts = parts_of(index, ExprKind::Min); !parts.empty())
    return std::all_of(parts.begin(), parts.end(), is_low) &&
           std::any_of(parts.begin(), parts.end(), is_high);
  const Expr value = in_threads(index);
  if (are_at_least_zero({value, count - value - 1})) return true;
  if (index.kind() != ExprKind::FloorDiv) return false;
  const Expr &a = index.operands()[0], &d = index.operands()[1];  // a/d < n where a < n*d
  return d.bounds().low > 0 && d.is_constant() && is_within(a, count * d);
}

bool Known::are_at_least_zero(const std::vector<Expr>& values) const {
  const auto imply = [&](const std::vector<Expr>& facts) {
    const Facts known(facts);
    return std::all_of(values.begin(), values.end(),
                       [&](const Expr& value) { return known.imply_at_least_zero(value); });
  };
  std::vector<Expr> all;
  for (const Condition& condition : conditions_) all.push_back(condition.fact);
  if (!alone_) return imply(all);
  std::vector<Expr> names;
  for (const Expr& value : values) collect_symbols(value, names);
  const auto imply_near = [&](const std::vector<Expr>& some, int steps, bool divided) {
    std::vector<Expr> near = facts_near(some, all, steps);
    if (!divided) std::erase_if(near, divides);
    return imply(near);
  };
  if (imply_near(names, 1, false) || imply_near(names, 2, false) || imply_near(names, 2, true))
    return true;
  if (names.empty()) return false;
  const std::vector<Expr> last = {latest(names)};
  if (imply_near(last, 1, true) || imply_near(last, 2, false)) return true;
  for (const Expr& fact : facts_near(last, all, 1)) collect_symbols(fact, names);
  std::vector<Expr> among = facts_among(names, all);
  std::erase_if(among, divides);
  return imply(among);
}

// Of these names.
Expr Known::latest(const std::vector<Expr>& names) const {
  for (auto known = names_.rbegin(); known != names_.rend(); ++known) {
    for (const Expr& name : names)
      if (name.name() == known->name) return name;
  }
  return names[0];
}

bool Known::is_at_least_zero(const Expr& value) const {
  const std::vector<Range> ranges = ranges_of(value);
  const bool shown = std::any_of(ranges.begin(), ranges.end(),
                                 [](const Range& range) { return range.low >= 0; }) ||
                     are_at_least_zero({in_threads(value)});
  if (shown || !alone_) return shown;
  const std::vector<Expr> parts = parts_of(with_minima_given(value), ExprKind::Min);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const Expr& part) {
    return are_at_least_zero({part});
  });
}

// Of a name what it is given as.
Expr Known::as_given(const Expr& value) const {
  const bool is_name = !value.is_constant() && value.kind() == ExprKind::Symbol;
  const Name* known = is_name ? find(value.name()) : nullptr;
  return known && !known->given.is_constant() ? known->given : value;
}

// count - k*64, count = min(a, b)  =>  min(a - k*64, b - k*64)
Expr Known::with_minima_given(const Expr& value) const {
  const Expr named = in_threads(value);
  Substitution given;
  for (const Symbol& symbol : symbols(named)) {
    const Name* known = find(symbol.name);
    if (known && !parts_of(known->given, ExprKind::Min).empty())
      given.push_back({symbol, known->given});
  }
  return with_min_outside(substitute(named, given));
}

std::vector<Expr> Known::facts_of_names() const {
  std::vector<Expr> facts;
  for (const Condition& condition : conditions_) {
    if (alone_ && symbols(condition.fact).size() == 1) facts.push_back(condition.fact);
  }
  return facts;
}

std::vector<Expr> Known::conditions() const {
  std::vector<Expr> facts;
  for (const Condition& condition : conditions_) facts.push_back(condition.named);
  return facts;
}

bool Known::has_only_multiples_of(const Expr& index, int64_t width) const {
  const std::vector<Range> ranges = ranges_of(index);
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& range) { return range.has_only_multiples_of(width); });
}

bool Known::is_unrolled(const Expr& index) const {
  const std::vector<Symbol> parts = symbols(in_threads(index));
  return std::all_of(parts.begin(), parts.end(), [&](const Symbol& symbol) {
    const Name* known = find(symbol.name);
    return known && known->unrolled;
  });
}

bool Known::all_lanes_come() const {
  return std::none_of(conditions_.begin(), conditions_.end(),
                      [](const Condition& condition) { return condition.by_lane; });
}

bool Known::all_threads_come() const {
  return all_lanes_come() &&
         std::none_of(conditions_.begin(), conditions_.end(),
                      [](const Condition& condition) { return condition.by_warp; });
}

bool Known::all_blocks_come() const {
  return all_threads_come() &&
         std::none_of(conditions_.begin(), conditions_.end(),
                      [](const Condition& condition) { return condition.by_rank; });
}

}  // namespace tiny_compile
