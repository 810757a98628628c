// Question: what is a graph of symbolic sizes once they are known?
//
//   graph f[n: 1..4096](%0 x: f32[n,3]) { %1: f32[n*3] = reshape %0 ; return %1 }   n = 37
// =>
//   graph f(%0 x: f32[37,3]) { %1: f32[111] = reshape %0 ; return %1 }
//
// A size is found in the shape of an input where it stands by itself or in a sum that is
// otherwise known: n of [n*2 + 1] and [75] is 37. What no input shows has to be given by name.
#include "tiny_compile/graph/sizes.h"

#include <algorithm>

namespace tiny_compile {
namespace {

bool are_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void check_bounds(const Expr& size, int64_t value) {
  const Interval bounds = size.bounds();
  if (value >= bounds.low && value <= bounds.high) return;
  fail("the size ", size, " is ", value, ", which is not in ", bounds.low, "..", bounds.high);
}

// The one unknown size of a sum that is linear in it, and its value: n*2 + 1 == 75 => n, 37.
std::optional<std::pair<Expr, int64_t>> solved(const Expr& sum, int64_t number) {
  std::optional<std::pair<Expr, int64_t>> unknown;
  for (const Term& term : terms(sum)) {
    if (term.factor.is_constant()) {
      number -= term.coefficient;
      continue;
    }
    if (unknown || term.factor.kind() != ExprKind::Symbol) return std::nullopt;
    unknown = {term.factor, term.coefficient};
  }
  if (!unknown || number % unknown->second != 0) return std::nullopt;
  return std::pair{unknown->first, number / unknown->second};
}

// One round over the inputs; whether a size was found.
bool find_sizes(const std::vector<SizedInput>& inputs, Substitution& known) {
  const size_t before = known.size();
  for (const SizedInput& input : inputs) {
    for (size_t axis = 0; axis < std::min(input.shape.size(), input.numbers.size()); axis++) {
      const auto found = solved(substitute(input.shape[axis], known), input.numbers[axis]);
      if (!found) continue;
      check_bounds(found->first, found->second);
      known.push_back({found->first.symbol(), found->second});
    }
  }
  return known.size() > before;
}

}  // namespace

Shape substitute(const Shape& shape, const Substitution& sizes) {
  Shape result;
  for (const Expr& size : shape) result.push_back(substitute(size, sizes));
  return result;
}

Graph substitute(const Graph& graph, const Substitution& sizes) {
  Graph result = graph;
  if (sizes.empty()) return result;
  for (Node& node : result.nodes) {
    node.type.shape = substitute(node.type.shape, sizes);
    for (Type& item : node.type.items) item.shape = substitute(item.shape, sizes);
    for (Attr& attr : node.attrs) attr.values = substitute(attr.values, sizes);
    for (Graph& inner : node.graphs) inner = substitute(inner, sizes);
  }
  return result;
}

std::string values_text(const Substitution& sizes) {
  std::vector<std::string> parts;
  for (const auto& [symbol, value] : sizes) parts.push_back(str(symbol.name, " = ", value));
  return join(parts, ", ");
}

bool is_loop_name(std::string_view name) {
  static constexpr std::string_view kCounted[] = {"b",    "block",    "k", "lane", "later",
                                                  "line", "p",        "q", "rank", "row",
                                                  "turn", "turn_row", "v", "w",    "warp"};
  static constexpr std::string_view kNumbered[] = {
      "against", "all", "any",  "argmax", "argmin", "at",  "chosen",  "early", "given",
      "held",    "i",   "j",    "keep",   "max",    "min", "most",    "pack",  "prod",
      "r",       "row", "sent", "staged", "sum",    "top", "sum_exp", "u",     "value"};
  if (std::find(std::begin(kCounted), std::end(kCounted), name) != std::end(kCounted))
    return true;
  for (const std::string_view part : {"g_", "r_", "s_", "v_"})
    if (name.starts_with(part)) return true;
  return std::any_of(std::begin(kNumbered), std::end(kNumbered), [&](std::string_view part) {
    return name.starts_with(part) && are_digits(name.substr(part.size()));
  });
}

Substitution bind_sizes(const std::vector<Expr>& declared, const SizeValues& values) {
  Substitution result;
  for (const auto& [name, value] : values) {
    const auto is_it = [&, &wanted = name](const Expr& size) { return size.name() == wanted; };
    const auto size = std::find_if(declared.begin(), declared.end(), is_it);
    if (size == declared.end())
      fail("there is no size ", name, declared.empty() ? ": all sizes are numbers" : " among ",
           join(declared, ", "));
    check_bounds(*size, value);
    result.push_back({size->symbol(), value});
  }
  return result;
}

Substitution solve_sizes(const std::vector<Expr>& declared,
                         const std::vector<SizedInput>& inputs) {
  Substitution known;
  while (find_sizes(inputs, known)) {
  }
  for (const Expr& size : declared) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const auto& entry) {
      return entry.first == size.symbol();
    });
    if (!found)
      fail("the size ", size, " does not follow from the inputs' shapes: give it a number");
  }
  return known;
}

Graph with_sizes_of(const Graph& graph, const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<SizedInput> inputs;
  for (const int id : graph.inputs()) {
    if (inputs.size() == shapes.size()) break;
    inputs.push_back({graph[id].name, graph[id].type.shape, shapes[inputs.size()]});
  }
  const Substitution sizes = solve_sizes(symbols(graph), inputs);
  Graph result = substitute(graph, sizes);
  verify_for(sizes, result);
  return result;
}

void require_numbers(const std::vector<Expr>& declared, const std::string& what) {
  if (declared.empty()) return;
  fail(what, " needs numbers for sizes, and ", join(declared, ", "),
       declared.size() == 1 ? " is symbolic" : " are symbolic", ": give --size ", declared[0],
       "=NUMBER, or write numbers");
}

}  // namespace tiny_compile
