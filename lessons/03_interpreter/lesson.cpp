// Lesson 03: what does a graph mean?   build/lessons/03 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>

#include "tiny_compile/passes/passes.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// Each row relative to its first element, its columns from last to first, summed.
Tensor relate(Tensor x) {
  Tensor first = x.slice(1, 0, 1);
  Tensor relative = x - first;
  Tensor reversed = relative.flip({1});
  Tensor transposed = reversed.t();
  return transposed.sum(1);
}

Tensor rows() {
  return from_vector(std::vector<float>{1, 2, 3, 4, 10, 20, 30, 40, 5, 5, 5, 6}, Sizes{3, 4});
}

Graph relate_graph() {
  return compile(relate, {.name = "relate"}).specialization(rows()).traced.graph;
}

void show_graph() { std::printf("%s", print(relate_graph()).c_str()); }

void show_values(const Graph& graph, const std::vector<Tensor>& values) {
  for (int id = 0; id < graph.size(); id++)
    std::printf("%%%d %s\n%s\n", id, info(graph[id].op).name,
                values[static_cast<size_t>(id)].str().c_str());
}

void show_all() {
  const Graph graph = relate_graph();
  show_values(graph, interpret_all(graph, std::vector<Tensor>{rows()}));
}

void show_layouts() {
  const Graph graph = relate_graph();
  const std::vector<Tensor> values = interpret_all(graph, std::vector<Tensor>{rows()});
  std::vector<const Storage*> blocks;
  std::printf("             shape   strides  offset  block\n");
  for (int id = 0; id < graph.size(); id++) {
    const TensorData& data = values[static_cast<size_t>(id)].info();
    const auto known = std::find(blocks.begin(), blocks.end(), data.storage.get());
    const auto block = known - blocks.begin();
    if (known == blocks.end()) blocks.push_back(data.storage.get());
    std::printf("%%%d %-8s  %-7s %-8s %6lld  %c\n", id, info(graph[id].op).name,
                str("[", join(data.shape(), ","), "]").c_str(),
                str("[", join(data.strides(), ","), "]").c_str(),
                static_cast<long long>(data.offset), static_cast<char>('A' + block));
  }
}

// The halvings of graph/reduce.cpp on words instead of numbers, in chunks of 8.
std::string tree_of(int count) {
  std::vector<std::string> l(8);
  for (int i = 0; i < count; i++) l[static_cast<size_t>(i)] = std::string(1, char('a' + i));
  for (size_t half = 4; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; i++) {
      if (!l[i + half].empty()) l[i] = "(" + l[i] + "+" + l[i + half] + ")";
    }
  }
  return l[0];
}

void show_trees() {
  for (int count : {2, 3, 5, 8})
    std::printf("%d elements: %s\n", count, tree_of(count).c_str());
  constexpr int64_t kMany = 1'000'000;
  const Tensor tenths = full({kMany}, 0.1);
  float in_order = 0;
  for (int64_t i = 0; i < kMany; i++) in_order = in_order + tenths.data<float>()[i];
  std::printf("a million times 0.1, one after the other: %.2f\n",
              static_cast<double>(in_order));
  std::printf("a million times 0.1, sum():               %.2f\n", tenths.sum().item<double>());
}

Tensor normalise(Tensor x) {
  Tensor centred = x - x.mean(-1, true);
  Tensor spread = sqrt(var(x, {-1}, 1, true));
  return tanh(centred / spread);
}

void show_bits() {
  manual_seed(3);
  const Tensor x = randn({64, 1000});
  const Graph graph = compile(normalise).specialization(x).traced.graph;
  const Tensor want = interpret(graph, std::vector<Tensor>{x})[0];
  const Tensor compiled = compile(normalise, {.backend = "cpp", .pipeline = pipeline()})(x);
  const Tensor alone = compile(normalise, {.backend = "interpreter"})(x.slice(0, 5, 6));
  std::printf("compiled to C++, 64 rows of 1000: %s\n",
              same_bits(want, compiled) ? "the same 64000 results, bit for bit" : "other bits");
  std::printf("row 5 in a batch of its own:      %s\n",
              same_bits(want.slice(0, 5, 6), alone) ? "the same bits" : "other bits");
}

// What a pass might do: division by 10 is multiplication by 0.1. (It is not.)
Graph multiply_instead(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    const bool divides = node.op == Op::div && constant_value(out, node.inputs[1]);
    if (!divides) return out.append(std::move(node));
    const Literal divisor = *constant_value(out, node.inputs[1]);
    Node& constant = out.nodes[static_cast<size_t>(out[node.inputs[1]].inputs[0])];
    constant.value = Literal::of(divisor.dtype, 1 / divisor.as_double());
    node.op = Op::mul;
    return out.append(std::move(node));
  });
}

void show_first() {
  manual_seed(3);
  const Tensor x = randn({100, 10});
  const Graph before = compile(normalise).specialization(x).traced.graph;
  const Graph after = multiply_instead(before);
  const std::vector<Tensor> inputs = {x}, want = interpret_all(before, inputs),
                            got = interpret_all(after, inputs);
  for (int id = 0; id < before.size(); id++) {
    const size_t k = static_cast<size_t>(id);
    if (before[id].op == Op::constant || is_view(before[id].op)) continue;
    const std::optional<int64_t> at = first_difference(want[k], got[k]);
    if (!at) continue;
    const Sizes index = {*at, 0};  // of an [n,1]
    std::printf("before: %s\nafter:  %s\nelement [%lld,0] was %s, is %s\n",
                print(before, id).c_str(), print(after, id).c_str(),
                static_cast<long long>(*at), want[k].element(index).str().c_str(),
                got[k].element(index).str().c_str());
    return;
  }
}

// The mistake: an axis that is repeated steps by 1.
Tensor evaluate_wrongly(const Node& node, std::span<const Tensor> operands) {
  const Tensor right = evaluate(node, operands);
  if (node.op != Op::expand) return right;
  Sizes strides = right.strides();
  for (int64_t& stride : strides) stride = stride == 0 ? 1 : stride;
  return with_layout(right, right.shape(), strides, right.info().offset);
}

void show_break() {
  const Graph graph = relate_graph();
  std::vector<Tensor> values;
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> operands;
    for (int input : node.inputs) operands.push_back(values[static_cast<size_t>(input)]);
    values.push_back(node.op == Op::input ? rows() : evaluate_wrongly(node, operands));
  }
  show_values(graph, values);
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"graph", show_graph},
                     {"values", show_all},
                     {"layouts", show_layouts},
                     {"trees", show_trees},
                     {"bits", show_bits},
                     {"first", show_first},
                     {"break", show_break}});
}
