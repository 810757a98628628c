// Convolutions and pools: what windows over an image are for.
#pragma once

#include "tiny_compile/trace/functions.h"

namespace tiny_compile {

// x [N, C, H, W], weight [O, C/groups, kh, kw]
Tensor conv2d(const Operand& x, const Operand& weight, const Tensor& bias = {},
              int64_t stride = 1, int64_t padding = 0, int64_t dilation = 1,
              int64_t groups = 1);
// Of a window over the last two axes, height and width: one number stands for both. Windows begin
// every `stride` elements (by default every `kernel`); what does not fill one at the end is left out.
struct Window {
  Window(int64_t both) : height(both), width(both) {}  // NOLINT
  Window(int64_t height, int64_t width) : height(height), width(width) {}
  int64_t height, width;
};
// x [.., H, W], at most half a kernel of padding; max_pool2d's is no candidate, avg_pool2d's counts
// as zeros unless count_include_pad is false.
Tensor max_pool2d(const Operand& x, Window kernel);
Tensor max_pool2d(const Operand& x, Window kernel, Window stride, Window padding = 0);
Tensor avg_pool2d(const Operand& x, Window kernel);
Tensor avg_pool2d(const Operand& x, Window kernel, Window stride, Window padding = 0,
                  bool count_include_pad = true);

}  // namespace tiny_compile
