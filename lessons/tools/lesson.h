// What the programs of the lessons share: parts that can be shown one by one, and the pipeline,
// in which make lesson-NN WITH=mine puts the reader's stage.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string>

#include "tiny_compile/tiny_compile.h"

#ifdef TC_WITH
#include TC_WITH  // the exercise.h of the lesson: its with_mine()
#endif

namespace tiny_compile::lessons {

// default_pipeline(), with the reader's stage where the lesson was built WITH one.
inline Pipeline pipeline() {
#ifdef TC_WITH
  return exercise::with_mine();
#else
  return default_pipeline();
#endif
}

// The graph after one pass of that pipeline: run_pass("cse", graph).
inline Graph run_pass(const std::string& name, const Graph& graph) {
  for (const Stage& stage : pipeline()) {
    if (stage.name == name) return std::get<GraphPass>(stage.run)(graph);
  }
  fail("the pipeline has no pass ", name);
}

// The graph after all graph passes of that pipeline, a stage of the reader's among them.
inline Graph run_passes(Graph graph) {
  for (const Stage& stage : pipeline()) {
    if (const GraphPass* pass = std::get_if<GraphPass>(&stage.run)) graph = (*pass)(graph);
  }
  return graph;
}

struct Part {
  const char* name;
  void (*show)();
};

// build/lessons/05 shows every part, build/lessons/05 key the one of that name.
inline int show_parts(int argc, char** argv, std::initializer_list<Part> parts) {
  try {
    bool shown = false;
    for (const Part& part : parts) {
      if (argc > 1 && std::string(argv[1]) != part.name) continue;
      if (argc == 1) std::printf("%s== %s\n\n", shown ? "\n" : "", part.name);
      part.show();
      shown = true;
    }
    if (!shown) fail("this lesson has no part '", argv[1], "'");
    return 0;
  } catch (const Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace tiny_compile::lessons
