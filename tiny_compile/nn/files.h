// A model in a file, each tensor by its name.
//
//   nn::save("mlp.safetensors", model);              // hidden.weight, hidden.bias, ..
//   model = nn::load("mlp.safetensors", model);      // of the same structure, dtypes and shapes
//
// A member's name is what its struct says in `names`, one for each member in their order, and else
// its number; "" leaves it out. An element's of a vector, array or tuple is its number.
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include "tiny_compile/compile/tree.h"
#include "tiny_compile/tensor/named_tensors.h"

namespace tiny_compile::nn {

namespace detail {

inline std::string name_in(const std::string& path, const std::string& name) {
  return path.empty() || name.empty() ? path + name : path + "." + name;
}

template <typename T>
std::string member_name(size_t number) {
  if constexpr (requires { T::names; }) {
    static_assert(std::size(T::names) == tree::member_count<T>(),
                  "nn: `names` of a struct has one name for each of its members");
    return T::names[number];
  } else {
    return std::to_string(number);
  }
}

// Calls leaf(name, tensor) for each tensor, in tree::walk's order.
template <typename T, typename Leaf>
void walk_names(T& value, const std::string& path, Leaf& leaf) {
  using Plain = std::remove_const_t<T>;
  size_t number = 0;
  auto all = [&](auto&... members) {
    const auto name = [&](size_t k) {
      if constexpr (tree::IsTuple<Plain>::value)
        return std::to_string(k);
      else
        return member_name<Plain>(k);
    };
    (walk_names(members, name_in(path, name(number++)), leaf), ...);
  };
  if constexpr (std::is_same_v<Plain, Tensor>) {
    leaf(path, value);
  } else if constexpr (tree::IsVector<Plain>::value) {
    if constexpr (!std::is_same_v<Plain, std::vector<bool>>) {
      for (auto& item : value) walk_names(item, name_in(path, std::to_string(number++)), leaf);
    }
  } else if constexpr (tree::IsOptional<Plain>::value) {
    if (value) walk_names(*value, path, leaf);
  } else if constexpr (tree::IsTuple<Plain>::value) {
    std::apply(all, value);
  } else if constexpr (std::is_aggregate_v<Plain> && !std::is_empty_v<Plain>) {
    std::apply(all, tree::members(value));
  }
}

// The file's tensors in the order of `wanted`; throws tc::Error, at the first name that is missing,
// of another dtype or shape, or left over.
std::vector<Tensor> pick_tensors(const std::vector<std::pair<std::string, Tensor>>& wanted,
                                 const NamedTensors& found, const std::string& path);
NamedTensors unique_names(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace detail

template <typename Model>
std::vector<std::pair<std::string, Tensor>> named_tensors(const Model& model) {
  std::vector<std::pair<std::string, Tensor>> result;
  auto leaf = [&](const std::string& name, const Tensor& tensor) {
    result.emplace_back(name, tensor);
  };
  detail::walk_names(model, "", leaf);
  return result;
}

// .safetensors or .npz, by the path's end (tensor/named_tensors.h). Throws tc::Error where that
// cannot be written, and for two tensors of one name.
template <typename Model>
void save(const std::string& path, const Model& model) {
  save_tensors(path, detail::unique_names(named_tensors(model)));
}

// The model with the file's tensors, each on the device of the one that it replaces.
template <typename Model>
Model load(const std::string& path, Model model, LoadOptions options = {}) {
  const std::vector<Tensor> found =
      detail::pick_tensors(named_tensors(model), load_tensors(path, options), path);
  size_t next = 0;
  tree::for_each_tensor(model, [&](Tensor& tensor) { tensor = found[next++]; });
  return model;
}

}  // namespace tiny_compile::nn
