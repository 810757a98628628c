// Random graphs of matrices and numbers for them, with all that is awkward; and from a graph that
// shows a mistake the smallest one that still does.
#pragma once

#include <random>

#include "lessons/small/05_cse_dce.h"

namespace small {

// All NaNs count as equal.
inline bool same(const Array& a, const Array& b) {
  const auto equal = [](float x, float y) {
    return std::bit_cast<unsigned>(x) == std::bit_cast<unsigned>(y) || (x != x && y != y);
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

class Random {
 public:
  explicit Random(unsigned seed, size_t sides = std::size(kSides))
      : engine_(seed), sides_(sides) {}
  size_t below(size_t count) { return engine_() % count; }

  Array numbers(int64_t count) {
    constexpr float kSpecial[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 3e38f};
    Array all(static_cast<size_t>(count));
    for (float& each : all)
      each = below(20) == 0
                 ? kSpecial[below(std::size(kSpecial))]
                 : static_cast<float>(static_cast<int>(below(8001)) - 4000) * 0x1p-10f;
    return all;
  }

  // Of matrices whose sides are among these three.
  Graph graph(size_t nodes) {
    const std::vector<int64_t> sizes = {1, kSides[below(sides_)], kSides[below(sides_)]};
    const auto side = [&] { return sizes[below(sizes.size())]; };
    return trace(
        [&](const Tensors& inputs) {
          Tensors all = inputs;
          while (all.size() < nodes) all.push_back(next(all, side()));
          return Tensors{all.end() - static_cast<std::ptrdiff_t>(std::min<size_t>(8, nodes)),
                         all.end()};
        },
        {{side(), side()}, {side(), side()}, {side(), side()}});
  }

 private:
  static constexpr int64_t kSides[] = {0, 1, 2, 7, 33, 1001, 1030};
  static constexpr double kConstants[] = {0.0, -0.0, 1.0, 0.1};

  Tensor next(const Tensors& all, int64_t side) {
    const Tensor x = all[below(all.size())];
    const Shape shape = x.shape();
    const Axes axes = std::vector<Axes>{{}, {0}, {1}, {0, 1}}[below(4)];
    Tensors fitting, chained;
    for (const Tensor& y : all) {
      const bool repeats = y.shape()[0] == 1 || y.shape()[1] == 1;
      if (y.shape() == shape || (repeats && (y.shape()[0] == 1 || y.shape()[0] == shape[0]) &&
                                 (y.shape()[1] == 1 || y.shape()[1] == shape[1])))
        fitting.push_back(y);
      if (y.shape()[0] == shape[1]) chained.push_back(y);
    }
    const Tensor y = fitting[below(fitting.size())];
    switch (below(16)) {
      case 0: return exp(x);
      case 1: return log(x);
      case 2: return rsqrt(x);
      case 3: return erf(x);
      case 4: return -x;
      case 5: return x + y;
      case 6: return x - y;
      case 7: return y * x;
      case 8: return x / y;
      case 9: return kConstants[below(4)] * x + kConstants[below(4)];
      case 10: return permute(x, {1, 0});
      case 11: return reshape(x, {shape[1], shape[0]});
      case 12: return sum(x, axes);
      case 13: return shape[0] * shape[1] == 0 ? sum(x, axes) : max(x, axes);
      case 14: return shape[0] == 1 ? expand(x, {side, shape[1]}) : detach(x);
      default:
        if (chained.empty() || shape[0] * shape[1] > 40000) return -y;
        return matmul(x, chained[below(chained.size())]);
    }
  }

  std::mt19937 engine_;
  size_t sides_;  // the first so many of kSides
};

inline std::vector<Array> numbers_for(const Graph& graph, unsigned seed) {
  Random random(seed);
  std::vector<Array> inputs;
  for (const Node& node : graph.nodes)
    if (node.op == Op::Input) inputs.push_back(random.numbers(count(node.shape)));
  return inputs;
}

// The graph with an input in the place of node `cut` (-1: none), without what nothing needs.
inline Graph cut_at(Graph graph, int64_t cut) {
  if (cut >= 0) graph.nodes[static_cast<size_t>(cut)] = {Op::Input, {}, graph[cut].shape};
  std::vector<bool> keep(graph.nodes.size());
  for (const int64_t output : graph.outputs) keep[output] = true;
  for (int64_t id = graph.size(); id-- > 0;)
    for (const int64_t input : graph[id].inputs)
      if (keep[id]) keep[input] = true;
  Graph result;
  Ids now(graph.nodes.size());
  for (const bool inputs : {true, false})
    for (int64_t id = 0; id < graph.size(); id++) {
      Node node = graph[id];
      if (!keep[id] || (node.op == Op::Input) != inputs) continue;
      for (int64_t& input : node.inputs) input = now[input];
      now[id] = result.add(node);
    }
  for (const int64_t output : graph.outputs) result.outputs.push_back(now[output]);
  return result;
}

// The smallest graph, made from this one by leaving out results and cutting off what nodes are made
// of, of which this still holds.
inline Graph shrunk(Graph graph, const std::function<bool(const Graph&)>& holds) {
  const auto take = [&](const Graph& smaller) {
    const bool taken = smaller.size() + std::ssize(smaller.outputs) <
                           graph.size() + std::ssize(graph.outputs) &&
                       holds(smaller);
    if (taken) graph = smaller;
    return taken;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t k = 0; k < graph.outputs.size() && graph.outputs.size() > 1; k++) {
      Graph fewer = graph;
      fewer.outputs.erase(fewer.outputs.begin() + static_cast<std::ptrdiff_t>(k));
      again = take(cut_at(fewer, -1)) || again;
    }
    for (int64_t id = graph.size() - 1; id >= 0; id--)
      if (id < graph.size() && graph[id].op != Op::Input)
        again = take(cut_at(graph, id)) || again;
  }
  return graph;
}

}  // namespace small
