// Lesson 04: when is replacing safe?   build/lessons/04 [part]
#include "lessons/tools/lesson.h"

#include <cmath>

#include "tiny_compile/passes/passes.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Tensor tidy(Tensor x) {
  Tensor scaled = x / 8;
  Tensor same = scaled * 1;
  Tensor transposed = same.t();
  Tensor back = transposed.t();
  Tensor shifted = back + 0.0;
  Tensor kept = shifted - 0.0;
  return kept;
}

Tensor is_finite(Tensor x) {
  Tensor nothing = x - x;
  return nothing == 0;
}

Tensor decay(Tensor x) {
  Tensor rate = full({}, 0.5);
  Tensor factor = exp(-rate);
  return x * factor;
}

// Work for each pass of the exercises.
Tensor untidy(Tensor x, Tensor w) {
  Tensor size = abs(-x);
  Tensor peak = x.max({-1}, true).expand({3, 5});
  Tensor scale = exp(peak);
  Tensor scaled = size / scale;
  return matmul(scaled, w);
}

Graph tidy_graph() {
  return compile(tidy, {.name = "tidy"}).specialization(zeros({3, 5})).traced.graph;
}

void show_trace() { std::printf("%s", print(tidy_graph()).c_str()); }

std::string line_of(const Graph& graph, int id) {
  const std::string line = print(graph, id);
  return line.substr(0, line.find_last_not_of(' ', line.find('#') - 1) + 1);
}

// One line a node of the graph before: it stays, it is an older one, or it is another op now.
void show_film() {
  const Graph graph = tidy_graph();
  std::vector<int> old_of;  // old_of[new id]: the node that it was made for
  for (int id = 0; id < graph.size(); id++) {
    Graph prefix = graph;  // up to this node, which alone is returned
    prefix.nodes.resize(static_cast<size_t>(id) + 1);
    prefix.outputs = {id};
    const Graph after = run_pass("simplify", prefix);
    const bool is_new = after.size() > static_cast<int>(old_of.size());
    while (static_cast<int>(old_of.size()) < after.size()) old_of.push_back(id);
    const Node& now = after[after.outputs[0]];
    if (!is_new)
      std::printf("x %-44s is %%%d\n", line_of(graph, id).c_str(),
                  old_of[static_cast<size_t>(after.outputs[0])]);
    else if (now.op != graph[id].op)
      std::printf("~ %-44s is %s by %s\n", line_of(graph, id).c_str(), info(now.op).name,
                  constant_value(after, now.inputs[1])->str().c_str());
    else
      std::printf("  %s\n", line_of(graph, id).c_str());
  }
}

void show_after() {
  std::printf("%s", print(run_pass("dce", run_pass("simplify", tidy_graph()))).c_str());
}

struct Rule {
  const char *before, *after;
  Tensor (*from)(const Tensor&);
  Tensor (*to)(const Tensor&);
};

#define RULE(before, after)                                                                \
  {                                                                                        \
#before, #after,                                                                       \
        [](const Tensor& x) -> Tensor { return before; }, [](const Tensor& x)              \
                                                               -> Tensor { return after; } \
  }

const Rule kRules[] = {
    RULE(x * 1, x),
    RULE(x + 0.0, x),
    RULE(x + -0.0, x),
    RULE(x - 0.0, x),
    RULE(x * 0, zeros_like(x)),
    RULE(x - x, zeros_like(x)),
    RULE(x / x, ones_like(x)),
    RULE(-(-x), x),
    RULE(x / 8, x * 0.125),
    RULE(x / 10, x * 0.1),
    RULE(x * 2, x + x),
    RULE(pow(x, 2), square(x)),
    RULE(x * 2 / 2, x),
    RULE(sqrt(square(x)), abs(x)),
    RULE(maximum(x, x), x),
    RULE(logical_not(x < 1), x >= 1),
};
#undef RULE

// Numbers that break rules, then ordinary ones.
Tensor samples() {
  std::vector<float> values = {1,      0.0f,    -0.0f,    3,         -7,
                               1e-45f, 3.4e38f, INFINITY, -INFINITY, NAN};
  manual_seed(4);
  for (float value : (randn({10'000}) * 100).to_vector<float>()) values.push_back(value);
  return from_vector(values);
}

int64_t differences(const Tensor& want, const Tensor& got) {
  int64_t count = 0;
  for (int64_t i = 0; i < want.numel(); i++)
    count += !same_bits(want.slice(0, i, i + 1), got.slice(0, i, i + 1));
  return count;
}

void show_table() {
  const Tensor x = samples();
  std::printf("| before | after | broken by | the first of them |\n|---|---|---|---|\n");
  for (const Rule& rule : kRules) {
    const Tensor want = rule.from(x), got = rule.to(x);
    const std::optional<int64_t> at = first_difference(want, got);
    std::printf("| `%s` | `%s` | ", rule.before, rule.after);
    if (!at)
      std::printf("none | |\n");
    else
      std::printf("%lld | x = %s gives %s, would give %s |\n",
                  static_cast<long long>(differences(want, got)),
                  x.element({*at}).str().c_str(), want.element({*at}).str().c_str(),
                  got.element({*at}).str().c_str());
  }
}

void show_fold() {
  Graph graph = compile(decay, {.name = "decay"}).specialization(zeros({4})).traced.graph;
  std::printf("%s", print(graph).c_str());
  graph = run_pass("dce", run_pass("fold", graph));
  std::printf("after fold and dce:\n%s", print(graph).c_str());
}

// The mistake: x - x is 0.
Graph cancel(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (node.op == Op::sub && node.inputs[0] == node.inputs[1]) {
      node.op = Op::constant;
      node.inputs.clear();
      node.value = Literal::of(node.type.dtype, 0);
    }
    return out.append(std::move(node));
  });
}

void show_break() {
  const Tensor x = tensor({1.0f, INFINITY, -2.0f, NAN});
  const Graph graph = compile(is_finite, {.name = "is_finite"}).specialization(x).traced.graph;
  const std::vector<Tensor> inputs = {x};
  std::printf("x                   %s\n", x.str().c_str());
  std::printf("is_finite(x)        %s\n", interpret(graph, inputs)[0].str().c_str());
  const Graph sound = run_pass("simplify", graph);
  std::printf("after simplify      %s\n", interpret(sound, inputs)[0].str().c_str());
  const Graph wrong = run_pass("fold", cancel(graph));
  std::printf("with x - x => 0     %s\n", interpret(wrong, inputs)[0].str().c_str());
  std::printf("%s", print(run_pass("dce", wrong)).c_str());
}

void show_yours() {
  const Graph graph = compile(untidy, {.name = "untidy"})
                          .specialization(zeros({3, 5}), zeros({5, 2}))
                          .traced.graph;
  std::printf("%s", print(run_passes(graph)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"trace", show_trace},
                     {"film", show_film},
                     {"after", show_after},
                     {"table", show_table},
                     {"fold", show_fold},
                     {"break", show_break},
                     {"yours", show_yours}});
}
