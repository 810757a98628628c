// What compiling bought, stage by stage: launches, bytes, time, and every refusal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tiny_compile/compile/build_graph.h"
#include "tiny_compile/compile/function.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// An input of a graph or a program.
struct InputSlot {
  std::string name;
  Type type;
  Shape strides;  // none: row-major
};

std::vector<InputSlot> input_slots(const Graph& graph);
std::vector<InputSlot> input_slots(const Program& program);

// A rung of the ladder: the program as it is after one stage, run.
struct Rung {
  std::string stage;  // "eager", then the stages' names
  int64_t launches = 0;
  int64_t bytes = 0;                // the least these launches can move
  double milliseconds = 0;          // of one run, the median; or by the model
  double stage_milliseconds = 0;    // spent in the stage
  double compile_milliseconds = 0;  // of the C++ compiler; 0 from the cache
  std::vector<Tensor> outputs;
  double gigabytes_per_second() const {
    return milliseconds > 0 ? static_cast<double>(bytes) / milliseconds * 1e-6 : 0;
  }
};

struct Explanation {
  std::string name;
  Graph graph;            // as traced; empty where a Program or Tiles were given
  Staged staged;          // after all stages
  bool of_tiles = false;  // Tiles were given: they are not made anew, and printed
  std::vector<Rung> rungs;
  std::string ran_on;                   // the machine that ran it; "": none did
  std::vector<std::string> exceptions;  // to the numeric contract: calls of vendors' libraries

  std::string machine() const;  // the one that the program is for, and who ran it
  std::string ladder() const;   // a table
  std::string str() const;      // ladder, refusals, programs, source
  std::string json() const;
};

// Runs the graph, or the program, after every stage of the pipeline; each rung's outputs must
// have the bits of the first's (tc::Error otherwise), or be close to them once products are left
// to a library. `seconds`: the time to spend measuring a rung.
Explanation explain(const Graph& graph, std::span<const Tensor> inputs,
                    const Pipeline& pipeline = default_pipeline(), double seconds = 0.2);
Explanation explain(Program program, std::span<const Tensor> inputs,
                    const Pipeline& pipeline = default_pipeline(), double seconds = 0.2);

// The same of Tiles, whose one stage is `emit`, on a GPU; tc::Error elsewhere. What is said of a
// kernel is its schedule's, and whether its tile is what that schedule makes.
Explanation explain(const Tiles& tiles, std::span<const Tensor> inputs,
                    const Pipeline& pipeline = default_pipeline(), double seconds = 0.2);

// The same for a machine that need not be here: nothing is built or run, and a rung's time is what
// its kernels take by the model (schedule/cost.h). Sizes must be numbers.
Explanation explain_for(const Graph& graph, const Machine& machine,
                        const Pipeline& pipeline = default_pipeline());
Explanation explain_for(const Program& program, const Machine& machine,
                        const Pipeline& pipeline = default_pipeline());
Explanation explain_for(const Tiles& tiles, const Machine& machine,
                        const Pipeline& pipeline = default_pipeline());

Device device_of(std::span<const Tensor> tensors);  // the first's that is not on the CPU

// explain(f, x, bias) of a compiled function.
template <typename Compiled, typename... Args>
requires requires(const Compiled& f, const Args&... args) { f.specialization(args...); }
std::string explain(const Compiled& function, const Args&... args) {
  const auto specialization = function.specialization(args...);
  std::vector<Tensor> inputs = specialization.inputs;
  const Graph& graph = specialization.traced.graph;
  const Pipeline pipeline = pipeline_for(function.cache().options(), device_of(inputs), graph);
  return explain(graph, inputs, pipeline).str();
}

}  // namespace tiny_compile
