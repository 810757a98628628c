// Two kernels as one, once it is known which of their loops are the same.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/align.h"
#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// Which axes of `first` each axis of `second` is, and what the merged rows are.
struct MergePlan {
  std::string refusal;
  std::string unless_split;  // refused too, but where many rows do a part of both (split.h)
  std::vector<Piece> pieces;
  Nest first, second;
  std::vector<bool> row_piece;  // pieces that are rows of the merged kernel
  std::vector<int> unmatched;   // axes of the second that no piece covers: rows, then inner
  int indirect = -1;            // the piece that second chooses by data, or -1
};

// `first` becomes both; "" or, where the second reads other places than the first writes, why not.
std::string join_groups(Group& first, const Group& second, const MergePlan& plan);

}  // namespace tiny_compile
