// While a machine has a thread for every element, time is what one thread does after the other:
//
//   sort p[j0] for (j0: 65536) = argsort load x[j0] in 2048                   rows each=4
//   sort q[j0] for (j0: 65536) = argsort load x[j0] in 4096 from load p[j0]   rows each=1
//
// Of more elements each thread takes more, so that fewer meet (a sort), and less is looked for (a merge); where
// only the first places are kept, a thread has a list of them.
// H200, f32: [1, 512] by 16 a thread .0144 ms, by 4 .0093; [5000, 2048] .216 and .256; [65536] by 4 a thread that
// merges .051, by 1 .036; [8, 262144] .265 and .372.
#include "tiny_compile/schedule/sorted_rows.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/split_sort.h"

namespace tiny_compile {
namespace {

constexpr int kFew = 4, kMany = 16;             // of a thread
constexpr int64_t kShort = 128, kMiddle = 256;  // rows that a warp sorts with fewer than kMany

}  // namespace

int each_sorted(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  if (program.target == Target::Cpp || step.kind != StepKind::Sort || !sizes(program).empty())
    return kFew;
  const int64_t run = sorted_run(kernel, step).constant(),
                count = inner_count(kernel, step).constant(),
                kept = power_of_two_from(std::min(run, first_places(kernel, step)));
  if (step.other < 0 && run > kSortedRun) return kFew;
  const double elements =
      static_cast<double>(row_count(kernel).constant()) * static_cast<double>(count);
  const bool are_few = elements <= static_cast<double>(threads_to_fill(program.machine));
  if (step.other >= 0) return are_few ? 1 : most_sorted(kernel, step);
  const int64_t each = are_few || run <= kShort ? kFew : run <= kMiddle ? kMany / 2 : kMany;
  return static_cast<int>(std::min<int64_t>(
      std::max(each, kept < power_of_two_from(run) ? kept : 0), most_sorted(kernel, step)));
}

}  // namespace tiny_compile
