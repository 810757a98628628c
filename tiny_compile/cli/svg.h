// SVG text: shapes, one style for light and dark pages, and drawings of boxes and arrows.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/cli/drawing.h"

namespace tiny_compile {

// Shapes are appended; coordinates are rounded to whole pixels, so that the text is the same on
// every machine. `classes` are those of the style: "dim", "line", "box g3", "gone" ...
class Svg {
 public:
  void rectangle(double x, double y, double width, double height, const std::string& classes,
                 double radius = 0, const std::string& hint = "");
  void circle(double x, double y, double radius, const std::string& classes);
  void line(double x1, double y1, double x2, double y2, const std::string& classes);
  void path(const std::string& d, const std::string& classes);
  // `anchor`: start, middle or end of the text is at x; y is its base line.
  void text(double x, double y, const std::string& text, const std::string& classes = "",
            const char* anchor = "start");

  // The whole file. `title` is what a screen reader says.
  std::string str(double width, double height, const std::string& title) const;

 private:
  std::string body_;
};

std::string svg(const std::vector<Drawing>& frames);  // beside each other

}  // namespace tiny_compile
