// Program -> CUDA C: one source for NVRTC, without headers.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// One kernel's launch: grid x block threads, whose arguments are the addresses of `buffers` (of
// their lowest elements), in this order.
struct CudaKernel {
  std::string function;
  std::vector<int> buffers;
  int64_t grid = 1;
  int block = 1;
};

// The text also defines __device__ unsigned tc_error_word: bits as in graph/lanes.h, never
// cleared by kernels.
struct CudaSource {
  std::string text;
  std::vector<CudaKernel>
      kernels;  // of each Program kernel, in order; none where it has no rows
};

CudaSource emit_cuda(const Program& program);

// Several programs in one source, so that the compiler starts once: all have the same text.
std::vector<CudaSource> emit_cuda_together(const std::vector<Program>& programs);

}  // namespace tiny_compile
