// Who need not wait for a launch until everything before it has ended? What has few blocks:
//
//   launch sum_1          512 blocks
//   launch sum_1_finish   schedule layouts .. early=1: 4 blocks, which are there when the sums are
//
// A sum's finish is done .2 to 1.1 us sooner (H200). Many blocks would lose: each that has waited finds nothing
// in L1, and behind few there is less to hide. Equal kernels of a launch stay equal. A line that says early=0 or
// early=1 is left as it is.
#include "tiny_compile/loops/early.h"

#include "tiny_compile/loops/laid_out.h"

namespace tiny_compile {
namespace {

// More than any machine has room for where layouts do not say.
int64_t blocks_of(const Kernel& kernel) {
  const Schedule& schedule = schedule_of(kernel);
  if (schedule.strategy != Strategy::Layouts) return INT64_MAX / 2;
  return (grid_of(kernel).all() * cluster_of(schedule)).constant();
}

bool are_few(const Program& program, const std::vector<int>& launch) {
  const int64_t most = blocks_to_fill(program.machine);
  int64_t blocks = 0;
  for (size_t k = 0; k < launch.size() && blocks <= most; k++)
    blocks += blocks_of(program.kernels[launch[k]]);
  return blocks <= most;
}

}  // namespace

Program start_early(Program program) {
  if (program.target != Target::Cuda) return program;
  for (size_t n = 1; n < program.launches.size(); n++) {
    if (!are_few(program, program.launches[n])) continue;
    for (int k : program.launches[n]) {
      Schedule schedule = schedule_of(program.kernels[k]);
      if (schedule.early != Early::Unsaid) continue;
      schedule.early = Early::Yes;
      program.kernels[k].schedule = schedule;
    }
  }
  return program;
}

}  // namespace tiny_compile
