// fails: extra numbers are told apart by all of their bits
#include "exercise.h"

namespace exercise {

std::string key_of(const Signature& signature) {
  std::string key;
  for (const Tensor& tensor : signature.tensors)
    key += str(tensor.dtype(), "[", join(tensor.shape(), ","), "] [",
               join(tensor.strides(), ","), "] ", tensor.device().str(), "; ");
  for (uint64_t extra : signature.extras) key += str(double(extra), ",");
  return key;
}

}  // namespace exercise
