// What tests of the runtime need around them: a directory, an environment, a process
// of their own.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "tiny_compile/base/error.h"

// What a test case begins with that needs a GPU; why_no_gpu() is in runtime/nvrtc.h.
#define NEEDS_GPU \
  if (!::tiny_compile::why_no_gpu().empty()) SKIP(::tiny_compile::why_no_gpu())

namespace tiny_compile::tests {

// A directory under /tmp that goes with its contents, also where a compiler whose parent was
// killed still removes files of its own there.
class Scratch {
 public:
  Scratch() { path_ = mkdtemp(pattern_); }
  ~Scratch() {
    std::error_code error;
    for (int turn = 0; turn < 100; turn++) {
      std::filesystem::remove_all(path_, error);
      if (!error) return;
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  char pattern_[32] = "/tmp/tc-test-XXXXXX";
  std::string path_;
};

// An environment variable for as long as this lives; nullptr unsets it.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  Setting(const char* name, const std::string& value) : Setting(name, value.c_str()) {}
  ~Setting() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_program(const std::string& path, const std::string& script) {
  write_text(path, "#!/bin/sh\n" + script);
  chmod(path.c_str(), 0755);
}

inline size_t count_in(const std::string& directory) {
  size_t count = 0;
  for (const auto& item : std::filesystem::directory_iterator(directory)) {
    (void)item;
    count++;
  }
  return count;
}

inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A process that does one thing: its exit code is what the action returns; 100 where it threw,
// 128 + signal where one ended it.
class Child {
 public:
  explicit Child(const std::function<int()>& action) {
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    alarm(20);
    int code = 100;
    try {
      code = action();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    std::fflush(nullptr);
    _exit(code);
  }
  pid_t pid() const { return pid_; }
  int wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

inline int in_child(const std::function<int()>& action) { return Child(action).wait(); }

// In a child: mounts a small file system that only this process sees. False where that
// is not allowed.
inline bool mount_small(const std::string& directory, const char* options,
                        unsigned long flags = 0) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", directory.c_str(), "tmpfs", flags, options) == 0;
}

// Address sanitizer's allocator ends a process whose memory is limited.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif
#else
constexpr bool kLimitsMemory = true;
#endif

constexpr int kNotAllowed = 77;  // a child's answer where it may not mount

}  // namespace tiny_compile::tests
