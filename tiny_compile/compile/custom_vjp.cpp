// What does a gradient rule of the user's return? As many tensors as the arguments have.
//
//   f(x: f32[3], places: i64[2])  <-  backward returns (f32[3], anything)
#include "tiny_compile/compile/custom_vjp.h"

namespace tiny_compile::detail {
namespace {

std::string described(const Tensor& x) {
  if (!x.defined()) return "no tensor";
  return str(x.dtype(), "[", join(x.sizes(), ","), "]");
}

}  // namespace

std::vector<Tensor> gradients_of_floats(const std::string& name,
                                        const std::vector<Tensor>& gradients,
                                        std::span<const Tensor> inputs) {
  if (gradients.size() != inputs.size())
    fail_at(current_place({}),
            str(name, ": its backward returns ", gradients.size(), " tensors for arguments of ",
                inputs.size(), ": one for each tensor of each argument, in their order"));
  std::vector<Tensor> result;
  for (size_t k = 0; k < inputs.size(); k++) {
    if (!is_float(inputs[k].dtype())) continue;
    const bool fits = gradients[k].defined() && gradients[k].dtype() == inputs[k].dtype() &&
                      gradients[k].sizes() == inputs[k].sizes();
    if (!fits)
      fail_at(current_place({}),
              str(name, ": its backward returns ", described(gradients[k]), " for tensor ", k,
                  " of the arguments, which is ", described(inputs[k])));
    result.push_back(gradients[k]);
  }
  return result;
}

}  // namespace tiny_compile::detail
