// What most tests of schedules begin with: a graph's text, and the Program that the policy made of it.
#pragma once

#include <string>

#include "tiny_compile/compile/pipeline.h"

namespace tiny_compile {

inline Program as_scheduled(const std::string& graph, Target target = Target::Cuda) {
  return run_pipeline(until(default_pipeline(), "schedule"), parse_graph(graph), true, target)
      .program;
}

}  // namespace tiny_compile
