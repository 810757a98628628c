// Tensors on GPUs: memory in stream order, and copies.
#pragma once

#include <memory>

#include "tiny_compile/tensor/cuda_driver.h"
#include "tiny_compile/tensor/storage.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// The stream that work of this thread on the device goes to: the innermost CudaStreamScope's,
// or else one of our own a device.
CudaStream cuda_stream(int device);

// Work of this thread goes to the user's stream while this lives. Tensors made under another
// stream must be complete before (synchronize).
class CudaStreamScope {
 public:
  CudaStreamScope(int device, CudaStream stream);
  ~CudaStreamScope();
  CudaStreamScope(const CudaStreamScope&) = delete;
  CudaStreamScope& operator=(const CudaStreamScope&) = delete;

 private:
  int device_;
  CudaStream before_;
};

// Uninitialised memory for work on cuda_stream(device). A block freed is handed out again to
// later work on the same stream, without waiting. Throws tc::Error naming the sizes when there
// is none.
std::shared_ptr<Storage> allocate_cuda(size_t bytes, int device);
size_t cached_cuda_bytes(int device);  // in free blocks
void release_cached_cuda_memory(int device);

void synchronize(Device device);  // waits for all work of cuda_stream(device)

// The tensor on the other device, row-major where it had to be copied; itself if it is there.
Tensor copy_to(const Tensor& tensor, Device device);

}  // namespace tiny_compile
