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
  std::vector<Kernel> kernels = {};        // in this order
  std::vector<std::string> refusals = {};  // why there are not fewer (09), each once
};

// Whether a kernel makes the node: views and constants only if they are returned.
inline bool is_computed(const Graph& graph, int64_t id) {
  const Kind kind = info(graph[id].op).kind;
  const bool stands_for_others = kind == Kind::View || graph[id].op == Op::Constant;
  return graph[id].op != Op::Input &&
         (!stands_for_others || std::ranges::count(graph.outputs, id) > 0);
}
// Members that are returned or read elsewhere.
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
  verify(graph);
  Program program{graph};
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
constexpr int64_t kStores = -1;

// A kernel's formulas.
struct Formulas {
  const Graph& graph;
  const Kernel& kernel;
  Ids arrays = arrays_of(kernel);
  unsigned inner = k_of(kernel);         // the loops of a run: its values depend on them
  std::map<int64_t, int64_t> kept = {};  // values (10), and which run through k makes them
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
  bool is_kept_before(int64_t id, int64_t run) const {
    return kept.contains(id) && kept.at(id) != run;
  }
  // The line that makes a value in a run through k: that of a reduction, or of the stores.
  std::string line(int64_t id, int64_t run = kStores) const {
    const Value& value = kernel.values[id];
    const Ids in = value.operands.empty() ? Ids{0} : value.operands;
    const std::string own = str("const float ", v(id), " = "),
                      array = str("kept_", v(id), "[", kept_at, "]");
    if (is_kept_before(id, run)) return str(own, array, ";\n");
    return str(own, of(value, v(in.front()), v(in.back())), ";\n",
               kept.contains(id) ? str(array, " = ", v(id), ";\n") : "");
  }
  std::string kept_arrays(const Text& size) const {
    std::string text;
    for (const auto& [id, run] : kept) text += str("float kept_", v(id), "[", size, "];\n");
    return text;
  }
};

inline bool inside_k(const Kernel& kernel, int64_t value) {
  return kernel.values[value].loops & k_of(kernel);
}
// Also where all k get the same.
inline bool inside_k(const Kernel& kernel, const Store& store) {
  return inside_k(kernel, store.value) || (store.at.loops() & k_of(kernel));
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
  std::set<std::string> lines;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at)
    lines.insert(str("const long long ", at->str(), " = ", (*at)[1].str(), ";\n"));
  const std::string sizes = std::accumulate(lines.begin(), lines.end(), std::string());
  launch.name = str("k", plan.launches.size());
  launch.text = head(launch, cuda) + indented(sizes + text) + "}\n";
  plan.launches.push_back(launch);
}

// A plan to which `add` adds each kernel.
using AddKernel = std::function<void(Plan&, const Formulas&)>;
inline Plan plan_of(const Program& program, const AddKernel& add, const char* helpers = "") {
  Plan plan = plan_of(program.graph);
  plan.helpers = helpers;
  for (const Kernel& kernel : program.kernels) add(plan, {program.graph, kernel});
  return plan;
}

}  // namespace small
