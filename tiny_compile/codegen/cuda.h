// Program -> CUDA C: one source for NVRTC, without headers.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

Source emit_cuda(const Program& program);

// What some GPUs from sm_80 on have and others have not: clusters from sm_90 on; memory that a
// block may share: 99 kB (sm_86, sm_89, sm_120), 163 (sm_80), 227 (sm_90, sm_100).
struct GpuLimits {
  bool clusters = true;
  int64_t shared_bytes = 227 << 10;
};

// Schedules that such a GPU can run; whether one had to be changed.
bool fit_to(Program& program, const GpuLimits& limits);

// The program for such a GPU and its source; nothing where they may stay as they are: they fit, or
// the text is not the emitter's but that of a stage of the user's own.
std::optional<std::pair<Program, Source>> fitted_to(const Program& program,
                                                    const Source& source,
                                                    const GpuLimits& limits);

// Several programs in one source, so that the compiler starts once: all have the same text.
std::vector<Source> emit_cuda_together(const std::vector<Program>& programs);

}  // namespace tiny_compile
