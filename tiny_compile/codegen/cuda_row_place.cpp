// Where does a thread stand? In a warp of a block, and so in a row:
//
//   a block a row         row = blockIdx.x
//   4 rows a warp, ...    row = blockIdx.x * 32 + threadIdx.x / 8, and none beyond the last
//   folds                 see cuda_fold
#include "tiny_compile/codegen/cuda_row_place.h"

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_fold.h"

namespace tiny_compile {
namespace {

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

std::string open_rows(CudaText& text, const RowShape& shape) {
  text.out.line(str("const int lane = ",
                    shape.lanes == 32 ? "threadIdx.x & 31" : str("threadIdx.x % ", shape.lanes),
                    ";"));
  const std::string block = text.integer == "int" ? "(int)blockIdx.x" : "(long long)blockIdx.x";
  std::string live;
  if (folds_rows(text.kernel)) {
    open_folds(text);
  } else if (shape.warps > 1) {
    text.out.line("const int warp = threadIdx.x >> 5;");
    text.declare("row", block);
  } else {
    live = open_short_rows(text, shape, block);
  }
  text.unpack_rows("row");
  return live;
}

}  // namespace tiny_compile
