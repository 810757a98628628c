// A graph -> something that runs: the stages that the options mean, the search they may ask for.
#pragma once

#include "tiny_compile/compile/options.h"
#include "tiny_compile/runtime/build.h"

namespace tiny_compile {

// Matmuls, those of what is called too.
int64_t products_in(const Graph& graph);

// The stages that these options mean for a graph whose inputs are on that device. The vendor's
// library, which takes 40 ms to open, is opened for graphs that multiply matrices.
Pipeline pipeline_for(const CompileOptions& options, Device device, const Graph& graph);

// Mode "max-autotune": with the schedules that win; where products are left to a vendor's library, that and
// generated kernels are both built, and the faster is taken. Throws as the stages and the toolchain do.
Built build_graph(const CompileOptions& options, const Graph& graph, Device device);

}  // namespace tiny_compile
