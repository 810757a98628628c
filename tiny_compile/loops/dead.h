// What is left of a kernel and of a program without what is done twice or for nobody.
#pragma once

#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The kernel with each reduction and each scalar once.
Kernel without_repeats(const Kernel& kernel);

// The kernel without its stores to temporaries that no kernel loads (`loaded`, by buffer) and that it
// does not load itself, and without what these stores alone needed.
Kernel without_dead_stores(const Program& program, Kernel kernel,
                           const std::vector<bool>& loaded);

// Of temporaries in which a kernel stores the same, one is left for all who read them.
Program with_one_of_each(Program program);

// Temporaries that no kernel touches are gone; the others keep their order.
Program drop_unused_buffers(Program program);

}  // namespace tiny_compile
