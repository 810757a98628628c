// Two runs of one graph do not agree: who began? Each stage's graph or program is interpreted
// on the same inputs; every stage keeps every bit, so the first that does not is the culprit:
//
//   A: trace cse dce, B: trace cse' dce  ->  B, cse', %3 = sub, element 0 of 4
//
// Within the stage, the first value counts that was not there before it: a right rewrite may
// make such values too, so only those that a wrong output depends on are looked at.
#include "tiny_compile/compile/bisect.h"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "tiny_compile/compile/call_record.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tile/interpreter.h"

namespace tiny_compile {
namespace {

// A value that a stage's graph or program computes.
struct Value {
  std::string place;
  Tensor tensor;
};

// Interprets until the time is over: then it throws what is no error of the user's yet.
class Clock {
 public:
  struct Over {
    std::string place;
  };

  explicit Clock(double seconds) : seconds_(seconds) {}

  std::vector<Tensor> all(const Graph& graph, std::span<const Tensor> inputs) const {
    return interpret_all(graph, inputs,
                         [this](const Node& node) { check(info(node.op).name); });
  }
  std::vector<Tensor> outputs(const Graph& graph, std::span<const Tensor> inputs) const {
    const std::vector<Tensor> values = all(graph, inputs);
    std::vector<Tensor> result;
    for (int output : graph.outputs) result.push_back(values[static_cast<size_t>(output)]);
    return result;
  }
  // Of a Program, or of Tiles.
  template <typename Kernels>
  std::vector<Tensor> outputs(const Kernels& kernels, std::span<const Tensor> inputs) const {
    return interpret(kernels, inputs,
                     [this](const Kernel& kernel) { check("kernel " + kernel.name); });
  }

 private:
  void check(const std::string& place) const {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    if (spent.count() > seconds_) throw Over{place};
  }

  double seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<Tensor> outputs_of(const std::string& run, const Made& made,
                               std::span<const Tensor> inputs, const Clock& clock) {
  try {
    if (const Graph* graph = std::get_if<Graph>(&made.value))
      return clock.outputs(*graph, inputs);
    if (const Tiles* tiles = std::get_if<Tiles>(&made.value))
      return clock.outputs(*tiles, inputs);
    return clock.outputs(std::get<Program>(made.value), inputs);
  } catch (const Error& error) {
    fail("bisect: ", run, " does not run after stage '", made.stage, "': ", error.what());
  }
}

// " (mlp.cpp:14)", the user's line, where it is known.
std::string line_of(const std::vector<Location>& where) {
  return where.empty() || where[0].line == 0 ? "" : str(" (", where[0].str(), ")");
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

std::vector<Value> values_of(const Graph& graph, size_t output, std::span<const Tensor> inputs,
                             const Clock& clock) {
  const std::vector<Tensor> all = clock.all(graph, inputs);
  const std::vector<bool> counts = needed(graph, output);
  std::vector<Value> result;
  for (size_t id = 0; id < all.size(); id++) {
    const Node& node = graph.nodes[id];
    if (counts[id] && all[id].defined())
      result.push_back(
          {str("%", id, " = ", info(node.op).name, line_of({node.where})), all[id]});
  }
  return result;
}

// For each buffer the kernel that writes to it first, in the order in which they run; -1: none.
std::vector<int> first_writers(const Program& program) {
  std::vector<int> result(program.buffers.size(), -1);
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      for (const Step& step : program.kernels[static_cast<size_t>(id)].steps) {
        if (step.buffer >= 0 && result[static_cast<size_t>(step.buffer)] < 0)
          result[static_cast<size_t>(step.buffer)] = id;
      }
    }
  }
  return result;
}

// What each kernel writes, in their order: `values` are those of with_temporaries_out().
std::vector<Value> written(const Program& program, const std::vector<Tensor>& values) {
  const Program out = with_temporaries_out(program);
  const std::vector<int> writers = first_writers(program);
  std::vector<Value> result;
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      const Kernel& kernel = program.kernels[static_cast<size_t>(id)];
      for (size_t k = 0; k < out.outputs.size(); k++) {
        const auto buffer = static_cast<size_t>(out.outputs[k]);
        if (writers[buffer] != id) continue;
        result.push_back({str("buffer ", out.buffers[buffer].name, " of kernel ", kernel.name,
                              line_of(kernel.where)),
                          values[k]});
      }
    }
  }
  return result;
}

