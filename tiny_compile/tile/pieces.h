// Points cut where conditions on their axes change, so that no loop asks.
#pragma once

#include <memory>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A part of a kernel's points.
struct Segment {
  Kernel kernel;                 // as it is there
  std::vector<Interval> ranges;  // of each axis
};

// Points below and from a cut of one of the outer axes, or loops over the last one.
struct PointPiece {
  int axis = -1;  // that is cut; -1: none
  int64_t at = 0;
  std::unique_ptr<PointPiece> below, from;
  std::vector<Segment> loops;
};

// Of a kernel of points; null where cutting does not make enough of it go away.
std::unique_ptr<PointPiece> pieces_of(const Kernel& kernel);

}  // namespace tiny_compile
