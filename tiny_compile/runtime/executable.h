// A Program whose kernels are loaded: inputs in, outputs out.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

class Executable {
 public:
  Executable(const Program& program, const CppSource& source, BuiltLibrary built);

  // Inputs in the order of the Program's input buffers, with the strides it was made for.
  // Outputs are new tensors, or inputs that the function returns as they are. Throws tc::Error
  // where a kernel met an index out of range or an integer division by zero, or where memory
  // runs out. Safe to call from many threads.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;

  bool from_cache() const { return built_.from_cache; }
  double compile_seconds() const { return built_.compile_seconds; }

 private:
  using Function = void (*)(void* const* buffers, long long begin, long long end);
  using TakeErrors = unsigned (*)();
  struct Kernel {
    Function function;
    int64_t units, grain;
  };
  struct Place {  // of a buffer: where its address comes from
    Role role;
    int slot;       // the input or output it is
    int64_t bytes;  // inputs: from element [0,...,0] down to the lowest; temporaries: place
  };
  struct Output {
    int input = -1;            // the input it is, or
    DType dtype = DType::f32;  // a new tensor
    Sizes shape;
  };

  unsigned run_kernel(const Kernel& kernel, void* const* buffers) const;
  std::shared_ptr<Storage> allocate_outputs(std::vector<Tensor>& made) const;

  std::string name_;
  BuiltLibrary built_;
  std::vector<Kernel> kernels_;  // in launch order
  std::vector<Place> places_;
  std::vector<Output> outputs_;
  std::vector<int> output_of_;  // the slot of each returned value
  int64_t arena_bytes_ = 0;
  TakeErrors take_errors_ = nullptr;  // of the calling thread: calls side by side keep theirs
};

}  // namespace tiny_compile
