// The text of a strip of columns: its lanes, and what one of them computes.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/codegen/cpp_kernel.h"

namespace tiny_compile {

// Of a kernel whose last row axis is the lanes: `lanes` of them at a time, those of `start` to
// `start + width - 1`.
struct ColumnText {
  explicit ColumnText(KernelText& text);

  static constexpr const char* kEach = "for (long long l = 0; l < width; l++) ";

  void open_lanes();                       // a loop over them
  void define_in_lanes(const Step& step);  // what the step needs of an element in a lane
  // A loop over elements first .. stop - 1 of the row, and in it one over the lanes.
  void open_elements(const Step& step, const std::string& first, const std::string& stop);
  std::string value_of(const Step& step, DType type) const;  // of the step, in this type
  // element(e, l): element e of the row in lane l, for a sum of exponentials less the lane's maximum.
  void write_element(const Step& step, DType type);

  KernelText& text;
  Text& out;
  const Kernel& kernel;
  const int lane;  // the axis
  const int64_t lanes;
  std::vector<bool> defined;  // before the lanes

 private:
  // Asks memory for what the lanes read of element `next` of the row. Neighbours of a column lie in
  // different pages, across which no CPU guesses.
  void ask_for(const Step& step, const std::string& next);
};

}  // namespace tiny_compile
