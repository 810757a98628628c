// What do networks do to each element? Activations, rescaling to bytes and back, steps of
// optimisers.
//
//   swiglu on one product's halves, bf16[8192,2*11008]:
//     F.silu(x.narrow(1, 0, 11008)) * x.narrow(1, 11008, 11008)
#include <algorithm>
#include <cmath>

#include "tests/bench/speed_families.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;
using Free = std::integral_constant<int64_t, Builder::kFree>;

int64_t last_axis(const Sizes& shape) { return static_cast<int64_t>(shape.size()) - 1; }

// act(g) * u, where g and u may be the halves of one tensor
void draw_gated(Builder& b) {
  const DType dtype = b.floats();
  const Sizes shape = rows_of(b, Dim::Width, 3 * width_of(dtype));
  Value gate, up;
  if (b.chance(0.5)) {
    Sizes wide = shape;
    wide.back() *= 2;
    const Value x = b.laid_out(dtype, wide);
    gate = b.call("narrow", {x}, {last_axis(shape), 0, shape.back()});
    up = b.call("narrow", {x}, {last_axis(shape), shape.back(), shape.back()});
    b.note("gate and factor in one tensor");
  } else {
    gate = b.laid_out(dtype, shape);
    up = b.laid_out(dtype, shape);
    b.note("gated");
  }
  b.returns({b.call("mul", {b.activation(gate), up})});
}

// One of a few operations on values in about [-3, 3]; `other` is another tensor of the shape.
Value step_of_chain(Builder& b, Value x, Value other) {
  const int64_t kind = b.below(14);
  if (kind == 13) return b.call("log1p", {b.call("square", {x})});
  if (kind == 12)
    return b.call("sqrt", {b.call("add_number", {b.call("abs", {x})}, {}, {1e-3})});
  if (kind == 0) return b.call("add", {x, other});
  if (kind == 1) return b.call("mul", {x, other});
  if (kind == 2) return b.scaled(x, 0.5);
  if (kind == 3) return b.call("add_number", {x}, {}, {0.25});
  if (kind == 4) return b.call(b.pick({"maximum", "minimum"}), {x, other});
  if (kind == 5) return b.call("clamp", {x}, {}, {-2, 2});
  if (kind == 6) return b.call("where_number", {b.call("less", {x, other}), x}, {}, {0});
  if (kind == 7) return b.call("mul", {x, b.call("sigmoid", {other})});
  return b.call(b.pick({"tanh", "sin", "erf", "gelu", "silu", "sigmoid", "abs", "cos"}), {x});
}

// A network's weights and biases: `count` of them, of the width for which they hold about
// `elements`.
std::vector<Sizes> parameters(Builder& b, int64_t count, double elements) {
  const double blocks = static_cast<double>(count + 3) / 4;  // of 5 * width * width
  const double widest = std::sqrt(elements / (5 * blocks));
  int64_t width = b.dim(Dim::Width);
  while (static_cast<double>(width) < widest / 2) width *= 2;
  while (static_cast<double>(width) > widest && width > 1) width = width * 5 / 7;
  const Sizes shapes[] = {{width, width}, {width}, {4 * width, width}, {4 * width}};
  std::vector<Sizes> made;
  for (int64_t k = 0; k < count; k++) made.push_back(shapes[k % 4]);
  return made;
}

struct Optimiser {
  const char* word;
  int kinds, results;  // of tensors that it reads: parameters, states, gradients; that it makes
};

}  // namespace

void draw_activation(Builder& b) {
  if (b.chance(0.4)) return draw_gated(b);
  const DType dtype = b.floats();
  const bool residual = b.chance(0.35), dropped = b.chance(0.2);
  const double passes = 2 + residual;
  const Sizes shape = rows_of(b, Dim::Width, passes * width_of(dtype) + dropped);
  Value x = b.laid_out(dtype, shape);
  if (b.chance(0.7)) x = b.call("add", {x, b.input(dtype, {shape.back()})});
  x = b.activation(x);
  if (dropped) {
    x = b.scaled(b.call("where_number", {b.mask(shape, 0.9), x}, {}, {0}), 1 / 0.9);
    b.note("dropout's mask");
  }
  if (residual) x = b.call("add", {x, b.laid_out(dtype, shape)});
  b.returns({x});
}

