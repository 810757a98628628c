// How fast can text become code? The compiler's time goes with what it reads and optimises: no
// headers, no start-up files, no exceptions, equal kernels once, the source through a pipe, a long
// one in several units side by side.
//
// Contraction is off (the numeric contract); -fno-math-errno and -fno-trapping-math let square
// roots and comparisons become vector code and change no result.
#include "tiny_compile/runtime/cpp_toolchain.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/cpp_units.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/runtime/process.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostWords = 2000;
constexpr uint64_t kLeastFreeBytes = 1 << 20;  // of a disk that a compiler may have filled
constexpr const char* kFlags =
    "-x c++ -std=c++20 -O3 -march=native -fPIC -shared -w -pipe -ffp-contract=off "
    "-fno-math-errno -fno-trapping-math -fwrapv -fno-exceptions -fno-rtti "
    "-fno-asynchronous-unwind-tables -fno-stack-protector -fvisibility=default";

// g++ would follow each arm of a clamp through all that comes after it, and not vectorise; and call
// memcpy for each line of a picture that is copied.
constexpr const char* kGccFlags =
    "-fno-tree-pre -fno-thread-jumps -fno-tree-loop-distribute-patterns";

// On Intel's machines compilers prefer half of the widest vectors: up to twice the time here.
#ifdef __x86_64__
constexpr const char* kMachineFlags = "-mprefer-vector-width=512";
#else
constexpr const char* kMachineFlags = "";
#endif

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// {"/usr/bin/ccache", "g++"} of "ccache g++". A path with spaces in it is taken whole.
std::vector<std::string> find_command(const std::string& words) {
  const std::string whole = find_program(words);
  if (!whole.empty()) return {whole};
  std::vector<std::string> command = words_of(words);
  if (command.empty()) return {};
  command[0] = find_program(command[0]);
  return command[0].empty() ? std::vector<std::string>() : command;
}

// The compiler, and the flags that go with its name.
std::vector<std::string> find_compiler() {
  for (const char* variable : {"TC_CXX", "CXX"}) {
    const std::string chosen = environment(variable);
    if (chosen.empty()) continue;
    const std::vector<std::string> command = find_command(chosen);
    if (!command.empty()) return command;
    fail("no C++ compiler '", chosen, "' (from $", variable,
         "): install it, or set TC_CXX to another one (the interpreter backend needs none)");
  }
  for (const char* name : {"g++", "clang++", "c++"}) {
    const std::string path = find_program(name);
    if (!path.empty()) return {path};
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
  return str(compiler, " ", status.st_size, " ", status.st_mtim.tv_sec, ".",
             status.st_mtim.tv_nsec, " ", features);
}

// "<stdin>:12:5: error: ..." gives 12.
int64_t first_error_line(const std::string& words) {
  const size_t error = words.find("error");
  const size_t at = words.rfind("<stdin>:", error);
  return at == std::string::npos ? 0 : std::atoll(words.c_str() + at + 8);
}

// How the compiler ended without a library.
std::string end_of(const ProcessResult& result, const CppToolchain& toolchain) {
  if (result.timed_out) return str("no end in ", toolchain.timeout_seconds, " seconds");
  if (result.signal) return str("killed by signal ", result.signal);
  if (result.exit_code == 0) return "exit code 0, but what it wrote is no whole library";
  return str("exit code ", result.exit_code);
}

[[noreturn]] void fail_compile(const ProcessResult& result, const CppToolchain& toolchain,
                               const std::string& source) {
  keep_text("failed.cpp", source);
  const std::string why = end_of(result, toolchain);
  const int64_t line = first_error_line(result.output);
  fail("the C++ compiler failed (", toolchain.compiler, ", ", why, "):\n",
       result.output.substr(0, kMostWords),
       line ? "\nthe generated source there:\n" +
                  numbered_lines(source, line - 4, line + 4, line)
            : "",
       "\nSet TC_DEBUG_DIR to keep the whole source, or TC_CXX to use another compiler.");
}

// A loader that maps a file cut short dies of SIGBUS: every part the headers name must be
// there. The section headers stand at the end of what ld and lld write.
bool is_whole_library(const std::string& content) {
  ElfW(Ehdr) header;
  if (content.size() < sizeof header) return false;
  std::memcpy(&header, content.data(), sizeof header);
  const auto fits = [&](uint64_t from, uint64_t bytes) {
    return from <= content.size() && bytes <= content.size() - from;
  };
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(ElfW(Phdr)) ||
      !fits(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize) ||
      !fits(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize))
    return false;
  for (int i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) part;
    std::memcpy(&part, content.data() + header.e_phoff + i * sizeof part, sizeof part);
    if (!fits(part.p_offset, part.p_filesz)) return false;
  }
  return true;
}

// The same bytes in memory, under a name that lasts as long as the descriptor does.
Descriptor copy_in_memory(const std::string& path) {
  const std::string content = read_file(path);
  Descriptor memory(memfd_create("tiny_compile", MFD_CLOEXEC));
  if (!memory || write(memory.get(), content.data(), content.size()) !=
                     static_cast<ssize_t>(content.size()))
    return Descriptor();
  return memory;
}

bool is_nearly_full(const std::string& place) {
  struct statvfs disk = {};
  return statvfs(place.c_str(), &disk) == 0 &&
         uint64_t{disk.f_bavail} * disk.f_frsize < kLeastFreeBytes;
}

