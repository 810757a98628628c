// When is one kernel worse than several? Where it holds more than it has room for: a quantisation down
// 8192 columns is held by the blocks of a cluster, which are few (H200, f32[8192,4096]: .130 ms, as two
// kernels .076); and where rows of several lengths follow each other, so that no layout suits
// them and a thread does each alone (a standardisation's gradient of bf16[5119,8192]: 3.99 ms).
#include "tiny_compile/loops/part_sweeps.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/columns.h"
#include "tiny_compile/loops/row_results.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kHeldBetter = 2 * kChunk;  // of a column that is swept once
constexpr int64_t kHeldAcross =
    8 * kChunk;  // of a row that is stored across and swept more than once
constexpr int64_t kFewElements = int64_t{1} << 22;

bool has_loops(const Kernel& kernel, const std::vector<int>& sweep) {
  return !kernel.steps[sweep[0]].inner.empty();
}

// Results of steps that a step needs.
std::vector<int> needed_by(const Kernel& kernel, const Step& step) {
  const std::vector<bool> reached = reachable(kernel, step);
  std::vector<int> steps;
  for (size_t id = 0; id < reached.size(); id++) {
    if (reached[id] && kernel.scalars[id].kind == ScalarKind::Register)
      steps.push_back(kernel.scalars[id].step);
  }
  return steps;
}

// What a part's steps have in common: how many parts stand before it whose results it needs, one after the
// other, the loops of more than a chunk, and whether they store along them: reductions alone are split, and stores
// alone are points. What goes over less has no loops here, and is done with others of its kind: threads hold it.
struct Part {
  int level = 0;
  std::vector<int> loops;
  bool stores = false;
  bool operator==(const Part&) const = default;
};

bool is_long(const Kernel& kernel, const Step& step) {
  return inner_count(kernel, step).bounds().high > kChunk;
}

std::vector<Part> traits_of_steps(const Kernel& kernel) {
  std::vector<Part> parts;
  for (const Step& step : kernel.steps) {
    Part part;
    if (is_long(kernel, step)) part = {0, step.inner, step.kind == StepKind::Store};
    for (const int other : needed_by(kernel, step)) {
      const bool are_short = part.loops.empty() && parts[other].loops.empty();
      part.level = std::max(part.level, parts[other].level + (are_short ? 0 : 1));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// The number of the part that each step belongs to, in the order that they run; of what a row stores once the
// last one that it needs.
std::vector<int> part_of_steps(const Kernel& kernel) {
  const std::vector<Part> parts = traits_of_steps(kernel);
  std::vector<Part> in_order;
  for (size_t s = 0; s < parts.size(); s++) {
    const bool stands_alone = !kernel.steps[s].inner.empty();
    if (stands_alone && std::find(in_order.begin(), in_order.end(), parts[s]) == in_order.end())
      in_order.push_back(parts[s]);
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const Part& a, const Part& b) { return a.level < b.level; });
  std::vector<int> part;
  for (size_t s = 0; s < parts.size(); s++) {
    const auto found = std::find(in_order.begin(), in_order.end(), parts[s]);
    int number = static_cast<int>(found - in_order.begin());
    if (kernel.steps[s].inner.empty()) {
      number = 0;
      for (const int other : needed_by(kernel, kernel.steps[s]))
        number = std::max(number, part[other]);
    }
    part.push_back(number);
  }
  return part;
}

// By reductions, over loops.
bool is_swept_once(const Kernel& kernel) {
  int reductions = 0;
  for (const std::vector<int>& sweep : sweeps_of(kernel))
    reductions += has_loops(kernel, sweep) && makes_register(kernel.steps[sweep[0]]);
  return reductions == 1;
}

// Of each step, the buffer that its result goes to; -1 where no other part needs it.
std::vector<int> add_results(Program& program, const Kernel& kernel,
                             const std::vector<int>& part) {
  std::vector<int> buffer_of(kernel.steps.size(), -1);
  const Expr rows = row_count(kernel);
  for (size_t s = 0; s < part.size(); s++) {
    for (const int other : needed_by(kernel, kernel.steps[s])) {
      if (part[other] == part[s] || buffer_of[other] >= 0) continue;
      buffer_of[other] =
          add_temporary(program, "r", kernel.name, {kernel.steps[other].dtype, {rows}}, rows);
    }
  }
  return buffer_of;
}

Kernel one_part(const Program& program, Kernel kernel, const std::vector<int>& part, int number,
                const std::vector<int>& buffer_of) {
  for (Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Register && part[scalar.step] != number)
      scalar = buffer_of[scalar.step] < 0
                   ? Scalar()  // of no step here
                   : load_of_row(program, buffer_of[scalar.step], flat_row(kernel));
  }
  ScalarTable table(kernel);
  const size_t count = part.size();
  for (size_t s = 0; s < count; s++) {
    if (part[s] != number || buffer_of[s] < 0) continue;
    kernel.steps.push_back(store_of_row(table, static_cast<int>(s), kernel.steps[s].dtype,
                                        buffer_of[s], flat_row(kernel)));
  }
  size_t at = 0;
  kernel = without_steps_where(std::move(kernel), [&](const Step&) {
    const size_t s = at++;
    return s < count && part[s] != number;
  });
  if (number > 0) kernel.name += str("_", number);
  return as_points(normalize(std::move(kernel)));
}

}  // namespace

