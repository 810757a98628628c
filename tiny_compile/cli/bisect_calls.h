// Two series of calls, steps of a training say: in which one do they part, and where in it?
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "tiny_compile/cli/dump.h"

namespace tiny_compile {

// "there/: stage 'cse' differs first, at %6 = mul: [0,3] is 2 (0x40000000), not 1 (0x3f800000)"
std::string said(const Verdict& verdict);

// What a whole comparison may take, all its calls together.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds) : seconds_(seconds) {}
  // bisect() within what is left; `call`, as in "call 3 of step", is told where that is not
  // enough.
  std::optional<Verdict> bisect(const std::string& call, const RecordedRun& a,
                                const RecordedRun& b, std::span<const Tensor> inputs) const;

 private:
  double seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The first call whose outputs differ although its inputs are the same, or whose inputs differ
// although every call before gave the same; the former's graphs are compared stage by stage
// where its inputs were kept. None: the calls that both have agree. Throws tc::Error where
// these are no calls of the same functions, or the time is over.
std::optional<std::string> first_call_apart(const Dump& a, const Dump& b,
                                            const TimeLimit& limit);

// Of the calls whose elements were kept, the first in which the dump, or this pipeline on the
// same graph, is not right.
std::optional<std::string> first_wrong_call(const Dump& dump, const std::string& name,
                                            const Pipeline& pipeline, const TimeLimit& limit);

}  // namespace tiny_compile
