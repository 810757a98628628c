// Graph -> Graph: pure functions that keep every output's bits (the numeric contract).
#pragma once

#include <functional>
#include <optional>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {

// Local rules, applied in one sweep from inputs to outputs: views that change nothing,
// views of views, x*1, x/1, x + (-0.0), x - 0.0, -(-x), where(c, x, x), division by a
// power of two. Not x + 0.0 (wrong for -0.0), x - x or x*0 (wrong for NaN and Inf), nor
// pow(x, 2) (other bits).
Graph simplify(const Graph& graph);

// Ops on constants become constants: evaluated once by the interpreter. What would raise an
// error (an integer divided by zero) is left to do so.
Graph fold(const Graph& graph);

// Of nodes that compute the same, the first stays. a + b and b + a are the same.
Graph cse(const Graph& graph);

// cse, where sum_exp(x) and sum(exp(x - m)) are equal too, m the maximum over the same axes, clamped to finite, if these
// hold at most a chunk: there they are the same bits, and the latter stays. A softmax that no output needs is not kept
// for its sum.
Graph merge_equal(const Graph& graph);

// Nodes that no output needs go. Inputs stay: they are the signature.
Graph dce(const Graph& graph);

// Calls become the nodes of the first graph that they hold, at any depth; what they return stays.
// `which`: of the nodes that hold graphs; none: all of them.
using NodeChoice = std::function<bool(const Node&)>;
Graph inline_calls(const Graph& graph, const NodeChoice& which = nullptr);

// A pass sees one graph; this runs it on the graphs that nodes hold as well, innermost first.
using GraphFunction = std::function<Graph(const Graph&)>;
Graph with_graphs_inside(const GraphFunction& pass, const Graph& graph);

// For products that are left to the vendor's library, and so have no bits of their own: those of one row become sums in
// f32 along the other factor's rows, and so do those of up to four rows with a factor that is computed of fewer bytes
// than it has, or is halves in rows that begin anywhere. Of f16, bf16 and f32, with numbers for sizes; products of
// windows, which are not the library's, stay.
Graph thin_products(const Graph& graph);

// The axis, of the last two, in which elements of a matrix lie side by side; -1: neither.
int contiguous_axis(const Graph& graph, int id);

// What the vendor's library loses where a matrix of halves lies along an axis of so many elements, which are no whole
// 16 bytes, the result, m x n, or a factor, with k terms of each sum, `count` products of a batch: in elements that a
// kernel could copy meanwhile.
double lost_by_odd_axis(int64_t axis, double count, int64_t m, int64_t n, int64_t k);
constexpr double kLaunchInElements = 1 << 21;  // that could be copied while a kernel starts

// For the vendor's library: factors of products of halves get zeros behind the axis in which they lie in memory, up to
// a multiple of 16 bytes, and with them what they share that axis with; what that adds to a result is cut off. Only
// where more is lost otherwise than the copies take, or `always`.
Graph pad_products(const Graph& graph, bool always = false);

// So many elements, up to the next whole 16 bytes, as the library's fast kernels take them.
int64_t whole_packs(int64_t elements, DType dtype);

bool has_fixed_sizes(const Type& type);  // numbers, no symbols

// Of a value; where sizes are symbols, at most, and never more than 2^40, so that sums of them stay exact.
int64_t bytes_of(const Type& type);

// Its id there, with the type that its operands give it.
int append_inferred(Graph& out, Node node);

// Elements `start` to `stop` of an axis.
int append_slice(Graph& out, int id, int axis, const Expr& start, const Expr& stop,
                 const Location& where);

// The uniform value of a node that is a constant, seen through views.
std::optional<Literal> constant_value(const Graph& graph, int id);

// Builds a new graph node by node. `visit` gets each node with its inputs already
// renumbered and returns the id that stands for it in `out`: a new one (out.append(node))
// or an existing one.
Graph rebuild(const Graph& graph, const std::function<int(Graph& out, Node node)>& visit);

}  // namespace tiny_compile
