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
// `settings` ("TMPDIR=/x") go before the environment's own. At the time limit the program dies
// with all that it started. Where the caller ignores SIGCHLD nobody learns exit codes: then 0.
// Throws tc::Error where the program cannot be started.
ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          double timeout_seconds,
                          const std::vector<std::string>& settings = {});

// Where PATH finds a program, or "". A name with a slash is only checked.
std::string find_program(const std::string& name);

}  // namespace tiny_compile