bool can_part_sweeps(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || !row_count(kernel).is_constant()) return false;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < read.size(); b++)
    if (read[b] && written[b]) return false;
  const bool fits = std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& s) {
    return (s.kind == StepKind::Reduce || s.kind == StepKind::Store) &&
           inner_count(kernel, s).is_constant();
  });
  if (!fits) return false;
  const std::vector<int> part = part_of_steps(kernel);
  return std::any_of(part.begin(), part.end(), [](int number) { return number > 0; });
}

bool is_worth_reading_twice(const Kernel& kernel) {
  const int64_t length = column_length(kernel, row_axes(kernel));
  return length > kHeldBetter && has_many_elements(kernel) && is_swept_once(kernel) &&
         std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
           return !step.inner.empty() && !needed_by(kernel, step).empty();
         });
}

bool stores_across(const Kernel& kernel) {
  if (kernel.rows == 0) return false;
  const Expr row = kernel.axes[kernel.rows - 1].symbol();
  const int64_t longest = is_swept_once(kernel) ? kChunk : kHeldAcross;
  const auto along = [&](const Expr& index, const Step& step) {
    return coefficient(index, kernel.axes[step.inner.back()].symbol());
  };
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    if (step.kind != StepKind::Store || step.inner.empty() ||
        inner_count(kernel, step).constant() <= longest || needed_by(kernel, step).empty() ||
        along(step.index, step) <= 1 || coefficient(step.index, row) != 1)
      return false;
    const std::vector<bool> reached = reachable(kernel, step);
    bool reads_along = false;
    for (size_t id = 0; id < reached.size(); id++)
      reads_along =
          reads_along || (reached[id] && kernel.scalars[id].kind == ScalarKind::Load &&
                          along(kernel.scalars[id].index, step) == 1);
    return reads_along;
  });
}

bool has_many_elements(const Kernel& kernel) {
  int64_t longest = 0;
  for (const Step& step : kernel.steps)
    longest = std::max(longest, inner_count(kernel, step).constant());
  return row_count(kernel).constant() * longest > kFewElements;
}

std::vector<Kernel> part_sweeps(Program& program, const Kernel& kernel) {
  const std::vector<int> part = part_of_steps(kernel),
                         buffer_of = add_results(program, kernel, part);
  std::vector<Kernel> kernels;
  for (int number = 0; number <= *std::max_element(part.begin(), part.end()); number++)
    kernels.push_back(one_part(program, kernel, part, number, buffer_of));
  return kernels;
}

}  // namespace tiny_compile
