// What does one step of an optimiser do to one parameter?
//
//   Adam, rate 0.1, first step: p = 1, g = 0.5  ->  m = 0.05, v = 0.00025,
//   p = 1 - 0.1 / (1 - 0.9) * m / (sqrt(v) / sqrt(1 - 0.999) + 1e-8) = 0.9 (nearly)
//
// The corrections 1 - beta^t are differences of nearly equal numbers: in f32 the first steps
// would be wrong in the fourth digit, so all that is one number a step is f64, and reaches the
// parameters rounded once.
#include "tiny_compile/nn/optimiser.h"

#include "tiny_compile/trace/functions.h"

namespace tiny_compile::nn {
namespace {

// What the arithmetic of this parameter is done in.
DType work_dtype(const Tensor& parameter) {
  return is_half(parameter.dtype()) ? DType::f32 : parameter.dtype();
}

Tensor as_work(const Tensor& tensor, const Tensor& parameter) {
  return tensor.to(work_dtype(parameter));
}

Tensor square_sum(const Tensor& gradient) {
  const Tensor g = is_half(gradient.dtype()) ? gradient.to(DType::f32) : gradient;
  return sum(g * g);
}

}  // namespace

void detail::check_gradients(const std::vector<Tensor>& parameters,
                             const std::vector<Tensor>& gradients, const char* who) {
  if (parameters.size() != gradients.size())
    fail(who, ": ", parameters.size(), " parameters but ", gradients.size(),
         " gradients; pass what value_and_grad returned for these parameters");
  for (size_t k = 0; k < parameters.size(); k++) {
    const Tensor &p = parameters[k], &g = gradients[k];
    if (!same_shape(g, p.sizes()) || !is_float(p.dtype()))
      fail(who, ": parameter ", k, " is ", p.dtype(), "[", join(p.sizes(), ","),
           "], its gradient ", g.dtype(), "[", join(g.sizes(), ","),
           "]; both must be floats of one shape");
  }
}

detail::Moved Sgd::update_one(const detail::Moved& now, const Tensor& gradient,
                              const Tensor& step, const Tensor& rate) const {
  const Tensor p = as_work(now.parameter, now.parameter);
  Tensor g = as_work(gradient, now.parameter), b = as_work(now.first, now.parameter);
  if (weight_decay != 0) g = g + p * weight_decay;
  if (momentum != 0) {
    const Tensor later = b * momentum + g * (1 - dampening);
    b = where(step == 0, g, later);
    g = nesterov ? g + b * momentum : b;
  }
  return {(p - g * rate).to(now.parameter.dtype()), b.to(now.first.dtype()), {}};
}

Adam::Scales Adam::scales_at(const Tensor& step, const Tensor& rate) const {
  const Tensor t = step.to(DType::f64), r = rate.to(DType::f64);
  const Tensor first = 1.0 - pow(full({}, beta1, DType::f64), t);
  const Tensor second = 1.0 - pow(full({}, beta2, DType::f64), t);
  return {1.0 - r * weight_decay, r / first, sqrt(second)};
}

detail::Moved Adam::update_one(const detail::Moved& now, const Tensor& gradient,
                               const Scales& scales) const {
  Tensor p = as_work(now.parameter, now.parameter), g = as_work(gradient, now.parameter);
  const bool decays = weight_decay != 0 && p.rank() >= decayed_rank;
  if (decays && decoupled) p = p * scales.kept;
  if (decays && !decoupled) g = g + p * weight_decay;
  const Tensor m0 = as_work(now.first, now.parameter), v0 = as_work(now.second, now.parameter);
  const Tensor m = m0 + (g - m0) * (1 - beta1);
  const Tensor square = g * g * (1 - beta2);
  const Tensor v = v0 * beta2 + square;
  const Tensor root = sqrt(v) / scales.root_correction + eps;
  const Tensor ratio = m / root;
  const DType dtype = now.parameter.dtype();
  return {(p - ratio * scales.step_size).to(dtype), m.to(now.first.dtype()),
          v.to(now.second.dtype())};
}

std::pair<std::vector<Tensor>, Tensor> clipped(const std::vector<Tensor>& gradients,
                                               double most) {
  if (gradients.empty()) fail("clip_by_global_norm: there are no gradients");
  if (!(most > 0)) fail("clip_by_global_norm: the largest norm must be above 0, not ", most);
  std::vector<Tensor> squares;
  for (const Tensor& gradient : gradients) squares.push_back(square_sum(gradient));
  const Tensor norm = sqrt(sum(stack(squares)));
  const Tensor scale = minimum(most / (norm + 1e-6), 1.0);
  std::vector<Tensor> result;
  for (const Tensor& gradient : gradients) result.push_back(gradient * scale);
  return {result, norm};
}

}  // namespace tiny_compile::nn
