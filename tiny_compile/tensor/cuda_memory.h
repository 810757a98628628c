// Tensors on GPUs: memory in stream order, and copies.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tiny_compile/tensor/cuda_stream.h"
#include "tiny_compile/tensor/storage.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// How work on a GPU transposed out, known when it has ended.
class Outcome {
 public:
  virtual ~Outcome() = default;
  virtual bool is_good() const = 0;       // false where it is not known yet
  virtual void throw_if_bad() const = 0;  // of work that has ended
};
using Outcomes = std::vector<std::shared_ptr<const Outcome>>;

// The compiled function that made a result, for messages. Kept as long as the process lives, so that
// results need not count its owners: small, but for the source, which may be gone.
struct CudaMaker {
  std::string name;
  std::function<std::string()> source;  // of its kernels, numbered
};

// Memory of a GPU, for work in the queue of the thread that allocated it.
class CudaStorage : public Storage {
 public:
  CudaStorage(std::byte* data, size_t bytes, size_t block, CudaQueue* home, int device);
  ~CudaStorage() override;
  void read(size_t first, size_t bytes, std::byte* to) const override;

  CudaQueue* home() const { return home_; }  // what makes it is in there
  void add_user(CudaQueue* queue);  // who gets the block next comes behind its work too

  size_t block() const { return block_; }  // bytes that the device gave

  const CudaMaker* maker = nullptr;
  Outcomes outcomes;  // of the work that this is the result of

 private:
  size_t block_;
  CudaQueue* home_;
  std::vector<CudaQueue*> users_;  // other queues
};

// Uninitialised memory for work on cuda_stream(device), or in that queue. A block freed is handed out again to
// later work on the same stream, without waiting. Throws tc::Error naming the sizes when there
// is none.
std::shared_ptr<CudaStorage> allocate_cuda(size_t bytes, int device);
std::shared_ptr<CudaStorage> allocate_cuda(size_t bytes, int device, CudaQueue* queue);
// Of free blocks alone, all at once: null where there is none.
std::vector<std::shared_ptr<Storage>> take_cached_cuda(std::span<const size_t> sizes,
                                                       int device, CudaQueue* queue);
size_t cached_cuda_bytes(int device);  // in free blocks
void release_cached_cuda_memory(int device);

// The storage of a tensor on a GPU.
CudaStorage& cuda_storage(const Tensor& tensor);

// To be called before work in the queue reads these: it comes behind what made them.
void use_in(CudaQueue* queue, std::span<const Tensor> tensors);

// The tensor on the other device, row-major where it had to be copied; itself if it is there.
Tensor copy_to(const Tensor& tensor, Device device);

}  // namespace tiny_compile
