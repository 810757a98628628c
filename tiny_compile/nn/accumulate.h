// How does a batch that does not fit into memory become one gradient? It is cut along its first
// axis into k leaves of equal size, and what the function returns for each is added up.
//
//   const auto summed = nn::accumulate(4, tc::value_and_grad(loss));
//   auto [loss_sum, gradient_sum] = summed(model, x, y);  // 4 leaves of x.size(0) / 4 rows
//
// The sum is that of `stack(leaves).sum(0)`: its order is the numeric contract's, so k calls of
// one leaf each, added so, give the same bits. Of losses that are means, divide both by k.
#pragma once

#include <utility>
#include <vector>

#include "tiny_compile/compile/grad.h"
#include "tiny_compile/compile/tree.h"

namespace tiny_compile::nn {

namespace detail {

using tiny_compile::detail::with_tensors;
using tree::tensors_of;

// The rows of one leaf; throws tc::Error where the tensors do not divide into leaves, or
// differ.
int64_t leaf_rows(int64_t leaves, const std::vector<Tensor>& batch);
Tensor leaf_of(const Tensor& tensor, int64_t leaf, int64_t rows);
// Each tensor of the first list plus those at its place in the others.
std::vector<Tensor> added(const std::vector<std::vector<Tensor>>& lists);

template <typename Function>
struct Accumulated {
  int64_t leaves;
  Function function;

  // The first argument goes to every leaf whole; the tensors of the others are cut.
  template <typename Model, typename... Batch>
  auto operator()(const Model& model, const Batch&... batch) const {
    const auto whole = std::make_tuple(batch...);
    const std::vector<Tensor> tensors = tensors_of(whole);
    const int64_t rows = leaf_rows(leaves, tensors);
    std::decay_t<decltype(function(model, batch...))> structure;
    std::vector<std::vector<Tensor>> results;
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
      auto part = whole;
      tree::for_each_tensor(part, [&](Tensor& t) { t = leaf_of(t, leaf, rows); });
      structure =
          std::apply([&](const auto&... each) { return function(model, each...); }, part);
      results.push_back(tensors_of(structure));
    }
    return with_tensors(std::move(structure), added(results), 0);
  }
};

}  // namespace detail

template <typename Function>
auto accumulate(int64_t leaves, Function function) {
  return detail::Accumulated<Function>{leaves, std::move(function)};
}

}  // namespace tiny_compile::nn
