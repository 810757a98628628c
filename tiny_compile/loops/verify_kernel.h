// What every stage may trust of a kernel, and who is to blame where it may not.
#pragma once

#include <set>
#include <string>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/loops/verify.h"

namespace tiny_compile {

// What is being checked.
struct Suspect {
  template <typename... Parts>
  void require(bool holds, const Parts&... parts) const {
    if (holds) return;
    throw Refusal(
        str("program ", program.name, kernel ? ", kernel " + kernel->name : "", ": ", parts...),
        at);
  }

  const Program& program;
  const Kernel* kernel = nullptr;  // in messages
  Culprit at = {};
};

// Throws a Refusal. No loop may be called like a size.
void check_kernel(const Program& program, int number, const std::set<std::string>& size_names);

}  // namespace tiny_compile
