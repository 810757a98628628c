// Small models as users write them, with `nn` and the traced functions: rows of a benchmark
// beside the same models in PyTorch (models_torch.py has a class for each).
//
// A row is a model and what is asked of it: "resnet/forward" gives the scores,
// "resnet/gradients" the loss and the gradients of all weights. Weights and data are made from
// a counter on both sides (gpu_inputs.h), in the order of the model's tensors, the data last.
#pragma once

#include "tests/bench/gpu_rows.h"

namespace bench {

struct Network {
  std::string what;
  std::vector<std::pair<std::string, tiny_compile::Sizes>> weights;  // names and shapes
  Input x, target;  // classes of an axis, or what the scores should be
  std::function<tiny_compile::Tensor(const std::vector<tiny_compile::Tensor>& weights,
                                     const tiny_compile::Tensor& x)>
      scores;
};

// A model of nn's kind whose call gives the scores.
template <typename Model>
Network network_of(const std::string& what, const Model& model, Input x, Input target) {
  Network network{what, {}, std::move(x), std::move(target), {}};
  for (const auto& [name, tensor] : tiny_compile::nn::named_tensors(model))
    network.weights.emplace_back(name, tensor.shape());
  network.scores = [model](const std::vector<tiny_compile::Tensor>& weights,
                           const tiny_compile::Tensor& x) {
    Model own = model;
    size_t next = 0;
    tiny_compile::tree::for_each_tensor(
        own, [&](tiny_compile::Tensor& tensor) { tensor = weights[next++]; });
    return own(x);
  };
  return network;
}

Input floats(tiny_compile::Sizes shape);
Input classes(tiny_compile::Sizes shape, int64_t count);

// `small`: a few thousand operations, for the interpreter.
using NetworkMaker = Network (*)(bool small);
std::vector<std::pair<std::string, NetworkMaker>> image_networks();     // models_images.cpp
std::vector<std::pair<std::string, NetworkMaker>> sequence_networks();  // models_sequences.cpp

std::vector<std::string> model_row_names();
// Throws tc::Error for another name.
GpuRow make_model_row(const std::string& name, bool small);

}  // namespace bench
