// Which layouts can a kernel's rows and loops have?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether threads can share its rows as layouts say: reductions and stores, of at least one
// element each, of sizes that are numbers.
bool can_be_laid_out(const Program& program, const Kernel& kernel);

// "" where the layouts are legal, else the reason: "loop 1 covers 512 of 1000".
std::string why_illegal_layouts(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
