// fails: eight bytes do not lie over four
#include "exercise.h"

namespace exercise {
namespace {

bool same_size(const Buffer& a, const Buffer& b) {
  return a.role == Role::Temporary && b.role == Role::Temporary && a.size == b.size;
}

bool is_touched_behind(const Program& program, size_t kernel, int buffer) {
  for (size_t k = kernel + 1; k < program.kernels.size(); k++) {
    if (buffers_read(program, program.kernels[k])[buffer]) return true;
    if (buffers_written(program, program.kernels[k])[buffer]) return true;
  }
  return false;
}

bool is_written_once(const Kernel& kernel, int buffer) {
  return std::count_if(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
           return !makes_register(step) && step.buffer == buffer;
         }) == 1;
}

bool is_read_only_there(const Kernel& kernel, int buffer, const Expr& index) {
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind != ScalarKind::Load || scalar.buffer != buffer) continue;
    if (scalar.index != index || !scalar.operands.empty()) return false;
  }
  return true;
}

// The buffer that the kernel's last step may overwrite, or -1.
int overwritten(const Program& program, size_t k) {
  const Kernel& kernel = program.kernels[k];
  const Step& last = kernel.steps.back();
  if (last.kind != StepKind::Store || !is_written_once(kernel, last.buffer)) return -1;
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < read.size(); b++) {
    const int from = static_cast<int>(b);
    if (read[b] && !written[b] && same_size(program.buffers[b], program.buffers[last.buffer]) &&
        !is_touched_behind(program, k, from) && is_read_only_there(kernel, from, last.index))
      return from;
  }
  return -1;
}

}  // namespace

std::vector<Pair> overwrites(const Program& program) {
  std::vector<Pair> pairs;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const int from = overwritten(program, k);
    if (from >= 0) pairs.push_back({from, program.kernels[k].steps.back().buffer});
  }
  return pairs;
}

}  // namespace exercise
