// Which buffers does a kernel use, and from which launch to which is a buffer alive?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Each once, ascending.
std::vector<int> loaded_buffers(const Kernel& kernel);
std::vector<int> stored_buffers(const Kernel& kernel);

bool reads(const Kernel& kernel, const Step& step, int buffer);

struct Life {
  int buffer = -1;
  int first = -1, last = -1;  // launches that use it
};

// Of the buffers that some launch uses, by their first launches, then by number.
std::vector<Life> lives(const Program& program);

// Two buffers with places in the arena that share bytes while both live; {-1, -1}: none do. What is
// written over another (in_place.h) may share that one's.
std::pair<int, int> find_overlap(const Program& program);

}  // namespace tiny_compile
