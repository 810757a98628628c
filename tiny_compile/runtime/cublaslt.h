// Matmuls by cuBLASLt, which is opened at run time.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile {

std::string why_no_cublaslt();    // "", or what was looked for and what is missing
std::string cublaslt_identity();  // "cuBLASLt 130100"

// What was asked for where the library is here, else Generated, of which stderr is told once.
Matmul available_matmul(Matmul wanted);

// One matmul on one device: descriptors made and an algorithm chosen once, by the library's
// heuristic, for each alignment that the operands come with.
class CublasMatmul {
 public:
  // Throws tc::Error naming the matmul where the library is missing or cannot do it.
  CublasMatmul(const LibraryMatmul& matmul, int device);
  ~CublasMatmul();
  CublasMatmul(CublasMatmul&&) noexcept;

  // Bytes of memory that a run with these addresses, of all buffers' lowest elements, works in.
  size_t workspace(std::span<void* const> addresses) const;
  // Puts it into cuda_stream(device), whose CudaScope is open. Safe to call from many threads.
  void run(std::span<void* const> addresses, void* workspace) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tiny_compile
