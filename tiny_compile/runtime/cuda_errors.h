// What kernels found wrong: an index out of range, an integer divided by zero.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {

struct CalledProgram {
  std::string name;
  std::string suspects;  // its kernels that an index out of range may have come from
};

// The word in which the kernels of one module set bits. Calls take turns with it, on whichever
// streams, and each gets an outcome of its own.
class CudaErrors {
 public:
  CudaErrors(CudaAddress word, int device) : word_(word), device_(device) {}

  // Held while a call's kernels are put into the queue; they come after the last call's.
  std::unique_lock<std::mutex> turn(CudaQueue* queue);

  // Behind the kernels of the call: known when they have ended, and thrown with its name.
  std::shared_ptr<const Outcome> outcome(const std::shared_ptr<const CalledProgram>& program);

  // Behind kernels whose call has no outcome: nobody is told what they found.
  void forget() noexcept;

 private:
  CudaAddress word_;
  int device_;
  std::mutex mutex_;
  CudaQueue* last_ = nullptr;
};

// Adds what is not known to be good yet: a result of bad values is bad as well.
void add_outcomes(Outcomes& outcomes, const Outcomes& more);

}  // namespace tiny_compile
