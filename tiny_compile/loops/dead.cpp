// Which stores and buffers has fusion left over? A result that its readers now compute on the way is
// stored for nobody; and a store that goes may be the last to need another result:
//
//   rows(i: 8) { store a[i] = exp(load x[i]); store b[i] = neg(load a[i]); ... }   nobody reads b
// =>
//   rows(i: 8) { ... }                                                             nor a
//
// And which does it do twice? Ops that differ in shape alone may be equal as loops: the second of two
// equal reductions is the first.
#include "tiny_compile/loops/dead.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/loops/clone_with_mapping.h"

namespace tiny_compile {
namespace {

// The kernel's steps one by one into a new kernel, in which equal scalars are one.
class OnceEach {
 public:
  explicit OnceEach(const Kernel& source)
      : source_(source), result_(without_steps(source)), table_(result_) {}

  Kernel run() {
    for (const Scalar& scalar : source_.scalars) {
      if (scalar.kind == ScalarKind::Register) take_steps(scalar.step + 1);
      scalars_.push_back(table_.add(renumbered(
          scalar, [&](int id) { return scalars_[id]; },
          [&](int step) { return steps_[step]; })));
    }
    take_steps(static_cast<int>(source_.steps.size()));
    return normalize(std::move(result_));
  }

 private:
  void take_steps(int end) {
    while (static_cast<int>(steps_.size()) < end) {
      Step step = source_.steps[steps_.size()];
      for (int* id : step.roots()) *id = *id < 0 ? -1 : scalars_[*id];
      const auto known = makes_register(step)
                             ? std::find(result_.steps.begin(), result_.steps.end(), step)
                             : result_.steps.end();
      steps_.push_back(static_cast<int>(known - result_.steps.begin()));
      if (known == result_.steps.end()) result_.steps.push_back(std::move(step));
    }
  }

  const Kernel& source_;
  Kernel result_;
  ScalarTable table_;
  std::vector<int> scalars_, steps_;  // the result's, of each of the source's
};

std::vector<int> numbered(size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Of each buffer, the temporary that holds the same, or itself.
std::vector<int> twins(const Program& program) {
  std::vector<int> same = numbered(program.buffers.size()), writes(same.size());
  for (const Kernel& kernel : program.kernels)
    for (const Step& step : kernel.steps)
      if (!makes_register(step)) writes[step.buffer]++;
  const auto is_whole = [&](const Step& step) {
    return step.kind == StepKind::Store && writes[step.buffer] == 1 &&
           program.buffers[step.buffer].role == Role::Temporary;
  };
  for (const Kernel& kernel : program.kernels) {
    for (size_t later = 0; later < kernel.steps.size(); later++) {
      for (size_t first = 0; first < later; first++) {
        const Step &a = kernel.steps[first], &b = kernel.steps[later];
        if (a.value != b.value || !is_whole(a) || !is_whole(b)) continue;
        Step moved = b;
        moved.buffer = a.buffer;
        const Buffer &one = program.buffers[a.buffer], &other = program.buffers[b.buffer];
        if (a == moved && one.size == other.size && one.type == other.type)
          same[b.buffer] = same[a.buffer];
      }
    }
  }
  return same;
}

}  // namespace

Kernel without_repeats(const Kernel& kernel) { return OnceEach(kernel).run(); }

Kernel without_dead_stores(const Program& program, Kernel kernel,
                           const std::vector<bool>& loaded) {
  for (bool changed = true; changed;) {
    std::vector<bool> kept = buffers_read(program, kernel);
    for (const Step& step : kernel.steps) {
      if (step.kind == StepKind::Scan || step.kind == StepKind::Scatter)
        kept[step.buffer] = true;
    }
    const auto is_dead = [&](const Step& step) {
      return step.kind == StepKind::Store && !loaded[step.buffer] && !kept[step.buffer] &&
             program.buffers[step.buffer].role == Role::Temporary;
    };
    changed = std::any_of(kernel.steps.begin(), kernel.steps.end(), is_dead);
    if (changed) kernel = normalize(without_steps_where(std::move(kernel), is_dead));
  }
  return kernel;
}

Program with_one_of_each(Program program) {
  const std::vector<int> same = twins(program);
  if (same == numbered(same.size())) return program;
  std::vector<bool> loaded(same.size());
  for (Kernel& kernel : program.kernels) {
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind != ScalarKind::Load) continue;
      scalar.buffer = same[scalar.buffer];
      loaded[scalar.buffer] = true;
    }
  }
  for (size_t b = 0; b < same.size(); b++)
    loaded[b] = loaded[b] || same[b] == static_cast<int>(b);
  for (Kernel& kernel : program.kernels)
    kernel = without_repeats(without_dead_stores(program, std::move(kernel), loaded));
  return program;
}

Program drop_unused_buffers(Program program) {
  std::vector<bool> used(program.buffers.size());
  for (size_t b = 0; b < used.size(); b++) used[b] = program.buffers[b].role != Role::Temporary;
  for (const Kernel& kernel : program.kernels) {
    for (const Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Load) used[scalar.buffer] = true;
    }
    for (const Step& step : kernel.steps) {
      if (!makes_register(step)) used[step.buffer] = true;
    }
  }
  std::vector<int> numbers(used.size(), -1);
  std::vector<Buffer> kept;
  for (size_t b = 0; b < used.size(); b++) {
    if (!used[b]) continue;
    numbers[b] = static_cast<int>(kept.size());
    kept.push_back(program.buffers[b]);
  }
  program.buffers = std::move(kept);
  for (int& output : program.outputs) output = numbers[output];
  for (Kernel& kernel : program.kernels) {
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.buffer >= 0) scalar.buffer = numbers[scalar.buffer];
    }
    for (Step& step : kernel.steps) {
      if (step.buffer >= 0) step.buffer = numbers[step.buffer];
    }
  }
  return program;
}

}  // namespace tiny_compile
