// Two runs of one graph do not agree: who began? Each stage's graph or program is interpreted on
// the same inputs; every stage keeps every bit, so the first that does not is the culprit:
//
//   A: trace cse dce, B: trace cse' dce  ->  B, cse', %3 = sub, element 0 of 4
//
// Within the stage, the first value counts that was not there before it: a right rewrite may make
// such values too, so only those that a wrong output depends on are looked at.
#include "tiny_compile/compile/bisect.h"

#include <algorithm>
#include <sstream>

#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"

namespace tiny_compile {
namespace {

// A value that a stage's graph or program computes.
struct Value {
  std::string place;
  Tensor tensor;
};

std::vector<Tensor> outputs_of(const std::string& run, const Made& made,
                               std::span<const Tensor> inputs) {
  try {
    if (const Graph* graph = std::get_if<Graph>(&made.value)) return interpret(*graph, inputs);
    return interpret(std::get<Program>(made.value), inputs);
  } catch (const Error& error) {
    fail("bisect: ", run, " does not run after stage '", made.stage, "': ", error.what());
  }
}

// The nodes that output `number` is made of.
std::vector<bool> needed(const Graph& graph, size_t number) {
  std::vector<bool> result(graph.nodes.size(), false);
  result[static_cast<size_t>(graph.outputs[number])] = true;
  for (size_t id = result.size(); id-- > 0;) {
    if (!result[id]) continue;
    for (int operand : graph.nodes[id].inputs) result[static_cast<size_t>(operand)] = true;
  }
  return result;
}

std::vector<Value> values_of(const Graph& graph, size_t output,
                             std::span<const Tensor> inputs) {
  const std::vector<Tensor> all = interpret_all(graph, inputs);
  const std::vector<bool> counts = needed(graph, output);
  std::vector<Value> result;
  for (size_t id = 0; id < all.size(); id++) {
    const Node& node = graph.nodes[id];
    if (counts[id] && all[id].defined())
      result.push_back({str("%", id, " = ", info(node.op).name), all[id]});
  }
  return result;
}

// Every buffer that a kernel writes: temporaries become outputs, with bytes of their own.
std::vector<Value> values_of(Program program, std::span<const Tensor> inputs) {
  program.outputs.clear();
  program.arena_bytes = 0;
  std::vector<Value> result;
  for (size_t k = 0; k < program.buffers.size(); k++) {
    Buffer& buffer = program.buffers[k];
    if (buffer.role == Role::Input) continue;
    buffer.role = Role::Output;
    buffer.place = -1;
    program.outputs.push_back(static_cast<int>(k));
    result.push_back({"buffer " + buffer.name, {}});
  }
  const std::vector<Tensor> all = interpret(program, inputs);
  for (size_t k = 0; k < all.size(); k++) result[k].tensor = all[k];
  return result;
}

std::vector<Value> values_of(const Made& made, size_t output, std::span<const Tensor> inputs) {
  if (const Graph* graph = std::get_if<Graph>(&made.value))
    return values_of(*graph, output, inputs);
  return values_of(std::get<Program>(made.value), inputs);
}

// The same elements in row-major order; views and merged axes do not count.
bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || int64_t{a.numel()} != int64_t{b.numel()}) return false;
  if (a.shape() == b.shape()) return !first_difference(a, b);
  const auto line = [](const Tensor& x) {
    return with_layout(contiguous_copy(x), {int64_t{x.numel()}}, {1}, 0);
  };
  return !first_difference(line(a), line(b));
}

bool occurs(const Value& value, const std::vector<Value>& among) {
  return std::any_of(among.begin(), among.end(), [&](const Value& other) {
    return same_elements(value.tensor, other.tensor);
  });
}

