// Places that data chooses, asked about once a row.
#pragma once

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Whether a place that data chose is one that there is, for all elements that have it: asked where it
// is defined, once a row. A branch that may raise an error would keep elements' loads in its order.
//
//   const long long load_0 = in_index[i0];
//   const bool fits_0_50257 = tc_in_range(load_0, 50257);
void check_places_once(CudaText& text);

}  // namespace tiny_compile
