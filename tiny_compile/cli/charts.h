// Charts of a program: its arena over time, and its kernels under a machine's roof.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/cli/json.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// SVG: every temporary as a block, launches from left to right, bytes of the arena upwards. Throws
// tc::Error where plan_memory has not run or a size is symbolic.
std::string memory_chart(const Program& program);

struct Roof {
  double gbps = 4800, gflops = 67000;  // 0 gflops: none known
  std::string whose = "an H200's datasheet";
};

// "4800,67000"; throws tc::Error.
Roof parse_roof(const std::string& text);

struct Dot {
  double intensity = 0;  // operations a byte
  double gflops = 0;
  std::string name;
  bool is_ring = false;  // drawn hollow
  int64_t bytes = 0;     // of a kernel that was not measured
};

// A call of exp counts as one operation, one element of a reduction as one, of a dot as two.
double operations(const Kernel& kernel);

// A dot a kernel, where the roof is: the most that the machine allows it. Not of kernels that only
// move bytes.
std::vector<Dot> kernel_dots(const Program& program, const Roof& roof, bool is_ring);

// A dot a row of a measured record (tests/bench/records), of those with one thread. The roof's
// slope becomes the copy measured there; its level is as given, or else known of an H200 alone.
// Rows without operations or bytes are left out; throws tc::Error where none is left.
std::vector<Dot> record_dots(const Json& record, Roof& roof);

// SVG: both axes logarithmic; dots at one place are one dot with one letter.
std::string roofline(const std::vector<Dot>& dots, const Roof& roof, const std::string& title);

}  // namespace tiny_compile
