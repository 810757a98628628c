// What `verify` throws, for those that know where in a text it is.
#pragma once

#include <string>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

// The buffer, or the kernel and perhaps its step or its schedule, that is wrong; -1: none.
struct Culprit {
  int buffer = -1, kernel = -1, step = -1;
  bool schedule = false;
};

class Refusal : public Error {
 public:
  Refusal(const std::string& message, const Culprit& culprit)
      : Error(message), culprit(culprit) {}
  Culprit culprit;
};

}  // namespace tiny_compile
