// How does a program of several kernels run? All arrays have their places in one piece of
// memory, the CPU's or the GPU's: inputs are copied in, the kernels are launched in order, results
// are copied out.
//
//   {arrays {[4,3], [4,1]}, 1 input, outputs {1}, launches {{"k1", {0, 1}}}}   {{..12 numbers}}
//     =>  {{..4 numbers}}
#pragma once

#include "lessons/small/00_kernels.h"

namespace small {

struct Plan {
  std::vector<Shape> arrays = {};
  size_t inputs = 0;  // count: the first arrays
  Ids outputs = {};
  std::string helpers = "";  // what the kernels call
  std::vector<Launch> launches = {};
  Ids offsets = {};  // of arrays in memory, in elements; missing: one after another
};

inline std::string text_of(const Plan& plan) {
  std::string text = plan.helpers;
  for (const Launch& launch : plan.launches) text += launch.text;
  return text;
}

constexpr int64_t kAligned = 64;  // elements: an array begins at such a place
inline int64_t rounded(int64_t elements) {
  return (elements + kAligned - 1) / kAligned * kAligned;
}

inline int64_t memory_of(const Plan& plan) {  // elements; never none
  int64_t end = kAligned;
  for (size_t k = 0; k < plan.offsets.size(); k++)
    end = std::max(end, plan.offsets[k] + rounded(count(plan.arrays[k])));
  return end;
}

inline void check_inputs(const Plan& plan, const std::vector<Array>& inputs) {
  for (size_t k = 0; k < plan.inputs; k++)
    if (k >= inputs.size() || std::ssize(inputs[k]) != count(plan.arrays[k]))
      throw Error(str("%", k, " needs a ", listed(plan.arrays[k])));
  if (inputs.size() > plan.inputs)
    throw Error(str("there are ", plan.inputs, " inputs, not ", inputs.size()));
}

// A GPU's addresses are those of its own memory.
inline tiny_compile::CudaAddress on_gpu(const float* address) {
  return reinterpret_cast<tiny_compile::CudaAddress>(address);
}
inline std::unique_ptr<tiny_compile::CudaScope> gpu_if(bool cuda) {
  return cuda ? std::make_unique<tiny_compile::CudaScope>(0) : nullptr;
}
inline std::shared_ptr<float> reserve(int64_t elements, bool cuda) {
  const auto scope = gpu_if(cuda);
  const size_t bytes = static_cast<size_t>(elements) * sizeof(float);
  float* const memory = cuda ? reinterpret_cast<float*>(driver::allocate(bytes))
                             : static_cast<float*>(std::aligned_alloc(256, bytes));
  if (!memory) throw Error("there are no " + std::to_string(bytes) + " bytes of memory left");
  return {memory, [cuda](float* all) {
            const auto current = gpu_if(cuda);
            cuda ? driver::free(on_gpu(all)) : std::free(all);
          }};
}

class Executable {
 public:
  // Compiles the plan's kernels, if they are not `compiled` already (14).
  Executable(Plan plan, bool cuda, Run compiled = {})
      : plan_(std::move(plan)), cuda_(cuda), run_(std::move(compiled)) {
    if (!run_) run_ = (cuda ? compile_cuda : compile_cpp)(text_of(plan_));
    while (plan_.offsets.size() < plan_.arrays.size())
      plan_.offsets.push_back(memory_of(plan_));
    memory_ = reserve(memory_of(plan_), cuda);
    for (const int64_t offset : plan_.offsets) addresses_.push_back(memory_.get() + offset);
  }

  std::vector<Array> operator()(const std::vector<Array>& inputs) const {
    load(inputs);
    launch();
    return results();
  }

  void load(const std::vector<Array>& inputs) const {
    check_inputs(plan_, inputs);
    const auto scope = gpu_if(cuda_);
    for (size_t k = 0; k < inputs.size(); k++) {
      const size_t bytes = inputs[k].size() * sizeof(float);
      if (!cuda_)
        std::copy(inputs[k].begin(), inputs[k].end(), addresses_[k]);
      else if (bytes > 0)
        driver::copy_to_device(on_gpu(addresses_[k]), inputs[k].data(), bytes, nullptr);
    }
  }
  void launch() const {
    const auto scope = gpu_if(cuda_);
    for (const Launch& launch : plan_.launches) run_(launch, addresses_);
  }
  std::vector<Array> results() const {
    const auto scope = gpu_if(cuda_);
    std::vector<Array> all;
    for (const int64_t output : plan_.outputs) {
      const auto k = static_cast<size_t>(output);
      Array& result = all.emplace_back(count(plan_.arrays[k]));
      if (!cuda_)
        std::copy_n(addresses_[k], result.size(), result.begin());
      else if (!result.empty())
        driver::copy_to_host(result.data(), on_gpu(addresses_[k]),
                             result.size() * sizeof(float), nullptr);
    }
    return all;
  }

 private:
  Plan plan_;
  bool cuda_;
  Run run_;
  std::shared_ptr<float> memory_;
  Addresses addresses_;
};

}  // namespace small
