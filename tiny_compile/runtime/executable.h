// A Program whose kernels are loaded: inputs in, outputs out (see runtime/build.h).
#pragma once

#include <span>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/runtime/buffers.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

namespace tiny_compile {

class Executable {
 public:
  Executable(const Program& program, const Source& source, BuiltLibrary built);

  std::vector<Tensor> run(std::span<const Tensor> inputs) const;

 private:
  using Function = void (*)(void* const* buffers, long long begin, long long end);
  using TakeErrors = unsigned (*)();
  struct Kernel {
    Function function;
    KernelEntry entry;
  };

  unsigned run_kernel(const Kernel& kernel, const std::vector<void*>& buffers) const;

  std::string name_;
  std::string suspects_;  // of an index out of range
  BuiltLibrary built_;
  std::vector<Kernel> kernels_;  // in launch order
  BufferPlan plan_;
  TakeErrors take_errors_ = nullptr;  // of the calling thread: calls side by side keep theirs
};

}  // namespace tiny_compile
