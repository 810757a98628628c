// Sizes that may be others at each call: which are they, and when does a trace of them hold?
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tiny_compile/compile/options.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

// The inputs with symbols for the sizes that may be others at another call, and what these are here.
struct SymbolicInputs {
  std::vector<Type> types;
  SymbolValues example;
};
// Nothing where all sizes are numbers. Throws where the options name what is no axis.
std::optional<SymbolicInputs> symbolic_inputs(const CompileOptions& options,
                                              const std::vector<Tensor>& inputs);

// What a trace of symbolic sizes asks of other inputs.
struct SizedTrace {
  Traced traced;  // of which only what was given, and the guards
  std::vector<Device> devices;
  bool admits(std::span<const Tensor> inputs) const;
};
// Nothing for a trace of numbers.
std::optional<SizedTrace> sized_trace(const Traced& traced, const std::vector<Tensor>& inputs);

}  // namespace tiny_compile
