// Which schedules can the code generators obey, for which kernels?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether neighbouring rows may be lanes: trees of at most two levels, sum_exp of one.
bool can_go_in_columns(const Kernel& kernel, Target target);

inline constexpr int kMostAlgorithms = 16;  // of a vendor's library, that a schedule may name

// Whether the program leaves the kernel to a vendor's library, which can do it.
bool can_be_called(const Program& program, const Kernel& kernel);

// One dot of numbers and stores of points: what tiles can do. On CUDA of floats, the left operand
// free of the last row axis, the right one of the row axis before it.
bool can_be_tiled(const Program& program, const Kernel& kernel);

// Kilobytes that a schedule may give a block, beside what kernels share by other names.
int most_shared(const Machine& machine);

// The program with a schedule for every kernel: the machine's default where none was chosen.
Program with_schedules(Program program);

// "" where the kernel's schedule is legal, else the reason: "warps=100: a power of two, 2 to 32".
std::string why_illegal(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
