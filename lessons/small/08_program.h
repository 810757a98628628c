// What is a program? Kernels in order. A node has an array where another kernel reads it or it is a
// result; between the values of one kernel there are only formulas:
//
//   v0 = %0 [k,i0]   v1 = exp v0     =>  const float v0 = b0[((k * n4) + i0)];
//                                        const float v1 = tc_exp(v0);
#pragma once

#include "lessons/small/08_loops.h"

namespace small {

struct Program {
  Graph graph;
  std::vector<Kernel> kernels;  // in this order
};

// Whether a node has an array: views and constants have none, unless they are returned.
inline bool is_computed(const Graph& graph, int64_t id) {
  const Kind kind = info(graph[id].op).kind;
  const bool stands_for_others = kind == Kind::View || graph[id].op == Op::Constant;
  return graph[id].op != Op::Input &&
         (!stands_for_others || std::ranges::count(graph.outputs, id) > 0);
}
// Those of the group that somebody else reads.
inline Ids stored_of(const Graph& graph, const Group& group) {
  std::set<int64_t> read(graph.outputs.begin(), graph.outputs.end());
  for (int64_t id = 0; id < graph.size(); id++)
    if (is_computed(graph, id) && !group.contains(id))
      for (const int64_t input : graph[id].inputs) read.insert(base_of(graph, input));
  Ids stored;
  for (const int64_t id : group)
    if (read.contains(id)) stored.push_back(id);
  return stored;
}

inline Program unfused(const Graph& graph) {
  Program program{graph, {}};
  for (int64_t id = 0; id < graph.size(); id++)
    if (is_computed(graph, id)) program.kernels.push_back(loops_of(graph, {id}, {id}));
  return program;
}

inline Ids arrays_of(const Kernel& kernel) {
  Ids arrays;
  const auto note = [&](int64_t node) {
    if (std::ranges::count(arrays, node) == 0) arrays.push_back(node);
  };
  for (const Value& value : kernel.values)
    if (value.op == Op::Input) note(value.node);
  for (const Store& store : kernel.stores) note(store.node);
  return arrays;
}

inline std::string v(int64_t value) { return str("v", value); }

// A kernel's formulas.
struct Formulas {
  const Graph& graph;
  const Kernel& kernel;
  Ids arrays = arrays_of(kernel);
  std::map<int64_t, int64_t> kept = {};  // values (10), with the result that they are made for
  std::string kept_at = "k";

  std::string element(int64_t node, const Place& at) const {
    const auto array = std::ranges::find(arrays, node) - arrays.begin();
    return str("b", array, "[", flattened(at, graph[node].shape).text, "]");
  }
  // Of a value that is no reduction, from its operands' names.
  std::string of(const Value& value, const std::string& x, const std::string& y) const {
    struct Scalars : Names {
      Text x(const Text&) const { return Text(first); }
      Text y(const Text&) const { return Text(second); }
    };
    if (value.op == Op::Input) return element(value.node, value.at);
    return small::element(Scalars{{x, y}}, graph, graph[value.node], Text("")).s;
  }
  bool is_kept_before(int64_t id, int64_t result) const {
    return kept.contains(id) && kept.at(id) != result;
  }
  // The line that makes a value for the sake of a result.
  std::string line(int64_t id, int64_t result = -1) const {
    const Value& value = kernel.values[id];
    const Ids in = value.operands.empty() ? Ids{0} : value.operands;
    const std::string own = str("const float ", v(id), " = "),
                      array = str("kept_", v(id), "[", kept_at, "]");
    if (is_kept_before(id, result)) return str(own, array, ";\n");
    return str(own, of(value, v(in.front()), v(in.back())), ";\n",
               kept.contains(id) ? str(array, " = ", v(id), ";\n") : "");
  }
  std::string kept_arrays(const Text& size) const {
    std::string text;
    for (const auto& [id, result] : kept) text += str("float kept_", v(id), "[", size, "];\n");
    return text;
  }
};

inline bool inside_k(const Kernel& kernel, int64_t value) {
  return kernel.values[value].loops & k_of(kernel);
}
inline bool inside_k(const Kernel& kernel,
                     const Store& store) {  // also where all k get the same
  const auto in_k = [&](const Coordinate& one) { return one.loops & k_of(kernel); };
  return inside_k(kernel, store.value) || std::ranges::any_of(store.at.along, in_k);
}
inline Plan plan_of(const Program& program) {  // without kernels yet
  const Graph& graph = program.graph;
  return {{}, shapes_of(graph, false), shapes_of(graph, true).size(), graph.outputs};
}
// Braces say how deep a line stands.
inline std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string result, line;
  for (size_t depth = 1; std::getline(lines, line);) {
    if (line.starts_with('}')) depth--;
    result += (line.starts_with('#') ? "" : std::string(2 * depth, ' ')) + line + "\n";
    if (line.ends_with('{')) depth++;
  }
  return result;
}
// With "const long long n4 = 4;" for each size that the text names.
inline void add_kernel(Plan& plan, Launch launch, const std::string& text, bool cuda) {
  static const std::regex name("\\bn(\\d+)\\b");
  std::set<std::string> sizes;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
    sizes.insert((*at)[1]);
  std::string lines;
  for (const std::string& size : sizes)
    lines += str("const long long n", size, " = ", size, ";\n");
  launch.name = str("k", plan.code.launches.size());
  plan.code.text += head(launch, cuda) + indented(lines + text) + "}\n";
  plan.code.launches.push_back(launch);
}

}  // namespace small
