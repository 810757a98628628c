// How fast can text become code? The compiler's time goes with what it reads and optimises: no
// headers, no start-up files, no exceptions, one unit a graph, the source through a pipe.
//
// Contraction is off (the numeric contract); -fno-math-errno and -fno-trapping-math let square
// roots and comparisons become vector code and change no result.
#include "tiny_compile/runtime/cpp_toolchain.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/runtime/process.h"

namespace tiny_compile {
namespace {

constexpr double kTimeoutSeconds = 600;
constexpr size_t kMostWords = 2000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string find_compiler() {
  for (const char* variable : {"TC_CXX", "CXX"}) {
    const std::string chosen = environment(variable);
    if (chosen.empty()) continue;
    const std::string path = find_program(chosen);
    if (path.empty())
      fail("no C++ compiler '", chosen, "' (from $", variable,
           "): install it or name another one");
    return path;
  }
  for (const char* name : {"g++", "clang++", "c++"}) {
    const std::string path = find_program(name);
    if (!path.empty()) return path;
  }
  fail(
      "no C++ compiler on PATH: install g++ or clang++, or set TC_CXX (the interpreter backend "
      "needs none)");
}

// The first line of flags in /proc/cpuinfo: -march=native means another binary on another CPU.
std::string cpu_features() {
  std::ifstream in("/proc/cpuinfo");
  std::string line, features;
  while (std::getline(in, line)) {
    if (line.rfind("model name", 0) == 0) features += line;
    if (line.rfind("flags", 0) == 0) return features + line;
  }
  return features;
}

std::string identity_of(const std::string& compiler) {
  struct stat status = {};
  stat(compiler.c_str(), &status);
  static const std::string features = cpu_features();
  return str(compiler, " ", status.st_size, " ", status.st_mtime, " ", features);
}

std::string numbered(const std::string& source, size_t line) {
  std::istringstream in(source);
  std::string text, result;
  for (size_t number = 1; std::getline(in, text); number++) {
    if (number + 4 >= line && number <= line + 4)
      result += str(number == line ? "> " : "  ", number, "  ", text, "\n");
  }
  return result;
}

// "<stdin>:12:5: error: ..." gives 12.
size_t first_error_line(const std::string& words) {
  const size_t error = words.find("error");
  const size_t at = words.rfind("<stdin>:", error);
  return at == std::string::npos ? 0 : static_cast<size_t>(std::atoll(words.c_str() + at + 8));
}

[[noreturn]] void fail_compile(const ProcessResult& result, const CppToolchain& toolchain,
                               const std::string& source) {
  keep_text("failed.cpp", source);
  std::string why = str("exit code ", result.exit_code);
  if (result.signal) why = str("killed by signal ", result.signal);
  if (result.timed_out) why = str("no answer in ", kTimeoutSeconds, " seconds");
  const size_t line = first_error_line(result.output);
  fail("the C++ compiler failed (", toolchain.compiler, ", ", why, "):\n",
       result.output.substr(0, kMostWords),
       line ? "\nthe generated source there:\n" + numbered(source, line) : "",
       "\nSet TC_DEBUG_DIR to keep the whole source, or TC_CXX to use another compiler.");
}

}  // namespace

SharedLibrary::SharedLibrary(const std::string& path, bool remove_file) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = handle_ ? nullptr : dlerror();
  const std::string why = error ? error : "";
  if (remove_file) unlink(path.c_str());
  if (!handle_) fail("cannot load compiled kernels: ", why);
}

SharedLibrary::~SharedLibrary() {
  if (handle_) dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (!address) fail("compiled kernels lack '", name, "'");
  return address;
}

CppToolchain default_toolchain() {
  CppToolchain toolchain;
  toolchain.compiler = find_compiler();
  toolchain.flags = {"-x",
                     "c++",
                     "-std=c++20",
                     "-O3",
                     "-march=native",
                     "-fPIC",
                     "-shared",
                     "-w",
                     "-pipe",
                     "-ffp-contract=off",
                     "-fno-math-errno",
                     "-fno-trapping-math",
                     "-fwrapv",
                     "-fno-exceptions",
                     "-fno-rtti",
                     "-fno-asynchronous-unwind-tables",
                     "-fno-stack-protector",
                     "-fvisibility=default"};
  std::istringstream extra(environment("TC_CXXFLAGS"));
  std::string flag;
  bool plain = true;
  while (extra >> flag) {
    plain = false;
    toolchain.flags.push_back(flag);
  }
  if (plain) toolchain.flags.push_back("-nostdlib");
  toolchain.identity = identity_of(toolchain.compiler);
  return toolchain;
}

BuiltLibrary build_cpp(const std::string& source, const CppToolchain& toolchain) {
  const std::string key = content_key({{"source", source},
                                       {"flags", join(toolchain.flags, " ")},
                                       {"compiler", toolchain.identity}});
  const std::string directory = cache_directory();
  keep_text(key + ".cpp", source);
  if (const auto path = find_cached(directory, key)) {
    log("cache", str("hit ", key));
    return {std::make_shared<SharedLibrary>(*path, false), true, 0};
  }
  log("cache",
      str("miss ", key, ": compiling ", source.size(), " bytes with ", toolchain.compiler));
  const std::string target = temporary_file(directory);
  std::vector<std::string> argv = {toolchain.compiler};
  argv.insert(argv.end(), toolchain.flags.begin(), toolchain.flags.end());
  argv.insert(argv.end(), {"-o", target, "-"});
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = run_process(argv, source, kTimeoutSeconds);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (result.exit_code != 0) {
    unlink(target.c_str());
    fail_compile(result, toolchain, source);
  }
  const std::string path = store_cached(directory, key, target);
  return {std::make_shared<SharedLibrary>(path, path == target), false, seconds};
}

}  // namespace tiny_compile
