// Copying scalars from one kernel into another, at other points.
#pragma once

#include <functional>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Scalars that one fusion may copy: a thousand ops in a row stay one kernel (they are moved
// one by one), while a long kernel is not copied again and again.
inline constexpr size_t kMostCopied = 1000;

struct ScalarMapping {
  Substitution axes;   // the source's axis symbols -> expressions in the target's
  int first_step = 0;  // a source register of step s becomes one of step first_step + s
  int mask = -1;       // loads happen only where this is true; elsewhere no result is asked for
  std::vector<int> indirect;  // scalars of the target that at0 stands for in `axes`, with
  std::vector<Expr> limits;   // their limits
  // Called with each load, already moved; returns a scalar of the target instead of it, or -1.
  std::function<int(const Scalar& load)> replace;
};

// Copies the scalars marked in `wanted`, who must mark what these need as well (an empty list means
// all). Returns the target's id of each source scalar, -1 where it was not copied.
std::vector<int> clone_with_mapping(const Kernel& source, const std::vector<bool>& wanted,
                                    const ScalarMapping& how, ScalarTable& target);

// The kernel without conditions that the loops decide, nor the masks and choices they make. (A GPU's
// windows keep them: so one term looks like the next, which slides on from it.)
Kernel with_settled_conditions(Kernel kernel);

// Whether one of the scalars is a step's result: known once the row has been gone over.
bool has_registers(const Kernel& kernel, const std::vector<bool>& wanted);

// Whether the scalars can be copied to a place chosen by data (at0): loads that have no at0 yet, and
// no mask, which would say of such a place what the verifier does not follow.
bool can_move_to_indirect(const Kernel& source, const std::vector<bool>& wanted);

Kernel without_steps(Kernel kernel);  // nor scalars: a new kernel over the same axes

// The kernel without the steps that `condition` picks, the others' registers numbered anew. Scalars
// that only those steps needed stay until `normalize`, and no step may be left that needs their
// results.
Kernel without_steps_where(Kernel kernel, const std::function<bool(const Step&)>& condition);

// A scalar with other numbers for its operands and its mask, and for a register's step.
template <typename ScalarOf, typename StepOf>
Scalar renumbered(Scalar scalar, const ScalarOf& scalar_of, const StepOf& step_of) {
  for (int& operand : scalar.operands) operand = scalar_of(operand);
  if (scalar.mask >= 0) scalar.mask = scalar_of(scalar.mask);
  if (scalar.kind == ScalarKind::Register) scalar.step = step_of(scalar.step);
  return scalar;
}

}  // namespace tiny_compile
