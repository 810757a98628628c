// The pipeline is a value: a list of stages, each a pure function, that can be cut, extended
// and have any stage replaced.
//
//   Pipeline mine = replace(default_pipeline(), "fuse", [](const Program& p) { return p; });
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/graph/graph.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/tile/tiles.h"

namespace tiny_compile {

using GraphPass = std::function<Graph(const Graph&)>;
using Lower = std::function<Program(const Graph&)>;
using ProgramPass = std::function<Program(const Program&)>;
using Tiling = std::function<Tiles(const Program&)>;
using Emit = std::function<Source(const Tiles&)>;

struct Stage {
  std::string name;
  std::variant<GraphPass, Lower, ProgramPass, Tiling, Emit> run;  // a lambda picks its own
  // One that leaves products to the vendor's library, whose bits are its own and whose calls are of numbers: passed
  // over where a size is a symbol.
  bool is_library = false;
};
using Pipeline = std::vector<Stage>;

// simplify fold cse dce | lower | fuse fold_columns schedule plan_memory | tile | emit
Pipeline default_pipeline();

bool takes_graph(const Stage& stage);  // a Graph pass or `lower`

// The same with a stage "library" before the first that works on a Program: matmuls are left to
// the vendor's library, where all sizes are numbers. Before lower stand thin_products and
// pad_products; behind fuse stand epilogues and pad_rows. For Matmul::Generated, as it was. A
// stage that is not there: {"library_sums", library_sums} behind fold_columns leaves sums beside
// products to the library too, one launch less each, and slower wherever it was measured
// (tests/bench/NOTES.md).
Pipeline with_library(Pipeline pipeline, Matmul matmul);

Source emit(const Tiles& tiles);  // for the program's target

// Each throws tc::Error where no stage has that name; replace also where the kinds differ.
Pipeline replace(Pipeline pipeline, const std::string& name, decltype(Stage::run) run);
Pipeline insert_after(Pipeline pipeline, const std::string& name, Stage stage);
Pipeline until(Pipeline pipeline, const std::string& name);  // that stage is the last

// What a pipeline made of a graph. A prefix gives a whole result too: `lower`, `tile` and `emit`
// are implied where it stops before them.
struct Staged {
  Graph graph;
  Program program;
  Tiles tiles;
  Source source;
  std::vector<std::pair<std::string, double>> seconds;  // of each stage
};

// Verifies after every stage (`checked`); logs to TC_LOGS channels graph, passes, loops,
// fusion, schedule, memory, tile, code and keeps texts in TC_DEBUG_DIR. The machine, or the target's
// default one, becomes the Program's once it is lowered.
Staged run_pipeline(const Pipeline& pipeline, const Graph& graph, bool checked,
                    const Machine& machine);
Staged run_pipeline(const Pipeline& pipeline, const Graph& graph, bool checked,
                    Target target = Target::Cpp);

// The same from a Program on: graph stages and `lower` are left out; and from Tiles on: all but
// what makes text of them.
Staged run_pipeline(const Pipeline& pipeline, const Program& program, bool checked);
Staged run_pipeline(const Pipeline& pipeline, const Tiles& tiles, bool checked);

}  // namespace tiny_compile
