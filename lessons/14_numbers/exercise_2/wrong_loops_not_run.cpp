// fails: the lowering is looked at like any other stage
#include "exercise.h"

namespace exercise {
namespace {

// What the first `count` stages make of the graph, run.
std::vector<Tensor> outputs_after(const Pipeline& pipeline, size_t count, const Graph& graph,
                                  const std::vector<Tensor>& inputs) {
  const Pipeline prefix(pipeline.begin(), pipeline.begin() + long(count));
  const Staged staged = run_pipeline(prefix, graph, true);
  return interpret(staged.graph, inputs);
}

}  // namespace

Blame blame(const Pipeline& pipeline, const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (size_t k = 0; k < pipeline.size(); k++) {
    if (std::holds_alternative<Emit>(pipeline[k].run)) continue;
    try {
      const std::vector<Tensor> got = outputs_after(pipeline, k + 1, graph, inputs);
      for (size_t output = 0; output < wanted.size(); output++) {
        const std::optional<int64_t> at = first_difference(wanted[output], got[output]);
        if (at) return {int(k), int(output), *at};
      }
    } catch (const Error&) {
      return {int(k), -1, -1};
    }
  }
  return {};
}

}  // namespace exercise
