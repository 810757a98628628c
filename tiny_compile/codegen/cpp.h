// Tiles -> plain C++: one translation unit without standard headers.
#pragma once

#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

Source emit_cpp(const Tiles& tiles);

// Several programs in one unit, so that the compiler starts once: all have the same text.
std::vector<Source> emit_cpp_together(const std::vector<Tiles>& all);

}  // namespace tiny_compile
