// Which threads of a GPU scatter the rows of a kernel?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

//   Thread   each has a row
//   Runs     a block owns a run of the result: one base and one scatter into several targets of it,
//            without a mask, whose index is free of the rows (an embedding's gradient):
//              rows(i0: C) { store y[j0*C + i0] for (j0: D) = base
//                            scatter y[at0*C + i0; at0 = index(j1) < D] for (j1: U) = update }
//   Tables   a block has a row and its sums in shared memory: one base and one scatter_add of integers
//            into all of it, whose index lies along memory (a histogram)
//   Warps    a warp has a row: stores and scatters alone, and either rows that are too few for a thread
//            each or updates that go in chunks
enum class ScatterBy : uint8_t { Thread, Runs, Tables, Warps };

ScatterBy scatters_by(const Program& program, const Kernel& kernel);

// Whether a step has more updates than a chunk, and their order shows.
bool goes_in_chunks(const Kernel& kernel, const Step& step);

}  // namespace tiny_compile
