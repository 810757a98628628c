// Which bytes will a later block want?
#pragma once

#include <vector>

#include "tiny_compile/tile/elements.h"

namespace tiny_compile {

// Behind the loads of a pass over `k`, of which it needs these scalars: a lane asks for what the block
// that comes schedule.prefetch later has there, where a warp's elements lie side by side. Empty where
// nothing does.
Body ask_prefetch(const Lowering& l, const std::vector<int>& ids, const Share& k);

}  // namespace tiny_compile
