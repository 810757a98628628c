// tc: the compiler at the command line. See commands.h.
#include <iostream>

#include "tiny_compile/cli/commands.h"

int main(int argc, char** argv) {
  return tiny_compile::run_tc({argv + 1, argv + argc}, std::cin, std::cout, std::cerr);
}
