// Which rows does a block of a GPU scan side by side, and how much of a row at a time?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that scans in groups (loops/scan_shape.h).
Schedule scanned_rows(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
