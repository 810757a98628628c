// Values that neighbouring points share, to be computed once a pack.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A scalar, and others that have its value some points further on along an axis.
struct Slide {
  int first = -1;
  std::map<int, int64_t> members;  // scalar -> how far on; `first` itself: 0
  int64_t longest = 0;             // of those
};

// Of these scalars of a kernel of points, those of packs of `vector` points along `axis` that are made
// of loads and slide; none of them is part of another.
std::vector<Slide> slides_of(const Kernel& kernel, const std::vector<int>& ids, int axis,
                             int64_t vector);

}  // namespace tiny_compile
