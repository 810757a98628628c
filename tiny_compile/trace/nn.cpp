// How is softmax made of primitives? m = max(x) clamped to finite, so that a row of -inf gives
// NaN only where PyTorch's does; exp(x - m) / sum(exp(x - m)). f16 and bf16 go to f32 inside
// and are rounded once, at the end, as PyTorch's own kernels do. Where both operands of an op are
// computed, one is a statement of its own: compilers evaluate operands in different orders, and
// the graph must not depend on it.
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/tensor/cuda_memory.h"

#include <cmath>

#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"

namespace tiny_compile {
namespace {

using Tensors = std::vector<Tensor>;
using TensorsIn = std::span<const Tensor>;

DType float_dtype(const Tensor& x) { return is_float(x.dtype()) ? x.dtype() : DType::f32; }

Tensor upcast(const Tensor& x, const Location& where) {
  const DType dtype = float_dtype(x);
  return cast_to(x, is_half(dtype) ? DType::f32 : dtype, where);
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Sum ? sum(losses) : mean(losses);
}

Sizes last_axes(const Tensor& x, const SizeList& normalized, const Location& where) {
  const SizeList sizes = x.sizes();
  const bool fits = normalized.size() <= sizes.size() &&
                    std::equal(normalized.rbegin(), normalized.rend(), sizes.rbegin());
  if (!fits || normalized.empty())
    fail_at(current_place(where), str("normalized_shape [", join(normalized, ","),
                                      "] is not the end of shape [", join(sizes, ","), "]"));
  Sizes axes;
  for (size_t k = sizes.size() - normalized.size(); k < sizes.size(); k++)
    axes.push_back(static_cast<int64_t>(k));
  return axes;
}

// Losses of rows, those whose target is ignore_index as 0, and their mean over the others.
Tensor picked_loss(const Tensor& losses, const Tensor& kept, Reduction reduction) {
  const Tensor counted = where(kept, losses, 0.0);
  if (reduction == Reduction::None) return counted;
  if (reduction == Reduction::Sum) return sum(counted);
  const Tensor count = sum(kept).to(losses.dtype());
  return sum(counted) / count;
}

Tensor check_target(const Tensor& x, const Operand& target, const char* name) {
  const Tensor classes = target.captured();
  if (x.rank() != 2 || classes.rank() != 1 || x.size(0) != classes.size(0))
    fail_at(current_place(target.where),
            str(name, ": wants scores [N, C] and targets [N], not [", join(x.sizes(), ","),
                "] and [", join(classes.sizes(), ","), "]"));
  return classes;
}

// x[row, target[row]]
Tensor pick(const Tensor& x, const Tensor& target) {
  return squeeze(gather(x, 1, unsqueeze(target, 1)), 1);
}

// -((x_t - m) - log(sum_exp(x))): one pass over the logits, the same bits as
// nll_loss(log_softmax). The derivative is softmax, less 1 at the target.
Tensor row_losses(const Tensor& x, const Tensor& target) {
  const auto value = [](TensorsIn in) {
    const Tensor m = squeeze(finite_max(in[0], {1}), 1), s = sum_exp(in[0], {1});
    const Tensor log_sum = log(s);
    return Tensors{-((pick(in[0], in[1]) - m) - log_sum)};
  };
  const auto backward = [](TensorsIn in, TensorsIn, TensorsIn g) {
    const Tensor m = squeeze(finite_max(in[0], {1}), 1), log_sum = log(sum_exp(in[0], {1}));
    const Tensor p = exp(in[0] - unsqueeze(m + log_sum, 1));
    const Tensor columns = copy_to(arange(in[0].size(1)), in[0].device());
    const Tensor hit = columns == unsqueeze(in[1], 1);
    return Tensors{where(hit, p - 1.0, p) * unsqueeze(g[0], 1)};
  };
  return with_derivative("row_losses", value, backward, {x, target})[0];
}

}  // namespace

Tensor finite_max(const Operand& x, const Axes& axes) {
  const Scope scope(x.where);
  const Tensor largest = max(x, axes, true);
  const double most =
      largest.dtype() == DType::f64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
  return clamp(largest, -most, most);
}

Tensor logsumexp(const Operand& x, const Axes& axes, bool keepdim) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const auto value = [&](TensorsIn in) {
    Tensor m = finite_max(in[0], axes);
    const Tensor s = sum_exp(in[0], axes, keepdim);
    if (!keepdim) m = reshape(m, s.sizes());
    return Tensors{m + log(s)};
  };
  const auto backward = [&](TensorsIn in, TensorsIn y, TensorsIn g) {
    SizeList kept = in[0].sizes();
    for (int64_t axis : axes) kept[normal_axis(axis, in[0].rank(), {})] = 1;
    if (axes.empty()) kept.assign(kept.size(), Size(1));
    const Tensor share = exp(in[0] - reshape(y[0], kept));
    return Tensors{reshape(g[0], kept) * share};
  };
  return cast_to(with_derivative("logsumexp", value, backward, {v})[0], float_dtype(tensor),
                 x.where);
}

