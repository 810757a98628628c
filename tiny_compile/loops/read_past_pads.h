// Zeros between the elements of a dot's operand: told by a mask instead of memory.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A lowered program whose dots read past the pads that draw an operand's elements apart, where they
// can then be split (split_dot.h).
Program read_past_pads(const Program& program);

}  // namespace tiny_compile
