// When is one kernel worse than several? Where it holds more than it has room for: a quantisation down
// 8192 columns is held by the blocks of a cluster, which are few (H200, f32[8192,4096]: .130 ms, as two
// kernels .076); and where rows of several lengths follow each other, so that no layout suits
// them and a thread does each alone (a standardisation's gradient of bf16[5119,8192]: 3.99 ms).
#include "tiny_compile/loops/part_sweeps.h"

#include <algorithm>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/columns.h"
#include "tiny_compile/loops/group.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kHeldBetter = 2 * kChunk;  // of a column that is swept once
constexpr int64_t kFewElements = int64_t{1} << 22;

using Sweeps = std::vector<std::vector<int>>;

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

// The number of the part that each step belongs to: of a sweep with loops its own; of what a row stores
// once the last that it needs.
std::vector<int> part_of_steps(const Kernel& kernel, const Sweeps& sweeps) {
  std::vector<int> part(kernel.steps.size(), -1);
  int parts = 0;
  for (const std::vector<int>& sweep : sweeps) {
    if (!has_loops(kernel, sweep)) continue;
    for (const int s : sweep) part[s] = parts;
    parts++;
  }
  for (size_t s = 0; s < part.size(); s++) {
    if (part[s] >= 0) continue;
    part[s] = 0;
    for (const int other : needed_by(kernel, kernel.steps[s]))
      part[s] = std::max(part[s], part[other]);
  }
  return part;
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

Scalar load_of_row(const Program& program, const Kernel& kernel, int buffer) {
  Scalar load;
  load.kind = ScalarKind::Load;
  load.dtype = program.buffers[buffer].type.dtype;
  load.buffer = buffer;
  load.value = Literal{load.dtype, 0};
  load.index = flat_row(kernel);
  return load;
}

// Stores along the same loops, as points.
Kernel as_points(Kernel kernel) {
  const std::vector<int> inner = kernel.steps[0].inner;
  for (Step& step : kernel.steps) step.inner.clear();
  Group group(std::move(kernel));
  group.rows.insert(group.rows.end(), inner.begin(), inner.end());
  return group.finish();
}

Kernel one_part(const Program& program, Kernel kernel, const std::vector<int>& part, int number,
                const std::vector<int>& buffer_of) {
  for (Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Register && part[scalar.step] != number)
      scalar = buffer_of[scalar.step] < 0
                   ? Scalar()  // of no step here
                   : load_of_row(program, kernel, buffer_of[scalar.step]);
  }
  ScalarTable table(kernel);
  const size_t count = part.size();
  for (size_t s = 0; s < count; s++) {
    if (part[s] != number || buffer_of[s] < 0) continue;
    Step store;
    store.buffer = buffer_of[s];
    store.index = flat_row(kernel);
    store.dtype = kernel.steps[s].dtype;
    Scalar result;
    result.kind = ScalarKind::Register;
    result.dtype = store.dtype;
    result.step = static_cast<int>(s);
    store.value = table.add(result);
    kernel.steps.push_back(store);
  }
  size_t at = 0;
  kernel = without_steps_where(std::move(kernel), [&](const Step&) {
    const size_t s = at++;
    return s < count && part[s] != number;
  });
  if (number > 0) kernel.name += str("_", number);
  kernel = normalize(std::move(kernel));
  const auto is_loop_store = [&](const Step& step) {
    return step.kind == StepKind::Store && step.inner == kernel.steps[0].inner;
  };
  const bool points = !kernel.steps[0].inner.empty() &&
                      std::all_of(kernel.steps.begin(), kernel.steps.end(), is_loop_store);
  return points ? as_points(std::move(kernel)) : kernel;
}

}  // namespace

bool can_part_sweeps(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || !row_count(kernel).is_constant()) return false;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < read.size(); b++)
    if (read[b] && written[b]) return false;
  int loops = 0;
  for (const std::vector<int>& sweep : sweeps_of(kernel)) loops += has_loops(kernel, sweep);
  return loops > 1 && std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& s) {
           return (s.kind == StepKind::Reduce || s.kind == StepKind::Store) &&
                  inner_count(kernel, s).is_constant();
         });
}

bool is_worth_reading_twice(const Kernel& kernel) {
  const int64_t length = column_length(kernel, row_axes(kernel));
  if (length <= kHeldBetter || !has_many_elements(kernel)) return false;
  int reductions = 0;
  for (const std::vector<int>& sweep : sweeps_of(kernel))
    reductions += has_loops(kernel, sweep) && makes_register(kernel.steps[sweep[0]]);
  return reductions == 1 &&
         std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
           return !step.inner.empty() && !needed_by(kernel, step).empty();
         });
}

bool has_many_elements(const Kernel& kernel) {
  int64_t longest = 0;
  for (const Step& step : kernel.steps)
    longest = std::max(longest, inner_count(kernel, step).constant());
  return row_count(kernel).constant() * longest > kFewElements;
}

std::vector<Kernel> part_sweeps(Program& program, const Kernel& kernel) {
  const std::vector<int> part = part_of_steps(kernel, sweeps_of(kernel)),
                         buffer_of = add_results(program, kernel, part);
  std::vector<Kernel> kernels;
  for (int number = 0; number <= *std::max_element(part.begin(), part.end()); number++)
    kernels.push_back(one_part(program, kernel, part, number, buffer_of));
  return kernels;
}

}  // namespace tiny_compile
