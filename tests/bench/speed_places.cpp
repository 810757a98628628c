// Where do networks put elements? Layouts, pieces joined, masks, windows, rows of a table.
//
//   heads of f16[16,12,197,64] beside each other: x.permute(0, 2, 1, 3).reshape(16, 197, 768)
#include <algorithm>
#include <cmath>

#include "tests/bench/speed_families.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;
using Free = std::integral_constant<int64_t, Builder::kFree>;

struct Laid {
  Value x;
  Sizes shape;  // of what is given back
};

Laid transposed(Builder& b, DType dtype, double passes) {  // axes in another order
  const Sizes shape = rows_of(b, Dim::Width, passes * width_of(dtype));
  std::vector<Sizes> orders = {{1, 0}};
  if (shape.size() == 3) orders = {{0, 2, 1}, {1, 0, 2}, {2, 0, 1}};
  if (shape.size() == 4) orders = {{0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 1, 3, 2}};
  const Sizes order = orders[static_cast<size_t>(b.below(static_cast<int64_t>(orders.size())))];
  Sizes moved;
  for (int64_t axis : order) moved.push_back(shape[static_cast<size_t>(axis)]);
  b.note(tc::str("permute ", tc::join(order, "")));
  return {b.call("permute", {b.laid_out(dtype, shape)}, order), moved};
}

// [N, C, H, W] => [N, H/p, W/p, C*p*p]
Laid patches(Builder& b, DType dtype, double passes) {
  const int64_t p = b.pick({2, 4, 8, 14, 16}), side = b.pick({8, 14, 16, 24, 28});
  const Sizes s = b.fit({Free(), b.pick({3, 4, 16, 96}), side, side},
                        passes * width_of(dtype) * static_cast<double>(p * p));
  const Value x = b.laid_out(dtype, {s[0], s[1], s[2] * p, s[3] * p});
  const Value parts = b.call("reshape", {x}, {s[0], s[1], s[2], p, s[3], p});
  const Sizes shape = {s[0], s[2], s[3], s[1] * p * p};
  b.note(tc::str("patches of ", p));
  return {b.call("reshape", {b.call("permute", {parts}, {0, 2, 4, 1, 3, 5})}, shape), shape};
}

// [N, C*r*r, H, W] => [N, C, H*r, W*r]
Laid shuffled(Builder& b, DType dtype, double passes) {
  const int64_t r = b.pick({2, 3, 4}), side = b.dim(Dim::Side);
  const Sizes s = b.fit({Free(), b.dim(Dim::Channels), side, side},
                        passes * width_of(dtype) * static_cast<double>(r * r));
  const Value x = b.laid_out(dtype, {s[0], s[1] * r * r, s[2], s[3]});
  const Value parts = b.call("reshape", {x}, {s[0], s[1], r, r, s[2], s[3]});
  const Sizes shape = {s[0], s[1], s[2] * r, s[3] * r};
  b.note(tc::str("pixel shuffle by ", r));
  return {b.call("reshape", {b.call("permute", {parts}, {0, 1, 4, 2, 5, 3})}, shape), shape};
}

// Swin's windows, moved by half of one
Laid rolled(Builder& b, DType dtype, double passes) {
  const int64_t side = b.pick({14, 28, 56, 64});
  const Sizes shape =
      b.fit({Free(), side, side, b.pick({96, 128, 192, 384})}, passes * width_of(dtype));
  Value x = b.call("roll", {b.laid_out(dtype, shape)}, {-3, 1});
  b.note("roll");
  if (b.chance(0.5)) x = b.call("roll", {x}, {-3, 2});
  return {x, shape};
}

Laid padded(Builder& b, DType dtype, double passes) {
  const Sizes shape = images_of(b, passes * width_of(dtype));
  b.note("pad");
  const int64_t p = b.pick({1, 2, 3});
  return {b.call("pad", {b.laid_out(dtype, shape)}, {p, p, p, p}),
          {shape[0], shape[1], shape[2] + 2 * p, shape[3] + 2 * p}};
}

