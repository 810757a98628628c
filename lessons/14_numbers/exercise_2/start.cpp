#include "exercise.h"

namespace exercise {
namespace {

// What the first `count` stages make of the graph, run.
std::vector<Tensor> outputs_after(const Pipeline& pipeline, size_t count, const Graph& graph,
                                  const std::vector<Tensor>& inputs) {
  const Pipeline prefix(pipeline.begin(), pipeline.begin() + long(count));
  const Staged staged = run_pipeline(prefix, graph, true);
  // TODO: this is right while the last of them is a GraphPass. And who compares the outputs?
  return interpret(staged.graph, inputs);
}

}  // namespace

Blame blame(const Pipeline& pipeline, const Graph& graph, const std::vector<Tensor>& inputs) {
  for (size_t k = 0; k < pipeline.size(); k++) {
    if (std::holds_alternative<Emit>(pipeline[k].run)) continue;
    outputs_after(pipeline, k + 1, graph, inputs);
  }
  return {};
}

}  // namespace exercise
