// C++ text for scatters of many updates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Whether the step's updates go in several chunks (graph/scan.h).
bool has_chunks(const Kernel& kernel, const Step& step);

// The kernel's scatters in chunks whose places differ between neighbouring columns: no strip of
// columns can share the list of a chunk's targets.
bool chooses_by_column(const KernelText& text);

// One row, or the columns start .. start + width - 1 where `lane` is the axis that counts them.
void write_scatter_chunks(KernelText& text, const Step& step, int lane,
                          const std::vector<bool>& defined);

std::string scatter_helpers(const std::vector<Program>& programs);

}  // namespace tiny_compile
