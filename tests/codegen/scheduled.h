// Programs whose schedules a test chooses.
#pragma once

#include <functional>

#include "tiny_compile/compile/pipeline.h"

namespace tiny_compile {

// The usual stages, and a change to what `schedule` chose for each kernel.
inline Pipeline scheduled(std::function<void(Schedule&)> change) {
  const auto stage = [change = std::move(change)](const Program& program) {
    Program result = program;
    for (Kernel& kernel : result.kernels) change(kernel.schedule);
    return result;
  };
  return insert_after(default_pipeline(), "schedule", {"change", ProgramPass(stage)});
}

}  // namespace tiny_compile