Laid any_layout(Builder& b, DType dtype, double passes) {
  const int64_t kind = b.below(10);
  if (kind < 5) return transposed(b, dtype, passes);
  if (kind == 5) return patches(b, dtype, passes);
  if (kind == 6) return shuffled(b, dtype, passes);
  return kind == 7 ? rolled(b, dtype, passes) : padded(b, dtype, passes);
}

// positions i >= j of an [S, S] matrix, and i - j < reach where that is above 0
Value causal(Builder& b, Value device, int64_t rows, int64_t columns, int64_t reach) {
  const Value i = b.call("unsqueeze", {b.call("arange", {device}, {rows})}, {1});
  const Value j = b.call("arange", {device}, {columns});
  const Value before = b.call("at_least", {i, j});
  if (reach == 0) return before;
  const Value near =
      b.call("less_number", {b.call("sub", {i, j})}, {}, {static_cast<double>(reach)});
  return b.call("both", {before, near});
}

void draw_masked_scores(Builder& b) {
  const DType dtype = b.floats();
  const int64_t length = b.dim(Dim::Sequence);
  const Sizes shape = b.fit({Free(), b.dim(Dim::Heads), length, length}, 2 * width_of(dtype));
  Value x = b.laid_out(dtype, shape), keep;
  x = b.scaled(x, 0.125);
  const int64_t kind = b.below(10);
  if (kind < 6) {
    const int64_t reach = kind < 4 ? 0 : std::max<int64_t>(1, shape[3] / 4);
    keep = causal(b, x, shape[2], shape[3], reach);
    b.note(reach == 0 ? "causal softmax" : "causal softmax of near keys");
  } else {  // position 0 always takes part, so that no row is empty
    const Value lengths = b.integers(DType::i64, {shape[0]}, shape[3], 1);
    const Value j = b.call("arange", {x}, {shape[3]});
    keep = b.call("less", {j, b.call("reshape", {lengths}, {shape[0], 1, 1, 1})});
    b.note("softmax of padded keys");
  }
  b.returns({b.call("softmax", {b.call("masked_fill", {x, keep})}, {3})});
}

// Means of the tokens that are there
void draw_masked_mean(Builder& b) {
  const DType dtype = b.floats();
  const Sizes shape = b.fit({Free(), b.dim(Dim::Sequence), b.dim(Dim::Width)}, width_of(dtype));
  const Value x = b.laid_out(dtype, shape);
  const Value keep = b.to(dtype, b.mask({shape[0], shape[1], 1}, 0.7));
  const Value count = b.call("add_number", {b.call("sum", {keep}, {1})}, {}, {1e-3});
  b.note("masked mean over the middle axis");
  b.returns({b.call("div", {b.call("sum", {b.call("mul", {x, keep})}, {1}), count})});
}

// Moving averages and filters: x.unfold(-1, k, step), its windows weighed and added up
void draw_filter(Builder& b) {
  const int64_t k = b.pick({2, 3, 4, 5, 8, 16, 25}), step = b.pick<int64_t>({1, 1, 1, 2, k});
  const DType dtype = b.floats();
  Sizes shape = b.fit({Free(), 4 * b.dim(Dim::Sequence)},
                      width_of(dtype) * (1 + 1.0 / static_cast<double>(step)));
  shape[1] += k;
  Value windows = b.call("unfold", {b.laid_out(dtype, shape)}, {1, k, step});
  const bool weighed = b.chance(0.6);
  if (weighed) windows = b.call("mul", {windows, b.input(dtype, {k})});
  b.note(tc::str(weighed ? "filter of " : "mean of ", k, " by ", step));
  b.returns({b.call(weighed ? "sum" : b.pick({"mean", "amax"}), {windows}, {2})});
}

