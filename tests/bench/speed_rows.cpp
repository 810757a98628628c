// What do networks do along an axis? Normalise, soften, add up, choose, run on; and their
// gradients.
//
//   softmax over the middle axis of f32[64,21,50176], f32[..] = softmax(x / 8, 1)
#include <algorithm>

#include "tests/bench/speed_families.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;
using Free = std::integral_constant<int64_t, Builder::kFree>;

const char* place_name(int64_t axis, size_t rank) {
  return axis == 0 ? "leading" : axis + 1 == static_cast<int64_t>(rank) ? "trailing" : "middle";
}

// A tensor, and the axis along which something happens: the last one for two draws of five.
struct Axis {
  Sizes shape;
  int64_t axis;
};

Axis any_axis(Builder& b, double bytes_an_element) {
  const double kind = static_cast<double>(b.below(10));
  if (kind < 4) {
    const Sizes shape = rows_of(b, kind < 1 ? Dim::Vocabulary : Dim::Width, bytes_an_element);
    return {shape, static_cast<int64_t>(shape.size()) - 1};
  }
  if (kind < 7) {  // leading: columns of a matrix, or of a batch of them
    const int64_t length = b.dim(b.chance(0.5) ? Dim::Sequence : Dim::Width);
    const Sizes shape =
        b.chance(0.6) ? Sizes{length, Free()} : Sizes{length, Free(), b.dim(Dim::Width)};
    return {b.fit(shape, bytes_an_element), 0};
  }
  if (kind < 9)
    return {b.fit({Free(), b.dim(Dim::Sequence), b.dim(Dim::Width)}, bytes_an_element), 1};
  const int64_t side = b.dim(Dim::Side);
  return {b.fit({Free(), b.dim(Dim::Channels), side, side}, bytes_an_element), 1};
}

void note_axis(Builder& b, const std::string& what, const Axis& a) {
  b.note(tc::str(what, " over the ", place_name(a.axis, a.shape.size()), " axis"));
}

// Normalisations ------------------------------------------------------------------------------

struct Normed {
  Value y;
  std::vector<Value> leaves;
  Sizes shape;
  DType dtype;
  Value sum = 0;  // what was normalised, where a residual was added; else 0
  bool added = false;
};

// F.layer_norm or F.rms_norm over the last axis, of x or of x + r
Normed norm_of_rows(Builder& b, bool with_residual, double passes) {
  const DType dtype = b.floats();
  const double bytes = width_of(dtype) * (passes + (with_residual ? 2 : 0));
  const Sizes shape = rows_of(b, Dim::Width, bytes);
  Normed n{b.laid_out(dtype, shape), {}, shape, dtype};
  n.leaves = {n.y};
  if (with_residual) {
    n.y = n.sum = b.call("add", {n.y, b.input(dtype, shape)});
    n.added = true;
  }
  const Value weight = b.input(dtype, {shape.back()}, {0.5f, 1});
  n.leaves.push_back(weight);
  if (b.chance(0.5)) {
    const Value bias = b.input(dtype, {shape.back()}, {1, 0});
    n.leaves.push_back(bias);
    n.y = b.call("layer_norm", {n.y, weight, bias});
    b.note("layer_norm");
  } else {
    n.y = b.call("rms_norm", {n.y, weight});
    b.note("rms_norm");
  }
  return n;
}

// Statistics of a batch, or of a group of channels
Normed norm_of_images(Builder& b, double passes) {
  const DType dtype = b.floats();
  Sizes shape = images_of(b, width_of(dtype) * passes);
  const bool batch = b.chance(0.4), grouped = b.chance(0.7);
  const int64_t groups = grouped && shape[1] % 32 == 0 ? 32 : shape[1];
  Normed n{b.laid_out(dtype, shape), {}, shape, dtype};
  const DType own = batch && dtype != DType::f32 ? DType::f32 : dtype;  // as AMP keeps them
  const Value weight = b.input(own, {shape[1]}, {0.5f, 1}), bias = b.input(own, {shape[1]});
  n.leaves = {n.y, weight, bias};
  n.y = batch ? b.call("batch_norm", {n.y, weight, bias})
              : b.call("group_norm", {n.y, weight, bias}, {groups});
  b.note(batch ? "batch_norm" : groups == 32 ? "group_norm" : "instance_norm");
  return n;
}

