// Is this file this model's?
//
//   {"weight": f32[10,784]} for Linear{weight f32[10,784], bias f32[10]}
//     =>   error: mlp.npz lacks 'bias', f32[10]; it holds weight
#include "tiny_compile/nn/files.h"

#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile::nn::detail {
namespace {

std::string type_of(const Tensor& tensor) {
  return str(tensor.dtype(), "[", join(tensor.shape(), ","), "]");
}

std::string some_names(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  const size_t more = names.size() - std::min<size_t>(names.size(), 8);
  names.resize(names.size() - more);
  return join(names, ", ") + (more ? str(" and ", more, " more") : "");
}

}  // namespace

NamedTensors unique_names(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    if (!result.emplace(name, tensor).second)
      fail("two tensors of the model are called '", name,
           "'; give the members of their struct other `names`");
  }
  return result;
}

std::vector<Tensor> pick_tensors(const std::vector<std::pair<std::string, Tensor>>& wanted,
                                 const NamedTensors& found, const std::string& path) {
  std::vector<Tensor> result;
  const NamedTensors names = unique_names(wanted);
  for (const auto& [name, tensor] : wanted) {
    const auto place = found.find(name);
    if (place == found.end())
      fail(path, " lacks '", name, "', ", type_of(tensor), "; it holds ", some_names(found));
    const Tensor& stored = place->second;
    if (stored.dtype() != tensor.dtype() || stored.shape() != tensor.shape())
      fail(path, ": '", name, "' is ", type_of(stored), ", the model's ", type_of(tensor),
           "; load it into a model of its sizes and dtype, and convert that by nn::to");
    result.push_back(copy_to(stored, tensor.device()));
  }
  for (const auto& [name, tensor] : found) {
    if (!names.contains(name))
      fail(path, " also holds '", name, "', ", type_of(tensor),
           ", which the model lacks: it is another model's, or pick from tc::load_tensors");
  }
  return result;
}

}  // namespace tiny_compile::nn::detail
