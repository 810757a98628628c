// Lesson 05: when are two nodes one value?   build/lessons/05 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>

#include "tiny_compile/passes/passes.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Tensor variance(Tensor x) {
  Tensor centred = x - x.mean(-1, true);
  return (centred * centred).sum(-1, true) / (x.size(-1) - 1);
}

// Rows with mean 0 and variance 1. variance() takes the mean too, but nobody here can see that.
Tensor standardise(Tensor x) {
  Tensor spread = sqrt(variance(x));
  Tensor centred = x - x.mean(-1, true);
  return centred / spread;
}

Tensor product_twice(Tensor x, Tensor y) {
  Tensor xy = x * y;
  Tensor yx = y * x;
  return exp(xy + yx);
}

Tensor two_dropouts(Tensor x) {
  Tensor first = dropout(x, 0.5);
  Tensor second = dropout(x, 0.5);
  return first + second;
}

// One of three projections, for exercise 3.
Tensor one_of_three(Tensor q, Tensor k, Tensor v) {
  Tensor used = exp(q);
  Tensor unused = tanh(k);
  Tensor whole = concat({used, unused, v});
  return whole.slice(0, 1, 3);
}

Graph standardise_graph() {
  return compile(standardise, {.name = "standardise"})
      .specialization(randn({64, 1000}))
      .traced.graph;
}

Graph product_graph() {
  return compile(product_twice, {.name = "product_twice"})
      .specialization(randn({1000}), randn({1000}))
      .traced.graph;
}

void show_trace() { std::printf("%s", print(standardise_graph()).c_str()); }

// Of each node, the older one that cse makes of it; itself where it stays.
std::vector<int> same_as(const Graph& graph) {
  std::vector<int> result, kept;  // kept[new id] = old id
  for (int id = 0; id < graph.size(); id++) {
    Graph prefix = graph;  // up to this node, which alone is returned
    prefix.nodes.resize(static_cast<size_t>(id) + 1);
    prefix.outputs = {id};
    const Graph after = run_pass("cse", prefix);
    if (after.size() > static_cast<int>(kept.size())) kept.push_back(id);
    result.push_back(kept[static_cast<size_t>(after.outputs[0])]);
  }
  return result;
}

// One line a node of the graph before: what became of it.
void show_film() {
  const Graph graph = standardise_graph();
  const std::vector<int> same = same_as(graph);
  for (int id = 0; id < graph.size(); id++) {
    std::string line = print(graph, id);
    line.resize(line.find_last_not_of(' ', line.find('#') - 1) + 1);
    if (same[static_cast<size_t>(id)] == id)
      std::printf("  %s\n", line.c_str());
    else
      std::printf("x %-46s the same as %%%d\n", line.c_str(), same[static_cast<size_t>(id)]);
  }
}

// The graph as a Mermaid flowchart; what cse removes is red, with a dotted line to what stays.
void show_picture() {
  const Graph graph = standardise_graph();
  const std::vector<int> same = same_as(graph);
  std::printf("flowchart TD\n");
  for (int id = 0; id < graph.size(); id++) {
    const int kept = same[static_cast<size_t>(id)];
    std::printf("  n%d[\"%%%d %s\"]%s\n", id, id, info(graph[id].op).name,
                kept == id ? "" : ":::gone");
    for (int input : graph[id].inputs) std::printf("  n%d --> n%d\n", input, id);
    if (kept != id) std::printf("  n%d -.- n%d\n", id, kept);
  }
  std::printf("  classDef gone fill:#fdd,stroke:#c00,color:#600\n");
}

void show_small() {
  const Graph graph = product_graph();
  std::printf("%s%d nodes; after cse:\n%s%d nodes\n", print(graph).c_str(), graph.size(),
              print(run_pass("cse", graph)).c_str(), run_pass("cse", graph).size());
}

size_t reductions(const Program& program) {
  size_t count = 0;
  for (const Kernel& kernel : program.kernels) {
    for (const Step& step : kernel.steps) count += makes_register(step);
  }
  return count;
}

void show_kernel(const char* title, const Pipeline& stages) {
  const Program program = run_pipeline(stages, standardise_graph(), true).program;
  std::printf("%s: %zu kernel, %zu reductions a row\n%s", title, program.kernels.size(),
              reductions(program), print(program, program.kernels[0]).c_str());
}

void show_kernels() {
  show_kernel("with cse", pipeline());
  show_kernel("without", replace(pipeline(), "cse", [](const Graph& graph) { return graph; }));
}

void show_garbage() {
  Graph graph = run_pass("fold", standardise_graph());
  std::printf("after fold  %d nodes\n", graph.size());
  graph = run_pass("cse", graph);
  std::printf("after cse   %d nodes\n", graph.size());
  graph = run_pass("dce", graph);
  std::printf("after dce   %d nodes\n", graph.size());
}

void show_draws() {
  const Graph graph = compile(two_dropouts).specialization(randn({1000})).traced.graph;
  for (int id = 0; id < graph.size(); id++) {
    if (graph[id].op == Op::philox) std::printf("%s\n", print(graph, id).c_str());
  }
}

// The mistake: a key of op, operands and type.
Graph cse_without_attributes(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    for (int id = 0; id < out.size() && node.op != Op::input; id++) {
      const Node& seen = out[id];
      if (seen.op == node.op && seen.inputs == node.inputs && seen.type == node.type &&
          seen.value == node.value)
        return id;
    }
    return out.append(std::move(node));
  });
}

void count_values(const char* title, const Pipeline& stages) {
  manual_seed(1);
  const auto dropped = compile(two_dropouts, {.backend = "cpp", .pipeline = stages});
  const std::vector<float> sums = dropped(ones({10000})).to_vector<float>();
  std::printf("%-24s", title);
  for (float value : {0.0f, 2.0f, 4.0f})
    std::printf("%8td times %.0f", std::count(sums.begin(), sums.end(), value),
                static_cast<double>(value));
  std::printf("\n");
}

void show_break() {
  count_values("cse", pipeline());
  count_values("cse without attributes", replace(pipeline(), "cse", cse_without_attributes));
}

void show_parts_read() {
  const Tensor x = zeros({4});
  const Graph graph =
      compile(one_of_three, {.name = "one_of_three"}).specialization(x, x, x).traced.graph;
  std::printf("%s", print(run_passes(graph)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"trace", show_trace},
                     {"small", show_small},
                     {"film", show_film},
                     {"picture", show_picture},
                     {"kernels", show_kernels},
                     {"garbage", show_garbage},
                     {"draws", show_draws},
                     {"break", show_break},
                     {"parts", show_parts_read}});
}
