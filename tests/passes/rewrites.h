// What tests of Graph -> Graph passes share: before => after in IR text, places and all, and
// the same bits on every special value there is.
#pragma once

#include <string>
#include <vector>

#include "tests/graph/hand_case.h"
#include "tiny_compile/passes/passes.h"

#include "tests/catch.h"

namespace tiny_compile::tests {

using Pass = Graph (*)(const Graph&);

// Numbers at which rewrites go wrong, as text of their dtype.
inline std::vector<std::string> special_values(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {"0.0",   "-0.0",  "inf",       "-inf", "nan", "1e-45", "-1e-45", "1.1754944e-38",
              "3e+38", "-3e38", "1.0000001", "-1.5", "0.1", "7.0",   "-2.0"};
    case DType::f64:
      return {"0.0",    "-0.0",    "inf",     "-inf", "nan",
              "5e-324", "-5e-324", "1.7e308", "0.1",  "-3.0"};
    case DType::f16:
      return {"0.0", "-0.0", "inf", "-inf", "nan", "6e-08", "-6e-08", "65504", "0.1", "-3.0"};
    case DType::bf16:
      return {"0.0", "-0.0", "inf", "-inf", "nan", "9.2e-41", "3.3e38", "-1.5", "0.1", "257"};
    case DType::i8: return {"0", "1", "-1", "-128", "127", "2", "64"};
    case DType::u8: return {"0", "1", "255", "128", "2"};
    case DType::i32: return {"0", "1", "-1", "-2147483648", "2147483647", "16777217"};
    case DType::u32: return {"0", "1", "4294967295", "16777217"};
    case DType::i64: return {"0", "1", "-1", "-9223372036854775808", "9223372036854775807"};
    case DType::u64: return {"0", "1", "18446744073709551615"};
    case DType::boolean: return {"false", "true"};
  }
  return {};
}

// Inputs of round r: input 0 starts at the r-th special value, input 1 moves once for every
// time that input 0 went round, so that 240 rounds see every pair.
inline std::vector<Tensor> special_inputs(const Graph& graph, size_t round) {
  std::vector<Tensor> result;
  for (int id : graph.inputs()) {
    const Type& type = graph[id].type;
    const std::vector<std::string> values = special_values(type.dtype);
    int64_t count = 1;
    for (const Expr& size : type.shape) count *= size.constant();
    std::string text;
    for (int64_t i = 0; i < count; i++)
      text += values[(round + static_cast<size_t>(i)) % values.size()] + " ";
    result.push_back(tensor_of(type, text));
    round /= values.size();
  }
  return result;
}

inline bool agree(const Graph& lhs, const Graph& rhs) {
  for (size_t round = 0; round < 240; round++) {
    const std::vector<Tensor> inputs = special_inputs(lhs, round);
    const std::vector<Tensor> want = interpret(lhs, inputs), got = interpret(rhs, inputs);
    for (size_t k = 0; k < want.size(); k++) {
      if (!same_bits(want[k], got[k])) return false;
    }
  }
  return true;
}

// graph_of("%0 x: f32[2]", "%1: f32[2] = neg %0; return %1"): the body's lines end with ';'.
inline Graph graph_of(const std::string& inputs, std::string body) {
  for (char& c : body) {
    if (c == ';') c = '\n';
  }
  return parse_graph("graph g(" + inputs + ") {\n" + body + "\n}\n");
}

// The pass, and away with what nobody reads any more.
inline Graph cleaned(Pass pass, const Graph& graph) { return dce(pass(graph)); }

// `before` becomes `after`, places included, with the same bits; again changes nothing.
inline void check_becomes(Pass pass, const std::string& inputs, const std::string& before,
                          const std::string& after) {
  const Graph graph = graph_of(inputs, before), result = pass(graph);
  const std::string original = print(graph);
  REQUIRE_NOTHROW(verify(result));
  CHECK(print(cleaned(pass, graph)) == print(graph_of(inputs, after)));
  INFO(original << print(result));
  CHECK(print(pass(result)) == print(result));
  CHECK(print(graph) == original);
  CHECK(result.name == graph.name);
  CHECK(result.inputs().size() == graph.inputs().size());
  CHECK(result.outputs.size() == graph.outputs.size());
  CHECK(agree(graph, result));
}

// The pass leaves this alone; `wrong`, where given, is the tempting result, of other bits.
inline void check_stays(Pass pass, const std::string& inputs, const std::string& body,
                        const std::string& wrong = "") {
  check_becomes(pass, inputs, body, body);
  if (wrong.empty()) return;
  INFO(body << "\n" << wrong);
  CHECK_FALSE(agree(graph_of(inputs, body), graph_of(inputs, wrong)));
}

}  // namespace tiny_compile::tests
