// Lesson 02: what is a graph, and what must always hold?   build/lessons/02 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>

#include "tiny_compile/passes/passes.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Tensor layer(Tensor x, Tensor weight, Tensor bias) {
  Tensor product = matmul(x, weight);
  Tensor shifted = product + bias;
  return relu(shifted);
}

Graph layer_graph() {
  return compile(layer, {.name = "layer"})
      .specialization(zeros({4, 3}), zeros({3, 5}), zeros({5}))
      .traced.graph;
}

void show_text() { std::printf("%s", print(layer_graph()).c_str()); }

std::string ids(const std::vector<int>& list) {
  std::vector<std::string> names;
  for (int id : list) names.push_back(str("%", id));
  return names.empty() ? "nobody" : join(names, ", ");
}

// One node, field by field, and who reads it.
void show_fields() {
  const Graph graph = layer_graph();
  for (int id : {0, 4, 6}) {
    const Node& node = graph[id];
    std::printf("nodes[%d]\n  op      %s\n  inputs  {%s}\n  type    %s\n", id,
                info(node.op).name, join(node.inputs, ", ").c_str(), node.type.str().c_str());
    if (node.op == Op::constant) std::printf("  value   %s\n", node.value.str().c_str());
    if (!node.name.empty()) std::printf("  name    %s\n", node.name.c_str());
    std::printf("  read by %s\n", ids(users(graph)[static_cast<size_t>(id)]).c_str());
  }
}

void show_picture() {
  const Graph graph = layer_graph();
  std::printf("flowchart LR\n");
  for (int id = 0; id < graph.size(); id++) {
    std::printf("  n%d[\"%%%d %s\"]\n", id, id, info(graph[id].op).name);
    for (int input : graph[id].inputs)
      std::printf("  n%d -- \"%s\" --> n%d\n", input, graph[input].type.str().c_str(), id);
  }
}

struct Change {
  const char* what;
  void (*make)(Graph& graph);
};

const Change kChanges[] = {
    {"%5 adds %3 to itself",
     [](Graph& graph) {
       graph.nodes[5].inputs = {3, 3};
     }},
    {"%5 reads %8", [](Graph& graph) { graph.nodes[5].inputs[1] = 8; }},
    {"%3 has its operands swapped",
     [](Graph& graph) {
       graph.nodes[3].inputs = {1, 0};
     }},
    {"%5 says that it is f32[5,4]",
     [](Graph& graph) {
       graph.nodes[5].type.shape = {5, 4};
     }},
    {"%5 reads the bias itself", [](Graph& graph) { graph.nodes[5].inputs[1] = 2; }},
    {"%8 is a minimum", [](Graph& graph) { graph.nodes[8].op = Op::minimum; }},
    {"two inputs are called x0", [](Graph& graph) { graph.nodes[1].name = "x0"; }},
    {"nothing is returned", [](Graph& graph) { graph.outputs.clear(); }},
};

void show_verifier() {
  char letter = 'a';
  for (const Change& change : kChanges) {
    Graph graph = layer_graph();
    change.make(graph);
    const std::optional<Problem> problem = find_problem(graph);
    std::printf("%c. %s\n   %s\n", letter++, change.what,
                problem ? ("refused: " + problem->message).c_str() : "accepted");
  }
}

void show_parsed(const char* text) {
  try {
    std::printf("%s", print(parse_graph(text)).c_str());
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}

void show_parser() {
  const Graph graph = layer_graph();
  std::printf("print, parse: %s\n", parse_graph(print(graph)) == graph ? "the same" : "other");
  for (const char* line : {"%1: f32[4] = maximun %0, %0", "%1: f32[5] = exp %0",
                           "%2: f32[4] = exp %0", "%1: f32[4] = sum %0 {axis=[0]}"}) {
    std::printf("\n");
    show_parsed(str("graph g(%0 x: f32[4]) {\n  ", line, "\n  return %1\n}\n").c_str());
  }
}

// A pass that takes every op for one that commutes.
Graph swap_operands(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (node.inputs.size() == 2) std::swap(node.inputs[0], node.inputs[1]);
    return out.append(std::move(node));
  });
}

void show_stage() {
  try {
    run_pipeline(replace(pipeline(), "cse", swap_operands), layer_graph(), true);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}

// An interpreter that trusts its graph: each value has a place, which holds zeros at first.
Tensor run_trusting(const Graph& graph, const Tensor& x) {
  std::vector<Tensor> values(graph.nodes.size(), zeros(x.shape()));
  for (int id = 0; id < graph.size(); id++) {
    std::vector<Tensor> operands;
    for (int input : graph[id].inputs) operands.push_back(values[static_cast<size_t>(input)]);
    values[static_cast<size_t>(id)] =
        graph[id].op == Op::input ? x : evaluate(graph[id], operands);
  }
  return values[static_cast<size_t>(graph.outputs[0])];
}

void show_break() {
  const Tensor x = tensor({0.0f, 1.0f, 2.0f});
  Graph graph = parse_graph(
      "graph g(%0 x: f32[3]) {\n  %1: f32[3] = exp %0\n  %2: f32[3] = mul %1, %1\n"
      "  %3: f32[3] = sub %2, %1\n  return %3\n}\n");
  std::printf("as it was:\n%sresult: %s\n", print(graph).c_str(),
              run_trusting(graph, x).str().c_str());
  std::swap(graph.nodes[1], graph.nodes[2]);
  std::printf("\ntwo nodes swapped:\n%sresult: %s\n", print(graph).c_str(),
              run_trusting(graph, x).str().c_str());
  std::printf("the verifier: %s\n", find_problem(graph)->message.c_str());
  std::swap(graph.nodes[1], graph.nodes[2]);
  graph = swap_operands(graph);
  std::printf("\noperands swapped:\n%sresult: %s\n", print(graph).c_str(),
              run_trusting(graph, x).str().c_str());
  std::printf("the verifier: %s\n", find_problem(graph) ? "refused" : "accepted");
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"text", show_text},
                     {"fields", show_fields},
                     {"picture", show_picture},
                     {"verifier", show_verifier},
                     {"parser", show_parser},
                     {"stage", show_stage},
                     {"break", show_break}});
}
