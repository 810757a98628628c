// From a C++ function to its first result: how long, and how much of it is the compiler's?
#pragma once

#include <string>
#include <vector>

namespace bench {

// Milliseconds, the median of the runs; each run is a process of its own.
struct StartupRow {
  std::string name;
  double cold = 0;      // trace to first result, nothing on the disk
  double compiler = 0;  // the system compiler alone, on the same source with the same flags
  double warm = 0;      // trace to first result in a second process
  double process = 0;   // that whole process, from its start to its end
  int kernels = 0;
};

// One kernel, then ten in one unit. `self` is this program's path: it is run again with
// {"--startup", name}, which has to end in startup_child.
std::vector<StartupRow> measure_startup(const std::string& self, int runs);

// Traces, compiles and runs; prints the milliseconds.
int startup_child(const std::string& name);

}  // namespace bench
