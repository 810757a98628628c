// Two runs of one graph that do not agree: which stage, which node, which element?
//
//   bisect({"A", stages_of(default_pipeline(), graph)}, {"B", stages_of(mine, graph)}, inputs)
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// What one stage made: a graph, a program, its tiles or the emitted text.
struct Made {
  std::string stage;
  std::variant<Graph, Program, Tiles, std::string> value;
};

// A run: the traced graph ("trace"), then what each stage made of it, in order; and, where they
// were recorded, on the inputs that bisect() is given, the outputs and what the last program's
// temporaries held, in their order.
struct RecordedRun {
  std::string name;
  std::vector<Made> stages;
  std::vector<Tensor> outputs = {}, temporaries = {};
};

// The traced graph and what each stage of the pipeline makes of it.
std::vector<Made> stages_of(const Pipeline& pipeline, const Graph& graph);

struct Verdict {
  std::string run;     // whose
  std::string stage;   // that made the difference; "run" where only recorded values differ
  std::string place;   // "%5 = exp", "buffer exp_5", "output 0", "line 12" of the emitted text
  Tensor wanted, got;  // the value there; undefined for a line, or where no other stands for it
  int64_t at = 0;      // the first element that differs, in row-major order
  std::string text;    // of a line: how it reads in both
};

class OutOfTime : public Error {
  using Error::Error;
};

// The first stage after which outputs are not those of A's traced graph, and in it the first
// value that the stage before did not have; where no stage differs, the first recorded value,
// in the order of kernels where temporaries were recorded, then the first line of emitted text
// that is not what this compiler emits for the same program. Stages are interpreted, nothing is
// compiled; what is equal to what was right is not interpreted again. None: the runs agree.
// Throws tc::Error where the runs are of graphs with other inputs or outputs, or a run has no
// traced graph; OutOfTime, which says what was compared until then and what was not, after so
// many seconds.
std::optional<Verdict> bisect(const RecordedRun& a, const RecordedRun& b,
                              std::span<const Tensor> inputs,
                              double seconds = std::numeric_limits<double>::infinity());

}  // namespace tiny_compile
