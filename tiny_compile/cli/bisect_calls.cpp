// In which step did two trainings part? A step's state is what the step before gave, so that
// from the first one on everything differs: hashes are compared, call by call, up to that one.
//
//   A: 6 in a b, out c   7 in c d, out e      B: 6 in a b, out c   7 in c d, out f
//     ->  call 7: both graphs on c and d: stage 'cse' of B, %31 = sub, element [4,7]
#include "tiny_compile/cli/bisect_calls.h"

#include <algorithm>

#include "tiny_compile/cli/inputs.h"

namespace tiny_compile {
namespace {

std::string type_of(const RecordedTensor& tensor) {
  return str(tensor.dtype, "[", join(tensor.shape, ","), "]");
}

std::string named(const RecordedCall& call) {
  return str("call ", call.number, " of ", call.name());
}

// The first of two lists of tensors that differ; they have the same types.
std::optional<size_t> first_apart(const std::vector<RecordedTensor>& a,
                                  const std::vector<RecordedTensor>& b) {
  for (size_t k = 0; k < a.size(); k++) {
    if (a[k].key != b[k].key) return k;
  }
  return std::nullopt;
}

void check_types(const RecordedCall& a, const RecordedCall& b,
                 const std::vector<RecordedTensor>& of_a,
                 const std::vector<RecordedTensor>& of_b) {
  const bool same = std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                               [](const RecordedTensor& x, const RecordedTensor& y) {
                                 return x.dtype == y.dtype && x.shape == y.shape;
                               });
  if (a.name() == b.name() && same) return;
  fail("tc bisect: ", named(a), " in A is ", named(b),
       " in B, or of other types: these are not runs of one computation");
}

class Pairs {
 public:
  Pairs(const Dump& a, const Dump& b, const TimeLimit& limit) : a_(a), b_(b), limit_(limit) {}

  std::optional<std::string> first_apart_of_all() const {
    for (size_t k = 0; k < std::min(a_.calls.size(), b_.calls.size()); k++) {
      if (auto found = apart(a_.calls[k], b_.calls[k])) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> apart(const RecordedCall& a, const RecordedCall& b) const {
    check_types(a, b, a.inputs, b.inputs);
    if (const auto input = first_apart(a.inputs, b.inputs)) return input_apart(a, b, *input);
    if (!a.ended || !b.ended) {
      if (a.ended == b.ended) return std::nullopt;
      return str(a.ended ? b_.name : a_.name, ": ", named(a),
                 " gave nothing: the run ended in it, or with an error");
    }
    check_types(a, b, a.outputs, b.outputs);
    const auto output = first_apart(a.outputs, b.outputs);
    if (!output) return std::nullopt;
    return output_apart(a, b, *output);
  }

  std::string input_apart(const RecordedCall& a, const RecordedCall& b, size_t input) const {
    const std::string place =
        str(b_.name, ": ", named(b), " differs first, at its input ", input, " (",
            type_of(b.inputs[input]), "), though every call before gave the same");
    const auto wanted = kept_tensor(a_.directory, a.inputs[input]),
               got = kept_tensor(b_.directory, b.inputs[input]);
    if (!wanted || !got) return place + to_keep(b);
    const auto at = first_difference(*wanted, *got);
    return at ? str(place, ": ", element_difference(*wanted, *got, *at)) : place;
  }

  std::string output_apart(const RecordedCall& a, const RecordedCall& b, size_t output) const {
    const std::string what =
        str(" differs first, at output ", output, " (", type_of(b.outputs[output]), ")");
    auto inputs = kept(a_, a.inputs);
    if (!inputs) inputs = kept(b_, b.inputs);
    if (inputs) {
      const auto verdict =
          limit_.bisect(named(b) + what, run_of(a_, a), run_of(b_, b), *inputs);
      if (verdict) return str(named(b), ": ", said(*verdict));
    }
    return str(named(b), what, " of the same inputs", to_keep(b));
  }

  static std::string to_keep(const RecordedCall& call) {
    return str("; to see more of it, run both again with TC_DEBUG_CALLS=", call.number,
               ", which keeps its elements");
  }

  const Dump &a_, &b_;
  const TimeLimit& limit_;
};

}  // namespace

std::optional<Verdict> TimeLimit::bisect(const std::string& call, const RecordedRun& a,
                                         const RecordedRun& b,
                                         std::span<const Tensor> inputs) const {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  try {
    return tiny_compile::bisect(a, b, inputs, seconds_ - spent.count());
  } catch (const OutOfTime& over) {
    fail("tc bisect: --limit=", seconds_, " s were not enough: ", call, "; ", over.what());
  }
}

std::string said(const Verdict& verdict) {
  const std::string place =
      str(verdict.run, ": stage '", verdict.stage, "' differs first, at ", verdict.place, ": ");
  if (!verdict.got.defined()) return place + verdict.text;
  if (!verdict.wanted.defined()) return place + "its value is nowhere in the stage before";
  return place + element_difference(verdict.wanted, verdict.got, verdict.at);
}

std::optional<std::string> first_call_apart(const Dump& a, const Dump& b,
                                            const TimeLimit& limit) {
  return Pairs(a, b, limit).first_apart_of_all();
}

std::optional<std::string> first_wrong_call(const Dump& dump, const std::string& name,
                                            const Pipeline& pipeline, const TimeLimit& limit) {
  std::map<std::string, RecordedRun> runs;  // of the pipeline, by graph
  for (const RecordedCall& call : dump.calls) {
    const auto inputs = kept(dump, call.inputs);
    if (!inputs) continue;
    const RecordedRun recorded = run_of(dump, call);
    if (!runs.count(call.graph)) {
      const Graph& graph = std::get<Graph>(recorded.stages.at(0).value);
      runs[call.graph] = {name, stages_of(pipeline, graph)};
    }
    const auto verdict = limit.bisect(named(call), recorded, runs.at(call.graph), *inputs);
    if (verdict) return str(named(call), ": ", said(*verdict));
    if (!call.ended)
      return str(dump.name, ": ", named(call),
                 " gave nothing: the run ended in it, or with an error");
  }
  if (runs.empty())
    fail("tc bisect: ", dump.name, " keeps the elements of no call: run it again with ",
         "TC_DEBUG_CALLS=1-3, or all");
  return std::nullopt;
}

}  // namespace tiny_compile
