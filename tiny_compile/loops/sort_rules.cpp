// Does a sort that merges find its runs sorted? Only where an earlier kernel is the same one, but for
// the length of the runs and the buffer they lie in:
//
//   rows(i0: 8) { sort p[i0*9000 + j0] for (j0: 9000) = argsort load x[i0*9000 + j0] in 2048 }
//   rows(i0: 8) { sort q[i0*9000 + j0] for (j0: 9000) = argsort load x[i0*9000 + j0] in 4096
//                   from load p[i0*9000 + j0] }
#include "tiny_compile/loops/sort_rules.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/simplify_under_mask.h"
#include "tiny_compile/loops/sorted_words.h"
#include "tiny_compile/loops/split_sort.h"

namespace tiny_compile {
namespace {

constexpr int kThreads = 128;  // of a block that sorts several rows
constexpr int kMerging =
    512;  // of one that merges, an element or two each; of more half as many
constexpr int kFew = 2;

bool is_sort_alone(const Kernel& kernel) {
  return kernel.steps.size() == 1 && kernel.steps[0].kind == StepKind::Sort;
}

std::string why_wrong_runs(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  if (step.rhs < 0) return "";
  if (step.rhs >= static_cast<int>(kernel.scalars.size())) return "merges nothing";
  const Scalar& runs = kernel.scalars[step.rhs];
  if (!is_plain(runs) || runs.index != step.index)
    return "merges what does not lie as its result does";
  if (runs.dtype != DType::i64 && runs.dtype != dtype_of_words(kernel, step))
    return str("merges words of ", runs.dtype, ", where its own are ",
               dtype_of_words(kernel, step));
  const Kernel* earlier = sorter_of(program, runs.buffer);
  const bool halves = earlier && earlier->steps[0].limit.is_constant() &&
                      earlier->steps[0].limit.constant() > 0 &&
                      earlier->steps[0].limit * 2 == step.limit;
  return halves && essence_of_sort(*earlier) == essence_of_sort(kernel)
             ? ""
             : str("merges ", program.buffers[runs.buffer].name,
                   ", which is not seen to be the same sort in runs half as long");
}

// Of a row that nobody cuts in runs.
std::string why_wrong_firsts(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  if (step.mask < 0) return "";
  const std::string reason = why_wrong_mask(program, kernel, step);
  if (!reason.empty()) return reason;
  const Expr count = inner_count(kernel, step);
  if (!step.limit.is_constant(0) || step.rhs >= 0) return "keeps the first places of runs";
  if (!count.is_constant() || count.constant() > kSortedRun)
    return str("keeps the first places of ", count, ", not of a row of at most ", kSortedRun);
  const Scalar& mask = kernel.scalars[step.mask];
  return *integer_of(kernel, mask.operands[0]) == kernel.axes[step.inner[0]].symbol()
             ? ""
             : "keeps places that are not the first of its loop";
}

}  // namespace

bool is_sorted_together(const Program& program, const Kernel& kernel) {
  const Step& step = kernel.steps[0];
  if (program.target != Target::Cuda || step.kind != StepKind::Sort ||
      !sizes(program).empty() || row_count(kernel).is_constant(0))
    return false;
  return step.rhs >= 0 || sorted_run(kernel, step).constant() <= kSortedRun;
}

Kernel essence_of_sort(Kernel kernel) {
  kernel.name.clear();
  kernel.where.clear();
  kernel.schedule.reset();
  kernel.steps[0].buffer = kernel.steps[0].rhs = -1;
  kernel.steps[0].dtype = DType::i64;
  kernel.steps[0].limit = 0;
  return normalize(std::move(kernel));
}

const Kernel* sorter_of(const Program& program, int buffer) {
  for (const Kernel& kernel : program.kernels) {
    if (is_sort_alone(kernel) && kernel.steps[0].buffer == buffer) return &kernel;
  }
  return nullptr;
}

std::string why_wrong_sort(const Program& program, const Kernel& kernel, int number) {
  const Step& step = kernel.steps[number];
  if (!is_sort(step.op)) return str(info(step.op).name, " is no sort");
  if (kernel.steps.size() > 1) return "sorts beside other steps: a sort has its kernel alone";
  if (step.inner.size() > 1) return "sorts over several loops";
  if (program.buffers[step.buffer].type.dtype != DType::i64 &&
      !(is_sorted_together(program, kernel) && step.limit.bounds().low > 0))
    return "stores words, which only blocks of a GPU do that sort in runs";
  if (!step.limit.is_constant() || step.limit.constant() < 0)
    return str("sorts in runs of ", step.limit);
  const std::string reason = why_wrong_firsts(program, kernel);
  return reason.empty() ? why_wrong_runs(program, kernel) : reason;
}

int64_t first_places(const Kernel& kernel, const Step& step) {
  if (step.mask < 0) return inner_count(kernel, step).bounds().high;
  return integer_of(kernel, kernel.scalars[step.mask].operands[1])->constant();
}

Expr sorted_run(const Kernel& kernel, const Step& step) {
  const Expr count = inner_count(kernel, step);
  return step.limit.is_constant(0) ? count : min(step.limit, count);
}

DType dtype_of(const WordBits& bits) { return bits.words == 1 ? DType::u32 : DType::u64; }

WordBits word_bits(DType key, int64_t count) {
  WordBits bits;
  // f16 in a float's bits: the sign, 8 bits of exponent and 10 more.
  bits.dropped = key == DType::f16 ? 13 : key == DType::bf16 ? 16 : 0;
  const int own = bits.dropped > 0 ? 32 - bits.dropped : static_cast<int>(8 * size_of(key)),
            beside = own < 16 ? 16 : 32 - own;
  if (own < 32 && count <= int64_t{1} << beside) return {bits.dropped, own, beside, 1};
  if (own <= 32 && count <= int64_t{1} << 32) return {bits.dropped, own, 32, 2};
  return bits;
}

WordBits word_bits_of_numbers(int64_t keys, int64_t count) {
  const int key = log2_of(power_of_two_from(keys)),
            place = log2_of(power_of_two_from(std::max<int64_t>(count, 2)));
  return key + place <= 32 ? WordBits{0, key, place, 1} : WordBits{0, 32, 32, 2};
}

int64_t most_places(const Kernel& kernel, const Step& step) {
  const int64_t count = inner_count(kernel, step).bounds().high;
  const Expr run = sorted_run(kernel, step);
  if (!run.is_constant() || run.constant() <= 0) return count;
  const int64_t whole = (ceil_divide(count, run.constant()) - 1) * run.constant();
  return std::max(count, whole + static_cast<int64_t>(power_of_two_from(run.constant())));
}

SortShape::SortShape(int64_t count, int64_t wanted, int each)
    : own(std::min(each, static_cast<int>(power_of_two_from(count)))),
      threads(static_cast<int>(power_of_two_from(count)) / own),
      rows(is_in_warp() ? kThreads / threads : 1),
      kept(std::max(static_cast<int>(power_of_two_from(wanted)), own)) {}

int SortShape::bits() const { return log2_of(threads); }
int SortShape::list_bits() const { return log2_of(std::max(kept / own, 1)); }

int merging_threads(int each) { return each > kFew ? kMerging / 2 : kMerging; }

int most_sorted(const Kernel& kernel, const Step& step) {
  if (step.rhs >= 0) return 4;
  return size_of(kernel.scalars[step.value].dtype) == 8 ? 8 : 16;
}

}  // namespace tiny_compile
