// Who multiplies: the choice of a vendor's library, and what it asks of the operands.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A stage between lower and fuse. Products that library_matmul.h matches are then left to the
// library, as their schedule says: fuse leaves them alone, and epilogues gives them what the library
// can do behind one. A factor that a permutation
// keeps from matching (the heads of attention, put together again) is copied first; fuse makes
// the copy part of the kernel that writes the factor, or leaves it out.
Program use_library_matmul(const Program& program, Matmul matmul = Matmul::Library);

}  // namespace tiny_compile
