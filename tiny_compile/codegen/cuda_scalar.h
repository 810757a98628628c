// How a scalar reads in CUDA C.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cuda_text.h"

namespace tiny_compile {

// Quotients by what many elements are divided by, and f32 exponentials, have a fast form that is right for most
// values, and a slow one that is right for all. What holds where a scalar is computed:
struct Evaluation {
  enum class Form {
    Each,     // each element asks which it needs; exponentials are what they always are
    Fast,     // all fast; one that would be wrong clears the flag `exact`
    Decided,  // exponentials fast: it is known of all of them that they are right
    Slow      // all slow: what is done again where the fast ones were wrong
  };
  Form form = Form::Each;
  std::vector<int> divisors{};  // scalars: what it takes to divide by each is a variable here

  Evaluation as(Form other) const { return {other, divisors}; }
};

// "tc_divided(load_1, by_load_3)"
std::string cuda_value(CudaText& text, int scalar, const Evaluation& how);

// const tc_divisor by_load_3 = tc_divide_by(load_3);
void declare_divisor(CudaText& text, int scalar);

}  // namespace tiny_compile
