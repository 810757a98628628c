// The Graph as a value: attributes by key, users, equality that ignores places.
#include "tiny_compile/graph/graph.h"

#include <algorithm>

namespace tiny_compile {

std::string Type::str() const {
  if (!is_tuple()) return tiny_compile::str(dtype, "[", join(shape, ","), "]");
  std::vector<std::string> texts;
  for (const Type& item : items) texts.push_back(item.str());
  return "(" + join(texts, ", ") + ")";
}

bool is_list(Key key) {
  return key == Key::axes || key == Key::low || key == Key::high || key == Key::strides;
}

const Attr* Node::find(Key key) const {
  for (const Attr& attr : attrs) {
    if (attr.key == key) return &attr;
  }
  return nullptr;
}

const Expr& Node::attr(Key key) const {
  const Attr* found = find(key);
  CHECK(found && found->values.size() == 1, info(op).name, " lacks attribute ", int(key));
  return found->values[0];
}

const std::vector<Expr>& Node::list(Key key) const {
  const Attr* found = find(key);
  CHECK(found, info(op).name, " lacks attribute ", int(key));
  return found->values;
}

int64_t Node::integer(Key key, int64_t otherwise) const {
  const Attr* found = find(key);
  return found ? found->values.at(0).constant() : otherwise;
}

std::vector<int> Node::axes() const {
  std::vector<int> result;
  for (const Expr& axis : list(Key::axes)) result.push_back(static_cast<int>(axis.constant()));
  return result;
}

Node& Node::set(Key key, std::vector<Expr> values) {
  auto at =
      std::find_if(attrs.begin(), attrs.end(), [&](const Attr& a) { return a.key >= key; });
  if (at != attrs.end() && at->key == key) {
    at->values = std::move(values);
  } else {
    attrs.insert(at, Attr{key, std::move(values)});
  }
  return *this;
}

bool same_computation(const Node& lhs, const Node& rhs) {
  return lhs.op == rhs.op && lhs.inputs == rhs.inputs && lhs.type == rhs.type &&
         lhs.attrs == rhs.attrs && lhs.value == rhs.value && lhs.graphs == rhs.graphs;
}

std::vector<int> Graph::inputs() const {
  std::vector<int> ids;
  for (int id = 0; id < size(); id++) {
    if ((*this)[id].op == Op::input) ids.push_back(id);
  }
  return ids;
}

int Graph::append(Node node) {
  nodes.push_back(std::move(node));
  return size() - 1;
}

bool operator==(const Graph& lhs, const Graph& rhs) {
  if (lhs.name != rhs.name || lhs.outputs != rhs.outputs || lhs.size() != rhs.size())
    return false;
  for (int id = 0; id < lhs.size(); id++) {
    if (!same_computation(lhs[id], rhs[id]) || lhs[id].name != rhs[id].name) return false;
  }
  return true;
}

std::vector<std::vector<int>> users(const Graph& graph) {
  std::vector<std::vector<int>> result(graph.nodes.size());
  for (int id = 0; id < graph.size(); id++) {
    for (int input : graph[id].inputs) {
      auto& list = result[static_cast<size_t>(input)];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  return result;
}

}  // namespace tiny_compile
