// Loads that happen only where a guard allows it, a pack at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// When the elements of a load are read, where its pack of `vector` along `axis` starts: at e, so
// "e < 64". None where that may differ between the elements, or needs what is not `defined` yet.
std::optional<std::string> guard_of_pack(KernelText& text, int load, int axis, int vector,
                                         const std::vector<bool>& defined);

}  // namespace tiny_compile
