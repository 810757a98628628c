// A graph of one symbolic size, through every stage that can take it.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/schedule/policy.h"

#include "tests/catch.h"

namespace tiny_compile::tests {

inline void check_bits(const std::vector<Tensor>& wanted, const std::vector<Tensor>& got) {
  REQUIRE(wanted.size() == got.size());
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(wanted[k], got[k]));
}

// Every stage of a symbolic graph: printed, parsed back, verified, and with the bits of the graph
// of numbers, whether the numbers are put in before the stage or come with the inputs.
inline void check_stages(const Graph& graph, const std::vector<int64_t>& numbers) {
  const std::string name = symbols(graph).at(0).name();
  CAPTURE(print(graph));
  CHECK(parse_graph(print(graph)) == graph);
  const Program lowered = lower(graph), fused = fuse(lowered),
                planned = plan_memory(schedule(fused));
  for (const Program* program : {&lowered, &fused, &planned}) {
    CAPTURE(print(*program));
    REQUIRE_NOTHROW(verify(*program));
    CHECK(parse_program(print(*program)) == *program);
    CHECK(bytes_moved(*program) >= 0);
  }
  for (const int64_t n : numbers) {
    CAPTURE(n);
    const Graph small = substitute(graph, bind_sizes(symbols(graph), {{name, n}}));
    REQUIRE_NOTHROW(verify(small));
    const std::vector<Tensor> inputs = seeded_inputs(small, 7, {});
    const std::vector<Tensor> wanted = interpret(small, inputs);
    check_bits(wanted, interpret(graph, inputs));
    for (const Program* program : {&lowered, &fused, &planned}) {
      CAPTURE(print(*program));
      const Substitution values = bind_sizes(sizes(*program), {{sizes(*program)[0].name(), n}});
      REQUIRE_NOTHROW(verify(substitute(*program, values)));
      check_bits(wanted, interpret(*program, inputs));
    }
  }
}

}  // namespace tiny_compile::tests
