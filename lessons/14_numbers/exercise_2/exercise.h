// 14-2 ★★ Find the pass that changed a bit
//
// Somebody added a pass. Ten minutes later a result has another last bit, and the pipeline has ten
// stages. Nobody needs to guess: a pipeline is a list, every prefix of it runs, and what it has
// made can be interpreted:
//
//   const Staged staged = run_pipeline(prefix, graph, true);   // true: verified after every stage
//   interpret(staged.graph, inputs)      after a GraphPass; a GraphPass leaves no Program to look at
//   interpret(staged.program, inputs)    after Lower or a ProgramPass
//   first_difference(wanted, got)        index of the first element with other bits, or nothing;
//                                        every NaN is one NaN, 0 is not -0
//   std::holds_alternative<GraphPass>(stage.run)      what kind of stage it is; Emit makes text
//
// run_pipeline throws tc::Error where a stage's result is not sound.
//
// Write blame(): which stage is the first whose result has other outputs than the graph had before
// any stage? Stages are told by their place in the list, because a name may come twice. A stage
// whose result is not sound is to blame as well. Leave out Emit: what it makes is no IR.
#pragma once

#include <variant>

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

struct Blame {
  int stage = -1;        // its place in the pipeline; -1: all keep every bit
  int output = -1;       // the first that differs; -1: the result is not sound
  int64_t element = -1;  // of that output, the first that differs
  bool operator==(const Blame&) const = default;
};

Blame blame(const Pipeline& pipeline, const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace exercise
