// fails: extra numbers are told apart
#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  for (const Tensor& tensor : signature.tensors)
    key += str(tensor.dtype(), "[", join(tensor.shape(), ","), "] [",
               join(tensor.strides(), ","), "] ", tensor.device().str(), "; ");
  return key;
}

}  // namespace exercise
