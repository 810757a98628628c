// What lies in a block's shared memory, and for what.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

struct SharedUse {
  std::string array;  // of the tile program
  int64_t bytes = 0;  // of a block
  std::string
      what;  // "32 rows x 64 elements of x (load 1, f32, padding 1), read along memory, ..."
};

// Of a kernel's tile, one for each such array, in their order; none on a CPU.
std::vector<SharedUse> shared_uses(const Program& program, const Kernel& kernel,
                                   const Tile& tile);

// "shared memory: staged0, 8448 bytes: 32 rows x 64 elements of x (load 1, ...".
std::string str(const SharedUse& use);

}  // namespace tiny_compile