// Mamba's short convolution: y[t] = sum over k of w[k] * x[t - 3 + k], a weight a channel
void draw_short_convolution(Builder& b) {
  const DType dtype = b.floats();
  const int64_t k = b.pick({3, 4});
  const Sizes shape =
      b.fit({Free(), b.dim(Dim::Width), b.dim(Dim::Sequence)}, 2 * width_of(dtype));
  const Value x = b.call("pad", {b.laid_out(dtype, shape)}, {k - 1, 0});
  const Value weights = b.input(dtype, {k, shape[1], 1});
  Value sum = 0;
  for (int64_t tap = 0; tap < k; tap++) {
    const Value part = b.call("narrow", {x}, {2, tap, shape[2]});
    const Value weight = b.call("squeeze", {b.call("narrow", {weights}, {0, tap, 1})}, {0});
    const Value product = b.call("mul", {part, weight});
    sum = tap == 0 ? product : b.call("add", {sum, product});
  }
  b.note("causal depthwise convolution by slices");
  b.returns({b.chance(0.6) ? b.call("silu", {sum}) : sum});
}

// x[1:] - x[:-1] along an axis, and the five points of a Laplacian
void draw_differences(Builder& b) {
  const DType dtype = b.chance(0.7) ? DType::f32 : b.floats();
  const int64_t side = 8 * b.dim(Dim::Side);
  Sizes s = b.fit({Free(), side, side}, 2 * width_of(dtype));
  for (int64_t& dim : s) dim += 2;
  const Value x = b.laid_out(dtype, s);
  const auto at = [&](int64_t i, int64_t j) {
    return b.call("narrow", {b.call("narrow", {x}, {1, i, s[1] - 2})}, {2, j, s[2] - 2});
  };
  if (b.chance(0.5)) {
    const Value across = b.call("sub", {at(1, 2), at(1, 1)}),
                down = b.call("sub", {at(2, 1), at(1, 1)});
    b.note("total variation");
    const Value sizes = b.call("add", {b.call("abs", {across}), b.call("abs", {down})});
    return b.returns({b.call("sum", {sizes}, {1, 2})});
  }
  const Value rows = b.call("add", {at(0, 1), at(2, 1)}),
              columns = b.call("add", {at(1, 0), at(1, 2)});
  b.note("Laplacian of five points");
  b.returns({b.call("sub", {b.call("add", {rows, columns}), b.scaled(at(1, 1), 4)})});
}

double distinct(double classes, double draws) {
  return classes * (1 - std::pow(1 - 1 / classes, draws));
}

struct Looked {
  Value y, table;
  Sizes shape;
  DType dtype;
};

// Rows of a table [V, C] for [B, S] numbers of words
Looked looked_up(Builder& b, double passes) {
  const DType dtype = b.floats();
  const Sizes shape =
      b.fit({Free(), b.dim(Dim::Sequence), b.dim(Dim::Width)}, passes * width_of(dtype));
  const int64_t row = shape[2] * tc::size_of(dtype);
  const double most = std::max(2.0, b.bytes() / static_cast<double>(row));
  const int64_t words =
      static_cast<int64_t>(std::min(static_cast<double>(b.dim(Dim::Vocabulary)), most));
  const Value index = b.integers(DType::i64, {shape[0], shape[1]}, words);
  const Value table = b.input(dtype, {words, shape[2]});
  const double rows =
      distinct(static_cast<double>(words), static_cast<double>(shape[0] * shape[1]));
  b.reads_only(table, rows * static_cast<double>(row));
  return {b.call("embedding", {table, index}), table, shape, dtype};
}

}  // namespace

void draw_layout(Builder& b) {
  const DType dtype = b.floats();
  const int64_t kind = b.below(4);  // alone, cast, added to, scaled
  const Laid laid = any_layout(b, dtype, kind == 2 ? 3 : 2);
  if (kind == 1 && dtype == DType::f32)
    return b.returns({b.call("contiguous", {b.to(DType::bf16, laid.x)})});
  if (kind == 2) return b.returns({b.call("add", {laid.x, b.input(dtype, laid.shape)})});
  b.returns({b.call("contiguous", {kind == 3 ? b.scaled(laid.x, 0.5) : laid.x})});
}

