// How does one see which nodes became one kernel, and which node a pass took out? Neither fuse nor
// a pass says. But every node carries the place it came from, which is no part of its value:
// each gets a number of its own for a place, and what comes out is looked through for it.
//
//   %4: exp  # node:4     ... fuse ...     kernel exp_sum_7  # node:4 node:5
//   =>  %4 and %5 have one colour
#include "tiny_compile/cli/picture.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>

#include "tiny_compile/cli/svg.h"
#include "tiny_compile/passes/passes.h"

namespace tiny_compile {
namespace {

constexpr const char* kPlace = "node";  // the file of the places that stand for numbers

bool is_graph_pass(const Stage& stage) { return std::holds_alternative<GraphPass>(stage.run); }

bool fuses(const Pipeline& pipeline) {
  return std::any_of(pipeline.begin(), pipeline.end(),
                     [](const Stage& stage) { return stage.name == "fuse"; });
}

Pipeline after_graph_passes(const Pipeline& pipeline) {  // up to fuse
  Pipeline rest;
  for (const Stage& stage : until(pipeline, "fuse")) {
    if (!is_graph_pass(stage)) rest.push_back(stage);
  }
  return rest;
}

Graph numbered(Graph graph) {
  for (int id = 0; id < graph.size(); id++) graph.nodes[id].where = {kPlace, id};
  return graph;
}

Program numbered(Program program) {
  for (size_t k = 0; k < program.kernels.size(); k++)
    program.kernels[k].where = {{kPlace, static_cast<int>(k)}};
  return program;
}

std::string size_text(int64_t bytes) {
  char text[32];
  if (bytes < 100000)
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  else
    std::snprintf(text, sizeof text, "%.2f MB", static_cast<double>(bytes) * 1e-6);
  return text;
}

// Boxes ------------------------------------------------------------------------------------------

std::string call_text(const Node& node, int number) {
  if (node.op == Op::input) return node.name;
  if (node.op == Op::constant) return node.value.str();
  return tiny_compile::str("%", number, " ", info(node.op).name);
}

Drawing drawing_of(const Graph& graph) {
  Drawing drawing;
  drawing.title = graph.name;
  for (int id = 0; id < graph.size(); id++) {
    const Node& node = graph[id];
    Box box;
    box.lines = {call_text(node, id), node.type.str()};
    if (node.op == Op::input) box.look = Look::Input;
    drawing.boxes.push_back(box);
    const std::set<int> operands(node.inputs.begin(), node.inputs.end());
    for (int operand : operands) drawing.arrows.push_back({operand, id, false, true, ""});
  }
  for (int output : graph.outputs) drawing.boxes[output].is_output = true;
  return drawing;
}

// Inputs, then kernels: box k + number of inputs is kernel k.
struct KernelDrawing {
  Drawing drawing;
  int first_kernel = 0;
};

KernelDrawing drawing_of(const Program& program) {
  KernelDrawing result;
  Drawing& drawing = result.drawing;
  drawing.title = program.name;
  std::vector<int> maker(program.buffers.size(), -1);
  for (size_t b = 0; b < program.buffers.size(); b++) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::Input) continue;
    maker[b] = static_cast<int>(drawing.boxes.size());
    drawing.boxes.push_back({{buffer.name, buffer.type.str()}, Look::Input, -1, false, ""});
  }
  result.first_kernel = static_cast<int>(drawing.boxes.size());
  for (const Kernel& kernel : program.kernels) {
    const int box = static_cast<int>(drawing.boxes.size());
    drawing.boxes.push_back({{kernel.name, tiny_compile::str(row_count(kernel), " rows")},
                             Look::Plain,
                             -1,
                             false,
                             ""});
    const std::vector<bool> read = buffers_read(program, kernel),
                            written = buffers_written(program, kernel);
    std::set<int> from;
    for (size_t b = 0; b < read.size(); b++) {
      if (read[b] && maker[b] >= 0 && maker[b] != box) from.insert(maker[b]);
    }
    for (int other : from) drawing.arrows.push_back({other, box, false, true, ""});
    for (size_t b = 0; b < written.size(); b++) {
      if (!written[b]) continue;
      maker[b] = box;
      if (program.buffers[b].role == Role::Output) drawing.boxes.back().is_output = true;
    }
  }
  return result;
}

