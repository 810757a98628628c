// The small compiler's graphs and numbers as the real one takes them.
#pragma once

#include <string>
#include <vector>

#include "lessons/small/02_graph.h"
#include "tiny_compile/trace/creation.h"

namespace small {

// It has no detach: a reshape to the same shape is as much.
inline std::string real_text(Graph graph) {
  for (Node& node : graph.nodes)
    if (node.op == Op::Detach) node.op = Op::Reshape;
  return print(graph);
}

inline std::vector<tiny_compile::Tensor> real_tensors(const Graph& graph,
                                                      const std::vector<Array>& inputs) {
  std::vector<tiny_compile::Tensor> tensors;
  for (size_t k = 0; k < inputs.size(); k++)
    tensors.push_back(tiny_compile::from_vector(inputs[k], graph.nodes[k].shape));
  return tensors;
}

inline std::vector<Array> numbers_of(const std::vector<tiny_compile::Tensor>& tensors) {
  std::vector<Array> numbers;
  for (const tiny_compile::Tensor& tensor : tensors)
    numbers.push_back(tensor.to_vector<float>());
  return numbers;
}

}  // namespace small
