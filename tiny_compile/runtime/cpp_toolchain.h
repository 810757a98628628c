// Source text -> a loaded library, through the system's C++ compiler.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tiny_compile/runtime/descriptor.h"

namespace tiny_compile {

// A library that dlopen loaded; unloaded when the last owner goes. The file may go before.
class SharedLibrary {
 public:
  explicit SharedLibrary(const std::string& path);  // throws tc::Error where it will not load
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  void* symbol(const char* name) const;  // throws tc::Error where it is missing

 private:
  void* handle_ = nullptr;
  Descriptor copy_;  // in memory, where the file lies on a disk that nothing is run from
};

struct CppToolchain {
  std::string compiler;  // its path
  std::vector<std::string> flags;
  std::string identity;          // path, size and time of the compiler; the CPU's features
  double timeout_seconds = 600;  // then the compiler is taken to hang
};

// $TC_CXX, else $CXX, else g++, clang++ or c++ on PATH; a variable may hold flags behind
// the name ("ccache g++", "g++ -m64"). $TC_CXXFLAGS is appended. Throws tc::Error where
// there is no compiler.
CppToolchain default_toolchain();

struct BuiltLibrary {
  std::shared_ptr<SharedLibrary> library;
  bool from_cache = false;
  double compile_seconds = 0;  // of the compiler's process, or of all of them
};

// From the disk cache, else compiled in the cache's directory, or, where that is full or
// missing, in $TMPDIR, /dev/shm or /tmp. Throws tc::Error with the compiler's words and the
// lines they are about. `units`: see Source; of a text that has several, 1 compiles all at once.
BuiltLibrary build_cpp(const std::string& source, const CppToolchain& toolchain, int units = 1);

}  // namespace tiny_compile
