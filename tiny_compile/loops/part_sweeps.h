// The sweeps of a kernel over its rows as kernels of their own.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Whether part_sweeps can take the kernel apart, into more than one: a GPU's reductions and stores of known sizes,
// some of which need others' results or go over other loops.
bool can_part_sweeps(const Program& program, const Kernel& kernel);

// Of one that it can: whether it goes down long columns once, and then stores what is made of them. Reading
// them again costs less than what holds them (the blocks of a cluster).
bool is_worth_reading_twice(const Kernel& kernel);

// Of one that it can: whether it reads long rows and stores down columns what it knows of each then: points do so
// by way of tiles.
bool stores_across(const Kernel& kernel);

// Of one that it can: whether a thread a row would take long.
bool has_many_elements(const Kernel& kernel);

//   rows(i0: 4096) { r0 = max(j0: 8192) load x[j0*4096 + i0]
//                    store y[j0*4096 + i0] for (j0: 8192) = div(load x[..], r0) }
// =>
//   rows(i0: 4096)           { r0 = max(j0: 8192) load x[j0*4096 + i0] ; store r[i0] = r0 }
//   rows(i0: 4096, i1: 8192) { store y[i1*4096 + i0] = div(load x[..], load r[i0]) }
//
// In order; adds a buffer for each result that a later kernel needs. The same bits.
std::vector<Kernel> part_sweeps(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
