// tc tune: a program's text with the schedules that win on this machine.
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// Candidates gave other bits than they should have.
class OtherBits : public Error {
 public:
  using Error::Error;
};

// A comment for each kernel, then the tuned program, its memory planned; parses back. Throws
// OtherBits, which names kernels and schedules.
std::string tuned_text(const Program& scheduled, Device device, double seconds);

}  // namespace tiny_compile
