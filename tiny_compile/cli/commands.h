// tc's commands, apart from main, so that tests can call them.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace tiny_compile {

// `words` without the program's name. Returns the exit code: 0 right, 1 the user's mistake
// (told to `problems`), 2 results differ. A FILE of "-" is read from `in`.
int run_tc(const std::vector<std::string>& words, std::istream& in, std::ostream& out,
           std::ostream& problems);

}  // namespace tiny_compile
