// How can one binary run with and without a GPU? Nothing of CUDA is linked; what is there is
// opened when it is first asked for, and what is missing is named.
#include "tiny_compile/base/optional_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace tiny_compile {

OptionalLibrary::OptionalLibrary(std::vector<std::string> names) {
  std::vector<std::string> folders = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) folders.push_back(str(home, "/lib64/"));
  }
  folders.push_back("/usr/local/cuda/lib64/");
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      name_ = name;
      if (handle_) return;
      if (problem_.empty()) problem_ = dlerror();
    }
  }
  problem_ = str("none of ", join(names, ", "), " could be opened (", problem_, ")");
}

void* OptionalLibrary::address(const char* name) const {
  if (!handle_) fail(problem_);
  void* found = dlsym(handle_, name);
  if (!found) fail(name_, " has no function ", name, ": another version is needed");
  return found;
}

}  // namespace tiny_compile
