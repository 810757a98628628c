// Which sorts mean something?
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// What is sorted, and whereto, but for the length of the runs and the buffer.
Kernel essence_of_sort(Kernel kernel);

// The kernel that sorts into this buffer and does nothing else, or none.
const Kernel* sorter_of(const Program& program, int buffer);

// "" where the Sort step is alone in its kernel, over one loop, and merges, if it merges, what an
// earlier kernel has sorted of the very same values, or keeps, under a mask lt(j0, k), the first k
// places of a row that a block of a GPU sorts; else the reason.
std::string why_wrong_sort(const Program& program, const Kernel& kernel, int number);

// How many of each row's places such a step stores, at most: k, or all.
int64_t first_places(const Kernel& kernel, const Step& step);

// How many elements of a row are sorted apart: `limit`, or all.
Expr sorted_run(const Kernel& kernel, const Step& step);

// The most elements that a thread of a GPU sorts, or merges (Schedule::each): its registers and a block's shared
// memory hold their words.
int most_sorted(const Kernel& kernel, const Step& step);

}  // namespace tiny_compile
