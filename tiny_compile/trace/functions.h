// The ops as functions, named and behaving as in PyTorch. Each belongs to the caller's line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/trace/operators.h"

namespace tiny_compile {

// Pointwise. Integers are promoted to f32 where the function needs a float; floor, ceil, round
// and trunc leave them alone.
Tensor exp(const Operand& x);
Tensor expm1(const Operand& x);
Tensor log(const Operand& x);
Tensor log1p(const Operand& x);
Tensor exp2(const Operand& x);
Tensor log2(const Operand& x);
Tensor log10(const Operand& x);
Tensor sin(const Operand& x);
Tensor cos(const Operand& x);
Tensor tan(const Operand& x);
Tensor asin(const Operand& x);
Tensor acos(const Operand& x);
Tensor atan(const Operand& x);
Tensor atan2(const Operand& y, const Operand& x);  // the angle of (x, y)
Tensor tanh(const Operand& x);
Tensor sigmoid(const Operand& x);
Tensor erf(const Operand& x);
Tensor erfinv(const Operand& x);
Tensor lgamma(const Operand& x);  // log(|gamma(x)|)
Tensor digamma(const Operand& x);
Tensor polygamma(int64_t n, const Operand& x);    // the n-th derivative of digamma
Tensor zeta(const Operand& s, const Operand& q);  // Hurwitz's
Tensor bitcast(const Operand& x, DType dtype);    // the same bits
Tensor gelu(const Operand& x, const std::string& approximate = "none");  // or "tanh"
Tensor gelu_backward(const Operand& grad, const Operand& x,
                     const std::string& approximate = "none");  // grad * gelu'(x)
Tensor sqrt(const Operand& x);
Tensor rsqrt(const Operand& x);
Tensor reciprocal(const Operand& x);
Tensor floor(const Operand& x);
Tensor ceil(const Operand& x);
Tensor round(const Operand& x);  // halves to even
Tensor trunc(const Operand& x);
Tensor abs(const Operand& x);
Tensor sign(const Operand& x);
Tensor square(const Operand& x);
Tensor isnan(const Operand& x);
Tensor isinf(const Operand& x);
Tensor isfinite(const Operand& x);
Tensor minimum(const Operand& a, const Operand& b);
Tensor maximum(const Operand& a, const Operand& b);
Tensor logaddexp(const Operand& a, const Operand& b);              // log(exp(a) + exp(b))
Tensor fma(const Operand& a, const Operand& b, const Operand& c);  // a * b + c, rounded once
Tensor pow(const Operand& base, const Operand& exponent);
Tensor remainder(const Operand& a, const Operand& b);
Tensor floor_divide(const Operand& a, const Operand& b);
Tensor where(const Operand& condition, const Operand& a, const Operand& b);
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_not(const Operand& a);
Tensor popcount(const Operand& x);
Tensor relu(const Operand& x);
Tensor silu(const Operand& x);      // x * sigmoid(x), a primitive
Tensor softplus(const Operand& x);  // log(1 + exp(x)), without overflow
Tensor leaky_relu(const Operand& x, double negative_slope = 0.01);
Tensor clamp(const Operand& x, std::optional<double> low, std::optional<double> high);
Tensor masked_fill(const Operand& x, const Operand& mask, double value);

// Reductions: one axis or a list of them, which may be negative; {} means all of them.
Tensor sum(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor prod(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor max(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor min(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor argmax(const Operand& x, std::optional<int64_t> axis = {}, bool keepdim = false);
Tensor argmin(const Operand& x, std::optional<int64_t> axis = {}, bool keepdim = false);
Tensor any(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor all(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor sum_exp(const Operand& x, const Axes& axes = {},
               bool keepdim = false);  // of x - clamped max(x)
Tensor mean(const Operand& x, const Axes& axes = {}, bool keepdim = false);
Tensor var(const Operand& x, const Axes& axes = {}, int64_t correction = 1,
           bool keepdim = false);
Tensor std(const Operand& x, const Axes& axes = {}, int64_t correction = 1,
           bool keepdim = false);
// Variance and mean in one read. The mean is the first element and the mean of the distances from it: other last
// bits than mean(x), NaN where an infinity comes first, infinite where distances are.
std::pair<Tensor, Tensor> var_mean(const Operand& x, const Axes& axes = {},
                                   int64_t correction = 1, bool keepdim = false);
// (sum(|x|^p))^(1/p); p = +-infinity: the greatest, the least size; 0: how many are not 0.
Tensor norm(const Operand& x, double p = 2, const Axes& axes = {}, bool keepdim = false);

// Running results along an axis, in trace/scans.cpp.
Tensor cumsum(const Operand& x, int64_t axis);
Tensor cumprod(const Operand& x, int64_t axis);
Tensor logcumsumexp(const Operand& x, int64_t axis);
// Values and their places, i64: the last of equals, and of NaN.
std::pair<Tensor, Tensor> cummax(const Operand& x, int64_t axis);
std::pair<Tensor, Tensor> cummin(const Operand& x, int64_t axis);

// Views and shapes.
Tensor reshape(const Operand& x, SizeList shape);  // one size may be -1
Tensor permute(const Operand& x, const Sizes& axes);
Tensor transpose(const Operand& x, int64_t axis0, int64_t axis1);
Tensor expand(const Operand& x, SizeList shape);  // -1 keeps a size
Tensor slice(const Operand& x, int64_t axis, const std::optional<Size>& start,
             const std::optional<Size>& stop = {}, int64_t step = 1);
Tensor select(const Operand& x, int64_t axis, int64_t index);
Tensor flip(const Operand& x, const Axes& axes);
Tensor unfold(const Operand& x, int64_t axis, int64_t size, int64_t step);  // windows
Tensor squeeze(const Operand& x, std::optional<int64_t> axis = {});
Tensor unsqueeze(const Operand& x, int64_t axis);
Tensor flatten(const Operand& x, int64_t first = 0, int64_t last = -1);
Tensor contiguous(const Operand& x);
Tensor concat(const std::vector<Tensor>& parts, int64_t axis = 0, Here here = Here::current());
Tensor cat(const std::vector<Tensor>& parts, int64_t axis = 0, Here here = Here::current());
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0, Here here = Here::current());
// Elements move on by `shifts` along the axes, the last ones to the front; without axes the flattened
// tensor's do.
Tensor roll(const Operand& x, const Axes& shifts, const Axes& axes = {});
std::vector<Tensor> split(const Operand& x, int64_t size, int64_t axis = 0);
Tensor pad(const Operand& x, const Sizes& pads,
           double value = 0);  // PyTorch's order: last axis first
Tensor tril(const Operand& x, int64_t diagonal = 0);
Tensor triu(const Operand& x, int64_t diagonal = 0);

// Matmul and indices.
Tensor matmul(const Operand& a, const Operand& b);  // PyTorch's, with vectors and batches
Tensor outer(const Operand& a, const Operand& b);   // a[i] * b[j]
Tensor gather(const Operand& x, int64_t axis, const Operand& index);
Tensor index_select(const Operand& x, int64_t axis, const Operand& index);
Tensor embedding(const Operand& index, const Operand& table);  // table[index]
// x with updates from `source` at the places that `index` chooses along the axis, in ascending
// order; in trace/scans.cpp. scatter sets (the last wins); reduce is "sum", "prod", "amax", "amin".
Tensor scatter(const Operand& x, int64_t axis, const Operand& index, const Operand& source);
Tensor scatter_add(const Operand& x, int64_t axis, const Operand& index, const Operand& source);
Tensor scatter_reduce(const Operand& x, int64_t axis, const Operand& index,
                      const Operand& source, const std::string& reduce);
Tensor one_hot(const Operand& index, int64_t classes);

// An index as an i32 or i64 tensor; throws where it is neither an integer nor to be one.
Tensor as_index(const Operand& index);

// An axis in [0, rank); throws tc::Error at `where` for one that is not.
int64_t normal_axis(int64_t axis, int64_t rank, const Location& where);

}  // namespace tiny_compile
