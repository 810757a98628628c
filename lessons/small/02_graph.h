// What must always hold of a graph? Each node's operands are earlier nodes, and its shape is what
// its operation makes of theirs; an error names the user's line. A graph has one text, the real
// compiler's (but for detach); parse reads lines of up to 4000 characters:
//
//   graph f(%0 x0: f32[4,3]) {
//     %1: f32[4,1] = sum %0 {axes=[1], keepdim=1}
//     return %1
//   }
#pragma once

#include <charconv>
#include <optional>
#include <regex>
#include <set>

#include "lessons/small/01_trace.h"

namespace small {

// The shape that the operation makes of its operands', or nothing where it cannot.
inline std::optional<Shape> result_shape(const Graph& graph, const Node& node) {
  const Shape x = node.inputs.empty() ? node.shape : graph[node.inputs.front()].shape;
  const Shape y = node.inputs.empty() ? node.shape : graph[node.inputs.back()].shape;
  std::set<int64_t> axes(node.axes.begin(), node.axes.end());
  const bool proper = axes.empty() || (*axes.begin() >= 0 && *axes.rbegin() < std::ssize(x));
  if (!proper || axes.size() != node.axes.size()) return {};
  Shape to = x;
  switch (node.op) {
    case Op::Reshape:
      return count(x) == count(node.shape) ? std::optional(node.shape) : std::nullopt;
    case Op::Expand:
      for (size_t k = 0; k < std::min(to.size(), node.shape.size()); k++)
        if (to[k] == 1) to[k] = node.shape[k];
      return to;
    case Op::Permute:
      for (size_t k = 0; k < axes.size(); k++) to[k] = x[node.axes[k]];
      return axes.size() == to.size() ? std::optional(to) : std::nullopt;
    case Op::Sum:
    case Op::Max:
      for (const int64_t axis : axes) to[axis] = 1;
      if (node.op == Op::Max && count(x) == 0 && count(to) > 0) return {};  // of nothing
      return to;
    case Op::Matmul:
      if (x.size() != 2 || y.size() != 2 || x[1] != y[0]) return {};
      return Shape{x[0], y[1]};
    default: return x == y ? std::optional(x) : std::nullopt;
  }
}

// Throws Error, at the line of the first node that is wrong.
inline void verify(const Graph& graph) {
  for (int64_t id = 0; id < graph.size(); id++) {
    const Node& node = graph[id];
    std::string called = info(node.op).name;
    if (node.inputs.size() != info(node.op).operands)
      fail(node.where, str(called, " has ", node.inputs.size(), " operands"));
    if (node.op == Op::Input && id > 0 && graph[id - 1].op != Op::Input)
      fail(node.where, "an input after other nodes");
    for (const int64_t input : node.inputs) {
      if (input < 0 || input >= id) fail(node.where, called + " reads a later node");
      called += (called.ends_with(']') ? " and " : " of ") + listed(graph[input].shape);
    }
    if (!node.axes.empty()) called += " along " + listed(node.axes);
    const bool sizes = std::ranges::all_of(node.shape, [](int64_t size) { return size >= 0; });
    if (node.shape.size() > 30) fail(node.where, called + " has more than 30 axes");
    if (!sizes || count(node.shape) == kMost || result_shape(graph, node) != node.shape)
      fail(node.where, called + " cannot be " + listed(node.shape));
  }
  for (const int64_t output : graph.outputs)
    if (output < 0 || output >= graph.size()) fail({}, "it returns a node not in the graph");
}

inline std::string print(const Graph& graph) {
  const auto names = [](const Ids& ids) {
    std::string text;
    for (const int64_t id : ids) text += str(text.empty() ? " %" : ", %", id);
    return text;
  };
  std::ostringstream head, body;
  for (int64_t id = 0; id < graph.size(); id++) {
    const Node& node = graph[id];
    const std::string type = ": f32" + listed(node.shape);
    if (node.op == Op::Input) head << (id ? ", %" : "%") << id << " x" << id << type;
    if (node.op == Op::Input) continue;
    body << "  %" << id << type << " = " << info(node.op).name << names(node.inputs);
    char value[32] = {};
    std::to_chars(value, value + 31, node.value);
    if (node.op == Op::Constant) body << " {value=" << value << "}";
    if (node.op == Op::Permute) body << " {axes=" << listed(node.axes) << "}";
    if (info(node.op).kind == Kind::Reduction)
      body << " {axes=" << listed(node.axes) << ", keepdim=1}";
    body << "\n";
  }
  return str("graph f(", head.str(), ") {\n", body.str(), "  return", names(graph.outputs),
             "\n}\n");
}

// The numbers in "4,3" or in " %1, %2".
inline Shape numbers(const std::string& text) {
  static const std::regex digits("\\d{1,13}");
  Shape all;
  for (std::sregex_iterator at(text.begin(), text.end(), digits), end; at != end; ++at)
    all.push_back(std::stoll(at->str()));
  return all;
}

// The graph that print() wrote, or an Error at the first place where it would differ.
inline Graph parse(const std::string& text) {
  static const std::regex input("%\\d+ x\\d+: f32\\[([\\d,]*)\\]"),
      form(
          R"(  %\d+: f32\[([\d,]*)\] = (\w+)([ ,%\d]*)(\{(value=(\S+)|axes=\[([\d,]*)\].*)\})?)");
  Graph graph;
  std::istringstream lines(text);
  std::string line;
  for (unsigned number = 1; std::getline(lines, line); number++) {
    const Where where{"text", number};
    if (line.size() > 4000) fail(where, "a line of over 4000 characters");
    for (std::sregex_iterator at(line.begin(), line.end(), input), end; at != end; ++at)
      graph.add({Op::Input, {}, numbers((*at)[1]), {}, 0, where});
    if (line.starts_with("  return ")) graph.outputs = numbers(line);
    std::smatch found;
    if (!std::regex_match(line, found, form)) continue;
    const auto op = std::find_if(std::begin(kOps), std::end(kOps),
                                 [&](const OpInfo& one) { return one.name == found[2]; });
    if (op == std::end(kOps)) fail(where, "no operation " + found[2].str());
    const float value = std::strtof(found[6].str().c_str(), nullptr);
    graph.add({static_cast<Op>(op - kOps), numbers(found[3]), numbers(found[1]),
               numbers(found[7]), value, where});
  }
  verify(graph);
  const std::string wanted = print(graph);
  const auto [differs, from] = std::ranges::mismatch(text, wanted);
  const auto before = static_cast<unsigned>(std::count(text.begin(), differs, '\n'));
  if (text != wanted)
    fail({"text", before + 1}, "wants '" + std::string(from, wanted.end()).substr(0, 40) + "'");
  return graph;
}

}  // namespace small
