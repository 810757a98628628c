// Which bytes will a later block want?
#pragma once

#include "tiny_compile/tile/elements.h"

namespace tiny_compile {

// Behind the loads of the first pass, over `k`: a lane asks for what the block that comes schedule.prefetch later
// has there (loops/asked_ahead.h). Empty where nobody asks.
Body ask_prefetch(const Lowering& l, const Share& k);

}  // namespace tiny_compile
