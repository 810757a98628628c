// How is a tensor copied? To the host byte by byte, gaps and all, so that it keeps its layout; or row
// by row: [[1,2],[3,4]] with strides [1,2] lies as 1 3 2 4, and its copy as 1 2 3 4.
#include <cstring>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {
namespace {

template <typename T>
void copy_elements(const Tensor& from, Tensor& to) {
  const T* source = reinterpret_cast<const T*>(from.bytes());
  T* target = reinterpret_cast<T*>(to.bytes());
  for_each_offset(from.shape(), from.strides(),
                  [&](int64_t offset) { *target++ = source[offset]; });
}

}  // namespace

Tensor on_host(const Tensor& tensor) {
  const TensorData& d = tensor.info();
  if (!d.storage || d.storage->device().kind == DeviceKind::Cpu) return tensor;
  const auto [first, bytes] = byte_span(d);
  auto data = std::make_shared<TensorData>(d);
  data->storage = allocate_cpu(static_cast<size_t>(bytes));
  d.storage->read(static_cast<size_t>(first), static_cast<size_t>(bytes),
                  data->storage->data());
  data->offset -= first / size_of(d.dtype);
  return Tensor(std::move(data));
}

Tensor contiguous_copy(const Tensor& source) {
  const Tensor tensor = on_host(source);
  const TensorData& d = tensor.info();
  Tensor result = empty_tensor(d.dtype, d.shape());
  if (tensor.numel() == 0) return result;
  if (tensor.is_contiguous()) {
    std::memcpy(result.bytes(), tensor.bytes(),
                static_cast<size_t>(tensor.numel()) * size_of(d.dtype));
    return result;
  }
  switch (size_of(d.dtype)) {
    case 1: copy_elements<uint8_t>(tensor, result); break;
    case 2: copy_elements<uint16_t>(tensor, result); break;
    case 4: copy_elements<uint32_t>(tensor, result); break;
    default: copy_elements<uint64_t>(tensor, result); break;
  }
  return result;
}

}  // namespace tiny_compile
