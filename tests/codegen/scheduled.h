// Programs whose schedules a test chooses.
#pragma once

#include <functional>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/legal_schedule.h"

namespace tiny_compile {

// The usual stages, and a change to what `schedule` chose for each kernel, where the kernel can
// be run so.
inline Pipeline scheduled(std::function<void(Schedule&)> change) {
  const auto stage = [change = std::move(change)](const Program& program) {
    Program result = program;
    for (Kernel& kernel : result.kernels) {
      const std::optional<Schedule> before = kernel.schedule;
      change(*kernel.schedule);
      if (!why_illegal(result, kernel).empty()) kernel.schedule = before;
    }
    return result;
  };
  return insert_after(default_pipeline(), "schedule", {"change", ProgramPass(stage)});
}

}  // namespace tiny_compile
