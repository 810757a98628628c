// A text in several units, each compiled by a process of its own, side by side.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/runtime/process.h"

namespace tiny_compile {

// How a compiler is started: its command with flags and "-x c++", what is put into its environment,
// and how long it may take.
struct CompilerCall {
  std::vector<std::string> argv;
  std::vector<std::string> settings;
  double timeout_seconds = 600;
};

// Makes the library `target` of `source` (see Source::units): one process a unit, as many at a time
// as there are cores, then one that links. Objects lie beside `target`. The result is that of the
// first unit that failed, else the linker's; throws what run_process throws.
ProcessResult compile_units(const CompilerCall& call, const std::string& source, int units,
                            const std::string& target);

}  // namespace tiny_compile
