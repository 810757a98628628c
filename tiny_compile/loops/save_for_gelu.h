// A product whose gelu is wanted, and what the gelu is taken of as well.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Part of the stage "library". Where others read what lies between a product and its gelu (the
// way back of the same graph does), the product stores z and gelu(z), and they read z:
//
//   y = matmul(..) ; z = y + b ; s = z*z ; .. ; h = gelu's last ; d = .. s ..
// =>
//   z, h = matmul(..) ; s = z*z ; .. ; d = .. s ..
//
// fuse would compute z once more from y, and y is then no call's with a bias and gelu behind it.
Program save_for_gelu(const Program& program);

}  // namespace tiny_compile
