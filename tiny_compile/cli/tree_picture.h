// The tree in which a reduction combines its elements: the numeric contract, drawn.
#pragma once

#include <cstdint>
#include <string>

namespace tiny_compile {

// "(x0 + x2) + x1" for 3: what a sum of that many elements is. 1 <= length <= 64.
std::string sum_expression(int64_t length);

// SVG: every addition for up to 32 elements, the chunks and their halvings for more. Throws
// tc::Error where length < 1.
std::string tree_picture(int64_t length);

}  // namespace tiny_compile
