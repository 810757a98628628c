// How is a CPU's product cut into panels and blocks?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that can be tiled (loops/legal_schedule.h).
Schedule panel_tiles(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