bool same_type(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

// The first value of `after` that `before` does not have, beside the value that it stands for: the
// first of its type in `before` that `after` lost.
std::optional<Verdict> first_new(const std::vector<Value>& before,
                                 const std::vector<Value>& after) {
  const auto made = std::find_if(after.begin(), after.end(),
                                 [&](const Value& v) { return !occurs(v, before); });
  if (made == after.end()) return {};
  const auto lost = std::find_if(before.begin(), before.end(), [&](const Value& v) {
    return same_type(v.tensor, made->tensor) && !occurs(v, after);
  });
  if (lost == before.end()) return Verdict{"", "", made->place, {}, made->tensor, 0, ""};
  const int64_t at = *first_difference(lost->tensor, made->tensor);
  return Verdict{"", "", made->place, lost->tensor, made->tensor, at, ""};
}

std::optional<Verdict> output_difference(const std::vector<Tensor>& wanted,
                                         const std::vector<Tensor>& got,
                                         const std::string& stage) {
  for (size_t k = 0; k < wanted.size(); k++) {
    if (!same_type(wanted[k], got[k]))
      fail("bisect: output ", k, " after '", stage, "' is ", got[k].dtype(), "[",
           join(got[k].shape(), ","), "], not ", wanted[k].dtype(), "[",
           join(wanted[k].shape(), ","), "]: these are not runs of one graph");
    if (const std::optional<int64_t> at = first_difference(wanted[k], got[k]))
      return Verdict{"", stage, str("output ", k), wanted[k], got[k], *at, ""};
  }
  return {};
}

void check_counts(const std::string& run, const std::string& stage, const char* what,
                  size_t wanted, size_t got) {
  if (wanted == got) return;
  fail("bisect: ", run, " has ", got, " ", what, " after '", stage,
       "', but the traced graph of A ", "has ", wanted, ": these are not runs of one graph");
}

class Bisection {
 public:
  Bisection(const RecordedRun& a, std::span<const Tensor> inputs)
      : trace_(traced(a)), inputs_(inputs), wanted_(interpret(trace_, inputs)) {}

  static const Graph& traced(const RecordedRun& run) {
    const bool has = !run.stages.empty() && run.stages[0].value.index() == 0;
    if (!has) fail("bisect: ", run.name, " has no traced graph: it must be its first stage");
    return std::get<Graph>(run.stages[0].value);
  }

  std::optional<Verdict> stage(const RecordedRun& run, size_t number) const {
    if (number >= run.stages.size() || run.stages[number].value.index() == 2) return {};
    const Made& made = run.stages[number];
    if (number == 0)
      check_counts(run.name, made.stage, "inputs", trace_.inputs().size(),
                   traced(run).inputs().size());
    const std::vector<Tensor> got = outputs_of(run.name, made, inputs_);
    check_counts(run.name, made.stage, "outputs", wanted_.size(), got.size());
    std::optional<Verdict> verdict = output_difference(wanted_, got, made.stage);
    if (!verdict) return {};
    const size_t output = std::stoul(verdict->place.substr(7));
    const Made before = number ? run.stages[number - 1] : Made{"trace", trace_};
    if (const auto inside =
            first_new(values_of(before, output, inputs_), values_of(made, output, inputs_)))
      verdict = inside;
    verdict->run = run.name;
    verdict->stage = made.stage;
    return verdict;
  }

  std::optional<Verdict> recorded(const RecordedRun& run) const {
    if (run.outputs.empty()) return {};
    check_counts(run.name, "run", "outputs", wanted_.size(), run.outputs.size());
    std::optional<Verdict> verdict = output_difference(wanted_, run.outputs, "run");
    if (verdict) verdict->run = run.name;
    return verdict;
  }

 private:
  const Graph& trace_;
  std::span<const Tensor> inputs_;
  std::vector<Tensor> wanted_;
};

std::optional<Verdict> text_difference(const RecordedRun& run) {
  for (size_t k = 1; k < run.stages.size(); k++) {
    const std::string* text = std::get_if<std::string>(&run.stages[k].value);
    const Program* program = std::get_if<Program>(&run.stages[k - 1].value);
    if (!text || !program) continue;
    std::istringstream got(*text), wanted(emit(*program).text);
    std::string line, right;
    for (int number = 1;; number++) {
      const bool more = bool(std::getline(got, line)), due = bool(std::getline(wanted, right));
      if (!more && !due) break;
      if (more && due && line == right) continue;
      return Verdict{run.name,
                     run.stages[k].stage,
                     str("line ", number),
                     {},
                     {},
                     0,
                     str("is '", more ? line : "", "', not '", due ? right : "", "'")};
    }
  }
  return {};
}

}  // namespace

std::vector<Made> stages_of(const Pipeline& pipeline, const Graph& graph) {
  std::vector<Made> result = {{"trace", graph}};
  for (size_t n = 1; n <= pipeline.size(); n++) {
    const Pipeline prefix(pipeline.begin(), pipeline.begin() + std::ptrdiff_t(n));
    const Staged staged = run_pipeline(prefix, graph, false);
    const Stage& stage = pipeline[n - 1];
    if (std::holds_alternative<GraphPass>(stage.run))
      result.push_back({stage.name, staged.graph});
    else if (std::holds_alternative<Emit>(stage.run))
      result.push_back({stage.name, staged.source.text});
    else
      result.push_back({stage.name, staged.program});
  }
  return result;
}

std::optional<Verdict> bisect(const RecordedRun& a, const RecordedRun& b,
                              std::span<const Tensor> inputs) {
  const Bisection bisection(a, inputs);
  Bisection::traced(b);
  for (size_t k = 0; k < std::max(a.stages.size(), b.stages.size()); k++) {
    if (auto verdict = bisection.stage(a, k)) return verdict;
    if (auto verdict = bisection.stage(b, k)) return verdict;
  }
  for (const RecordedRun* run : {&a, &b}) {
    if (auto verdict = bisection.recorded(*run)) return verdict;
  }
  if (auto verdict = text_difference(a)) return verdict;
  return text_difference(b);
}

}  // namespace tiny_compile
