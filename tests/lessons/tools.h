// The course's programs, beside the test binary.
#pragma once

#include <filesystem>
#include <string>

#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/process.h"

namespace tiny_compile::tests {

inline std::string tool(const std::string& name) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return self.parent_path() / "lessons" / name;
}

// Writes a file of the scratch directory, its directories included; returns its path.
inline std::string write(const Scratch& scratch, const std::string& name,
                         const std::string& text) {
  const std::filesystem::path path = scratch.path(name);
  std::filesystem::create_directories(path.parent_path());
  write_text(path, text);
  return path;
}

// A program that prints this and ends with that code.
inline std::string program(const Scratch& scratch, const std::string& name,
                           const std::string& text, int code) {
  const std::string path =
      write(scratch, name,
            "#!/bin/sh\ncat <<'END'\n" + text + "END\nexit " + std::to_string(code) + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

}  // namespace tiny_compile::tests
