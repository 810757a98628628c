// Pieces of work on all cores.
#pragma once

#include <functional>

namespace tiny_compile {

// Calls work(0), work(1), .. of `count`, in any order, on as many threads as there are cores, until
// one returns false; what one throws is thrown here.
void side_by_side(int count, const std::function<bool(int)>& work);

}  // namespace tiny_compile
