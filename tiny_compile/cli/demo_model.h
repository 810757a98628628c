// The demo's function: a byte-level next-byte model, and its loss; and the text that it reads.
#pragma once

#include <string>
#include <utility>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/operators.h"

namespace tiny_compile {

struct DemoModel {
  static constexpr int64_t kWidth = 64, kHidden = 256;
  Tensor table = randn({256, kWidth}) * 0.5, norm = ones({kWidth}), shift = zeros({kWidth});
  Tensor up = randn({kHidden, kWidth}) * 0.1, up_bias = zeros({kHidden});
  Tensor down = randn({kWidth, kHidden}) * 0.1, down_bias = zeros({kWidth});
  Tensor head = randn({256, kWidth}) * 0.1;
};

// Mean loss of guessing each next byte.
Tensor next_byte_loss(const DemoModel& model, const Tensor& bytes, const Tensor& next);

constexpr int64_t kDemoBytes = 4096;  // that it reads of a text, at most

Graph demo_graph(int64_t bytes = kDemoBytes);  // of that many bytes

// A text of the demo's own, kDemoBytes and the byte behind the last: its loss stays the same.
std::string demo_text();

// A text's bytes but the last, and the byte that follows each.
std::pair<Tensor, Tensor> bytes_and_next(const std::string& text);

}  // namespace tiny_compile
