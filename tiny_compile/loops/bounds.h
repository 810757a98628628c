// Which values can an index take, and what does a mask say of it?
#pragma once

#include <map>
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

// The index names `symbol`, but is the same for `vector` neighbours that begin at a multiple of
// it: i/64 of 8.
bool is_one_place(const Expr& index, const Expr& symbol, int64_t vector);

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

// What follows in a kernel from a mask: a DAG of lt, le, gt, ge, eq and ne of indices, joined by
// and, or and not. Of another scalar nothing is known.
class MaskFacts {
 public:
  explicit MaskFacts(const Kernel& kernel) : kernel_(kernel) {}

  // Whether 0 <= index < size wherever the mask (-1: always) is true.
  bool within(const Expr& index, const Expr& size, int mask);

 private:
  using Ways = std::vector<std::vector<Expr>>;  // one of them holds, each of its Exprs >= 0
  const Ways& ways(int scalar, bool wanted, int depth);
  Ways ways_of(int scalar, bool wanted, int depth);
  Ways comparison(const Scalar& scalar, bool wanted) const;

  const Kernel& kernel_;
  std::map<std::pair<int, bool>, Ways> ways_;
  std::map<int, std::vector<Facts>> facts_;  // of a mask
};

}  // namespace tiny_compile
