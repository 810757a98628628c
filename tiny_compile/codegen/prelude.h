// The shared math as text: only the definitions that a generated source uses.
#pragma once

#include <string>
#include <string_view>

namespace tiny_compile {

// The definitions of base/prelude*.h that `body` names, directly or through each other, in the
// order in which the prelude has them.
std::string prelude_for(std::string_view body);

}  // namespace tiny_compile
