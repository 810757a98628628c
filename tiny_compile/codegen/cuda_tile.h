// A tile program as CUDA C.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// `text` is of the tile's kernel.
KernelEntry write_cuda_tile(CudaText& text, const Tile& tile, const std::string& function);

}  // namespace tiny_compile
