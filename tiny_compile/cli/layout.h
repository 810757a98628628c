// Where boxes and arrows of a drawing go on paper: in layers, from the top down.
#pragma once

#include <vector>

#include "tiny_compile/cli/drawing.h"

namespace tiny_compile {

struct Point {
  double x = 0, y = 0;
};

struct Place {  // its middle and its size, in pixels
  Point middle;
  double width = 0, height = 0;
};

// An arrow passes through the middles of its stops, straight down across each stop's layer and
// curved between layers.
struct Route {
  std::vector<Place> stops;  // the box it leaves, bends, the box it reaches
  int label = -1;            // which stop is its label
};

struct LaidOut {
  std::vector<Place> boxes;   // as in the drawing
  std::vector<Route> routes;  // likewise
  double width = 0, height = 0;
};

constexpr double kCharacter = 7.2, kLine = 15;  // pixels a character of text takes
constexpr size_t kLabelWidth = 30;              // characters in a line of an arrow's label

LaidOut lay_out(const Drawing& drawing);

double text_width(const std::string& text);  // UTF-8, monospaced

}  // namespace tiny_compile
