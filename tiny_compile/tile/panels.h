// How an operand of a CPU's product is packed: panels of lanes, side by side for each step of the depth.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

Space near_space(const Machine& machine, int64_t bytes);  // where an array of a product lies

// The scalars that a view's loops evaluate, as the tile has them, and which of them are defined.
class ViewScalars {
 public:
  // Of these roots; `given`: scalars that the tile has already, and theirs.
  ViewScalars(Tile& tile, const DotView& view, const std::vector<int>& roots,
              const std::vector<std::pair<int, int>>& given = {});

  int id(int scalar) const { return ids_[scalar]; }
  // Those that are left and whose axes are all in the mask.
  Body define_within(uint64_t axes);
  Body within(const std::function<Body()>& body);  // what it defines is gone behind it

 private:
  const Kernel& kernel_;
  std::vector<int> ids_, wanted_;
  std::vector<bool> defined_;
  std::vector<uint64_t> needs_;
};

// Masks of axes: without these, or without the last of them.
uint64_t all_but(const Kernel& kernel, const std::vector<int>& axes);
uint64_t all_but_last(const Kernel& kernel, const std::vector<int>& axes);
Expr last_of(const Kernel& kernel, const std::vector<int>& axes);  // of none 0

// A part of a flat list of axes: `most` points from `first` to `stop` - 1, at most; with no axis one point.
struct Stretch {
  const Program& program;
  const Kernel& kernel;
  const std::vector<int>& list;
  std::string name;  // of what is named on the way: name_run, name_from, name_to
  Expr first, stop;
  int64_t most = 1;
  std::vector<Expr> stops{};  // `stop` is a name of the least of these, where there are any
};

// A run of it along the last axis: places from .. to - 1 there, `count` of them; the place 0 has the number `base`.
struct Run {
  Expr from, to, count, base;
};
// One after the other, with the other axes named.
Body over_runs(const Stretch& s, const std::function<Body(const Run&)>& body);
// A loop of vectors along such a run; often it is as long as it can be, which is a constant.
Body along_run(const Stretch& s, const Run& run, const std::function<Body()>& each);

// The panels of an operand.
struct Packing {
  int operand = -1;              // a scalar
  const char* name = "row";      // of a lane
  int64_t width = 1, steps = 1;  // of a panel
  int64_t panels = 1;
  int array = -1;  // where they go
  int lines = -1;  // an array for what lies along the depth; one is made where it is -1
};

// As its loops see it: lists[0] of the view are its lanes, lists[1] its depth.
struct OperandLoops {
  const Program& program;
  const DotView& view;
};

// Of the depth, `count` steps at most as many as a panel has.
struct Steps {
  Expr first, count, stop;
  std::vector<Expr> stops{};  // `stop` is the least of these, where there are any
};

// Lanes first .. stop - 1, and steps of the depth.
struct PanelRange {
  Expr place;  // in the array
  Expr first, stop;
  Steps steps;
};

// array[place + p*steps*width + (k - steps.first)*width + l] = the value at lane first + p*width + l and step k; zeros
// beyond `stop` in the last panel.
Body pack(Tile& tile, const OperandLoops& loops, Packing& packing, const PanelRange& range);

}  // namespace tiny_compile
