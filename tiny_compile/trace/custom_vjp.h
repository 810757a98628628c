// A function with a derivative of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

// From operands x, results y and a cotangent g of each result of floats: a cotangent of each
// operand of floats, of its type.
using Backward = std::function<std::vector<Tensor>(
    std::span<const Tensor> x, std::span<const Tensor> y, std::span<const Tensor> g)>;

// function(x), whose derivative is `backward`. Both see nothing but what they are given: what one
// captures is a tc::Error. The derivative of the derivative is that of `backward`.
std::vector<Tensor> with_derivative(const std::string& name, const TensorFunction& function,
                                    const Backward& backward, const std::vector<Tensor>& x);

// How often what is traced on this thread is going to be differentiated: 2 in the gradient of a
// gradient.
int differentiations();
inline bool is_differentiated() { return differentiations() > 0; }

// While one lives, functions that are traced on this thread are going to be differentiated, once
// more than those around it; or, with `now` false, not at all. Only then does with_derivative
// leave a node of its own.
class Differentiated {
 public:
  explicit Differentiated(bool now);
  ~Differentiated();
  Differentiated(const Differentiated&) = delete;
  Differentiated& operator=(const Differentiated&) = delete;

 private:
  int before_;
};

}  // namespace tiny_compile
