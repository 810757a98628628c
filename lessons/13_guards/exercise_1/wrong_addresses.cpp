// fails: where a tensor lies does not matter
#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  for (const Tensor& tensor : signature.tensors)
    key +=
        str(tensor.dtype(), "[", join(tensor.shape(), ","), "] [", join(tensor.strides(), ","),
            "] ", tensor.device().str(), tensor.info().offset, "; ");
  return str(key, "extras ", join(signature.extras, ","));
}

}  // namespace exercise