Tensor softmax(const Operand& x, int64_t axis) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const auto value = [&](TensorsIn in) {
    const Tensor e = exp(in[0] - finite_max(in[0], {axis}));
    return Tensors{e / sum(e, {axis}, true)};
  };
  const auto backward = [&](TensorsIn, TensorsIn y, TensorsIn g) {
    return Tensors{(g[0] - sum(g[0] * y[0], {axis}, true)) * y[0]};
  };
  return cast_to(with_derivative("softmax", value, backward, {v})[0], float_dtype(tensor),
                 x.where);
}

Tensor log_softmax(const Operand& x, int64_t axis) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const auto value = [&](TensorsIn in) {
    const Tensor log_sum = log(sum_exp(in[0], {axis}, true));
    return Tensors{(in[0] - finite_max(in[0], {axis})) - log_sum};
  };
  const auto backward = [&](TensorsIn, TensorsIn y, TensorsIn g) {
    const Tensor total = sum(g[0], {axis}, true);
    return Tensors{g[0] - exp(y[0]) * total};
  };
  return cast_to(with_derivative("log_softmax", value, backward, {v})[0], float_dtype(tensor),
                 x.where);
}

Tensor layer_norm(const Operand& x, const SizeList& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const Sizes axes = last_axes(v, normalized_shape, x.where);
  const Tensor deviation = v - mean(v, axes, true);
  Tensor y = deviation * rsqrt(mean(deviation * deviation, axes, true) + eps);
  if (weight.defined()) y = y * cast_to(seen(weight, x.where), v.dtype(), x.where);
  if (bias.defined()) y = y + cast_to(seen(bias, x.where), v.dtype(), x.where);
  return cast_to(y, float_dtype(tensor), x.where);
}

Tensor rms_norm(const Operand& x, const SizeList& normalized_shape, const Tensor& weight,
                double eps) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  const Sizes axes = last_axes(v, normalized_shape, x.where);
  Tensor y = v * rsqrt(mean(v * v, axes, true) + eps);
  if (weight.defined()) y = y * cast_to(seen(weight, x.where), v.dtype(), x.where);
  return cast_to(y, float_dtype(tensor), x.where);
}

Tensor batch_norm(const Operand& x, const Tensor& mean, const Tensor& variance,
                  const Tensor& weight, const Tensor& bias, double eps) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), v = upcast(tensor, x.where);
  if (v.rank() < 2)
    fail_at(current_place(x.where), "batch_norm: the tensor needs a channel axis 1");
  auto channels = [&](const Tensor& t) {
    SizeList shape(static_cast<size_t>(v.rank()), Size(1));
    shape[1] = v.size(1);
    return reshape(cast_to(seen(t, x.where), v.dtype(), x.where), shape);
  };
  const Tensor inverse = rsqrt(channels(variance) + eps);
  Tensor y = (v - channels(mean)) * inverse;
  if (weight.defined()) y = y * channels(weight);
  if (bias.defined()) y = y + channels(bias);
  return cast_to(y, float_dtype(tensor), x.where);
}

