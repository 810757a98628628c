// Work that repeats on a GPU: recorded once, started as a whole.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <vector>

#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile {

// A function that puts kernels into the stream of its device, cuda_stream(device), and the CUDA
// graphs of what it put there: one for each set of addresses that came more than once.
class CudaReplay {
 public:
  explicit CudaReplay(int device) : device_(device) {}
  ~CudaReplay();
  CudaReplay(const CudaReplay&) = delete;
  CudaReplay& operator=(const CudaReplay&) = delete;

  // `addresses`: all that the kernels are given; with the same ones `start` starts the same. Throws
  // what `start` throws. Threads may call it at the same time.
  void run(const std::vector<void*>& addresses, const std::function<void()>& start);

 private:
  struct Recording {
    std::vector<void*> addresses;
    CudaGraph graph = nullptr;
    bool is_refused = false;  // something in it cannot be recorded
  };
  static constexpr size_t kMost = 4;  // sets of addresses: two buffers in turn make two

  CudaGraph record(const std::function<void()>& start);

  int device_;
  CudaStream side_ = nullptr;  // where is recorded what shall not run
  std::mutex mutex_;
  std::array<Recording, kMost> recordings_;
  size_t oldest_ = 0;
};

}  // namespace tiny_compile