// (x - mean) / sqrt(var + eps) or x / |x|, over any axis; halves in f32 until the end
Normed norm_of_axis(Builder& b, double passes) {
  const DType dtype = b.chance(0.7) ? DType::f32 : b.floats();
  const Axis a = any_axis(b, width_of(dtype) * passes);
  const Value leaf = b.laid_out(dtype, a.shape);
  Normed n{leaf, {leaf}, a.shape, dtype};
  const Value x = dtype == DType::f32 ? leaf : b.to(DType::f32, leaf);
  if (b.chance(0.4)) {
    n.y = b.call("normalize", {x}, {a.axis});
    note_axis(b, "normalize", a);
  } else {
    const Value centred = b.call("sub", {x, b.call("mean_keep", {x}, {a.axis})});
    const Value spread = b.call("add_number", {b.call("var_keep", {x}, {a.axis})}, {}, {1e-5});
    n.y = b.call("mul", {centred, b.call("rsqrt", {spread})});
    note_axis(b, "standardise", a);
  }
  if (dtype != DType::f32) n.y = b.to(dtype, n.y);
  return n;
}

// Softmaxes -----------------------------------------------------------------------------------

struct Softened {
  Value x, y;
  Axis a;
  DType dtype;
};

Softened softened(Builder& b, bool gradient) {
  const DType dtype = b.floats();
  Softened s{0, 0, any_axis(b, width_of(dtype) * (gradient ? 4 : 2)), dtype};
  s.x = s.y = b.laid_out(dtype, s.a.shape);
  if (b.chance(0.4)) s.y = b.scaled(s.y, 0.125);
  if (b.chance(0.2)) {
    Sizes shape = s.a.shape;
    std::fill(shape.begin(), shape.end() - 1, 1);
    s.y = b.call("add", {s.y, b.input(dtype, shape)});
    b.note("bias");
  }
  const std::string word = b.pick({"softmax", "softmax", "log_softmax", "logsumexp"});
  note_axis(b, word, s.a);
  s.y = b.call(word, {s.y}, {s.a.axis});
  if (word == "logsumexp") s.a.shape.erase(s.a.shape.begin() + s.a.axis);
  return s;
}

// Losses --------------------------------------------------------------------------------------

struct Lost {
  Value loss;
  std::vector<Value> leaves;
};

Lost classified(Builder& b, double passes) {  // logits and class numbers
  const DType dtype = b.chance(0.6) ? DType::f32 : DType::bf16;
  const Sizes shape = b.fit({Free(), b.dim(Dim::Vocabulary)}, width_of(dtype) * passes);
  const Value logits = b.laid_out(dtype, shape);
  const Value target = b.integers(DType::i64, {shape[0]}, shape[1]);
  const Value wide = dtype == DType::f32 ? logits : b.to(DType::f32, logits);
  if (b.chance(0.6)) {
    b.note("cross_entropy");
    return {b.call("cross_entropy", {wide, target}), {logits}};
  }
  b.note("cross entropy with smoothed labels");
  const Value p = b.call("log_softmax", {wide}, {1});
  const Value hit = b.call("gather", {p, b.call("unsqueeze", {target}, {1})}, {1});
  const Value chosen = b.scaled(b.call("mean_all", {hit}), -0.9);
  const Value others = b.scaled(b.call("mean_all", {p}), -0.1);
  return {b.call("add", {chosen, others}), {logits}};
}

Lost segmented(Builder& b, double passes) {  // classes in the middle: [N, C, H*W]
  b.note("cross entropy over the middle axis");
  const int64_t side = 4 * b.dim(Dim::Side), classes = b.pick({2, 19, 21, 150});
  const Sizes shape = b.fit({Free(), classes, side * side}, 4 * passes);
  const Value logits = b.input(DType::f32, shape);
  const Value target = b.integers(DType::i64, {shape[0], 1, shape[2]}, shape[1]);
  const Value p = b.call("log_softmax", {logits}, {1});
  return {b.scaled(b.call("mean_all", {b.call("gather", {p, target}, {1})}), -1), {logits}};
}

