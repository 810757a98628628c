// Do turns of a loop that are done side by side change the same place?
#pragma once

#include <string>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// "" where none is seen to; `known`: of each scalar, whether it is computed before the loop, and so the same in all
// turns. Places that data chooses in a turn are any; what is read is not looked at.
std::string why_turns_meet(const Statement& loop, const std::vector<bool>& known);

}  // namespace tiny_compile
