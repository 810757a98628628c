// Arrays that are not worth writing: what they are made from is read again instead.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A temporary goes where its readers can compute their elements of it from what its kernel has
// read and from one value a row of what it has reduced, and where that moves fewer bytes.
Program read_again(Program program);

}  // namespace tiny_compile
