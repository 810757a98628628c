// Rows that threads of a GPU scatter together => tile programs.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Whether a kernel is scattered so: loops/scatter_rules.h names a way but a thread for each row.
bool has_scatter(const Program& program, const Kernel& kernel);
Tile lower_scatter(const Program& program, const Kernel& kernel);

Tile lower_runs(const Program& program, const Kernel& kernel);    // ScatterBy::Runs
Tile lower_tables(const Program& program, const Kernel& kernel);  // ScatterBy::Tables
Tile lower_chunks(const Program& program, const Kernel& kernel);  // ScatterBy::Chunks

}  // namespace tiny_compile