Lost compared(Builder& b, double passes) {  // two tensors of the same shape
  const DType dtype = b.chance(0.6) ? DType::f32 : DType::bf16;
  const Sizes shape = rows_of(b, Dim::Width, width_of(dtype) * (passes + 1));
  const std::string word =
      b.pick({"mse_loss", "smooth_l1", "bce_with_logits", "cosine", "hinge", "kl"});
  Value x = b.laid_out(dtype, shape), t = b.input(dtype, shape, {0.5f, 0.5f});
  b.note(word);
  const Value leaf = x;
  if (dtype != DType::f32) x = b.to(DType::f32, x), t = b.to(DType::f32, t);
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  if (word == "cosine") {
    const Value dot =
        b.call("mul", {b.call("normalize", {x}, {last}), b.call("normalize", {t}, {last})});
    const Value sums = b.call("sum", {dot}, {last});
    return {b.call("mean_all", {b.call("from_number", {sums}, {}, {1})}), {leaf}};
  }
  if (word == "hinge") {
    const Value margin = b.call("from_number", {b.call("mul", {x, t})}, {}, {1});
    return {b.call("mean_all", {b.call("relu", {margin})}), {leaf}};
  }
  if (word == "kl") {
    const Value p = b.call("softmax", {t}, {last}), q = b.call("log_softmax", {x}, {last});
    const Value gap = b.call("sub", {b.call("log_softmax", {t}, {last}), q});
    const Value sums = b.call("sum", {b.call("mul", {p, gap})}, {last});
    return {b.call("mean_all", {sums}), {leaf}};
  }
  return {b.call(word, {x, t}), {leaf}};
}

Lost any_loss(Builder& b, bool gradient) {
  const double passes = gradient ? 2 : 1;
  if (b.chance(0.45)) return classified(b, passes);
  return b.chance(0.3) ? segmented(b, passes) : compared(b, passes);
}

}  // namespace

double width_of(DType dtype) { return static_cast<double>(tc::size_of(dtype)); }

Sizes rows_of(Builder& b, Dim width, double bytes_an_element) {
  const int64_t rank = 2 + b.below(width == Dim::Vocabulary ? 2 : 3);
  const bool scores = b.chance(0.5);
  const int64_t columns = b.dim(width), length = b.dim(Dim::Sequence),
                heads = b.dim(Dim::Heads), head = b.dim(Dim::HeadWidth);
  if (rank == 2) return b.fit({Free(), columns}, bytes_an_element);
  if (rank == 3) return b.fit({Free(), length, columns}, bytes_an_element);
  return b.fit({Free(), heads, length, scores ? length : head}, bytes_an_element);
}

Sizes images_of(Builder& b, double bytes_an_element) {
  const int64_t side = b.dim(Dim::Side), channels = b.dim(Dim::Channels);
  return b.fit({Free(), channels, side, side}, bytes_an_element);
}

void draw_norm(Builder& b) {
  const int64_t kind = b.below(10);
  const Normed n = kind < 5   ? norm_of_rows(b, b.chance(0.4), 2)
                   : kind < 7 ? norm_of_images(b, 2)
                              : norm_of_axis(b, 2);
  const Value y = b.chance(0.2) ? b.activation(n.y) : n.y;
  if (n.added)
    b.returns({n.sum, y});
  else
    b.returns({y});
}

void draw_norm_gradient(Builder& b) {
  const int64_t kind = b.below(10);
  const Normed n = kind < 5   ? norm_of_rows(b, false, 4)
                   : kind < 7 ? norm_of_images(b, 4)
                              : norm_of_axis(b, 4);
  b.differentiate(n.leaves, n.y, n.dtype, n.shape);
}

void draw_softmax(Builder& b) {
  const Softened s = softened(b, false);
  b.returns({s.dtype == DType::f32 && b.chance(0.2) ? b.to(DType::bf16, s.y) : s.y});
}

void draw_softmax_gradient(Builder& b) {
  const Softened s = softened(b, true);
  b.differentiate({s.x}, s.y, s.dtype, s.a.shape);
}

void draw_loss(Builder& b) { b.returns({any_loss(b, false).loss}); }

void draw_loss_gradient(Builder& b) {
  const Lost lost = any_loss(b, true);
  b.differentiate(lost.leaves, lost.loss, DType::f32, {});
}

