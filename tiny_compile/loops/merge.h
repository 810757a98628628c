// Making one kernel of two: may they step together, and the kernel that does both.
#pragma once

#include <string>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// Both return "" and change the first group, or say why not.

// `consumer` reads what `producer` writes: producer becomes both.
std::string merge_consumer(const Program& program, Group& producer, const Group& consumer);

// The two read the same buffer and need nothing of each other: first becomes both.
std::string merge_sibling(const Program& program, Group& first, const Group& second);

}  // namespace tiny_compile
