// How is a CPU's product cut into panels and blocks?
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Of a kernel that can be tiled (loops/legal_schedule.h).
Schedule panel_tiles(const Program& program, const Kernel& kernel);

// Seconds that a CPU's cores take for such a kernel under its schedule of tiles, about; its sizes are numbers.
double time_of_panels(const Program& program, const Kernel& kernel);

}  // namespace tiny_compile
