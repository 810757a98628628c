// How does a check put into words what an answer did wrong? By printing the two graphs, or the
// first element that differs and the graph it came from.
#include "lessons/tools/check.h"

#include <algorithm>
#include <cstdio>

#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile::lessons {
namespace {

std::string changed_interface(const Graph& before, const Graph& after) {
  const std::vector<int> want = before.inputs(), got = after.inputs();
  bool same = want.size() == got.size() && before.outputs.size() == after.outputs.size();
  for (size_t k = 0; same && k < want.size(); k++)
    same = before[want[k]].name == after[got[k]].name &&
           before[want[k]].type == after[got[k]].type;
  return same ? "" : "the graph must keep its inputs and the number of its outputs";
}

std::string both(const Graph& before, const Graph& after) {
  return "before:\n" + print(before) + "after:\n" + print(after);
}

std::string unsound(const Graph& graph) {
  const std::optional<Problem> problem = find_problem(graph);
  return problem ? "your result is no sound graph: " + problem->message + "\n" + print(graph)
                 : "";
}

}  // namespace

Graph graph_of(const std::string& inputs, std::string body) {
  std::replace(body.begin(), body.end(), ';', '\n');
  return parse_graph("graph g(" + inputs + ") {\n" + body + "\n}\n");
}

std::string other_graph(const Graph& got, const Graph& wanted) {
  if (const std::string trouble = unsound(got); !trouble.empty()) return trouble;
  const Graph clean = dce(got);
  if (clean == wanted) return "";
  return "yours:\n" + print(clean) + "wanted:\n" + print(wanted);
}

std::string other_bits(const Graph& before, const Graph& after, int rounds) {
  if (const std::string trouble = unsound(after); !trouble.empty())
    return trouble + "from:\n" + print(before);
  if (const std::string trouble = changed_interface(before, after); !trouble.empty())
    return trouble + "\n" + both(before, after);
  for (int round = 0; round < rounds; round++) {
    const std::vector<Tensor> inputs = random_inputs(before, static_cast<uint64_t>(round) + 1);
    const std::vector<Tensor> want = interpret(before, inputs), got = interpret(after, inputs);
    for (size_t k = 0; k < want.size(); k++) {
      const std::optional<int64_t> at = first_difference(want[k], got[k]);
      if (at)
        return str("output ", k, " has other bits: element ",
                   element_difference(want[k], got[k], *at), "\n", both(before, after));
    }
  }
  return "";
}

std::string other_bits_somewhere(const std::function<Graph(const Graph&)>& pass, int graphs) {
  for (int seed = 1; seed <= graphs; seed++) {
    const Graph graph = flat_random_graph(static_cast<uint64_t>(seed));
    const std::string trouble = other_bits(graph, pass(graph), 1);
    if (!trouble.empty()) return str("random graph ", seed, ": ", trouble);
  }
  return "";
}

void score(const std::string& what, int64_t yours, int64_t par) {
  std::printf("score: %s %lld, par %lld\n", what.c_str(), static_cast<long long>(yours),
              static_cast<long long>(par));
  std::fflush(stdout);
}

}  // namespace tiny_compile::lessons
