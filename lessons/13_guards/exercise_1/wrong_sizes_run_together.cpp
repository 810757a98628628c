// fails: sizes do not run into each other
#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  for (const Tensor& tensor : signature.tensors)
    key += str(tensor.dtype(), "[", join(tensor.shape(), ""), "] [",
               join(tensor.is_contiguous() ? Sizes() : tensor.strides(), ","), "] ",
               tensor.device().str(), "; ");
  return str(key, "extras ", join(signature.extras, ","));
}

}  // namespace exercise
