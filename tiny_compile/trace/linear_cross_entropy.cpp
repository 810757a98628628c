// Where is a language model's memory? In its logits: [8192, 50304] of f32 are 1.6 GB, their
// gradient as many again, and both are gone as soon as they are known. A row's part of the
// gradient needs nothing of the others but how many count, so rows go in chunks, each through to
// its gradients before the next one comes:
//
//   for each chunk of rows:  logits = x_c @ W^T      [chunk, C]
//                            loss  += sum(losses)
//                            d      = (softmax(logits) - [class == target]) / count
//                            dx_c   = d @ W,  dW += d^T @ x_c
//
// Forward makes both gradients along with the loss; backward multiplies them by the loss's own.
#include "tiny_compile/trace/linear_cross_entropy.h"

#include <algorithm>

#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"

namespace tiny_compile {
namespace {

using Tensors = std::vector<Tensor>;
using TensorsIn = std::span<const Tensor>;

struct Options {
  int64_t ignore_index, chunk;
};

DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// (softmax(logits) - [class == target]) * share, share of a row: 1 / count or 0.
Tensor logits_gradient(const Tensor& logits, const Tensor& target, const Tensor& share) {
  const Tensor p = exp(logits - logsumexp(logits, {1}, true));
  const Tensor classes = copy_to(arange(logits.size(1)), logits.device());
  return where(classes == unsqueeze(target, 1), p - 1.0, p) * unsqueeze(share, 1);
}

// The loss, then, where they are wanted, the gradients of x and weight.
Tensors losses_and_gradients(TensorsIn in, const Options& options, bool gradients) {
  const Tensor &x = in[0], &weight = in[1], &target = in[2];
  const int64_t rows = x.size(0);
  const DType type = wide(x.dtype());
  const Tensor kept = target != options.ignore_index, count = kept.sum().to(type);
  Tensor loss, weights;
  Tensors xs;
  for (int64_t row = 0; row < rows; row += options.chunk) {
    const int64_t end = std::min(row + options.chunk, rows);
    const Tensor part = slice(x, 0, row, end), classes = slice(target, 0, row, end);
    const Tensor logits = linear(part, weight).to(type);
    const Tensor sum = cross_entropy(logits, classes, Reduction::Sum, options.ignore_index);
    loss = loss.defined() ? loss + sum : sum;
    if (!gradients) continue;
    const Tensor share = where(slice(kept, 0, row, end), 1.0 / count, 0.0);
    const Tensor d = logits_gradient(logits, classes, share).to(x.dtype());
    xs.push_back(matmul(d, weight));
    const Tensor partial = matmul(d.t(), part).to(type);
    weights = weights.defined() ? weights + partial : partial;
  }
  Tensors result = {(loss / count).to(x.dtype())};
  if (gradients) result.insert(result.end(), {concat(xs), weights.to(weight.dtype())});
  return result;
}

void check(const Tensor& x, const Tensor& weight, const Tensor& target, int64_t chunk,
           const Location& where) {
  const bool fits = x.rank() == 2 && weight.rank() == 2 && target.rank() == 1 &&
                    x.size(1) == weight.size(1) && x.size(0) == target.size(0);
  if (!fits || !is_float(x.dtype()) || x.dtype() != weight.dtype() || is_float(target.dtype()))
    fail_at(
        current_place(where),
        str("linear_cross_entropy: wants floats x [N, D] and weight [C, D] and class numbers "
            "target [N], not ",
            x.dtype(), "[", join(x.sizes(), ","), "], ", weight.dtype(), "[",
            join(weight.sizes(), ","), "] and ", target.dtype(), "[", join(target.sizes(), ","),
            "]"));
  if (x.size(0) == 0)
    fail_at(current_place(where), "linear_cross_entropy: no rows, whose mean is nothing");
  if (chunk < 1)
    fail_at(current_place(where),
            str("linear_cross_entropy: chunks of ", chunk, " rows; at least 1 is wanted"));
}

}  // namespace

Tensor linear_cross_entropy(const Operand& x, const Operand& weight, const Operand& target,
                            int64_t ignore_index, int64_t chunk) {
  const Scope scope(x.where);
  const Tensors operands = {x.captured(), weight.captured(), target.captured()};
  check(operands[0], operands[1], operands[2], chunk, x.where);
  const Options options{ignore_index, chunk};
  if (differentiations() != 1) return losses_and_gradients(operands, options, false)[0];
  const auto value = [&](TensorsIn in) { return losses_and_gradients(in, options, true); };
  const auto backward = [](TensorsIn, TensorsIn y, TensorsIn g) {
    return Tensors{y[1] * g[0], y[2] * g[0]};
  };
  return with_derivative("linear_cross_entropy", value, backward, operands)[0];
}

}  // namespace tiny_compile
