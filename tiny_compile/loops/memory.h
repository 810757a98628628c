// Places of temporaries in one arena; plan_memory (schedule.h) does more before.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Each temporary at the lowest place that is free for its life, its launches being as they are. Of
// buffers the sizes are to be numbers.
Program place_temporaries(Program program);

}  // namespace tiny_compile