// One reduction of x, of x*x, of x*y ..; over one axis or over all but one
void draw_reduction(Builder& b) {
  const DType dtype = b.floats();
  const bool product = b.chance(0.25);
  const Axis a = any_axis(b, width_of(dtype) * (product ? 2 : 1));
  Value x = b.laid_out(dtype, a.shape);
  if (product) {
    x = b.call("mul", {x, b.input(dtype, a.shape)});
    b.note("x*y");
  } else if (b.chance(0.4)) {
    const std::string map = b.pick({"abs", "square", "exp", "relu"});
    x = b.call(map, {x});
    b.note(map);
  }
  std::string word = b.pick({"sum", "sum", "mean", "amax", "amin", "var", "norm"});
  if (dtype == DType::f16 && word == "sum") word = "mean";  // no sums beyond 65504
  Sizes axes = {a.axis};
  if (a.shape.size() > 2 && b.chance(0.3)) {  // a sum of channels: all axes but the last
    axes.clear();
    for (size_t k = 0; k + 1 < a.shape.size(); k++) axes.push_back(static_cast<int64_t>(k));
    b.note(word + " over all axes but the last");
  } else {
    note_axis(b, word, a);
  }
  b.returns({b.call(word, {x}, axes)});
}

void draw_statistics(Builder& b) {
  const DType dtype = b.floats();
  const Axis a = any_axis(b, width_of(dtype));
  const Value x = b.laid_out(dtype, a.shape);
  note_axis(b, "mean, var, min and max", a);
  std::vector<Value> outputs;
  for (const char* word : {"mean", "var", "amin", "amax"}) {
    if (outputs.empty() || b.chance(0.7)) outputs.push_back(b.call(word, {x}, {a.axis}));
  }
  b.returns(outputs);
}

void draw_argmax(Builder& b) {
  const int64_t kind = b.below(6);
  if (kind < 3) {  // f32, where few elements are equal: PyTorch chooses among these as it likes
    const Axis a = any_axis(b, 4);
    const Value x = b.laid_out(DType::f32, a.shape);
    const std::string word = b.pick({"argmax", "argmin", "max_along"});
    note_axis(b, word, a);
    if (word != "max_along") return b.returns({b.call(word, {x}, {a.axis})});
    const Value both = b.call(word, {x}, {a.axis}, {}, 2);
    return b.returns({both, both + 1});
  }
  if (kind == 3) {  // a router's gates
    const Sizes shape = b.fit({Free(), b.dim(Dim::Experts)}, 4);
    const int64_t k = std::min(b.pick<int64_t>({1, 2, 4, 8}), shape[1]);
    const Value p = b.call("softmax", {b.input(DType::f32, shape)}, {1});
    const Value top = b.call("topk", {p}, {k, 1}, {}, 2);
    b.note("gates of experts by topk");
    return b.returns({b.call("div", {top, b.call("sum_keep", {top}, {1})}), top + 1});
  }
  if (kind == 5) {
    const Sizes shape = b.fit({Free(), b.dim(Dim::Width)}, 12);
    const Value both = b.call("sort", {b.input(DType::f32, shape)}, {1}, {}, 2);
    b.note("sort of rows");
    return b.returns({both, both + 1});
  }
  const Sizes shape = b.fit({Free(), b.dim(Dim::Vocabulary)}, 4);
  const Value x = b.input(DType::f32, shape), t = b.integers(DType::i64, {shape[0]}, shape[1]);
  const Value hit = b.call("equal", {b.call("argmax", {x}, {1}), t});
  b.note("accuracy");
  b.returns({b.call("mean_all", {b.to(DType::f32, hit)})});
}

void draw_scan(Builder& b) {
  const DType dtype = b.chance(0.7) ? DType::f32 : b.floats();
  const std::string word = b.pick({"cumsum", "cumsum", "cumsum", "cumprod", "logcumsumexp",
                                   "cummax", "nucleus", "cumsum_gradient"});
  const Axis a = any_axis(b, width_of(dtype) * (word == "cumsum_gradient" ? 4 : 2));
  note_axis(b, word, a);
  const bool near_one = word == "cumprod", places = word == "cummax";
  const Value x = b.laid_out(near_one || places ? DType::f32 : dtype, a.shape,
                             near_one ? Range{0.01f, 1} : Range{1, 0});
  if (word == "cumsum_gradient")
    return b.differentiate({x}, b.call("cumsum", {b.call("square", {x})}, {a.axis}), dtype,
                           a.shape);
  if (word == "nucleus")
    return b.returns({b.call("cumsum", {b.call("softmax", {x}, {a.axis})}, {a.axis})});
  if (word != "cummax") return b.returns({b.call(word, {x}, {a.axis})});
  const Value both = b.call(word, {x}, {a.axis}, {}, 2);
  b.returns({both, both + 1});
}

}  // namespace bench
