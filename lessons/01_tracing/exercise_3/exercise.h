// 01-3 ★★ A tracer in thirty lines
//
// Write the heart of trace/tracer.cpp for single numbers. Outside record() a Number is a float,
// and an op computes. Inside, the parameters are traced, and an op on a traced number appends a
// node to the graph of its recording:
//
//   record([](Numbers x) { return x[0] * x[1] + 2; }, 2)
//     =>  graph recorded(%0 x0: f32[], %1 x1: f32[]) {
//           %2: f32[] = mul %0, %1
//           %3: f32[] = constant {value=2.0}
//           %4: f32[] = add %2, %3
//           return %4
//         }
//
// Write apply() and record(). A number without a recording that meets a traced one becomes a
// constant, anew at each use, before the op. Numbers of two recordings never meet: tc::Error. A
// plain number may be the result too. Every node is f32[].
//
//   Node node;                          a node has .op, .inputs (ids), .type, .value, .name
//   node.type = {DType::f32, {}};       node.value = Literal::of(DType::f32, 2.0);
//   int id = graph.append(node);        graph.outputs = {id};
//   fail("two recordings");             throws a tc::Error
#pragma once

#include <cmath>
#include <functional>

#include "tiny_compile/graph/graph.h"

namespace exercise {

using namespace tiny_compile;

struct Recording {
  Graph graph;
};

struct Number {
  Number(float value) : value(value) {}  // NOLINT: 2 in x * 2
  Number(Recording* recording, int node) : recording(recording), node(node) {}

  float value = 0;
  Recording* recording = nullptr;  // null: only a value
  int node = -1;
};
using Numbers = std::vector<Number>;

// add, sub, mul, div or sqrt of plain numbers.
inline float compute(Op op, const std::vector<float>& x) {
  switch (op) {
    case Op::add: return x[0] + x[1];
    case Op::sub: return x[0] - x[1];
    case Op::mul: return x[0] * x[1];
    case Op::div: return x[0] / x[1];
    default: return std::sqrt(x[0]);
  }
}

Number apply(Op op, const Numbers& operands);                       // yours
Graph record(const std::function<Number(Numbers)>& f, int inputs);  // yours

inline Number operator+(const Number& x, const Number& y) { return apply(Op::add, {x, y}); }
inline Number operator-(const Number& x, const Number& y) { return apply(Op::sub, {x, y}); }
inline Number operator*(const Number& x, const Number& y) { return apply(Op::mul, {x, y}); }
inline Number operator/(const Number& x, const Number& y) { return apply(Op::div, {x, y}); }
inline Number sqrt(const Number& x) { return apply(Op::sqrt, {x}); }

}  // namespace exercise
