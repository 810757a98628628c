// Which rows are a leaf, and in which order are leaves added?
//
//   6 rows, 3 leaves: rows 0 1 | 2 3 | 4 5;  g0, g1, g2 -> stack({g0, g1, g2}).sum(0)
#include "tiny_compile/nn/accumulate.h"

#include "tiny_compile/trace/functions.h"

namespace tiny_compile::nn::detail {

int64_t leaf_rows(int64_t leaves, const std::vector<Tensor>& batch) {
  if (leaves < 1) fail("accumulate: at least 1 leaf, not ", leaves);
  if (batch.empty())
    fail("accumulate: there is no batch to cut; pass it behind the parameters");
  for (const Tensor& tensor : batch) {
    if (tensor.rank() < 1 || !(tensor.size(0) == batch[0].size(0)))
      fail("accumulate: the batch's tensors must have one first size, not [",
           join(batch[0].sizes(), ","), "] and [", join(tensor.sizes(), ","), "]");
  }
  const int64_t rows = batch[0].size(0);
  if (rows % leaves != 0)
    fail("accumulate: ", rows, " rows do not divide into ", leaves, " leaves of equal size");
  return rows / leaves;
}

Tensor leaf_of(const Tensor& tensor, int64_t leaf, int64_t rows) {
  return slice(tensor, 0, leaf * rows, (leaf + 1) * rows);
}

std::vector<Tensor> added(const std::vector<std::vector<Tensor>>& lists) {
  std::vector<Tensor> sums;
  for (size_t k = 0; k < lists[0].size(); k++) {
    std::vector<Tensor> leaves;
    for (const std::vector<Tensor>& list : lists) leaves.push_back(list[k]);
    sums.push_back(sum(stack(leaves), 0));
  }
  return sums;
}

}  // namespace tiny_compile::nn::detail
