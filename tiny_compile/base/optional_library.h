// Libraries that may or may not be on this machine: opened at run time, by any of their names.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

// Opened once and never closed: drivers do not like to be unloaded.
class OptionalLibrary {
 public:
  // The first of `names` that opens, also looked for in
  // $CUDA_HOME/lib64 and /usr/local/cuda/lib64.
  explicit OptionalLibrary(std::vector<std::string> names);

  bool found() const { return handle_ != nullptr; }
  const std::string& problem() const {
    return problem_;
  }  // what was tried and what dlopen said

  // The function of that name, of any pointer type; throws tc::Error where it is missing.
  template <typename Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address(name));
  }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;
  std::string problem_, name_;
};

}  // namespace tiny_compile
