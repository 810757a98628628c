// Which scans mean something?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

bool is_scan(const Step& step);  // a Scan, or a scan's total

// Of groups of 16, of 256, ... elements in a row of so many: what a running scan counts.
int scan_levels(int64_t count);

// "" where the step (a Scan, or a Reduce that gives a scan's total) is well typed, starts from
// what is the same all along its row and, under a mask, stores in its buffer alone; else the
// reason.
std::string why_wrong_scan(const Program& program, const Kernel& kernel, int number);

// The step that gives what stands at the places that this one gives, of one sweep's cummax or
// cummin: scan y .. = cummax $0 and scan z .. = cummax values $0. None: null.
const Step* values_beside(const Kernel& kernel, const Step& places);

// Whether it is such values.
bool is_beside_places(const Kernel& kernel, const Step& step);

// "" where a Scan or a Sort under a mask stores in its buffer alone, and all of its row; else the
// reason.
std::string why_wrong_mask(const Program& program, const Kernel& kernel, const Step& step);

// Where a scan or a sort under a mask stores, as loops without one that meet the same places: of
//   scan y[i0*1000 + i1*256 + j0] for (i0: 8, i1: 4, j0: 256) .. where lt(i1*256 + j0, 1000)
// y[i0*1000 + p] for (i0: 8, p: 1000). None where its loops do not go over the row, once.
struct WholeRows {
  Expr index;
  std::vector<Axis> loops;
};
std::optional<WholeRows> whole_rows(const Kernel& kernel, const Step& step,
                                    const std::vector<Axis>& loops);

}  // namespace tiny_compile
