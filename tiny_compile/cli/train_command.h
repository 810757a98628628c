// `make train` and `make sample`, apart from main, so that tests can call them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tiny_compile {

// `words` without the program's name. What is made is told to `out`, mistakes to `problems`; a
// terminal also gets a progress bar on the standard error. Returns the exit code: 0 right, 1 the
// user's mistake or the machine's.
int run_train(const std::vector<std::string>& words, std::ostream& out, std::ostream& problems);

// Text of any bytes as a terminal can show it: broken UTF-8 and control characters become "?".
std::string printable(const std::string& text);

}  // namespace tiny_compile
