// How do many blocks sort one row? Each sorts a run; then runs are merged in pairs, a block a tile of the
// result. The order is total: the bits are the same.
//
//   sort y[j0] for (j0: 5000) = argsort load x[j0]
// =>
//   temp p: u64[5000]   temp q: u64[5000]                       words of key and place (loops/sorted_words.h)
//   sort p[j0] for (j0: 5000) = argsort load x[j0] in 2048
//   sort q[j0] for (j0: 5000) = argsort load x[j0] in 4096 from load p[j0]
//   sort y[j0] for (j0: 5000) = argsort load x[j0] in 8192 from load q[j0]
#include "tiny_compile/loops/split_sort.h"

#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/sorted_words.h"
#include "tiny_compile/loops/split.h"

namespace tiny_compile {
namespace {

int add_buffer(Program& program, const Kernel& kernel, int64_t run) {
  const Buffer result = program.buffers[kernel.steps[0].buffer];
  const DType words = is_sorted_together(program, kernel)
                          ? dtype_of_words(kernel, kernel.steps[0])
                          : DType::i64;  // by a thread each: places
  return add_temporary(program, "p", str(run, "_", kernel.name), {words, result.type.shape},
                       result.size);
}

}  // namespace

bool can_split_sort(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  const Expr count = inner_count(kernel, step);
  return program.target == Target::Cuda && step.kind == StepKind::Sort && step.rhs < 0 &&
         step.mask < 0 && step.limit.is_constant(0) && count.is_constant() &&
         count.constant() > kSortedRun;
}

std::vector<Kernel> split_sort(Program& program, const Kernel& kernel) {
  const int64_t count = inner_count(kernel, kernel.steps[0]).constant();
  std::vector<Kernel> kernels;
  int sorted = -1;  // the buffer of the runs so far
  for (int64_t run = kSortedRun; run < 2 * count; run *= 2) {
    Kernel part = kernel;
    Step& step = part.steps[0];
    step.limit = run;
    if (sorted >= 0) step.rhs = ScalarTable(part).load(program, sorted, step.index);
    if (run < count) {
      sorted = step.buffer = add_buffer(program, part, run);
      part.name = str(kernel.name, "_in_", run);
      step.dtype = program.buffers[sorted].type.dtype;
    }
    kernels.push_back(normalize(std::move(part)));
  }
  return kernels;
}

}  // namespace tiny_compile
