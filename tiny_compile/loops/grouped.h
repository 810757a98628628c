// A program whose kernels become fewer: what the stages have in common that make one of several
// (fuse.h, epilogues.h, fold_columns.h).
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/group_graph.h"

namespace tiny_compile {

inline constexpr size_t kMostResults = 32;  // stores of a kernel of several, or of a long one

class Grouped {
 public:
  explicit Grouped(Program given);  // its kernels are no groups yet
  void add_all();

  // Why one kernel would be too large to hold both groups; "" if it would not.
  std::string too_large(int first, int second) const;

  // Notes why two groups stay apart, for `refusals`.
  void refuse(int first, int second, const std::string& reason);

  // The groups as kernels, without what nobody needs any more.
  Program finish() const;

  Program program;  // as it was given, but for buffers that a stage adds
  GroupGraph groups;
  std::vector<int> readers;  // of each buffer, the kernels that did read it

 private:
  bool waits(int buffer) const;

  std::vector<std::string> refusals_;
};

// What is scheduled is past fusion: it stays as it is, and reads its operands from memory.
bool is_scheduled(const Kernel& kernel);
bool is_past_fusion(const Program& program);  // all of it is

}  // namespace tiny_compile
