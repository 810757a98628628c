// Values that neighbouring points share, computed once a pack.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// A scalar, and others that have its value some points further on along an axis.
struct Slide {
  int first = -1;
  std::map<int, int64_t> members;  // scalar -> how far on; `first` itself: 0
  int64_t longest = 0;             // of those
};

// Of the scalars that the steps need, those of packs of `vector` points along `axis` that are made
// of loads and slide; none of them is part of another.
std::vector<Slide> slides_of(const CudaText& text, const std::vector<int>& ids, int axis,
                             int64_t vector);

// Computes them for a pack that starts at e; from here on they are kept, read at v.
void write_slides(CudaText& text, const std::vector<Slide>& slides, int axis, int vector,
                  const std::vector<bool>& defined);

}  // namespace tiny_compile
