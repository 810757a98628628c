// Which accesses can go by way of shared memory?
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a load: no data says what is read, or whether.
bool chosen_by_indices(const Kernel& kernel, const Scalar& load);

int loaded_by(const Kernel& kernel,
              const Via& via);  // the scalar; -1 where there is no such load
int stored_by(const Kernel& kernel, const Via& via);   // the step; -1 likewise
DType dtype_of(const Kernel& kernel, const Via& via);  // of what is loaded or stored

// The list of loops that the access goes over; empty where it goes over none.
std::vector<int> loops_of(const Kernel& kernel, const Via& via);

// What a block covers at a time: the layout without its grid and turns.
Layout of_block(const Layout& layout);

// The same of one of so many pieces, into which its first registers are cut.
Layout of_piece(const Layout& layout, int pieces);

// Whether the block reads or stores along the rows, and threads take or give along the loop.
bool goes_along_rows(const Via& via);

// Elements in shared memory: of all pieces that are there at a time.
int64_t elements_of_stage(const Via& via);

int64_t staged_bytes(const Kernel& kernel);  // of all; the schedule's via are legal

// "" where they are legal with the schedule's layouts, else the reason.
std::string why_wrong_via(const Kernel& kernel);

}  // namespace tiny_compile
