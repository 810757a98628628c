// How does text become something that runs? The system's C++ compiler makes a shared library of it,
// NVRTC a GPU's machine code, and both are loaded while the program runs. A kernel finds its arrays
// in b:
//
//   extern "C" void k3(float* const* b) { .. }     in CUDA a __global__ function
//
// Left out: a cache of what was compiled, streams, several GPUs.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "lessons/small/00_elements.h"
#include "prelude_text.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace small {

// What a source begins with: the shared math, after what C++ or CUDA call a function.
inline std::string beginning(bool cuda) {
  const std::string linkage = cuda ? "static __device__ inline" : "static inline";
  return "#define TC_FN " + linkage + "\n#define TC_FAIL(code)\n" + kPreludeText + kLoops;
}

// A kernel that does this for each i below `points`; CUDA: in blocks of 256 threads.
inline std::string kernel(const std::string& name, int64_t points, const std::string& each,
                          bool cuda) {
  const std::string head = "void " + name + "(float* const* b) {\n",
                    most = std::to_string(points);
  return cuda ? "extern \"C\" __global__ " + head +
                    "  const long long i = blockIdx.x * 256ll + threadIdx.x;\n" + "  if (i < " +
                    most + ") " + each + "\n}\n"
              : "extern \"C\" " + head + "  for (long long i = 0; i < " + most + "; i++) " +
                    each + "\n}\n";
}

// --- the CPU -----------------------------------------------------------------------------------

using CpuKernel = void (*)(float* const*);
using CpuLibrary = std::shared_ptr<void>;

inline CpuLibrary compile_cpp(const std::string& text) {
  std::string directory = std::filesystem::temp_directory_path() / "small_XXXXXX";
  if (!mkdtemp(directory.data())) throw Error("no directory can be made in " + directory);
  const std::string source = directory + "/kernels.cpp", library = directory + "/kernels.so";
  std::ofstream(source) << beginning(false) << text;
  const char* compiler = std::getenv("CXX");
  const std::string command = std::string(compiler && *compiler ? compiler : "c++") +
                              " -std=c++20 -O3 -march=native -ffp-contract=off "
                              "-fno-trapping-math -fopenmp -shared -fPIC " +
                              source + " -o " + library + " 2> " + directory + "/errors";
  const int status = std::system(command.c_str());
  std::ifstream errors(directory + "/errors");
  const std::string said{std::istreambuf_iterator<char>(errors), {}};
  void* const handle = status == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  std::filesystem::remove_all(directory);
  if (!handle) throw Error("the C++ compiler failed: " + command + "\n" + said);
  return {handle, [](void* opened) { dlclose(opened); }};
}

inline CpuKernel kernel_of(const CpuLibrary& library, const std::string& name) {
  void* const found = dlsym(library.get(), name.c_str());
  if (!found) throw Error("no kernel " + name);
  return reinterpret_cast<CpuKernel>(found);
}

}  // namespace small