// The compiler's words name a full disk, a quota or a limit, or a linker died of writing through
// a map of a file that could not grow, or there is hardly any room: another place may do.
bool may_lack_space(const ProcessResult& result, const std::string& place) {
  for (const char* words : {"No space left", "File too large", "File size limit exceeded",
                            "Bus error", "quota exceeded", "Cannot create temporary file"}) {
    if (result.output.find(words) != std::string::npos) return true;
  }
  return result.signal == SIGXFSZ || result.signal == SIGBUS || is_nearly_full(place);
}

ProcessResult run_compiler(const std::string& source, int units, const CppToolchain& toolchain,
                           const std::string& place, const std::string& target) {
  CompilerCall call = {
      {toolchain.compiler}, {"LC_ALL=C", "TMPDIR=" + place}, toolchain.timeout_seconds};
  call.argv.insert(call.argv.end(), toolchain.flags.begin(), toolchain.flags.end());
  if (units > 1) return compile_units(call, source, units, target);
  call.argv.insert(call.argv.end(), {"-o", target, "-"});
  return run_process(call.argv, source, call.timeout_seconds, call.settings);
}

std::shared_ptr<SharedLibrary> load_cached(const std::string& directory,
                                           const std::string& key) {
  const auto path = find_cached(directory, key);
  if (!path) return nullptr;
  try {
    return std::make_shared<SharedLibrary>(*path);
  } catch (const Error& error) {  // another process may have removed it meanwhile
    log("cache", str("entry ", key, " will not load: ", error.what()));
    return nullptr;
  }
}

}  // namespace

SharedLibrary::SharedLibrary(const std::string& path) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_) return;
  const char* error = dlerror();
  const std::string why = error ? error : "";
  if ((copy_ = copy_in_memory(path)))
    handle_ = dlopen(str("/proc/self/fd/", copy_.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_)
    fail("cannot load compiled kernels: ", why,
         "; set TC_CACHE_DIR to a directory that programs may be run from");
}

SharedLibrary::~SharedLibrary() {
  if (handle_) dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (!address)
    fail("compiled kernels lack '", name,
         "': the C++ compiler did not compile what it was given; set TC_CXX to another one");
  return address;
}

bool is_gcc(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.find("g++") != std::string::npos && name.find("clang") == std::string::npos;
}

// By its name, as it is called ("ccache g++", a link to ccache named g++) or as it is (c++ is a
// link to g++ on most systems).
bool is_gcc(const std::vector<std::string>& command) {
  char resolved[PATH_MAX];
  return std::any_of(command.begin(), command.end(),
                     [](const auto& word) { return is_gcc(word); }) ||
         (realpath(command[0].c_str(), resolved) && is_gcc(std::string(resolved)));
}

CppToolchain default_toolchain() {
  CppToolchain toolchain;
  const std::vector<std::string> command = find_compiler();
  toolchain.compiler = command[0];
  toolchain.flags = {command.begin() + 1, command.end()};
  const std::vector<std::string> extra = words_of(environment("TC_CXXFLAGS"));
  const char* bare = extra.empty() ? "-nostdlib" : "";  // what extra flags ask for may need one
  const char* gcc = is_gcc(command) ? kGccFlags : "";
  for (const std::vector<std::string>& flags :
       {words_of(kFlags), words_of(kMachineFlags), words_of(gcc), extra, words_of(bare)})
    toolchain.flags.insert(toolchain.flags.end(), flags.begin(), flags.end());
  toolchain.identity = identity_of(toolchain.compiler);
  return toolchain;
}

BuiltLibrary build_cpp(const std::string& source, const CppToolchain& toolchain, int units) {
  const std::string key = content_key({{"source", source},
                                       {"flags", join(toolchain.flags, " ")},
                                       {"compiler", toolchain.identity}});
  const std::string directory = cache_directory();
  keep_text(key + ".cpp", source);
  if (auto library = load_cached(directory, key)) {
    log("cache", str("hit ", key));
    return {std::move(library), true, 0};
  }
  log("cache",
      str("miss ", key, ": compiling ", source.size(), " bytes with ", toolchain.compiler));
  std::string last = "none could be written to";
  for (const std::string& place :
       {directory, environment("TMPDIR"), std::string("/dev/shm"), std::string("/tmp")}) {
    const TemporaryDirectory temporary(place);
    if (temporary.path().empty()) continue;
    const std::string target = temporary.path() + "/kernels.so";
    const auto start = std::chrono::steady_clock::now();
    const ProcessResult result =
        run_compiler(source, units, toolchain, temporary.path(), target);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (result.exit_code == 0 && is_whole_library(read_file(target))) {
      auto library = std::make_shared<SharedLibrary>(target);
      if (place == directory && !store_cached(directory, key, target))
        log("cache", str("not stored: ", directory, " is full or cannot be written to"));
      return {std::move(library), false, spent.count()};
    }
    if (!may_lack_space(result, place)) fail_compile(result, toolchain, source);
    last = str("in ", place, " the compiler (", toolchain.compiler, ") ended with ",
               end_of(result, toolchain), " ", result.output.substr(0, kMostWords));
    log("cache", str("no room: ", last));
  }
  fail(
      "no place for compiled kernels: the cache's directory, $TMPDIR, /dev/shm and /tmp are "
      "full, limited or not to be written to; free some space, or set TC_CACHE_DIR to another "
      "disk (",
      last, ")");
}

}  // namespace tiny_compile
