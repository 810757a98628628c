// Kernels that could be one, and go better side by side.
#pragma once

#include <string>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// Why a producer's kernel does not take in a consumer that reads single numbers of it; "" if it may.
// On a GPU alone, where kernels that need not wait for each other run at a time.
std::string why_apart(const Program& program, const Group& producer, const Group& consumer);

}  // namespace tiny_compile
