// Which schedules can the code generators obey, for which kernels?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether neighbouring rows may be lanes: trees of at most two levels, on a GPU sum_exp of one.
bool can_go_in_columns(const Program& program, const Kernel& kernel);

inline constexpr int kMostAlgorithms = 16;  // of a vendor's library, that a schedule may name

// Whether the program leaves the kernel to a vendor's library, which can do it.
bool can_be_called(const Program& program, const Kernel& kernel);

// One dot of numbers and stores of points: what tiles can do. On CUDA of floats, the left operand
// free of the last row axis, the right one of the row axis before it.
bool can_be_tiled(const Program& program, const Kernel& kernel);

// "" where the kernel's schedule is legal, else the reason: "lanes=100: a power of two, 16 to 1024".
std::string why_illegal(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
