// Tiles -> CUDA C: one source for NVRTC, without headers.
#pragma once

#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

Source emit_cuda(const Tiles& tiles);

// Several programs in one source, so that the compiler starts once: all have the same text.
std::vector<Source> emit_cuda_together(const std::vector<Tiles>& programs);

}  // namespace tiny_compile
