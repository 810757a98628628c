// tc tune: a program's text with the schedules that win on this machine.
#pragma once

#include <string>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// A comment for each kernel, then the tuned program, its memory planned; parses back.
std::string tuned_text(const Program& scheduled, Device device, double seconds);

}  // namespace tiny_compile
