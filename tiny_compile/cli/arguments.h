// The words of a tc command: what there is to say, and what was said.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "tiny_compile/base/expr.h"
#include "tiny_compile/graph/sizes.h"

namespace tiny_compile {

std::string usage();

struct Arguments {
  std::string command, kind, file;  // kind: of picture
  std::istream* input = nullptr;    // read where the file is "-"
  std::map<std::string, std::string> options;
  std::vector<std::string> in;
  SizeValues sizes;

  std::string option(const std::string& name, const std::string& otherwise) const {
    const auto at = options.find(name);
    return at == options.end() ? otherwise : at->second;
  }
};

// Throws tc::Error, with what there is, for an option that is none or lacks its value.
Arguments parse_arguments(const std::vector<std::string>& words);

// Throws where an option has no effect in the command: a run on the CPU that was meant for a GPU
// would look like any other.
void check_options(const Arguments& arguments);

uint64_t number_option(const Arguments& arguments,
                       const std::string& name);  // 1 where not given

}  // namespace tiny_compile
