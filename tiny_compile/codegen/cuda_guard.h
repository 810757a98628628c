// Loads that happen only where a guard allows it, a pack at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// When the elements of a load are read, where its pack of `vector` along `axis` starts: at e, so
// "e < 64". None where that may differ between the elements, or needs what is not `defined` yet.
std::optional<std::string> guard_of_pack(KernelText& text, int load, int axis, int vector,
                                         const std::vector<bool>& defined);

// Whether a place that data chose is one that there is, for all elements that have it: asked where it
// is defined, once a row. A branch that may raise an error would keep elements' loads in its order.
//
//   const long long load_0 = in_index[i0];
//   const bool fits_0_50257 = tc_in_range(load_0, 50257);
void check_places_once(CudaText& text);

}  // namespace tiny_compile
