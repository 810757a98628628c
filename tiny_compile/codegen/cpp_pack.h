// How an operand of a product gets where the tiles read it, and results where the program wants them.
#pragma once

#include <optional>

#include <functional>
#include <string>

#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/cpp_tile.h"
#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {

// One operand: lists[0] of the view are its rows or columns, the lanes here, lists[1] its depth.
struct Packing {
  DotView view;
  int scalar = -1;  // whose value is packed
  TileType type;
  std::string first, stop;  // lanes: flat numbers in the text
  std::string width;        // of a panel, a constant of the text
  std::string target;       // where the panels go, one after the other
};

// for each panel: panel[(k - first_k) * width + l] = value at (first + l, k), k in [first_k, stop_k);
// zeros beyond `stop`. Loops run over whichever direction the operand lies along.
void write_pack(KernelText& text, const Packing& packing);

// Where the elements of an operand lie that is a plain load along its lanes and its depth, of which
// one is contiguous: at `index` of the buffer, with `lane` and `step` elements between neighbours.
struct Packed {
  int buffer = -1;
  Expr index;
  int64_t lane = 0, step = 0;
};
std::optional<Packed> packed_from(const DotView& view, int scalar);

// Opens a loop over the runs of `count` points of a flat list that begin at `start`, a run being
// what lies along the last axis: `run` of them from number `done` on, at `from` on that axis; the
// other axes are declared. `text` is of the view that the list is of.
void open_runs(KernelText& text, const std::vector<int>& list, const std::string& start,
               const std::string& count);
// The loop over such a run: body("e") for each point, the last axis declared. A run is often
// `whole`, a constant of the text, or the whole axis.
void write_run(KernelText& text, const std::vector<int>& list, const std::string& whole,
               const std::function<void(const std::string&)>& body);

}  // namespace tiny_compile
