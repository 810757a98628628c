// What does a mask say of an index?
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {

// What follows in a kernel from a mask: a DAG of lt, le, gt, ge, eq and ne of indices, joined by
// and, or and not. Of another scalar nothing is known.
class MaskFacts {
 public:
  explicit MaskFacts(const Kernel& kernel) : kernel_(kernel) {}

  // Whether 0 <= index < size wherever the mask (-1: always) is true.
  bool within(const Expr& index, const Expr& size, int mask);
  // The same where all of `known` are 0 or more as well.
  bool within(const Expr& index, const Expr& size, int mask, const std::vector<Expr>& known);

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
