// fails: other values of the same kind have the same key
#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  for (const Tensor& tensor : signature.tensors)
    key += str(tensor.dtype(), "[", join(tensor.shape(), ","), "] [",
               join(tensor.strides(), ","), "] ", tensor.device().str(), tensor.str(), "; ");
  return str(key, "extras ", join(signature.extras, ","));
}

}  // namespace exercise
