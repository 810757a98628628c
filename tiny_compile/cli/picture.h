// Pictures of what the compiler does with a graph or a program, from the real IR.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/cli/drawing.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/graph.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// The graph after the pipeline's graph passes. Where the pipeline fuses, nodes of one kernel have
// one group, and arrows between kernels that were refused say why.
Drawing fused_drawing(const Graph& graph, const Pipeline& pipeline);

// The same with kernels for nodes.
Drawing fused_drawing(const Program& program, const Pipeline& pipeline);

// The graph before each pass that changes it, what the pass takes out marked Gone, and what the
// pass before put in marked New; last, the graph after all passes. Nodes keep the numbers that
// they were traced with.
std::vector<Drawing> film_strip(const Graph& graph, const Pipeline& pipeline);

// Mermaid, DOT or SVG; throws tc::Error where `format` is none of them.
std::string render(const std::vector<Drawing>& frames, const std::string& format);

}  // namespace tiny_compile