std::vector<Value> values_of(const Made& made, size_t output, std::span<const Tensor> inputs,
                             const Clock& clock) {
  if (const Graph* graph = std::get_if<Graph>(&made.value))
    return values_of(*graph, output, inputs, clock);
  if (const Tiles* tiles = std::get_if<Tiles>(&made.value)) {
    const Tiles out = {with_temporaries_out(tiles->program), tiles->of_kernel};
    return written(tiles->program, clock.outputs(out, inputs));
  }
  const Program& program = std::get<Program>(made.value);
  return written(program, clock.outputs(with_temporaries_out(program), inputs));
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

// The first value of `after` that `before` does not have, beside the value that it stands for:
// the first of its type in `before` that `after` lost.
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
  Bisection(const RecordedRun& a, std::span<const Tensor> inputs, const Clock& clock)
      : trace_(traced(a)), inputs_(inputs), clock_(clock) {}

  static const Graph& traced(const RecordedRun& run) {
    const bool has = !run.stages.empty() && run.stages[0].value.index() == 0;
    if (!has) fail("bisect: ", run.name, " has no traced graph: it must be its first stage");
    return std::get<Graph>(run.stages[0].value);
  }

  void interpret_trace() { wanted_ = clock_.outputs(trace_, inputs_); }

  std::optional<Verdict> stage(const RecordedRun& run, size_t number) {
    const bool has_value = number < run.stages.size() &&
                           !std::holds_alternative<std::string>(run.stages[number].value);
    if (!has_value) return {};
    const Made& made = run.stages[number];
    if (number == 0)
      check_counts(run.name, made.stage, "inputs", trace_.inputs().size(),
                   traced(run).inputs().size());
    if (is_known(made)) return {};
    const std::vector<Tensor> got = outputs_of(run.name, made, inputs_, clock_);
    check_counts(run.name, made.stage, "outputs", wanted_.size(), got.size());
    std::optional<Verdict> verdict = output_difference(wanted_, got, made.stage);
    if (!verdict) {
      right_.push_back(&made);
      return {};
    }
    const size_t output = std::stoul(verdict->place.substr(7));
    const Made before = number ? run.stages[number - 1] : Made{"trace", trace_};
    if (const auto inside = first_new(values_of(before, output, inputs_, clock_),
                                      values_of(made, output, inputs_, clock_)))
      verdict = inside;
    verdict->run = run.name;
    verdict->stage = made.stage;
    return verdict;
  }

  std::optional<Verdict> recorded(const RecordedRun& run) const {
    if (run.outputs.empty()) return {};
    check_counts(run.name, "run", "outputs", wanted_.size(), run.outputs.size());
    std::optional<Verdict> verdict = output_difference(wanted_, run.outputs, "run");
    if (verdict && !run.temporaries.empty()) {
      if (const auto inside = recorded_value(run)) verdict = inside;
    }
    if (verdict) verdict->run = run.name;
    return verdict;
  }

 private:
  bool is_known(const Made& made) const {
    const Tiles* tiles = std::get_if<Tiles>(&made.value);
    if (tiles && !has_tile(*tiles)) return is_known({made.stage, tiles->program});
    if (made.value == decltype(Made::value)(trace_)) return true;
    return std::any_of(right_.begin(), right_.end(),
                       [&](const Made* known) { return known->value == made.value; });
  }

  // The first buffer, in the order of kernels, that did not hold what its program says.
  std::optional<Verdict> recorded_value(const RecordedRun& run) const {
    const auto last = std::find_if(
        run.stages.rbegin(), run.stages.rend(),
        [](const Made& made) { return std::holds_alternative<Program>(made.value); });
    if (last == run.stages.rend()) return {};
    const Program& program = std::get<Program>(last->value);
    std::vector<Tensor> values = run.outputs;
    values.insert(values.end(), run.temporaries.begin(), run.temporaries.end());
    const Program out = with_temporaries_out(program);
    check_counts(run.name, last->stage, "recorded buffers", out.outputs.size(), values.size());
    const std::vector<Value> got = written(program, values),
                             wanted = written(program, clock_.outputs(out, inputs_));
    for (size_t k = 0; k < got.size(); k++) {
      if (!same_type(wanted[k].tensor, got[k].tensor))
        fail("bisect: ", got[k].place, " of ", run.name, " is no ", wanted[k].tensor.dtype());
      if (const auto at = first_difference(wanted[k].tensor, got[k].tensor))
        return Verdict{"", "run", got[k].place, wanted[k].tensor, got[k].tensor, *at, ""};
    }
    return {};
  }

  const Graph& trace_;
  std::span<const Tensor> inputs_;
  const Clock& clock_;
  std::vector<Tensor> wanted_;
  std::vector<const Made*> right_;
};