// Groups -----------------------------------------------------------------------------------------

// What lies between memory and a kernel belongs to its readers: views and constants, which no
// kernel computes by itself, and formulas that their readers took in.
void colour_what_readers_compute(Drawing& drawing) {
  for (int b = static_cast<int>(drawing.boxes.size()) - 1; b >= 0; b--) {
    Box& box = drawing.boxes[b];
    if (box.group >= 0 || box.look == Look::Input) continue;
    std::set<int> readers;
    for (const Arrow& arrow : drawing.arrows) {
      if (arrow.from == b) readers.insert(drawing.boxes[arrow.to].group);
    }
    readers.erase(-1);
    if (readers.empty()) continue;
    box.group = *readers.begin();
    if (readers.size() == 1) continue;
    box.mark = "computed by each of";
    for (int reader : readers) box.mark += tiny_compile::str(" k", reader);
  }
}

void colour_by_kernel(Drawing& drawing, const Program& fused, int first_box) {
  for (size_t k = 0; k < fused.kernels.size(); k++) {
    const Kernel& kernel = fused.kernels[k];
    drawing.groups.push_back(tiny_compile::str("k", k, " ", kernel.name, "  ",
                                               size_text(bytes_moved(fused, kernel))));
    for (const Location& place : kernel.where) {
      Box& box = drawing.boxes[static_cast<size_t>(first_box + place.line)];
      if (box.group < 0) box.group = static_cast<int>(k);
    }
  }
  colour_what_readers_compute(drawing);
}

// Refusals ---------------------------------------------------------------------------------------

std::string number_of(const std::string& kernel) {  // "12" of "add_gelu_12"
  return kernel.substr(kernel.rfind('_') + 1);
}

struct Refusal {
  int first = -1, second = -1;  // boxes
  std::string reason;
};

// "sum_3 + exp_4: <reason>", with the boxes that `box_of` knows by the numbers.
std::vector<Refusal> refusals_of(const Program& fused,
                                 const std::map<std::string, int>& box_of) {
  std::vector<Refusal> result;
  for (const std::string& text : fused.refusals) {
    const size_t plus = text.find(" + "), colon = text.find(": ");
    if (plus == text.npos || colon == text.npos || colon < plus) continue;
    const auto first = box_of.find(number_of(text.substr(0, plus))),
               second = box_of.find(number_of(text.substr(plus + 3, colon - plus - 3)));
    if (first == box_of.end() || second == box_of.end()) continue;
    result.push_back({first->second, second->second, text.substr(colon + 2)});
  }
  return result;
}

// The arrows from the one group to the other become red, and one of them says why. Groups that
// share no value but what they read get a line of their own.
void draw_refusal(Drawing& drawing, const Refusal& refusal) {
  const int from = drawing.boxes[refusal.first].group, to = drawing.boxes[refusal.second].group;
  Arrow* label = nullptr;
  for (Arrow& arrow : drawing.arrows) {
    const Box &tail = drawing.boxes[arrow.from], &head = drawing.boxes[arrow.to];
    if (tail.group != from || head.group != to) continue;
    arrow.is_refused = true;
    const bool is_it = arrow.from == refusal.first && arrow.to == refusal.second;
    if (is_it || (!label && arrow.label.empty())) label = &arrow;
  }
  if (label) {
    label->label += (label->label.empty() ? "" : "; ") + refusal.reason;
    return;
  }
  drawing.arrows.push_back({std::min(refusal.first, refusal.second),
                            std::max(refusal.first, refusal.second), true, false,
                            refusal.reason});
}

// A pair of kernels was perhaps refused more than once on the way; each reason is said once.
void draw_refusals(Drawing& drawing, const std::vector<Refusal>& refusals) {
  std::set<std::string> seen;
  for (const Refusal& refusal : refusals) {
    const int first = drawing.boxes[refusal.first].group,
              second = drawing.boxes[refusal.second].group;
    if (first < 0 || second < 0 || first == second) continue;
    const auto [low, high] = std::minmax(first, second);
    if (!seen.insert(tiny_compile::str(low, " ", high, " ", refusal.reason)).second) continue;
    draw_refusal(drawing, refusal);
  }
}

std::string fused_title(const Program& before, const Program& fused) {
  return tiny_compile::str(fused.name, ": ", before.kernels.size(), " kernels became ",
                           fused.kernels.size(), ", ", size_text(bytes_moved(before)),
                           " moved became ", size_text(bytes_moved(fused)));
}

