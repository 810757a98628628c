// CUDA C of Programs, for tests that are not about their tiles.
#pragma once

#include "tiny_compile/codegen/cuda.h"

namespace tiny_compile {

inline Source emit_cuda(const Program& program) { return emit_cuda(lower_to_tiles(program)); }

inline std::vector<Source> emit_cuda_together(const std::vector<Program>& programs) {
  std::vector<Tiles> tiles;
  for (const Program& program : programs) tiles.push_back(lower_to_tiles(program));
  return emit_cuda_together(tiles);
}

}  // namespace tiny_compile
