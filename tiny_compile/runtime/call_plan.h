// What a call needs besides the code: where its buffers lie, and how much each kernel has to do.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/runtime/buffers.h"

namespace tiny_compile {

struct CallPlan {
  BufferPlan buffers;
  struct Kernel {
    KernelEntry entry;             // with numbers
    std::vector<long long> sizes;  // of entry.sizes
  };
  std::vector<Kernel> kernels;  // in launch order
  std::vector<Buffer> inputs;   // of a program of symbolic sizes, with numbers
};

// The entry with numbers for its sizes.
KernelEntry with_numbers(KernelEntry entry, const Substitution& numbers);

// Of a program of numbers; or of any, with these for its sizes. Throws tc::Error where a size is
// outside of its bounds, or what the program would do is not sound.
CallPlan plan_call(const Program& program, const Source& source,
                   const Substitution& numbers = {});

// The plans of a program of symbolic sizes, those of the last calls kept. Safe to call from many
// threads.
class CallPlans {
 public:
  CallPlans(Program program, const Source& source);

  // Throws where the inputs' shapes do not fit.
  std::shared_ptr<const CallPlan> of(std::span<const Tensor> inputs) const;

 private:
  using Key = std::vector<int64_t>;  // dtypes and shapes of the inputs
  struct Known {
    Key key;
    std::shared_ptr<const CallPlan> plan;
  };
  std::shared_ptr<const CallPlan> find(const Key& key) const;
  void remember(const Key& key, std::shared_ptr<const CallPlan> plan) const;

  Program program_;
  std::vector<KernelEntry> entries_;  // of each Program kernel
  mutable std::mutex mutex_;
  mutable std::vector<Known> known_;  // the last used behind
};

// The inputs as the plan's program lays them out: copies of those that lie otherwise. Throws where a
// program asks for strides that an input does not have.
std::vector<Tensor> laid_out(const CallPlan& plan, std::span<const Tensor> inputs);

}  // namespace tiny_compile
