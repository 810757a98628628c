// Question: is this Graph one that every later stage may trust?
//
//   %2: f32[2,3] = add %0       =>  Error: add: takes 2 operands, here is 1
//                                     in %2: f32[2,3] = add %0
//
// Two layers: check_form looks at one node alone (arity, attributes, value, name), find_problem
// at the graph around it (order, the type that infer finds, unique names, outputs). Every
// pass's result goes through here in tests and in debug builds.
//
// Lesson: a type check after every step finds the pass that broke the graph, not its victim.
#include <algorithm>
#include <set>

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/graph/graph.h"

namespace tiny_compile {
namespace {

std::string count(size_t n, const char* what) {  // count(2, "operand") returns "2 operands"
  return str(n, " ", what, n == 1 ? "" : "s");
}

// --- one node --------------------------------------------------------------------------------

void check_arity(const Node& node, size_t operands) {
  const OpInfo& op = info(node.op);
  if (op.arity < 0 && (operands > 0 || graphs_of(node.op) > 0)) return;
  if (op.arity < 0) fail(op.name, ": takes 1 operand or more, here are 0");
  const size_t arity = static_cast<size_t>(op.arity);
  if (operands == arity) return;
  fail(op.name, ": takes ", count(arity, "operand"), ", here ", operands == 1 ? "is " : "are ",
       operands);
}

bool must_be_integer(Key key) {
  return key == Key::axes || key == Key::axis || key == Key::step || key == Key::keepdim ||
         key == Key::draw || key == Key::index || key == Key::align || key == Key::donated ||
         key == Key::again;
}

void check_values(const Node& node, const Attr& attr) {
  const std::string what = str(info(node.op).name, ": ", name(attr.key));
  if (!is_list(attr.key) && attr.values.size() != 1) fail(what, " takes one value");
  for (const Expr& value : attr.values) {
    if (!value.is_constant()) {
      if (must_be_integer(attr.key)) fail(what, " must be an integer, not ", value);
      continue;
    }
    const bool is_absurd = value.constant() > kMaxElements || value.constant() < -kMaxElements;
    if (is_absurd) fail(what, "=", value, " is beyond 2^48");
  }
  const int64_t first = attr.values.empty() ? 0 : attr.values[0].bounds().low;
  if (attr.key == Key::keepdim && first != 1) fail(what, " is 1 or left out, not ", first);
  if (attr.key == Key::again && first < 1)
    fail(what, " is 1 or more, or left out; not ", first);
  const bool counts = attr.key == Key::draw || attr.key == Key::index;
  if (counts && first < 0) fail(what, " counts from 0, and is ", first);
}

void check_attributes(const Node& node) {
  const char* op = info(node.op).name;
  const std::vector<AttrForm> forms = attributes_of(node.op);
  for (size_t i = 0; i < node.attrs.size(); i++) {
    const Key key = node.attrs[i].key;
    const bool is_known = (key == Key::again && may_be_again(node.op)) ||
                          std::any_of(forms.begin(), forms.end(),
                                      [&](const AttrForm& form) { return form.key == key; });
    if (!is_known) fail(op, ": has no attribute ", name(key));
    if (i > 0 && node.attrs[i - 1].key >= key) {
      fail(op, ": attribute ", name(key), " is repeated or out of order; write it with set()");
    }
    check_values(node, node.attrs[i]);
  }
  for (const AttrForm& form : forms) {
    if (form.required && !node.find(form.key)) fail(op, ": needs attribute ", name(form.key));
  }
}

void check_value(const Node& node) {
  const bool has_value = node.op == Op::constant || node.op == Op::pad;
  if (!has_value && node.value != Literal{}) fail(info(node.op).name, ": holds no value");
  if (!has_value) return;
  if (parse_literal(node.value.dtype, node.value.str()) == node.value) return;
  fail(info(node.op).name, ": the bits of value ", node.value.str(), " are no ",
       node.value.dtype, "; make it with Literal::of");
}

void check_name(const Node& node) {
  if (node.op != Op::input && !node.name.empty()) {
    fail(info(node.op).name, ": only an input has a name, here '", node.name, "'");
  }
  if (node.op == Op::input && !is_identifier(node.name)) {
    fail("input: '", node.name, "' is no name; use letters, digits, '_' and '.'");
  }
}

void check_graph_count(const Node& node) {
  const size_t wanted = graphs_of(node.op), here = node.graphs.size();
  if (here == wanted) return;
  fail(info(node.op).name, ": holds ", count(wanted, "graph"), ", not ", here);
}

// --- the graph -------------------------------------------------------------------------------

void check_order(const Graph& graph, int id) {
  const Node& node = graph[id];
  for (const int input : node.inputs) {
    if (input >= 0 && input < id) continue;
    fail(info(node.op).name, ": operand %", input, " is not defined before %", id);
  }
}

void check_type(const Graph& graph, int id) {
  const Node& node = graph[id];
  std::vector<Type> operands;
  for (const int input : node.inputs) {
    operands.push_back(graph[input].type);
    if (operands.back().is_tuple() && node.op != Op::item)
      fail(info(node.op).name, ": operand %", input,
           " is a tuple; read one of its results with item");
  }
  const Type type = infer(node, operands);
  if (type == node.type) return;
  fail(info(node.op).name, ": the result is ", type.str(), ", not ", node.type.str());
}

std::optional<Problem> problem_in(const Graph& graph, int depth);

// The graphs that a node holds are sound, and their inputs are values, not memory.
void check_graphs(const Node& node, int depth) {
  if (node.graphs.empty()) return;
  if (depth >= kMaxDepth) fail(info(node.op).name, ": more than ", kMaxDepth, " graphs deep");
  for (const Graph& inner : node.graphs) {
    if (const std::optional<Problem> problem = problem_in(inner, depth))
      fail("in graph ", inner.name, ": ", problem->message,
           problem->node < 0 ? "" : "\n  in " + print(inner, problem->node));
    for (const int id : inner.inputs()) {
      if (!inner[id].attrs.empty())
        fail("in graph ", inner.name, ": input ", inner[id].name, " has ",
             name(inner[id].attrs[0].key), "; only inputs of the outermost graph do");
    }
  }
}

std::optional<std::string> node_problem(const Graph& graph, int id, int depth) {
  try {
    check_graphs(graph[id], depth + 1);
    check_order(graph, id);
    check_type(graph, id);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

std::optional<Problem> names_problem(const Graph& graph) {
  std::set<std::string> names;
  for (const int id : graph.inputs()) {
    const std::string& name = graph[id].name;
    if (names.insert(name).second) continue;
    return Problem{id, str("input: the name '", name, "' is taken by an earlier input")};
  }
  return std::nullopt;
}

std::optional<std::string> symbols_problem(const Graph& graph) {
  std::set<std::string> names;
  for (const Expr& symbol : symbols(graph)) {
    const std::string& name = symbol.name();
    if (symbol.symbol().kind != SymbolKind::Size)
      return str(name, " is no size: sizes are symbols of SymbolKind::Size");
    if (!names.insert(name).second) return str("the size ", name, " has two different bounds");
  }
  return std::nullopt;
}

std::optional<std::string> graph_problem(const Graph& graph) {
  if (!is_identifier(graph.name)) {
    return str("'", graph.name, "' is no name for a graph; use letters, digits, '_' and '.'");
  }
  for (const int output : graph.outputs) {
    if (output < 0 || output >= graph.size())
      return str("output %", output, " is no node of the graph ", graph.name);
    if (graph[output].type.is_tuple())
      return str("output %", output, " is a tuple; return its results, read with item");
  }
  return symbols_problem(graph);
}

std::optional<Problem> problem_in(const Graph& graph, int depth) {
  for (int id = 0; id < graph.size(); id++) {
    const std::optional<std::string> message = node_problem(graph, id, depth);
    if (message) return Problem{id, *message};
  }
  if (const std::optional<Problem> problem = names_problem(graph)) return problem;
  const std::optional<std::string> message = graph_problem(graph);
  if (message) return Problem{-1, *message};
  return std::nullopt;
}

}  // namespace

const char* name(Key key) {
  switch (key) {
#define X(name) \
  case Key::name: return #name;
    TC_ATTR_KEYS(X)
#undef X
  }
  return "?";
}

bool may_be_again(Op op) {
  const OpClass of = info(op).op_class;
  return op == Op::philox ||
         (of != OpClass::Source && of != OpClass::View && of != OpClass::Call);
}

std::vector<AttrForm> attributes_of(Op op) {
  if (is_reduction(op)) return {{Key::axes, true}, {Key::keepdim, false}};
  if (is_scan(op) || is_sort(op) || is_scatter(op)) return {{Key::axis, true}};
  switch (op) {
    case Op::input: return {{Key::strides, false}, {Key::align, false}, {Key::donated, false}};
    case Op::iota: return {{Key::start, false}};
    case Op::philox: return {{Key::draw, true}};
    case Op::permute:
    case Op::flip: return {{Key::axes, true}};
    case Op::slice:
      return {{Key::axis, true}, {Key::start, true}, {Key::stop, true}, {Key::step, true}};
    case Op::window: return {{Key::axis, true}, {Key::step, true}, {Key::size, true}};
    case Op::gather:
    case Op::concat: return {{Key::axis, true}};
    case Op::pad: return {{Key::low, true}, {Key::high, true}};
    case Op::item: return {{Key::index, true}};
    default: return {};
  }
}

void check_form(const Node& node, size_t operand_count) {
  check_arity(node, operand_count);
  check_attributes(node);
  check_value(node);
  check_name(node);
  check_graph_count(node);
}

size_t graphs_of(Op op) {
  return op == Op::call || op == Op::checkpoint ? 1 : op == Op::custom_vjp ? 2 : 0;
}

std::optional<Problem> find_problem(const Graph& graph) { return problem_in(graph, 0); }

void verify(const Graph& graph) {
  const std::optional<Problem> problem = find_problem(graph);
  if (!problem) return;
  if (problem->node < 0) throw Error(problem->message);
  fail_at(graph[problem->node].where,
          str(problem->message, "\n  in ", print(graph, problem->node)));
}

}  // namespace tiny_compile
