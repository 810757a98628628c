// What kernels found wrong: an index out of range, an integer divided by zero.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {

// An op that takes indices: "mlp.cpp:14: gather", and the size that they are to be below.
struct IndexUse {
  std::string op;
  int64_t size = 0;
};

struct CalledProgram {
  std::string name;
  std::string suspects;          // its kernels that an index out of range may have come from
  std::vector<IndexUse> uses{};  // and its ops, where they are known
};

// What kernels leave behind: `tc_found` of the text.
struct DeviceErrors {
  unsigned bits;        // as in graph/lanes.h
  int64_t index, size;  // of the first index out of range
};

// "f: mlp.cpp:14: gather: an index is out of range: 7 for size 3; check the values ..": the ops of
// that size, or the kernels that have any.
std::string bad_index_in_words(const CalledProgram& program, int64_t index, int64_t size);

// The place in which the kernels of one module set bits. Calls take turns with it, on whichever
// streams, and each gets an outcome of its own.
class CudaErrors {
 public:
  // `hand_over`: the text's kernel that copies and clears them; null: it has none.
  CudaErrors(CudaAddress found, CudaFunction hand_over, int device);
  ~CudaErrors();
  CudaErrors(const CudaErrors&) = delete;
  CudaErrors& operator=(const CudaErrors&) = delete;

  // Held while a call's kernels are put into the queue; they come after the last call's.
  std::unique_lock<std::mutex> turn(CudaQueue* queue);

  // Before the call's kernels, where it gets an outcome.
  void prepare();

  // Behind them, on the call's stream or where that is recorded: the same for every call.
  void hand_over() const;

  // Then: known when the kernels have ended, and thrown with the program's name.
  std::shared_ptr<const Outcome> outcome(const std::shared_ptr<const CalledProgram>& program);

  // Behind kernels whose call has no outcome: nobody is told what they found.
  void forget() noexcept;

 private:
  CudaAddress found_;  // DeviceErrors
  CudaFunction hand_over_;
  int device_;
  std::mutex mutex_;
  CudaQueue* last_ = nullptr;
  std::shared_ptr<class OutcomePlaces> places_;
  unsigned calls_ = 0;  // that were handed over, as the module counts them
};

// Adds what is not known to be good yet: a result of bad values is bad as well.
void add_outcomes(Outcomes& outcomes, const Outcomes& more);

}  // namespace tiny_compile
