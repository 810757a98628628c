// fails: dtypes of one size are told apart
#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  for (const Tensor& tensor : signature.tensors)
    key += str("[", join(tensor.shape(), ","), "] [", join(tensor.strides(), ","), "] ",
               tensor.device().str(), "; ");
  return str(key, "extras ", join(signature.extras, ","));
}

}  // namespace exercise
