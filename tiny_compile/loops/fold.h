// Sums of columns as part of the kernel that goes over rows.
#pragma once

#include <optional>
#include <string>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A kernel of sums over the only inner axis, one a row, as one whose rows are what was summed:
//
//   rows(i0: 1024) { r0 = sum(j0: 65536) load t[j0*1024 + i0] ; store y[i0] = r0 }
// =>
//   rows(i0: 65536) { fold y[j0] for (j0: 1024) = sum(i0) load t[i0*1024 + j0] }
//
// Nothing where it does more than that, or the sums are of more or fewer rows than cut_folds()
// takes. What it returns is no kernel that runs: it is merged with one that goes over the same
// rows, and then cut.
std::optional<Kernel> as_fold(const Program& program, const Kernel& kernel);

// Warps of a block that folds: few, so that each thread has the registers for a row and more.
inline constexpr int64_t kFoldWarps = 4;

// Columns for which a block has room in shared memory: whole vectors of them.
int64_t room_for_columns(const Kernel& kernel, const Step& fold);

// "", or why a GPU's block cannot do `fold`, from as_fold(), while it goes over the rows of another.
std::string why_no_folds(const Kernel& rows, const Kernel& fold);

// "", or why cut_folds() cannot cut what became of the two.
std::string why_not_cut(const Kernel& merged);

// Rows in groups of 32 whose sum is a subtree of the contract's; a group is a block's work:
//
//   rows(i0: 65536) { ... fold y[j0] for (j0: 1024) = sum(i0) $3 }
// =>
//   rows(i0: 64, i1: 32, i2: 32) {                        # row i0*1024 + i2*32 + i1
//     ... fold p[i0*32768 + i1*1024 + j0] for (j0: 1024) = sum(i2) $3 }
//   rows(i0: 1024) { r0 = sum(j0: 2, j1: 32, j2: 32) load p[..] ; store y[i0] = r0 }
//
// Appends the buffers of partial sums to `program`; returns both kernels.
struct CutFolds {
  Kernel rows, finish;
};
CutFolds cut_folds(Program& program, const Kernel& kernel);

}  // namespace tiny_compile
