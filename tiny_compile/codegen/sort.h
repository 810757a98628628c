// Sorts in C: what the C++ and the CUDA families share, and the C++ one.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// The words for a Sort step.
struct SortText {
  SortText(const Kernel& kernel, const Step& step);

  std::string key;     // the type of what is compared: "float"
  std::string item;    // a key and its place: "tc_sorted<float, int>"
  std::string down;    // "true" where the greatest comes first
  int64_t count, run;  // of a row; of what is sorted apart, `count` where that is all: at most
};

// Throws tc::Error of a kernel that folds rows and has no layouts: all else but a sort is a tile, or scatters.
void require_sort(const Kernel& kernel);

// The functions that generated sorts call, "" where no program sorts; adds what these
// call.
std::string sort_helpers(const std::vector<Program>& programs, Calls& calls);

// One row by one thread, in `own` memory of so many bytes: merges of pairs.
Expr sort_bytes(const Kernel& kernel, const Step& step);
void write_sort_row(KernelText& text, const Step& step, const std::string& own,
                    const std::vector<bool>& defined);

}  // namespace tiny_compile
