// What is known of a tile's integers where a statement stands: their names, the values that they
// can have there, and which threads have come.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/tile/range.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

class Known {
 public:
  explicit Known(const Tile& tile);

  // What was known when the statements of a body began; back_to() forgets what they add.
  struct Mark {
    size_t names, conditions;
  };
  Mark mark() const { return {names_.size(), conditions_.size()}; }
  void back_to(const Mark& mark);

  bool has(const std::string& name) const;
  void add_let(const std::string& name, const Expr& extent, const Expr& value);
  void add_chosen(const std::string& name, const Expr& extent);  // by data, for each thread
  void add_loop(const Statement& loop);
  void add_condition(const Expr& lesser, const Expr& greater);
  void add_choice();  // a condition of data, of which nothing is known

  // "" where all that the index names is known and as small as it says; at0, at1, ... are, below
  // `places`. Else why not: "k may be 100 here, and is below 100".
  std::string why_unreadable(const Expr& index, size_t places = 0);
  // Whether it is never less than 0, so much is known.
  bool is_at_least_zero(const Expr& value) const;
  // What is known of single integers: i1 - 3, where a loop begins with 3.
  std::vector<Expr> facts_of_names() const;
  // Of all conditions, as they are written.
  std::vector<Expr> conditions() const;
  // Of an index that can be read.
  bool is_within(const Expr& index, const Expr& count) const;
  bool has_only_multiples_of(const Expr& index, int64_t width) const;
  bool is_unrolled(const Expr& index) const;  // of unrolled loops' names and constants alone

  bool all_lanes_come() const;    // of a warp that one of them is in
  bool all_threads_come() const;  // of a block
  bool all_blocks_come() const;   // of a cluster, with all their threads

 private:
  void say(const Expr& at_least_zero) { conditions_.push_back({at_least_zero}); }
  bool has_said(const Expr& fact) const;
  Interval bounds_of(const Expr& value) const;
  Expr latest(const std::vector<Expr>& names) const;
  // By the conditions: by few of them if these suffice, since Facts go deeper where there are few.
  bool are_at_least_zero(const std::vector<Expr>& values) const;

  struct Name {
    std::string name;
    Expr symbol;
    // In block, warp, lane and the names of loops. Where threads go alone, facts bound it: itself, or, until it
    // is shown to be as small as its name says, what it is given as.
    Expr value;
    Expr near;  // the same in names that the conditions around them bound
    bool unrolled = false;
    bool proven = true;   // that it is below its extent
    Interval most = {};   // where threads go alone: of its value,
    Expr given = 0;       // which is this
    bool chosen = false;  // by data
  };
  struct Condition {
    Expr fact;          // at least 0
    Expr named = fact;  // the same as it is written
    bool by_lane = false, by_warp = false, by_rank = false;
  };
  const Name* find(const std::string& name) const;
  Expr in_threads(const Expr& index) const;  // with the values of the names in it
  Expr in_near(const Expr& index) const;
  Expr as_given(const Expr& value) const;
  Expr with_minima_given(const Expr& value) const;
  std::vector<Range> ranges_of(
      const Expr& index) const;  // as far as is known: each has all values

  const bool alone_;
  std::vector<Name> names_;
  std::vector<Condition> conditions_;
};

}  // namespace tiny_compile
