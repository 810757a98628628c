// Which rows does a block of a GPU scan side by side, and how much of a row at a time?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that scans in groups (loops/scan_shape.h).
Schedule scanned_rows(const Program& program, const Kernel& kernel);

// Seconds that such a kernel's memory takes under its schedule, and that its blocks wait for each other's tiles;
// they overlap.
struct ScanTimes {
  double bytes = 0, waits = 0;
};
ScanTimes scan_times(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
