// The course's programs, beside the test binary.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tiny_compile/runtime/process.h"

namespace tiny_compile::tests {

inline std::string tool(const std::string& name) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return self.parent_path() / "lessons" / name;
}

// A directory that goes with the object.
class Scratch {
 public:
  Scratch() {
    std::string name = std::filesystem::temp_directory_path() / "tc_lessons_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Writes a file, its directories included; returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  // A program that prints this and ends with that code.
  std::string program(const std::string& name, const std::string& text, int code) const {
    const std::string path = write(
        name, "#!/bin/sh\ncat <<'END'\n" + text + "END\nexit " + std::to_string(code) + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::filesystem::path path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tiny_compile::tests
