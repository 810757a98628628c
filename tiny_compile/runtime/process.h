// Running another program, without a shell.
#pragma once

#include <string>
#include <vector>

namespace tiny_compile {

struct ProcessResult {
  int exit_code = 0;  // -1 where a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string output;  // what it wrote to stdout and stderr, the first megabyte
};

// Feeds `input` to the program's standard input and waits. argv[0] is looked for on PATH.
// Throws tc::Error where it cannot be started.
ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          double timeout_seconds);

// The absolute path of a program on PATH, or "".
std::string find_program(const std::string& name);

}  // namespace tiny_compile
