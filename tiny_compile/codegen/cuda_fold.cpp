// How does a block add up columns while its warps go over rows? Each warp puts what its row gives
// to the columns into shared memory, the block meets, and each thread adds a few columns over
// the warps:
//
//   16 rows, 4 warps, 4 turns: warp w has the rows 4w .. 4w+3, in the order 0, 2, 1, 3
//     turn 0   tree over the warps: rows 0, 4, 8, 12   waits[0]
//     turn 1   rows 2, 6, ...; + waits[0]              waits[1]
//     turn 2   rows 1, 5, ...                          waits[0]
//     turn 3   rows 3, 7, ...; + waits[0]; + waits[1]  the sum of 16, in the contract's order
#include "tiny_compile/codegen/cuda_fold.h"

#include <algorithm>
#include <bit>

#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/loops/fold.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPack = 8;            // the widest that a row's elements come in
constexpr int64_t kShared = 48 * 1024;  // bytes of a block

int64_t columns_of(const Kernel& kernel, const Step& step) {
  return ceil_divide(inner_count(kernel, step).constant(), kPack) * kPack;
}

// Columns a thread adds at once: what 16 bytes hold, where they are stored next to each other.
int64_t columns_at_once(const Kernel& kernel, const Step& step) {
  const int64_t most = 16 / size_of(step.dtype);
  if (step.inner.empty()) return 1;
  const Axis& column = kernel.axes[step.inner.back()];
  bool packs = step.inner.size() == 1 && column.extent.constant() % most == 0;
  for (const Term& term : terms(step.index)) {
    const bool itself = term.factor == column.symbol();
    packs = packs && (itself ? term.coefficient == 1 : term.coefficient % most == 0);
  }
  return packs ? most : 1;
}

}  // namespace

bool folds_rows(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Fold; });
}

FoldShape fold_shape_of(const Kernel& kernel) {
  FoldShape shape;
  const int64_t rows = kernel.axes[kernel.rows - 1].extent.constant();
  shape.warps = static_cast<int>(std::min(rows, kFoldWarps));
  shape.turns = rows / shape.warps;
  shape.levels = std::countr_zero(static_cast<uint64_t>(shape.turns));
  return shape;
}

std::string row_of_turn(const CudaText& text, const std::string& turn) {
  const FoldShape shape = fold_shape_of(text.kernel);
  const std::string block = text.integer == "int" ? "(int)blockIdx.x" : "(long long)blockIdx.x",
                    first = str(block, " * ", shape.warps * shape.turns, " + warp");
  if (shape.turns == 1) return first;
  return str(first, " * ", shape.turns, " + (int)(__brev((unsigned)(", turn, ")) >> ",
             32 - shape.levels, ")");
}

void open_folds(CudaText& text) {
  const Kernel& kernel = text.kernel;
  const FoldShape shape = fold_shape_of(kernel);
  int64_t widest = 0, bytes = 0;
  std::vector<std::string> waiting;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    const Step& step = kernel.steps[s];
    if (step.kind != StepKind::Fold) continue;
    const int64_t columns = columns_of(kernel, step), size = size_of(step.dtype);
    widest = std::max(widest, size * columns);
    bytes += size * columns * shape.levels;
    if (shape.levels > 0)
      waiting.push_back(str("__shared__ alignas(16) ", c_type(step.dtype), " waits_", s, "[",
                            shape.levels, "][", columns, "];"));
  }
  bytes += widest * shape.warps;
  if (bytes > kShared)
    fail("kernel ", kernel.name, " folds rows into ", bytes, " bytes of a block's ", kShared);
  text.out.line("const int warp = threadIdx.x >> 5;");
  text.out.line(
      str("__shared__ alignas(16) unsigned char meeting[", shape.warps, "][", widest, "];"));
  for (const std::string& line : waiting) text.out.line(line);
  if (shape.turns > 1) {
    text.out.line("#pragma unroll 1");
    text.out.open(str("for (int turn = 0; turn < ", shape.turns, "; turn++)"));
  }
  text.declare("row", row_of_turn(text, "turn"));
}

void write_fold_sums(CudaText& text, const Step& step, int number) {
  const Kernel& kernel = text.kernel;
  const FoldShape shape = fold_shape_of(kernel);
  const int64_t count = inner_count(kernel, step).constant();
  const int64_t vector = columns_at_once(kernel, step);
  const std::string type = c_type(step.dtype),
                    pack = str(text.calls("tc_pack"), "<", type, ", ", vector, ">"),
                    add = str(text.calls("tc_each"), "<",
                              cuda_op(text.calls, Op::sum, step.dtype), ", ", type, ", ",
                              vector, ">");
  const std::string waits = str("*(", pack, "*)&waits_", number, "[level][column]");
  text.out.line("__syncthreads();");
  text.out.open(str("for (int column = ", vector, " * threadIdx.x; column < ", count,
                    "; column += ", vector * 32 * shape.warps, ")"));
  text.out.line(str("auto given = [&](int w) { return *(", pack, "*)&meeting[w][",
                    size_of(step.dtype), " * column]; };"));
  text.out.line(str(pack, " sum = ", text.calls("tc_strided"), "<", add, ", ",
                    std::countr_zero(static_cast<unsigned>(shape.warps)), ", ", pack,
                    ">(given);"));
  if (shape.levels > 0) {
    text.out.line("int level = 0;");
    text.out.line(
        str("for (; turn >> level & 1; level++) sum = ", add, "::of(", waits, ", sum);"));
    text.out.line(str("if (level < ", shape.levels, ") ", waits, " = sum;"));
    text.out.open("else");
  }
  text.unpack_inner(step, "column");
  text.out.line(str("*(", pack, "*)&", text.place(step), " = sum;"));
  if (shape.levels > 0) text.out.close();
  text.out.close();
  text.out.line("__syncthreads();");
}

}  // namespace tiny_compile
