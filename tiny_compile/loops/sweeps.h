// Which steps of a kernel may go over a row together?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Numbers of steps, in order, by pass: steps over the same loops that need not wait for each
// other, so that the row is read once for them. A pass is of stores, or of reductions of which
// none uses another's result; argmax and argmin are alone.
std::vector<std::vector<int>> sweeps_of(const Kernel& kernel);

// The same where a step joins an earlier pass of reductions that it need not wait for: a reduction of whatever
// kind, or what is stored along the same loops, which then is not computed again; stores between that write
// nothing it reads come later. (But not of rows that fold: what is read earlier is held longer, and their
// threads have no registers for it.)
std::vector<std::vector<int>> gathered_sweeps_of(const Kernel& kernel);

// Those of a pass that make registers, and the others.
std::vector<int> reductions_of(const Kernel& kernel, const std::vector<int>& pass);
std::vector<int> stores_of(const Kernel& kernel, const std::vector<int>& pass);

// A reduction of a pass and what its text is numbered by.
struct Tree {
  const Step* step;
  std::string number;
  DType type;        // that it adds up in
  int maximum = -1;  // sum_exp: the step of the pass that is its value's maximum
  bool is_sum_exp() const { return step->op == Op::sum_exp; }
};

std::vector<Tree> trees_of(const Kernel& kernel, const std::vector<int>& pass);

// "float" or "long long": what a reduction of `operand` values accumulates in.
DType accumulator(Op op, DType operand);

// Whether the operation on such numbers gives the same in any order.
bool is_exact(Op op, DType accumulated);

inline bool is_arg(const Step& step) { return step.op == Op::argmax || step.op == Op::argmin; }

}  // namespace tiny_compile
