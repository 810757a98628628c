// Graphs whose kernels stay apart, and the reason that fuse gives.
#pragma once

#include <algorithm>

#include "tests/catch.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"

namespace tiny_compile::tests {

// `graph` becomes this many kernels, and some refusal has this reason.
inline void require_refusal(const std::string& graph, const std::string& reason,
                            size_t kernels) {
  const Program program = fuse(lower(parse_graph(graph)));
  verify(program);
  INFO(print(program) << join(program.refusals, "\n"));
  REQUIRE(program.kernels.size() == kernels);
  const bool found =
      std::any_of(program.refusals.begin(), program.refusals.end(),
                  [&](const std::string& r) { return r.find(reason) != std::string::npos; });
  REQUIRE(found);
}

}  // namespace tiny_compile::tests
