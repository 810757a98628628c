// Source text -> a loaded library, through the system's C++ compiler.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tiny_compile {

// A library that dlopen loaded; unloaded when the last owner goes.
class SharedLibrary {
 public:
  SharedLibrary(const std::string& path, bool remove_file);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  void* symbol(const char* name) const;  // throws tc::Error where it is missing

 private:
  void* handle_ = nullptr;
};

struct CppToolchain {
  std::string compiler;  // absolute path
  std::vector<std::string> flags;
  std::string identity;  // path, size and time of the compiler; the CPU's features
};

// $TC_CXX, else $CXX, else g++, clang++ or c++ on PATH; $TC_CXXFLAGS is appended. Throws
// tc::Error where there is no compiler.
CppToolchain default_toolchain();

struct BuiltLibrary {
  std::shared_ptr<SharedLibrary> library;
  bool from_cache = false;
  double compile_seconds = 0;  // of the compiler's process
};

// Throws tc::Error with the compiler's words and the lines they are about.
BuiltLibrary build_cpp(const std::string& source, const CppToolchain& toolchain);

}  // namespace tiny_compile
