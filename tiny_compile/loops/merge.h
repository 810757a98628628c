// Making one kernel of two: may they step together, and the kernel that does both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A kernel that is still growing: its axes stand in any order, `rows` lists those that are
// rows.
struct Group {
  Kernel kernel;
  std::vector<int> rows;
  std::unique_ptr<ScalarTable> table;

  explicit Group(Kernel start);
  bool is_row(int axis) const;
  bool sequential() const;  // has steps that work through a row: anything but stores
  bool has(StepKind kind) const;
  int store_to(int buffer) const;  // the step that stores its final values, or -1
  Kernel finish() const;           // rows first, normal
};

// Both return "" and change the first group, or say why not.

// `consumer` reads what `producer` writes: producer becomes both.
std::string merge_consumer(const Program& program, Group& producer, const Group& consumer);

// The two read the same buffer and need nothing of each other: first becomes both.
std::string merge_sibling(const Program& program, Group& first, const Group& second);

}  // namespace tiny_compile
