// make train, make sample: see train_options.cpp for what may be told.
//
// Exit codes: 0 right, 1 the user's mistake, or the machine's.
#include <iostream>

#include "tiny_compile/cli/train_command.h"

int main(int argc, char** argv) {
  return tiny_compile::run_train({argv + 1, argv + argc}, std::cout, std::cerr);
}
