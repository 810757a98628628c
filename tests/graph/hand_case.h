// A worked example of a graph: inputs and expected outputs as literals, row-major.
//
//   {"graph f(%0 x: i8[2]) { ... return %1 }", {"127 -1"}, {"-128 0"}}
#pragma once

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "tiny_compile/graph/interpreter.h"

namespace tiny_compile::tests {

struct HandCase {
  std::string graph;
  std::vector<std::string> inputs, outputs;
  int ulps = 0;  // how far a float may be from the number written down
};

// The hand cases of interpreter_test.cpp's neighbour, for the count of ops covered.
std::vector<HandCase> reduction_cases();

inline std::vector<Literal> literals(DType dtype, const std::string& text) {
  std::istringstream words(text);
  std::vector<Literal> result;
  for (std::string word; words >> word;) result.push_back(parse_literal(dtype, word));
  return result;
}

inline Tensor tensor_of(DType dtype, const Sizes& shape, const std::string& text) {
  const std::vector<Literal> values = literals(dtype, text);
  Tensor result = empty_tensor(dtype, shape);
  if (static_cast<int64_t>(values.size()) != result.numel())
    fail("a test's '", text, "' does not fill ", dtype, "[", join(shape, ","), "]");
  const size_t width = size_of(dtype);
  for (size_t i = 0; i < values.size(); i++)
    std::memcpy(result.bytes() + i * width, &values[i].bits, width);
  return result;
}

inline Tensor tensor_of(const Type& type, const std::string& text) {
  Sizes shape;
  for (const Expr& size : type.shape) shape.push_back(size.constant());
  return tensor_of(type.dtype, shape, text);
}

// The elements, row-major, as literals: "1.0 -0.0 nan".
inline std::string text_of(const Tensor& tensor) {
  const Tensor flat = contiguous_copy(tensor);
  const size_t width = size_of(flat.dtype());
  std::vector<std::string> words;
  for (size_t i = 0; i < static_cast<size_t>(flat.numel()); i++) {
    Literal value{flat.dtype(), 0};
    std::memcpy(&value.bits, flat.bytes() + i * width, width);
    words.push_back(value.str());
  }
  return join(words, " ");
}

inline std::vector<Tensor> run(const std::string& text,
                               const std::vector<std::string>& inputs = {}) {
  const Graph graph = parse_graph(text);
  const std::vector<int> ids = graph.inputs();
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); i++)
    tensors.push_back(tensor_of(graph[ids[i]].type, inputs[i]));
  return interpret(graph, tensors);
}

// Whether two floats of a dtype are at most `ulps` representable numbers apart.
inline bool is_near(const Literal& lhs, const Literal& rhs, int ulps) {
  const double a = lhs.as_double(), b = rhs.as_double();
  if (lhs == rhs || (a != a && b != b)) return true;
  const int64_t distance = static_cast<int64_t>(lhs.bits - rhs.bits);
  return (a < 0) == (b < 0) && a - b == a - b && std::abs(distance) <= ulps;
}

}  // namespace tiny_compile::tests
