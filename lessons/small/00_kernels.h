// How does text become something that runs? The system's C++ compiler makes a shared library of it,
// NVRTC a GPU's machine code, and both are loaded while the program runs. A kernel is called with
// its arrays, which it knows as b0, b1, ..; a launch says which of the program's arrays they are:
//
//   {"k3", arrays {0, 2, 3}, text "extern "C" void k3(Arguments a) { float* const b0 = a.b[0]; .."}
//
// Left out: a cache of what was compiled, two calls at once, several GPUs.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "lessons/small/00_elements.h"
#include "prelude_text.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace small {

struct Arguments {
  float* b[64];
  long long n[16];  // sizes and constants that the text leaves open (14)
  float c[16];
};
constexpr const char* kArguments =
    "struct Arguments { float* b[64]; long long n[16]; float c[16]; };\n";

constexpr const char* kThread =
    "  const unsigned block = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;\n";

struct Launch {
  std::string name;
  Ids arrays;
  int64_t blocks = 1;  // CUDA
  int threads = 256;
  std::string text = "";  // of the kernel
  std::vector<long long> sizes = {};
  Array constants = {};
};

// How a source begins: what C++ or CUDA call a function, then the shared math.
inline std::string beginning(bool cuda) {
  const std::string linkage = cuda ? "static __device__ inline" : "static inline";
  return "#define TC_FN " + linkage + "\n#define TC_FAIL(code)\n" + kPreludeText + kLoops +
         kArguments;
}
// A kernel's first lines: its arrays' names and, on a GPU, its thread.
inline std::string head(const Launch& launch, bool cuda) {
  const std::string bounds = str("__global__ void __launch_bounds__(", launch.threads, ") ");
  std::string text =
      str("extern \"C\" ", cuda ? bounds : "void ", launch.name, "(Arguments a) {\n");
  for (size_t k = 0; k < launch.arrays.size(); k++)
    text += str("  float* const __restrict__ b", k, " = (float*)__builtin_assume_aligned(a.b[",
                k, "], 16);\n");
  return text + (cuda ? kThread : "");
}

using Addresses = std::vector<float*>;  // of the program's arrays
using Run = std::function<void(const Launch&, const Addresses&)>;

inline Arguments arguments_of(const Launch& launch, const Addresses& addresses) {
  if (launch.arrays.size() > 64) throw Error(launch.name + " has more than 64 arrays");
  Arguments arguments = {};
  for (size_t k = 0; k < launch.arrays.size(); k++)
    arguments.b[k] = addresses[static_cast<size_t>(launch.arrays[k])];
  std::ranges::copy(launch.sizes, arguments.n);
  std::ranges::copy(launch.constants, arguments.c);
  return arguments;
}

inline Run compile_cpp(const std::string& text) {
  std::string directory = std::filesystem::temp_directory_path() / "small_XXXXXX";
  if (!mkdtemp(directory.data())) throw Error("no directory can be made in " + directory);
  const std::string source = directory + "/kernels.cpp", library = directory + "/kernels.so";
  std::ofstream(source) << beginning(false) << text;
  const char* compiler = std::getenv("CXX");
  const std::string command =
      str(compiler && *compiler ? compiler : "c++",
          " -std=c++20 -O3 -march=native -ffp-contract=off -fno-trapping-math -fopenmp -shared "
          "-fPIC '",
          source, "' -o '", library, "' 2> '", directory, "/errors'");
  const int status = std::system(command.c_str());
  std::ifstream errors(directory + "/errors");
  const std::string said{std::istreambuf_iterator<char>(errors), {}};
  // It stays loaded: OpenMP's threads are in it.
  void* const loaded =
      status == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : nullptr;
  std::filesystem::remove_all(directory);
  if (!loaded) throw Error("the C++ compiler failed: " + command + "\n" + said);
  return [loaded](const Launch& launch, const Addresses& addresses) {
    void* const kernel = dlsym(loaded, launch.name.c_str());
    if (!kernel) throw Error("no kernel " + launch.name);
    reinterpret_cast<void (*)(Arguments)>(kernel)(arguments_of(launch, addresses));
  };
}

namespace driver = tiny_compile::driver;
inline Run compile_cuda(const std::string& text) {
  const tiny_compile::CudaDevice& device = tiny_compile::cuda_device(0);
  const tiny_compile::CudaScope scope(0);
  const std::string code =
      tiny_compile::compile_cuda(beginning(true) + text, device.architecture);
  const std::shared_ptr<tiny_compile::CUmod_st> loaded(driver::load_module(code),
                                                       driver::unload_module);
  return [loaded](const Launch& launch, const Addresses& addresses) {
    Arguments arguments = arguments_of(launch, addresses);
    void* passed[] = {&arguments};
    if (launch.blocks > 0)
      driver::launch(driver::find_function(loaded.get(), launch.name), launch.blocks,
                     launch.threads, 0, nullptr, passed);
  };
}

}  // namespace small
