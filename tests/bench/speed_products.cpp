// Which matrices do networks multiply? Thin ones while they generate, batches in attention,
// wide ones in layers; with something done to an operand before or to the result behind it.
//
//   gelu(F.linear(x, w, bias)), x bf16[4096,1024], w bf16[4096,1024]
#include <algorithm>
#include <cmath>

#include "tests/bench/speed_families.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;

DType of_products(Builder& b) {
  const int64_t kind = b.below(6);
  return kind == 0 ? DType::f32 : kind == 1 ? DType::f16 : DType::bf16;
}

Range weights_of(int64_t width) {  // so that a sum of `width` products is about 1
  return {1.7f / std::sqrt(static_cast<float>(width)), 0};
}

// A call takes some 5 ms on an H200, a tenth of a second on a few cores.
double most_operations(Builder& b, DType dtype) {
  if (b.scale() != Scale::Gpu) return 5e9;
  return dtype == DType::f32 ? 2e11 : 3e12;
}

struct Layer {
  DType dtype;
  int64_t rows, in, out;
};

// rows x in x out, with a weight of the draw's bytes where rows are few, else with rows of them
Layer layer(Builder& b, int64_t rows) {
  const DType dtype = of_products(b);
  int64_t in = b.dim(Dim::Width), out = b.dim(Dim::Width), words = b.dim(Dim::Vocabulary);
  const double most = b.bytes() / width_of(dtype);
  const auto elements = [&] { return static_cast<double>(in) * static_cast<double>(out); };
  if (rows != 0 && elements() < most / 16) out = words;  // the last layer of a language model
  while (elements() > most && in * out > 64) (in > out ? in : out) /= 2;
  if (rows == 0) {
    const double left = most / static_cast<double>(in + out);
    const double most_rows = most_operations(b, dtype) / (2 * elements());
    rows = std::max<int64_t>(1, static_cast<int64_t>(std::min({left, most_rows, 16384.0})));
  }
  if (b.scale() == Scale::Small)
    rows = std::min<int64_t>(rows, 37), in = std::min<int64_t>(in, 130),
    out = std::min<int64_t>(out, 67);
  return {dtype, rows, std::max<int64_t>(in, 2), std::max<int64_t>(out, 2)};
}

Value weight_of(Builder& b, const Layer& l) {
  return b.input(l.dtype, {l.out, l.in}, weights_of(l.in));
}

Value epilogue(Builder& b, Value y, const Layer& l) {
  const int64_t kind = b.below(5);
  if (kind < 3) y = b.activation(y);
  if (kind == 2 || kind == 3) {
    y = b.call("add", {y, b.input(l.dtype, {l.rows, l.out})});
    b.note("residual");
  }
  return y;
}

void note(Builder& b, const Layer& l) { b.note(tc::str(l.rows, " x ", l.in, " x ", l.out)); }

}  // namespace

void draw_thin_product(Builder& b) {
  const Layer l = layer(b, b.pick({1, 1, 2, 4, 7, 8, 16}));
  note(b, l);
  const Value x = b.input(l.dtype, {l.rows, l.in}, {1, 0});
  if (b.chance(0.35)) {  // weights in bytes, a scale for each row of them
    const Value q = b.integers(DType::i8, {l.out, l.in}, 255, -127);
    const Value scale = b.input(l.dtype, {l.out, 1},
                                {0.001f / std::sqrt(static_cast<float>(l.in)),
                                 0.01f / std::sqrt(static_cast<float>(l.in))});
    b.note("weights in bytes");
    return b.returns({b.call("linear", {x, b.call("mul", {b.to(l.dtype, q), scale})})});
  }
  const Value w = weight_of(b, l);
  const Value y = b.chance(0.5) ? b.call("linear_bias", {x, w, b.input(l.dtype, {l.out})})
                                : b.call("linear", {x, w});
  b.returns({epilogue(b, y, l)});
}

// softmax(q @ k' / 8), p @ v, or a batch of plain products
void draw_batched_product(Builder& b) {
  const DType dtype = of_products(b);
  const int64_t width = b.dim(Dim::HeadWidth), length = b.dim(Dim::Sequence);
  const double shares = 2 + 2 * static_cast<double>(width) / static_cast<double>(length);
  const Sizes s = b.fit({Builder::kFree, length, length}, shares * width_of(dtype));
  const int64_t inner = b.scale() == Scale::Small ? width / 4 : width;
  const int64_t kind = b.below(3);
  if (kind == 2) {
    b.note("p @ v");
    const Value p =
        b.input(dtype, s, {0.5f / static_cast<float>(s[2]), 1 / static_cast<float>(s[2])});
    return b.returns({b.call("matmul", {p, b.input(dtype, {s[0], s[2], inner})})});
  }
  const Value q = b.input(dtype, {s[0], s[1], inner}, {1, 0}),
              k = b.input(dtype, {s[0], s[2], inner}, {1, 0});
  const Value scores = b.scaled(b.call("matmul", {q, b.call("transpose", {k}, {1, 2})}), 0.125);
  b.note(tc::str("scores of width ", inner));
  if (kind == 0) return b.returns({scores});
  b.note("softmax");
  b.returns({b.call("softmax", {scores}, {2})});
}

// Something is done to the left operand first: a normalisation, an activation, a gate
void draw_prologue_product(Builder& b) {
  const Layer l = layer(b, b.pick({0, 0, 0, 64}));
  note(b, l);
  Value x = b.input(l.dtype, {l.rows, l.in}, {1, 0});
  const int64_t kind = b.below(4);
  if (kind == 0) {
    x = b.call("rms_norm", {x, b.input(l.dtype, {l.in}, {0.5f, 1})});
    b.note("rms_norm");
  } else if (kind == 1) {
    x = b.call("mul", {b.call("silu", {x}), b.input(l.dtype, {l.rows, l.in}, {1, 0})});
    b.note("swiglu");
  } else if (kind == 2) {
    const Value weight = b.input(l.dtype, {l.in}, {0.5f, 1}), bias = b.input(l.dtype, {l.in});
    x = b.call("layer_norm", {x, weight, bias});
    b.note("layer_norm");
  } else {
    x = b.activation(x);
  }
  b.returns({b.call("linear", {x, weight_of(b, l)})});
}

void draw_epilogue_product(Builder& b) {
  const Layer l = layer(b, 0);
  note(b, l);
  const Value x = b.input(l.dtype, {l.rows, l.in}, {1, 0}), w = weight_of(b, l);
  const Value bias = b.input(l.dtype, {l.out}, {0.5f, 0});
  const Value y = b.call("linear_bias", {x, w, bias});
  if (b.chance(0.25)) {
    b.note("and its gradients");
    return b.differentiate({x, w, bias}, y, l.dtype, {l.rows, l.out});
  }
  b.returns({epilogue(b, y, l)});
}

}  // namespace bench
