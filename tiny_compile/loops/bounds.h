// Which values can an index take?
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The largest magnitude of any number met while the expression is computed, its partial sums
// included; kUnbounded where no bound is known.
int64_t largest_part(const Expr& expr);

// A divisor in it that can be 0 or less, or nothing: of i0 % j0, j0. Of i0 % n, nothing: that n is
// positive is seen when it is a number.
const Expr* doubtful_divisor(const Expr& expr);

bool has_size(const Expr& expr);  // a symbolic one

// How far neighbours along `symbol` lie apart; -1 where that is not the same everywhere.
int64_t distance(const Expr& index, const Expr& symbol);

// The index is `symbol` and multiples of `vector`.
bool is_contiguous(const Expr& index, const Expr& symbol, int vector);

// `vector` neighbours that begin at a multiple of it lie side by side, the first at a multiple of it as
// well: i, or (i/64)*4096 + i%64 of 8.
bool is_pack(const Expr& index, const Expr& symbol, int vector);

// All neighbours lie side by side, or some do in packs.
bool has_neighbours(const Expr& index, const Expr& symbol);

// The index names `symbol`, but is the same for `vector` neighbours that begin at a multiple of
// it: i/64 of 8.
bool is_one_place(const Expr& index, const Expr& symbol, int64_t vector);

inline constexpr size_t kMostFacts = 64;  // of a conjunction; what more there are is not known

// A conjunction of facts about integers: that each of some Exprs is 0 or more.
class Facts {
 public:
  explicit Facts(std::vector<Expr> at_least_zero);
  bool imply_at_least_zero(const Expr& expr) const;

 private:
  struct Bound {
    Expr factor;
    Interval interval;
  };
  Interval bounds(const Expr& expr, std::unordered_map<const ExprNode*, Interval>& known) const;
  Interval bounds(const Expr& expr) const;
  Interval as_facts_say(const Expr& sum, Interval interval) const;
  Interval plain_bounds(const Expr& expr,
                        std::unordered_map<const ExprNode*, Interval>& known) const;
  void add_quotients_of(const Expr& fact);
  void add_digits_of(const Expr& fact);
  bool learn(const Expr& fact);
  bool learn_from_remainders();
  bool narrow(const Expr& factor, const Interval& interval);
  bool implied_by_difference(const Expr& goal, int depth) const;

  std::vector<Expr> facts_;
  std::vector<Bound> bounds_;
  bool contradict_ = false;  // they never hold together
};

}  // namespace tiny_compile
