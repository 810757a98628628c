// A draw as a row of the benchmark: compiled, bound to inputs, with its floor.
#pragma once

#include "tests/bench/gpu_rows.h"
#include "tests/bench/speed_grammar.h"

namespace bench {

GpuRow row_of(const Draw& draw, bool on_gpu);

// "17" => the draw of seed 17; `small`: at Scale::Small. "norm:17": of this class alone. Or a
// pattern's name (speed_patterns.h).
RowMaker draws_at(Scale scale, bool on_gpu);

// Distinct bytes that a call reads and writes; outputs are row-major.
double floor_bytes(const Draw& draw, const tiny_compile::Graph& graph);

}  // namespace bench