void draw_join(Builder& b) {  // cat or stack of two to four tensors
  const DType dtype = b.floats();
  const Sizes shape = rows_of(b, Dim::Width, 6 * width_of(dtype));
  const int64_t count = 2 + b.below(3), axis = b.below(static_cast<int64_t>(shape.size()));
  std::vector<Value> parts;
  for (int64_t k = 0; k < count; k++) {
    const Value x = b.laid_out(dtype, shape);
    parts.push_back(k == 0 && b.chance(0.4) ? b.activation(x) : x);
  }
  const std::string word = b.pick({"cat", "cat", "stack"});
  b.note(tc::str(word, " of ", count, " along axis ", axis));
  b.returns({b.call(word, parts, {axis})});
}

void draw_mask(Builder& b) {
  const int64_t kind = b.below(4);
  if (kind < 2) return draw_masked_scores(b);
  if (kind == 2) return draw_masked_mean(b);
  const DType dtype = b.floats();
  const Sizes shape = rows_of(b, Dim::Width, 3 * width_of(dtype) + 1);
  const Value keep = b.mask(shape, 0.15), x = b.laid_out(dtype, shape);
  b.note("where a mask of bytes says so");
  b.returns({b.call("where", {keep, x, b.input(dtype, shape)})});
}

void draw_pooling(Builder& b) {
  const DType dtype = b.floats();
  const int64_t kind = b.below(6);
  if (kind == 0) {
    b.note("mean of images");
    return b.returns(
        {b.call("mean", {b.laid_out(dtype, images_of(b, width_of(dtype)))}, {2, 3})});
  }
  const int64_t k = b.pick({2, 2, 3}), step = k == 3 ? b.pick<int64_t>({1, 2}) : 2,
                side = b.pick({14, 28, 32, 56, 112});
  Sizes shape = b.fit({Free(), b.dim(Dim::Channels), side, side},
                      width_of(dtype) * (step == 1 ? 2 : 1.25));
  shape[2] = std::max<int64_t>(shape[2], 4), shape[3] = std::max<int64_t>(shape[3], 4);
  const std::string word = kind < 4 ? "max_pool2d" : "avg_pool2d";
  const Value x = b.laid_out(dtype, shape);
  b.note(tc::str(word, " ", k, " by ", step));
  const Value y = b.call(word, {x}, {k, step, k == 3 ? 1 : 0});
  if (kind != 4) return b.returns({y});
  const int64_t pad = k == 3 ? 2 : 0;
  const Sizes made = {shape[0], shape[1], (shape[2] + pad - k) / step + 1,
                      (shape[3] + pad - k) / step + 1};
  b.note("and its gradient");
  b.differentiate({x}, y, dtype, made);
}

void draw_window(Builder& b) {
  const int64_t kind = b.below(3);
  kind == 0 ? draw_filter(b) : kind == 1 ? draw_short_convolution(b) : draw_differences(b);
}

void draw_embedding(Builder& b) {
  const Looked l = looked_up(b, 2);
  Value y = l.y;
  const int64_t kind = b.below(4);
  if (kind == 0) return b.note("embedding"), b.returns({y});
  if (kind == 1) {
    b.note("mean of embeddings");
    return b.returns({b.call("mean", {y}, {1})});
  }
  y = b.call("add", {y, b.input(l.dtype, {l.shape[1], l.shape[2]})});
  b.note("embedding and positions");
  if (kind == 3) {
    const Value weight = b.input(l.dtype, {l.shape[2]}, {0.5f, 1}),
                bias = b.input(l.dtype, {l.shape[2]});
    y = b.call("layer_norm", {y, weight, bias});
    b.note("layer_norm");
  }
  b.returns({y});
}

void draw_embedding_gradient(Builder& b) {
  const Looked l = looked_up(b, 3);
  b.note("embedding");
  b.differentiate({l.table}, l.y, l.dtype, l.shape);
}

}  // namespace bench
