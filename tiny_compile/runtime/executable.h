// A Program whose kernels are loaded: inputs in, outputs out (see runtime/build.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/runtime/call_plan.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

namespace tiny_compile {

class Executable {
 public:
  Executable(const Program& program, const Source& source, BuiltLibrary built);

  std::vector<Tensor> run(std::span<const Tensor> inputs) const;

 private:
  using Function = void (*)(void* const* buffers, long long begin, long long end);
  using TakeErrors = unsigned (*)();

  std::vector<Tensor> run(const CallPlan& plan, std::span<const Tensor> inputs) const;
  unsigned run_kernel(Function function, const KernelEntry& kernel,
                      const std::vector<void*>& buffers) const;

  std::string name_;
  std::string suspects_;  // of an index out of range
  BuiltLibrary built_;
  std::vector<Function> functions_;         // in launch order
  CallPlan plan_;                           // of a program of numbers
  std::unique_ptr<const CallPlans> plans_;  // of one of symbolic sizes
  TakeErrors take_errors_ = nullptr;  // of the calling thread: calls side by side keep theirs
};

}  // namespace tiny_compile
