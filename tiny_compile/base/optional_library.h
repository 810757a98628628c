// Libraries that may or may not be on this machine: opened at run time, by any of their names.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

// The file's path, size and time of change, which an upgrade in place changes; "" without it.
std::string file_identity(const std::string& path);

// What decides which file a name opens, as far as it can be seen without opening it: the
// environment, the directories it names, the system's list of libraries, this program. While
// this text stays the same, the same file is found.
std::string library_search_state();

// Opened once and never closed: drivers do not like to be unloaded.
class OptionalLibrary {
 public:
  // The first of `names` that opens, also looked for in
  // $CUDA_HOME/lib64 and /usr/local/cuda/lib64.
  explicit OptionalLibrary(const std::vector<std::string>& names);

  bool found() const { return handle_ != nullptr; }
  // What was tried, and what dlopen said of the first file that is there and does not open,
  // or else of the first name.
  const std::string& problem() const { return problem_; }
  std::string path() const;  // "/usr/lib/libnvrtc.so.13"; "" where it was not found

  // Which file it is: "/usr/lib/libnvrtc.so.13 109338064 1760564169.0", as file_identity() says.
  std::string identity() const;

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
