// The shared math as text: only the definitions that a generated source uses.
#pragma once

#include <string>
#include <string_view>

namespace tiny_compile {

// The definitions of base/prelude*.h that `body` names, directly or through each other, in the
// order in which the prelude has them, as CUDA or C++. Overloads for double come only where
// doubles are used.
std::string prelude_for(std::string_view body, bool cuda);

}  // namespace tiny_compile