// Lines that are no comments, with their numbers: a program's text does not keep all places of
// ops.
std::vector<std::pair<int, std::string>> code_lines(const std::string& text) {
  std::vector<std::pair<int, std::string>> result;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); number++) {
    if (line.compare(0, 2, "//") != 0) result.push_back({number, line});
  }
  return result;
}

// What there is to emit; none of a graph or a text.
std::optional<Tiles> tiles_of(const Made& made) {
  if (const Program* program = std::get_if<Program>(&made.value))
    return lower_to_tiles(*program);
  const Tiles* tiles = std::get_if<Tiles>(&made.value);
  return tiles ? std::optional(*tiles) : std::nullopt;
}

std::optional<Verdict> text_difference(const RecordedRun& run) {
  for (size_t k = 1; k < run.stages.size(); k++) {
    const std::string* text = std::get_if<std::string>(&run.stages[k].value);
    const std::optional<Tiles> tiles = tiles_of(run.stages[k - 1]);
    if (!text || !tiles) continue;
    const auto got = code_lines(*text), wanted = code_lines(emit(*tiles).text);
    for (size_t n = 0; n < std::max(got.size(), wanted.size()); n++) {
      const std::string line = n < got.size() ? got[n].second : "",
                        due = n < wanted.size() ? wanted[n].second : "";
      if (n < got.size() && n < wanted.size() && line == due) continue;
      const int number = n < got.size() ? got[n].first : got.empty() ? 1 : got.back().first + 1;
      const std::string words = str("is '", line, "', not '", due, "'");
      return Verdict{run.name, run.stages[k].stage, str("line ", number), {}, {}, 0, words};
    }
  }
  return {};
}

// How far it came: both runs' first stages, and A's next one where `second`.
struct Compared {
  const RecordedRun &a, &b;
  size_t stages = 0;
  bool second = false;

  std::string words() const {
    const size_t of_a = stages + (second ? 1 : 0);
    return str("the same until there: ", names(a, 0, of_a), " of ", a.name, ", ",
               names(b, 0, stages), " of ", b.name,
               "; not compared: ", names(a, of_a, a.stages.size()), " of ", a.name, ", ",
               names(b, stages, b.stages.size()), " of ", b.name, ", nor what was recorded");
  }

 private:
  static std::string names(const RecordedRun& run, size_t from, size_t to) {
    std::vector<std::string> result;
    for (size_t k = from; k < std::min(to, run.stages.size()); k++)
      result.push_back(run.stages[k].stage);
    return result.empty() ? "nothing" : join(result, " ");
  }
};

}  // namespace

std::vector<Made> stages_of(const Pipeline& pipeline, const Graph& graph) {
  std::vector<Made> result = {{"trace", graph}};
  for (size_t n = 1; n <= pipeline.size(); n++) {
    const Pipeline prefix(pipeline.begin(), pipeline.begin() + std::ptrdiff_t(n));
    const Staged staged = run_pipeline(prefix, graph, false);
    const Stage& stage = pipeline[n - 1];
    if (std::holds_alternative<GraphPass>(stage.run))
      result.push_back({stage.name, staged.graph});
    else if (std::holds_alternative<Tiling>(stage.run))
      result.push_back({stage.name, staged.tiles});
    else if (std::holds_alternative<Emit>(stage.run))
      result.push_back({stage.name, staged.source.text});
    else
      result.push_back({stage.name, staged.program});
  }
  return result;
}

std::optional<Verdict> bisect(const RecordedRun& a, const RecordedRun& b,
                              std::span<const Tensor> inputs, double seconds) {
  const Clock clock(seconds);
  Bisection bisection(a, inputs, clock);
  Bisection::traced(b);
  Compared compared{a, b};
  try {
    bisection.interpret_trace();
    for (; compared.stages < std::max(a.stages.size(), b.stages.size()); compared.stages++) {
      for (const RecordedRun* run : {&a, &b}) {
        compared.second = run == &b;
        if (auto verdict = bisection.stage(*run, compared.stages)) return verdict;
      }
    }
    for (const RecordedRun* run : {&a, &b}) {
      if (auto verdict = bisection.recorded(*run)) return verdict;
    }
  } catch (const Clock::Over& over) {
    throw OutOfTime(str("the time is over at ", over.place, "; ", compared.words()));
  }
  if (auto verdict = text_difference(a)) return verdict;
  return text_difference(b);
}

}  // namespace tiny_compile