void draw_activation_gradient(Builder& b) {  // dx, and the bias's gradient: sums of columns
  const DType dtype = b.floats();
  const Sizes shape = rows_of(b, Dim::Width, 4 * width_of(dtype));
  const Value x = b.laid_out(dtype, shape), bias = b.input(dtype, {shape.back()});
  b.note("bias");
  b.differentiate({x, bias}, b.activation(b.call("add", {x, bias})), dtype, shape);
}

void draw_chain(Builder& b) {
  const DType dtype = b.floats();
  const Sizes shape = rows_of(b, Dim::Width, 3 * width_of(dtype));
  Value x = b.laid_out(dtype, shape);
  const Value other = b.chance(0.5) ? b.laid_out(dtype, shape) : b.input(dtype, {shape.back()});
  const int64_t steps = 3 + b.below(10);
  x = b.call(b.pick({"add", "mul", "sub"}), {x, other});
  for (int64_t k = 1; k < steps; k++) x = step_of_chain(b, x, other);
  b.note(tc::str(steps, " steps"));
  b.returns({x});
}

// q = round(x / scale) in bytes, scale = max|x| / 127 a row, a column or for all
void draw_quantise(Builder& b) {
  const DType dtype = b.floats();
  const Sizes shape = b.fit({Free(), b.dim(Dim::Width)}, width_of(dtype) + 1);
  const Value x = b.laid_out(dtype, shape),
              wide = dtype == DType::f32 ? x : b.to(DType::f32, x);
  const int64_t kind = b.below(4);
  const std::string places[] = {"rows", "rows", "columns", "all"};
  b.note("absmax of " + places[kind]);
  const Value size = b.call("abs", {wide});
  const Value most =
      kind == 3 ? b.call("amax_all", {size}) : b.call("amax_keep", {size}, {kind == 2 ? 0 : 1});
  const Value scale = b.scaled(b.call("clamp", {most}, {}, {1e-6, 1e6}), 1.0 / 127);
  Value q = b.call("clamp", {b.call("round", {b.call("div", {wide, scale})})}, {}, {-127, 127});
  if (b.chance(0.3)) {
    q = b.to(DType::u8, b.call("add_number", {q}, {}, {128}));
    b.note("u8");
  } else {
    q = b.to(DType::i8, q);
  }
  b.returns({q, scale});
}

void draw_dequantise(Builder& b) {
  const DType dtype = b.chance(0.7) ? DType::bf16 : b.pick({DType::f16, DType::f32});
  const int64_t kind = b.below(4), group = b.pick({32, 64, 128});
  if (kind == 3) {  // two numbers a byte
    const Sizes shape = b.fit({Free(), b.dim(Dim::Width)}, 1 + 2 * width_of(dtype));
    const Value bytes = b.integers(DType::u8, shape, 256);
    const Value both = b.call(
        "stack", {b.call("and_integer", {bytes}, {15}), b.call("shift_right", {bytes}, {4})},
        {2});
    const Value numbers =
        b.call("add_number", {b.to(dtype, b.call("reshape", {both}, {shape[0], 2 * shape[1]}))},
               {}, {-8});
    b.note("two of four bits in a byte");
    return b.returns({b.call("mul", {numbers, b.input(dtype, {shape[0], 1}, {0.01f, 0.02f})})});
  }
  Sizes shape = b.fit({Free(), std::max<int64_t>(1, b.dim(Dim::Width) / group), group},
                      1 + width_of(dtype));
  const Value q = b.chance(0.7) ? b.integers(DType::i8, shape, 256, -128)
                                : b.integers(DType::u8, shape, 256);
  const Sizes scales[] = {{shape[0], shape[1], 1}, {shape[0], 1, 1}, {shape[1], shape[2]}};
  const std::string places[] = {"groups", "rows", "columns"};
  b.note("scales of " + places[kind]);
  Value x = b.call("mul", {b.to(dtype, q), b.input(dtype, scales[kind], {0.01f, 0.02f})});
  if (b.chance(0.3)) x = b.activation(x);
  b.returns({b.call("reshape", {x}, {shape[0], shape[1] * shape[2]})});
}

