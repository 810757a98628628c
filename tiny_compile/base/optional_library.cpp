// How can one binary run with and without a GPU? Nothing of CUDA is linked; what is there is
// opened when it is first asked for, and what is missing is named.
#include "tiny_compile/base/optional_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace tiny_compile {
namespace {

// What dlopen says after the name of a file that it found nowhere; after another file's name:
// that one is missing to a library that was found.
constexpr const char* kAbsent = ": cannot open shared object file: No such file or directory";

}  // namespace

std::string file_identity(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return "";
  return str(path, " ", status.st_size, " ", status.st_mtim.tv_sec, ".",
             status.st_mtim.tv_nsec);
}

std::string library_search_state() {
  std::string state =
      file_identity("/etc/ld.so.cache") + file_identity("/usr/local/cuda/lib64");
  for (const char* variable : {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(variable);
    state += str("\n", variable, "=", value ? value : "(unset)");
    std::istringstream folders(value ? value : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      state += str("\n", file_identity(folder), "\n", file_identity(folder + "/lib64"));
  }
  char program[4096];  // it may bring a search path of its own
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  return str(state, "\n", std::string(program, length > 0 ? static_cast<size_t>(length) : 0));
}

OptionalLibrary::OptionalLibrary(const std::vector<std::string>& names) {
  bool there = false;  // one that is there and does not open is what its owner wants to hear of
  std::vector<std::string> folders = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) folders.push_back(str(home, "/lib64/"));
  }
  folders.push_back("/usr/local/cuda/lib64/");
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      const std::string path = folder + name;
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      name_ = name;
      if (handle_) return;
      const std::string error = dlerror();
      const bool absent = error == path + kAbsent;
      if (problem_.empty() || (!there && !absent)) problem_ = error;
      there |= !absent;
    }
  }
  problem_ = str("none of ", join(names, ", "), " could be opened (", problem_, ")");
}

std::string OptionalLibrary::path() const {
  link_map* map = nullptr;
  if (!handle_ || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return "";
  return map->l_name;
}

std::string OptionalLibrary::identity() const { return file_identity(path()); }

void* OptionalLibrary::address(const char* name) const {
  if (!handle_) fail(problem_);
  void* found = dlsym(handle_, name);
  if (!found) fail(name_, " has no function ", name, ": another version is needed");
  return found;
}

}  // namespace tiny_compile
