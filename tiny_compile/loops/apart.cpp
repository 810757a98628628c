// What would have to wait, were it one kernel?
//
//   s0 = sum a; s1 = sum b; t = add(s0, s1); s2 = sum c; u = add(t, s2); ..
//   =>  the sums side by side, and the additions behind them
#include "tiny_compile/loops/apart.h"

#include <algorithm>
#include <set>

namespace tiny_compile {
namespace {

// Whether a buffer's kernel brings several others' results together.
bool joins_several(const Program& program, int buffer) {
  for (const Kernel& kernel : program.kernels) {
    const auto writes = [&](const Step& step) {
      return !makes_register(step) && step.buffer == buffer;
    };
    if (std::none_of(kernel.steps.begin(), kernel.steps.end(), writes)) continue;
    std::set<int> read;
    for (const Scalar& s : kernel.scalars) {
      const bool made =
          s.kind == ScalarKind::Load && program.buffers[s.buffer].role == Role::Temporary;
      if (made) read.insert(s.buffer);
    }
    return read.size() > 1;
  }
  return false;
}

// It adds this reduction's result to several others', which the producer does not wait for: the
// norm of many tensors, whose reductions can all run at a time.
bool joins_another(const Program& program, const Group& producer, const Group& consumer) {
  if (!producer.has(StepKind::Reduce) || consumer.sequential() || points(consumer) > 1)
    return false;
  const auto loads = [](const Group& group, int buffer) {
    return std::any_of(
        group.kernel.scalars.begin(), group.kernel.scalars.end(),
        [&](const Scalar& s) { return s.kind == ScalarKind::Load && s.buffer == buffer; });
  };
  return std::any_of(consumer.kernel.scalars.begin(), consumer.kernel.scalars.end(),
                     [&](const Scalar& s) {
                       return s.kind == ScalarKind::Load &&
                              program.buffers[s.buffer].role == Role::Temporary &&
                              joins_several(program, s.buffer) &&
                              producer.store_to(s.buffer) < 0 && !loads(producer, s.buffer);
                     });
}

// One number's kernel that takes in readers one by one would make each wait for the one before;
// apart they are many of a kind, for one launch.
bool takes_in_many(const Group& producer, const Group& consumer) {
  const auto has_loops = [](const Step& step) { return !step.inner.empty(); };
  const std::vector<Step>& steps = producer.kernel.steps;
  return producer.rows.empty() && !producer.sequential() && points(consumer) > 1 &&
         std::any_of(steps.begin(), steps.end(), has_loops);
}

}  // namespace

std::string why_apart(const Program& program, const Group& producer, const Group& consumer) {
  if (program.target != Target::Cuda) return "";
  if (joins_another(program, producer, consumer)) return "it waits for another reduction too";
  return takes_in_many(producer, consumer) ? "others like it can share its launch" : "";
}

}  // namespace tiny_compile
