// Which scans mean something?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// "" where the step (a Scan, or a Reduce that gives a scan's total) is well typed, starts from
// what is the same all along its row and, under a mask, stores each element of the row once and
// nothing else; else the reason.
std::string why_wrong_scan(const Program& program, const Kernel& kernel, int number);

}  // namespace tiny_compile
