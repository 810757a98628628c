// How many places of a sorted row does anybody read?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Sorts of rows of at most kSortedRun (split_sort.h) into temporaries of which all readers are seen
// to read the first few places alone store only those; what has a schedule already stays as it is.
Program shorten_sorts(Program program);

}  // namespace tiny_compile