Tensor linear(const Operand& x, const Operand& weight, const Tensor& bias) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured(), w = weight.captured();
  if (w.rank() != 2 || tensor.rank() < 1 || tensor.size(-1) != w.size(1))
    fail_at(current_place(x.where),
            str("linear: x [", join(tensor.sizes(), ","), "] does not fit weight [out, in] = [",
                join(w.sizes(), ","), "]"));
  SizeList shape = tensor.sizes();
  shape.back() = w.size(0);
  const Tensor columns = transpose(w, 0, 1);
  Tensor y = matmul(reshape(tensor, {-1, w.size(1)}), columns);
  if (bias.defined()) y = y + bias;
  return reshape(y, shape);
}

Tensor mse_loss(const Operand& x, const Operand& target, Reduction reduction) {
  const Scope scope(x.where);
  return reduced(square(x - target), reduction);
}

Tensor nll_loss(const Operand& x, const Operand& target, Reduction reduction,
                int64_t ignore_index) {
  const Scope scope(x.where);
  const Tensor scores = x.captured(), classes = check_target(scores, target, "nll_loss");
  const Tensor kept = classes != ignore_index;
  return picked_loss(-pick(scores, where(kept, classes, 0)), kept, reduction);
}

Tensor cross_entropy(const Operand& logits, const Operand& target, Reduction reduction,
                     int64_t ignore_index) {
  const Scope scope(logits.where);
  const Tensor tensor = logits.captured(), v = upcast(tensor, logits.where);
  const Tensor classes = check_target(v, target, "cross_entropy");
  const Tensor kept = classes != ignore_index;
  const Tensor losses = row_losses(v, where(kept, classes, 0));
  return cast_to(picked_loss(losses, kept, reduction), float_dtype(tensor), logits.where);
}

Tensor dropout(const Operand& x, double p, bool training) {
  const Scope scope(x.where);
  const Tensor tensor = x.captured();
  if (p < 0 || p > 1)
    fail_at(current_place(x.where), str("dropout: p = ", p, " is no probability"));
  if (!training || p == 0) return tensor;
  const Tensor kept = copy_to(rand(tensor.sizes()), tensor.device()) >= p;
  const Tensor zero = as_tensor(Operand(0.0), tensor.dtype(), x.where);
  return where(kept, tensor * (p < 1 ? 1 / (1 - p) : 0.0), zero);
}

Tensor scaled_dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                                    const Tensor& mask, bool is_causal,
                                    std::optional<double> scale, double dropout_p) {
  const Scope scope(q.where);
  const Tensor query = q.captured(), key = k.captured(), value = v.captured();
  if (query.rank() < 2 || key.rank() < 2 || value.rank() < 2)
    fail_at(current_place(q.where),
            "attention: q, k and v need at least two axes, [.., length, width]");
  const double factor =
      scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1)));  // a number
  Tensor scores = matmul(query, transpose(key, -2, -1)) * factor;
  const double minus_infinity = -HUGE_VAL;
  if (is_causal) {
    const Tensor allowed = tril(full({scores.size(-2), scores.size(-1)}, 1, DType::boolean));
    scores = masked_fill(scores, logical_not(allowed), minus_infinity);
  }
  if (mask.defined()) {
    const Tensor given = seen(mask, q.where);
    scores = given.dtype() == DType::boolean
                 ? masked_fill(scores, logical_not(given), minus_infinity)
                 : scores + given;
  }
  return matmul(dropout(softmax(scores, -1), dropout_p), value);
}

}  // namespace tiny_compile
