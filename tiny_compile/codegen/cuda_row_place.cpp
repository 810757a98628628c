// Where does a thread stand? In a warp of a block of a cluster, and so in a row:
//
//   a block a row         row = blockIdx.x
//   a cluster a row       row = blockIdx.x / 8, rank = blockIdx.x % 8
//   4 rows a warp, ...    row = blockIdx.x * 32 + threadIdx.x / 8, and none beyond the last
//   strips, folds         see cuda_staged, cuda_fold
#include "tiny_compile/codegen/cuda_row_place.h"

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_fold.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

// Each meeting of the cluster's blocks waits for the bytes of all that is published before it.
void expect_meetings(CudaText& text, const RowShape& shape,
                     const std::vector<std::vector<int>>& passes) {
  text.out.line(str("const int rank = blockIdx.x % ", shape.cluster, ";"));
  std::vector<int64_t> bytes;
  for (const std::vector<int>& pass : passes) {
    if (text.kernel.steps[pass[0]].kind == StepKind::Store) continue;
    bytes.push_back(0);
    for (const Tree& tree : trees_of(text.kernel, pass))
      bytes.back() += size_of(tree.type) * (tree.is_sum_exp() ? 2 : 1) *
                      shape.over(tree.step->inner).chunks * shape.rows_a_block;
  }
  text.out.line(str("__shared__ unsigned long long meeting[", bytes.size(), "];"));
  text.out.line(str("const unsigned bytes[] = {", join(bytes, ", "), "};"));
  text.out.line(text.calls("tc_expect") + "(meeting, bytes);");
}

// Several rows a warp or one.
std::string open_short_rows(CudaText& text, const RowShape& shape, std::string first) {
  const int64_t rows = row_count(text.kernel).constant();
  if (shape.turns > 1) {
    text.out.line("#pragma unroll");
    text.out.open(str("for (int turn = 0; turn < ", shape.turns, "; turn++)"));
    first = str("(", first, " * ", shape.turns, " + turn)");
  }
  const std::string row =
      str(first, " * ", shape.rows_a_block, " + (int)threadIdx.x / ", shape.lanes);
  const bool whole = rows % (shape.rows_a_block * shape.turns) == 0;
  if (whole || shape.lanes == 32) {
    text.declare("row", row);
    if (!whole) text.out.line(str("if (row >= ", rows, ") return;"));
    return "";
  }
  // Lanes beyond the last row repeat it: the whole warp must shuffle.
  text.declare("asked", row);
  text.out.line(str("const bool live = asked < ", rows, ";"));
  text.declare("row", str("live ? asked : ", rows - 1));
  return "live";
}

}  // namespace

std::string open_rows(CudaText& text, const RowShape& shape, StagedRows& staged,
                      const std::vector<std::vector<int>>& passes) {
  text.out.line(str("const int lane = ",
                    shape.lanes == 32 ? "threadIdx.x & 31" : str("threadIdx.x % ", shape.lanes),
                    ";"));
  const std::string block = text.integer == "int" ? "(int)blockIdx.x" : "(long long)blockIdx.x";
  std::string live;
  if (folds_rows(text.kernel)) {
    open_folds(text);
  } else if (staged.lines > 0) {
    if (shape.cluster > 1) expect_meetings(text, shape, passes);
    live = open_staged_rows(text, shape, staged);
  } else if (shape.warps > 1) {
    text.out.line("const int warp = threadIdx.x >> 5;");
    text.declare("row", shape.cluster == 1 ? block : str(block, " / ", shape.cluster));
    if (shape.cluster > 1) expect_meetings(text, shape, passes);
  } else {
    live = open_short_rows(text, shape, block);
  }
  text.unpack_rows("row");
  return live;
}

}  // namespace tiny_compile
