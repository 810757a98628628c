// Fusion puts a softmax and its running sums into one kernel. The threads of a block can share the
// former, and the latter, but no family of kernels has them share both:
//
//   rows(i0: 845) { r0 = max(j0: 49152) load x[i0*49152 + j0]
//                   scan y[i0*49152 + j0] for (j0: 49152) = cumsum sub(load x[..], r0) }
// =>
//   rows(i0: 845) { r0 = max(j0: 49152) load x[i0*49152 + j0];  store r[i0] = r0 }
//   rows(i0: 845) { scan y[i0*49152 + j0] for (j0: 49152) = cumsum sub(load x[..], load r[i0]) }
//
// Each scan becomes a kernel, but one sweep gives both places and values of a cummax. Stores stay
// with the reductions, or with the first scan where there are none.
#include "tiny_compile/loops/part_scans.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/row_results.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/split.h"

namespace tiny_compile {
namespace {

// Elements of a row that one thread goes over in no time. (H200, us, running sums of softmax over 4 Mi elements of f32
// by a thread a row and by two kernels: rows of 12 52.8, 19.5, of 16 55.5, 20.8, of 32 101, 20; of bf16 of 12 49.3, 17.2.)
constexpr int64_t kShort = 4;

bool runs_on(const Step& step) { return step.kind == StepKind::Scan; }

// Whether a kernel of its own begins with it: values go with their places.
bool is_scan_apart(const Kernel& kernel, const Step& step) {
  return runs_on(step) && !is_beside_places(kernel, step);
}

bool is_short(const Kernel& kernel, const Step& step) {
  return inner_count(kernel, step).bounds().high <= kShort;
}

// Of each step, the buffer that its register goes to; -1 where no scan needs it.
std::vector<int> add_registers(Program& program, const Kernel& kernel) {
  std::vector<int> buffer_of(kernel.steps.size(), -1);
  for (const Step& step : kernel.steps) {
    if (!runs_on(step)) continue;
    const std::vector<bool> reached = reachable(kernel, step);
    for (size_t id = 0; id < reached.size(); id++) {
      const Scalar& scalar = kernel.scalars[id];
      if (!reached[id] || scalar.kind != ScalarKind::Register || buffer_of[scalar.step] >= 0)
        continue;
      const Expr rows = row_count(kernel);
      buffer_of[scalar.step] =
          add_temporary(program, "r", kernel.name, {scalar.dtype, {rows}}, rows);
    }
  }
  return buffer_of;
}

// All but the scans, and stores of the registers.
Kernel reductions(const Program& program, Kernel kernel, const std::vector<int>& buffer_of) {
  ScalarTable table(kernel);
  std::vector<Step> stores;
  for (size_t s = 0; s < buffer_of.size(); s++) {
    if (buffer_of[s] < 0) continue;
    const DType dtype = program.buffers[buffer_of[s]].type.dtype;
    stores.push_back(
        store_of_row(table, static_cast<int>(s), dtype, buffer_of[s], flat_row(kernel)));
  }
  kernel = without_steps_where(std::move(kernel), runs_on);
  kernel.steps.insert(kernel.steps.end(), stores.begin(), stores.end());
  kernel.name += "_reduced";
  return normalize(std::move(kernel));
}

// One scan, which loads the registers; with the kernel's stores beside it.
Kernel lone_scan(const Program& program, Kernel kernel, const std::vector<int>& buffer_of,
                 size_t number, bool with_stores) {
  for (Scalar& scalar : kernel.scalars) {
    if (scalar.kind != ScalarKind::Register || buffer_of[scalar.step] < 0) continue;
    scalar = load_of_row(program, buffer_of[scalar.step], flat_row(kernel));
  }
  const Op scan = kernel.steps[number].op;
  const Step* const beside = values_beside(kernel, kernel.steps[number]);
  std::vector<Step> steps;
  for (const Step& step : kernel.steps) {
    if (&step == &kernel.steps[number] || &step == beside ||
        (with_stores && step.kind == StepKind::Store))
      steps.push_back(step);
  }
  kernel.steps = std::move(steps);
  if (number > 0) kernel.name += str("_", info(scan).name, "_", number);
  return normalize(std::move(kernel));
}

}  // namespace

bool can_part_scans(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda) return false;
  const auto fits = [](const Step& step) {
    const bool total = step.kind == StepKind::Reduce && has_running_results(step.op);
    return runs_on(step) || step.kind == StepKind::Store || step.kind == StepKind::Dot ||
           (step.kind == StepKind::Reduce && !total);
  };
  const auto scans =
      std::count_if(kernel.steps.begin(), kernel.steps.end(),
                    [&](const Step& step) { return is_scan_apart(kernel, step); });
  const bool registers = std::any_of(kernel.steps.begin(), kernel.steps.end(), makes_register);
  if (scans == 0 || (scans == 1 && !registers)) return false;
  if (std::all_of(kernel.steps.begin(), kernel.steps.end(),
                  [&](const Step& step) { return is_short(kernel, step); }))
    return false;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < read.size(); b++) {
    if (read[b] && written[b]) return false;
  }
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), fits);
}

std::vector<Kernel> part_scans(Program& program, const Kernel& kernel) {
  const std::vector<int> buffer_of = add_registers(program, kernel);
  const bool registers = std::any_of(kernel.steps.begin(), kernel.steps.end(), makes_register);
  std::vector<Kernel> kernels;
  if (registers) kernels.push_back(reductions(program, kernel, buffer_of));
  bool with_stores = !registers;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (!is_scan_apart(kernel, kernel.steps[s])) continue;
    kernels.push_back(lone_scan(program, kernel, buffer_of, s, with_stores));
    with_stores = false;
  }
  return kernels;
}

}  // namespace tiny_compile
