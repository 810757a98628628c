#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  // TODO: a tensor is more than its shape, and a call is more than its tensors.
  for (const Tensor& tensor : signature.tensors) key += join(tensor.shape(), "");
  return key;
}

}  // namespace exercise
