// What a forward part keeps for its backward part, and what is computed again.
#pragma once

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

// Both take a graph as vjp makes it (passes/gradient.h): its first `outputs` outputs are the
// function's, and what those need is the forward part; the rest is the backward part. `budget`: how
// much of what the backward part reads is kept; 1: all, 0: as few bytes as can be, all the more of
// the rest computed again. A greater budget never keeps fewer bytes. Bytes of a symbolic size are
// those of its upper bound. Every output keeps its bits. Throws tc::Error unless 0 <= budget <= 1.
//
// What is computed again (pointwise ops, views, reductions, gather, concat, pad, a random draw by
// its own number; neither products, scans, sorts nor scatters) is a node of its own that says so
// (Key::again), before its first reader.
Graph recompute(const Graph& joint, size_t outputs, double budget);

struct Halves {
  Graph forward;            // the joint graph's inputs but cotangents -> outputs, what it keeps
  Graph backward;           // inputs[..], what is kept, the cotangents -> the other outputs
  std::vector<int> inputs;  // numbers of those of forward's inputs that backward reads
};
Halves split(const Graph& joint, size_t outputs, double budget);

void check_budget(double budget);  // throws unless it is such a share

// The same graph, each node that computes once more than it was: again=1, or one more.
Graph computed_again(Graph graph);

}  // namespace tiny_compile