// Bytes [N, H, W, 3] to numbers [N, 3, H, W]
void draw_image(Builder& b) {
  const DType dtype = b.floats();
  const int64_t side = b.pick({96, 224, 256, 299, 336, 384, 512});
  const Sizes shape = b.fit({Free(), side, side, 3}, 1 + width_of(dtype));
  Value x = b.to(DType::f32, b.integers(DType::u8, shape, 256));
  const Value mean = b.input(DType::f32, {shape[3]}, {0.1f, 0.45f}),
              spread = b.input(DType::f32, {shape[3]}, {0.01f, 0.22f});
  x = b.call("div", {b.call("sub", {b.scaled(x, 1.0 / 255), mean}), spread});
  if (b.chance(0.3)) x = b.call("flip", {x}, {2}), b.note("mirrored");
  if (b.chance(0.8)) x = b.call("permute", {x}, {0, 3, 1, 2}), b.note("channels first");
  b.returns({b.call("contiguous", {dtype == DType::f32 ? x : b.to(dtype, x)})});
}

// x*cos + rotate_half(x)*sin of q, [B, heads, S, D]
void draw_rotary(Builder& b) {
  const DType dtype = b.floats();
  const int64_t width = b.dim(Dim::HeadWidth) / 2 * 2;
  Sizes shape =
      b.fit({Free(), b.dim(Dim::Heads), b.dim(Dim::Sequence), width}, 2 * width_of(dtype));
  shape[3] = std::max<int64_t>(2, shape[3] / 2 * 2);
  Value x;
  if (b.chance(0.4)) {  // as a projection leaves it, [B, S, heads, D]
    x = b.input(dtype, {shape[0], shape[2], shape[1], shape[3]});
    x = b.call("transpose", {x}, {1, 2});
    b.note("heads transposed");
  } else {
    x = b.laid_out(dtype, shape);
  }
  const Sizes table = {shape[2], shape[3]};
  const Value cosine = b.input(dtype, table, {1, 0}), sine = b.input(dtype, table, {1, 0});
  const int64_t half = shape[3] / 2;
  const Value first = b.call("narrow", {x}, {3, 0, half}),
              second = b.call("narrow", {x}, {3, half, half});
  const Value transposed = b.call("cat", {b.call("neg", {second}), first}, {3});
  b.note("rotary embedding");
  b.returns({b.call("add", {b.call("mul", {x, cosine}), b.call("mul", {transposed, sine})})});
}

void draw_optimiser(Builder& b) {
  const Optimiser kinds[] = {{"adamw", 4, 3}, {"adamw", 4, 3},   {"sgd", 3, 2},
                             {"lion", 3, 2},  {"average", 2, 1}, {"clip", 1, 1}};
  const Optimiser& kind = kinds[b.below(6)];
  const int64_t count = b.pick({1, 2, 4, 12, 16, 48});
  const double bytes = 4.0 * (kind.kinds + kind.results);
  const auto shapes = parameters(b, count, b.bytes() / bytes);
  std::vector<Value> operands, outputs;
  for (int k = 0; k < kind.kinds; k++) {
    const bool second_moment = kind.kinds == 4 && k == 2;
    for (const Sizes& shape : shapes)
      operands.push_back(
          b.input(DType::f32, shape, second_moment ? Range{0.04f, 0.05f} : Range{0.5f, 0}));
  }
  const int results = kind.results * static_cast<int>(count);
  const Value first = b.call(kind.word, operands, {}, {}, results);
  for (int k = 0; k < results; k++) outputs.push_back(first + k);
  b.note(tc::str(kind.word, " over ", count, count == 1 ? " tensor" : " tensors"));
  b.returns(outputs);
}

}  // namespace bench
