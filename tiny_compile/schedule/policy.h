// The policy: which of its legal schedules each kernel gets.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Merges axes that always step together, splits long reductions over few rows into a kernel of
// partial results and one that finishes (the same tree: the contract's chunks), orders rows so
// that the contiguous axis is last and chooses each kernel's Schedule. A kernel that has a schedule
// stays as it is.
Program schedule(const Program& program);

// The same of a GPU's kernels that have none, each as it is: one pass over them, which splits none and
// changes no axis. A CPU's run by the defaults.
Program with_schedules(Program program);

}  // namespace tiny_compile
