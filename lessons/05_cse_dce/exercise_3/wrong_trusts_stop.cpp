// fails: a step that stops short of the next part reads one part
#include "exercise.h"

namespace exercise {
namespace {

int64_t size_of_axis(const Graph& graph, int id, int64_t axis) {
  return graph[id].type.shape[static_cast<size_t>(axis)].constant();
}

bool slices_concat(const Graph& graph, const Node& node) {
  if (node.op != Op::slice || graph[node.inputs[0]].op != Op::concat) return false;
  return node.attr(Key::axis) == graph[node.inputs[0]].attr(Key::axis);
}

// The parts from the first to the last that hold an element of [first, last], and where in the
// whole they begin.
struct Needed {
  std::vector<int> parts;
  int64_t begin = 0;
};

Needed needed_parts(const Graph& graph, const Node& concat, int64_t first, int64_t last) {
  Needed needed;
  int64_t at = 0;
  for (int part : concat.inputs) {
    const int64_t size = size_of_axis(graph, part, concat.attr(Key::axis).constant());
    if (at + size <= first) needed.begin = at + size;
    if (at + size > first && at <= last) needed.parts.push_back(part);
    at += size;
  }
  return needed;
}

// concat(%0, %1, %2)[5:8] => %1[1:4]
int trim(Graph& out, Node slice) {
  const Node concat = out[slice.inputs[0]];
  const int64_t axis = slice.attr(Key::axis).constant(),
                step = slice.attr(Key::step).constant();
  const int64_t count = slice.type.shape[static_cast<size_t>(axis)].constant();
  const int64_t first = slice.attr(Key::start).constant(),
                last = slice.attr(Key::stop).constant() - 1;
  if (count == 0) return out.append(std::move(slice));
  const Needed needed = needed_parts(out, concat, first, last);
  if (needed.parts.size() == concat.inputs.size()) return out.append(std::move(slice));
  slice.inputs = needed.parts;
  if (needed.parts.size() > 1) {
    Node smaller = concat;
    smaller.inputs = needed.parts;
    int64_t size = 0;
    for (int part : needed.parts) size += size_of_axis(out, part, axis);
    smaller.type.shape[static_cast<size_t>(axis)] = size;
    slice.inputs = {out.append(std::move(smaller))};
  }
  slice.set(Key::start, {first - needed.begin}).set(Key::stop, {last + 1 - needed.begin});
  return out.append(std::move(slice));
}

}  // namespace

Graph trim_concats(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    return slices_concat(out, node) ? trim(out, std::move(node)) : out.append(std::move(node));
  });
}

}  // namespace exercise
