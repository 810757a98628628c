// Sequential: one layer after the other.
//
//   const auto net = nn::make_sequential(nn::make_linear(784, 64), tc::relu, nn::Dropout{0.1},
//                                        nn::make_linear(64, 10));
//   tc::Tensor scores = net(x);
//
// A layer is whatever a model may hold (compile/tree.h) and takes one tensor: a struct with a call
// operator, a function, a lambda without captures. Their types are part of the Sequential's: for a
// number of equal blocks that is known later, write a loop over a std::vector of them.
#pragma once

#include <tuple>
#include <utility>

#include "tiny_compile/trace/operators.h"

namespace tiny_compile::nn {

template <typename... Layers>
struct Sequential {
  static constexpr const char* names[] = {""};  // "0.weight", not "layers.0.weight"
  std::tuple<Layers...> layers;

  Tensor operator()(const Operand& x) const {
    const Scope scope(x.where);
    Tensor y = x.captured();
    std::apply([&](const auto&... layer) { ((y = layer(y)), ...); }, layers);
    return y;
  }
};

template <typename... Layers>
Sequential<std::decay_t<Layers>...> make_sequential(Layers&&... layers) {
  return {{std::forward<Layers>(layers)...}};
}

}  // namespace tiny_compile::nn