// Films ------------------------------------------------------------------------------------------

// What a node is called as long as it is the same computation: its number when it was traced, and
// its op, since a pass gives its own nodes the places of those that they replace.
std::string key_of(const Node& node) {
  return tiny_compile::str(node.where.line, " ", info(node.op).name);
}

std::set<std::string> keys_of(const Graph& graph) {
  std::set<std::string> keys;
  for (const Node& node : graph.nodes) keys.insert(key_of(node));
  return keys;
}

Drawing frame(const Graph* before, const Graph& graph, const Graph* after) {
  Drawing drawing = drawing_of(graph);
  const std::set<std::string> old = keys_of(before ? *before : graph),
                              kept = keys_of(after ? *after : graph);
  for (int id = 0; id < graph.size(); id++) {
    Box& box = drawing.boxes[id];
    const std::string key = key_of(graph[id]);
    box.lines = {call_text(graph[id], graph[id].where.line)};
    if (!old.count(key)) box.look = Look::New;
    if (!kept.count(key)) box.look = Look::Gone;
  }
  return drawing;
}

}  // namespace

Drawing fused_drawing(const Graph& graph, const Pipeline& pipeline) {
  Pipeline passes;
  std::copy_if(pipeline.begin(), pipeline.end(), std::back_inserter(passes), is_graph_pass);
  const Graph after = numbered(inline_calls(run_pipeline(passes, graph, true).graph));
  Drawing drawing = drawing_of(after);
  if (!fuses(pipeline)) return drawing;
  const Program fused = run_pipeline(after_graph_passes(pipeline), after, true).program;
  drawing.title = fused_title(run_pipeline({}, after, true).program, fused);
  colour_by_kernel(drawing, fused, 0);
  std::map<std::string, int> box_of;
  for (int id = 0; id < after.size(); id++) box_of[std::to_string(id)] = id;
  draw_refusals(drawing, refusals_of(fused, box_of));
  return drawing;
}

Drawing fused_drawing(const Program& program, const Pipeline& pipeline) {
  KernelDrawing kernels = drawing_of(program);
  if (!fuses(pipeline)) return kernels.drawing;
  const Program fused =
      run_pipeline(after_graph_passes(pipeline), numbered(program), true).program;
  kernels.drawing.title = fused_title(program, fused);
  colour_by_kernel(kernels.drawing, fused, kernels.first_kernel);
  std::map<std::string, int> box_of;
  for (size_t k = 0; k < program.kernels.size(); k++)
    box_of[number_of(program.kernels[k].name)] = kernels.first_kernel + static_cast<int>(k);
  draw_refusals(kernels.drawing, refusals_of(fused, box_of));
  return kernels.drawing;
}

std::vector<Drawing> film_strip(const Graph& graph, const Pipeline& pipeline) {
  std::vector<Graph> shots = {numbered(graph)};
  std::vector<std::string> names, idle;
  for (const Stage& stage : pipeline) {
    if (!is_graph_pass(stage)) continue;
    const Graph next = std::get<GraphPass>(stage.run)(shots.back());
    verify(next);
    (next == shots.back() ? idle : names).push_back(stage.name);
    if (next != shots.back()) shots.push_back(next);
  }
  std::vector<Drawing> frames;
  for (size_t k = 0; k < shots.size(); k++) {
    const bool is_last = k + 1 == shots.size();
    frames.push_back(
        frame(k ? &shots[k - 1] : nullptr, shots[k], is_last ? nullptr : &shots[k + 1]));
    const int now = shots[k].size();
    frames.back().title =
        is_last ? tiny_compile::str("after: ", now, " nodes")
                : tiny_compile::str(names[k], ": ", now, " nodes to ", shots[k + 1].size());
    if (is_last && !idle.empty())
      frames.back().title += " (no change: " + join(idle, ", ") + ")";
  }
  return frames;
}

std::string render(const std::vector<Drawing>& frames, const std::string& format) {
  if (format == "svg") return svg(frames);
  if (format == "mermaid") return mermaid(frames);
  if (format == "dot") return dot(frames);
  fail("no format '", format, "': there are svg, mermaid and dot");
}

}  // namespace tiny_compile
