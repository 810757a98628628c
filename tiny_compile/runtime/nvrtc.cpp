// How does CUDA text become code for one GPU? NVRTC compiles it to a CUBIN in memory: no files,
// no driver, no GPU. An error is shown with the lines of the generated source it is about.
#include "tiny_compile/runtime/nvrtc.h"

#include <cstdlib>
#include <vector>

#include "tiny_compile/base/optional_library.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile {
namespace {

constexpr int kMostQuoted = 3;  // errors whose lines are shown
constexpr int kInvalidOption = 5;
constexpr int kLeast = 1201;  // 12.0 has no st.async, with which clusters meet

// The last three save time and change no code: no cache beside ours; no textures, no launches
// from kernels; kernels beside each other on all cores (for one alone 5% more time), in a source's first unit, which
// may be long, and where it has no others. `since` is
// the first NVRTC that takes it, found by trying: one that knows it not refuses every source.
struct Option {
  const char* text;
  int since;
};
constexpr Option kOptions[] = {
    {"--fmad=false", 0}, {"--std=c++17", 0}, {"--no-cache", 1209}, {"--minimal", 1204}};
constexpr Option kSplitCompile = {"--split-compile=0", 1205};  // 12.4 complains in its log

// The entry points used, declared as nvrtc.h does.
struct Nvrtc {
  struct Opaque;
  using Program = Opaque*;
  int (*version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  OptionalLibrary library;
  std::string problem;
  int number = 0;  // 12.4: 1204

  Nvrtc() : library({"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
    if (!library.found()) {
      problem = "NVRTC is missing: " + library.problem();
      return;
    }
    library.find(version, "nvrtcVersion");
    int major = 0, minor = 0;
    version(&major, &minor);
    number = major * 100 + minor;
    problem = why_not_nvrtc(number);
    if (problem.empty())
      find_functions();
    else
      problem += ": " + library.path();
  }

  void find_functions() {
    library.find(error_string, "nvrtcGetErrorString");
    library.find(create, "nvrtcCreateProgram");
    library.find(destroy, "nvrtcDestroyProgram");
    library.find(compile, "nvrtcCompileProgram");
    library.find(cubin_size, "nvrtcGetCUBINSize");
    library.find(cubin, "nvrtcGetCUBIN");
    library.find(log_size, "nvrtcGetProgramLogSize");
    library.find(log, "nvrtcGetProgramLog");
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc opened;  // the library, not a state of ours
  return opened;
}

const Nvrtc& needed_nvrtc() {
  if (!nvrtc().problem.empty())
    fail("CUDA source cannot be compiled: ", nvrtc().problem,
         ". Install the CUDA Toolkit, 12.1 or later, or set CUDA_HOME to where it is");
  return nvrtc();
}

void check(int result, const char* what) {
  if (result != 0) fail("NVRTC: ", what, ": ", nvrtc().error_string(result));
}

struct ProgramHandle {
  Nvrtc::Program program = nullptr;
  ~ProgramHandle() {
    if (program) nvrtc().destroy(&program);
  }
};

// "kernels.cu(12): error: ..." => lines 10..13 of the source.
std::string lines_of_errors(const std::string& source, const std::string& log) {
  std::string text;
  size_t at = 0;
  for (int quoted = 0; quoted < kMostQuoted; quoted++) {
    at = log.find("): error", at);
    if (at == std::string::npos) break;
    const int wrong = std::atoi(log.c_str() + log.rfind('(', at) + 1);
    text += numbered_lines(source, wrong - 2, wrong + 1, wrong);
    at++;
  }
  return text;
}

}  // namespace

std::string why_no_nvrtc() { return nvrtc().problem; }

std::string why_not_nvrtc(int version) {
  if (version >= kLeast) return "";
  return str("NVRTC ", kLeast / 100, ".", kLeast % 100, " or later is needed, this is ",
             version / 100, ".", version % 100);
}

std::string why_no_gpu() {
  const std::string driver = why_no_cuda();
  return driver.empty() ? why_no_nvrtc() : driver;
}

std::vector<const char*> nvrtc_options(int version, bool many_kernels) {
  std::vector<const char*> options;
  for (const Option& option : kOptions) {
    if (version >= option.since) options.push_back(option.text);
  }
  if (many_kernels && version >= kSplitCompile.since) options.push_back(kSplitCompile.text);
  return options;
}

std::string nvrtc_identity(const std::string& directory) {
  std::string options;  // all there are: which of them this file takes, the file decides
  for (const Option& option : kOptions) options += str(" ", option.text);
  const std::string key = content_key({{"nvrtc in", library_search_state()}});
  if (const auto entry = find_cached(directory, key)) {
    // As it was written, less what the cache adds: "/usr/lib/libnvrtc.so.13 109338064 176...\n"
    const std::string text = read_file(*entry), known = text.substr(0, text.find('\n'));
    const size_t time = known.rfind(' '), size = known.rfind(' ', time - 1);
    if (!known.empty() && file_identity(known.substr(0, size)) == known) return known + options;
  }
  const std::string opened = needed_nvrtc().library.identity();
  if (!opened.empty()) store_text(directory, key, opened + "\n");
  return opened + options;
}

std::string compile_cuda(const std::string& source, const std::string& architecture, int unit) {
  const Nvrtc& n = needed_nvrtc();
  ProgramHandle handle;
  check(n.create(&handle.program, source.c_str(), "kernels.cu", 0, nullptr, nullptr), "create");
  const std::string target = "--gpu-architecture=" + architecture;
  const size_t first = source.find("__global__");
  const bool many = unit <= 0 && first != std::string::npos &&
                    source.find("__global__", first + 1) != std::string::npos;
  std::vector<const char*> options = nvrtc_options(n.number, many);
  options.push_back(target.c_str());
  const std::string part = str("--define-macro=TC_UNIT=", unit);
  if (unit >= 0) options.push_back(part.c_str());
  const int result =
      n.compile(handle.program, static_cast<int>(options.size()), options.data());
  if (result != 0) {
    size_t size = 0;
    check(n.log_size(handle.program, &size), "log");
    std::string log(size, '\0');
    if (size > 0) check(n.log(handle.program, log.data()), "log");
    if (result == kInvalidOption)
      fail("NVRTC ", n.number / 100, ".", n.number % 100, " (", n.library.path(),
           ") cannot compile for ", architecture, ":\n", log.c_str(),
           "A GPU newer than it needs a later CUDA Toolkit: install one, or set CUDA_HOME to ",
           "where it is");
    fail("NVRTC refuses the generated source for ", architecture, " (", n.error_string(result),
         "):\n", log.c_str(), lines_of_errors(source, log));
  }
  size_t size = 0;
  check(n.cubin_size(handle.program, &size), "CUBIN");
  std::string cubin(size, '\0');
  check(n.cubin(handle.program, cubin.data()), "CUBIN");
  return cubin;
}

}  // namespace tiny_compile
