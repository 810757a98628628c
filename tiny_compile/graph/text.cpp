// Question: how does a Graph look?
//
//   graph scaled[n: 2..4096](%0 x: f32[n,3], %1 w: f32[3,n] {strides=[1,3]}) {
//     %2: f32[3,n] = permute %0 {axes=[1,0]}      # mlp.cpp:14
//     %3: f32[3,n] = add %2, %1                   # mlp.cpp:14
//     return %3
//   }
//
// The graphs that a node holds stand in braces behind it:
//
//   %2: (f32[3]) = call %1 {
//     graph square(%0 x: f32[3]) {
//       %1: f32[3] = mul %0, %0
//       return %1
//     }
//   }
//   %3: f32[3] = item %2 {index=0}
//
// The inputs that lead the nodes stand in the header, later ones in the body, as
// `%5: f32[] = input w`. Invariant: parse_graph(print(g)) == g for every g that verify accepts.
// print itself takes any graph, since error messages show broken ones.
#include <algorithm>
#include <sstream>

#include "tiny_compile/graph/graph.h"

namespace tiny_compile {
namespace {

constexpr size_t kLineWidth = 96;

std::string attr_text(const Attr& attr) {  // "axes=[0,1]", "axis=1"
  const std::string values = join(attr.values, ",");
  return str(name(attr.key), "=", is_list(attr.key) ? "[" + values + "]" : values);
}

std::string attributes_text(const Node& node) {  // " {axis=1, start=0}" or ""
  std::vector<std::string> parts;
  for (const Attr& attr : node.attrs) parts.push_back(attr_text(attr));
  const bool has_value = node.op == Op::constant || node.op == Op::pad;
  if (has_value) parts.push_back("value=" + node.value.str());
  return parts.empty() ? "" : " {" + join(parts, ", ") + "}";
}

std::string ids_text(const std::vector<int>& ids) {  // " %4, %5" or ""
  const char* separator = " %";
  std::string result;
  for (const int id : ids) {
    result += separator + std::to_string(id);
    separator = ", %";
  }
  return result;
}

// "%3: f32[2] = add %0, %2", "%4: (f32[2]) = call %3 {"
std::string node_text(const Graph& graph, int id) {
  const Node& node = graph[id];
  std::string line = str("%", id, ": ", node.type.str(), " = ", info(node.op).name);
  if (node.op == Op::input) line += " " + node.name;
  line += ids_text(node.inputs) + attributes_text(node);
  return line + (node.graphs.empty() ? "" : " {");
}

std::string parameter_text(const Graph& graph, int id) {  // "%0 x: f32[2,3]"
  const Node& node = graph[id];
  return str("%", id, " ", node.name, ": ", node.type.str(), attributes_text(node));
}

// "# mlp.cpp:14", or "" where nothing is known of the place.
std::string comment_text(const Location& where) {
  if (where.file.empty()) return "";
  const size_t slash = where.file.find_last_of('/');
  const size_t start = slash == std::string::npos ? 0 : slash + 1;
  std::string comment = "# " + Location{where.file.substr(start), where.line}.str();
  for (char& c : comment) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';  // a comment ends with its line
  }
  return comment;
}

int leading_inputs(const Graph& graph) {
  int count = 0;
  while (count < graph.size() && graph[count].op == Op::input) count++;
  return count;
}

std::string symbols_text(const Graph& graph) {  // "[n: 2..4096, m: 0..16]" or ""
  std::vector<std::string> parts;
  for (const Expr& symbol : symbols(graph)) {
    const Interval bounds = symbol.bounds();
    parts.push_back(str(symbol.name(), ": ", bounds.low, "..", bounds.high));
  }
  return parts.empty() ? "" : "[" + join(parts, ", ") + "]";
}

// One line if it fits, else one parameter a line.
std::string header_text(const Graph& graph, int inputs, const std::string& indent) {
  std::vector<std::string> parameters;
  for (int id = 0; id < inputs; id++) parameters.push_back(parameter_text(graph, id));
  const std::string sizes = indent.empty() ? symbols_text(graph) : "";  // inside: those outside
  const std::string start = indent + "graph " + graph.name + sizes + "(";
  const std::string line = start + join(parameters, ", ") + ") {\n";
  if (line.size() <= kLineWidth || inputs < 2) return line;
  const std::string next = "\n    " + indent;
  return start + next + join(parameters, "," + next) + ") {\n";
}

// Comments line up, but for lines too long to wait for.
size_t comment_column(const std::vector<std::string>& lines) {
  constexpr size_t kRightmost = 64;
  size_t column = 0;
  for (const std::string& line : lines) {
    if (line.size() <= kRightmost) column = std::max(column, line.size());
  }
  return column + 2;
}

std::string with_comment(std::string line, const std::string& comment, size_t column) {
  if (comment.empty()) return line;
  line.resize(std::max(column, line.size() + 2), ' ');
  return line + comment;
}

void collect_symbols(const Expr& expr, std::vector<Expr>& found) {
  std::vector<Expr> pending = {expr};
  while (!pending.empty()) {
    const Expr next = pending.back();
    pending.pop_back();
    if (next.is_constant()) continue;
    if (next.kind() == ExprKind::Symbol) {
      if (std::find(found.begin(), found.end(), next) == found.end()) found.push_back(next);
      continue;
    }
    pending.insert(pending.end(), next.operands().rbegin(), next.operands().rend());
  }
}

// A graph inside another is indented and declares no sizes.
std::string graph_text(const Graph& graph, const std::string& indent) {
  const int inputs = leading_inputs(graph);
  std::vector<std::string> lines;
  for (int id = inputs; id < graph.size(); id++)
    lines.push_back(indent + "  " + node_text(graph, id));
  const size_t column = comment_column(lines);
  std::ostringstream out;
  out << header_text(graph, inputs, indent);
  for (int id = inputs; id < graph.size(); id++) {
    const std::string& line = lines[static_cast<size_t>(id - inputs)];
    out << with_comment(line, comment_text(graph[id].where), column) << "\n";
    for (const Graph& inner : graph[id].graphs) out << graph_text(inner, indent + "    ");
    if (!graph[id].graphs.empty()) out << indent << "  }\n";
  }
  out << indent << "  return" << ids_text(graph.outputs) << "\n" << indent << "}\n";
  return out.str();
}

}  // namespace

std::vector<Expr> symbols(const Graph& graph) {
  std::vector<Expr> found;
  for (const Node& node : graph.nodes) {
    for (const Expr& size : node.type.shape) collect_symbols(size, found);
    for (const Attr& attr : node.attrs) {
      for (const Expr& value : attr.values) collect_symbols(value, found);
    }
    for (const Graph& inner : node.graphs) {
      for (const Expr& symbol : symbols(inner)) collect_symbols(symbol, found);
    }
  }
  return found;
}

std::string print(const Graph& graph, int node) {
  return with_comment(node_text(graph, node), comment_text(graph[node].where), 0);
}

std::string print(const Graph& graph) { return graph_text(graph, ""); }

}  // namespace tiny_compile
