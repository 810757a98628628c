// Named patterns of what goes element by element, of steps of optimisers, of where elements go,
// and of products.
//
//   causal_softmax_bf16_4x16x2048x2048: torch.softmax((x0 * 0.125).masked_fill(~.., -math.inf), 3)
#include <algorithm>
#include <cmath>

#include "tests/bench/speed_families.h"
#include "tests/bench/speed_patterns.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;

// Elements ------------------------------------------------------------------------------------

Made bias_gelu(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s), bias = b.input(t, {s.back()});
  return {{b.call("gelu", {b.call("add", {x, bias})})}, {x, bias}, s};
}

Made bias_gelu_with_column_sums(Builder& b, DType t, const Sizes& s) {
  const Value y = bias_gelu(b, t, s).results[0];
  return {{y, b.call("sum", {y}, {0})}};
}

Made swiglu_of_halves(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s);
  const int64_t half = s[1] / 2;
  const Value gate = b.call("narrow", {x}, {1, 0, half}),
              up = b.call("narrow", {x}, {1, half, half});
  return {{b.call("mul", {b.call("silu", {gate}), up})}};
}

Made bias_dropout_residual(Builder& b, DType t, const Sizes& s) {
  const Value x = b.call("add", {b.input(t, s), b.input(t, {s.back()})});
  const Value kept = b.call("where_number", {b.mask(s, 0.9), x}, {}, {0});
  return {{b.call("add", {b.scaled(kept, 1 / 0.9), b.input(t, s)})}};
}

Made pointwise_chain(Builder& b, DType t, const Sizes& s) {  // tanh(x*w + v)*sigmoid(x) + 0.5*x
  const Value x = b.input(t, s), w = b.input(t, s), v = b.input(t, s);
  const Value wave = b.call("tanh", {b.call("add", {b.call("mul", {x, w}), v})});
  const Value gated = b.call("mul", {wave, b.call("sigmoid", {x})});
  return {{b.call("add", {gated, b.scaled(x, 0.5)})}};
}

// round(x / scale) in i8, scale = max|x| / 127 along an axis; -1: of everything
PatternMaker quantise(int64_t axis) {
  return [axis](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.input(t, s), wide = t == DType::f32 ? x : b.to(DType::f32, x);
    const Value size = b.call("abs", {wide});
    const Value most =
        axis < 0 ? b.call("amax_all", {size}) : b.call("amax_keep", {size}, {axis});
    const Value scale = b.scaled(b.call("clamp", {most}, {}, {1e-6, 1e6}), 1.0 / 127);
    const Value steps = b.call("round", {b.call("div", {wide, scale})});
    return {{b.to(DType::i8, b.call("clamp", {steps}, {}, {-127, 127})), scale}};
  };
}

PatternMaker dequantise(int64_t group, DType to) {  // a scale for each group of a row
  return [=](Builder& b, DType t, const Sizes& s) -> Made {
    const Sizes grouped = {s[0], s[1] / group, group};
    const Value q = b.call("reshape", {b.integers(t, s, 256, -128)}, grouped);
    const Value scale = b.input(to, {s[0], s[1] / group, 1}, {0.01f, 0.02f});
    return {{b.call("reshape", {b.call("mul", {b.to(to, q), scale})}, s)}};
  };
}

PatternMaker dequantise_4bit(DType to) {  // two numbers a byte, a scale for each row
  return [to](Builder& b, DType t, const Sizes& s) -> Made {
    const Value bytes = b.integers(t, s, 256);
    const Value both = b.call(
        "stack", {b.call("and_integer", {bytes}, {15}), b.call("shift_right", {bytes}, {4})},
        {2});
    const Value q = b.to(to, b.call("reshape", {both}, {s[0], 2 * s[1]}));
    const Value scale = b.input(to, {s[0], 1}, {0.01f, 0.02f});
    return {{b.call("mul", {b.call("add_number", {q}, {}, {-8}), scale})}};
  };
}

PatternMaker normalised_image(DType to) {  // bytes [N,H,W,3] => numbers [N,3,H,W]
  return [to](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.scaled(b.to(DType::f32, b.integers(t, s, 256)), 1.0 / 255);
    const Value centred = b.call("sub", {x, b.input(DType::f32, {s[3]}, {0.1f, 0.45f})});
    const Value level = b.call("div", {centred, b.input(DType::f32, {s[3]}, {0.01f, 0.22f})});
    return {{b.call("contiguous", {b.to(to, b.call("permute", {level}, {0, 3, 1, 2}))})}};
  };
}

Made rotary(Builder& b, DType t, const Sizes& s) {  // x*cos + rotate_half(x)*sin
  const Value x = b.input(t, s);
  const Value cosine = b.input(t, {s[2], s[3]}, {1, 0}),
              sine = b.input(t, {s[2], s[3]}, {1, 0});
  const int64_t half = s[3] / 2;
  const Value first = b.call("narrow", {x}, {3, 0, half}),
              second = b.call("narrow", {x}, {3, half, half});
  const Value transposed = b.call("cat", {b.call("neg", {second}), first}, {3});
  return {{b.call("add", {b.call("mul", {x, cosine}), b.call("mul", {transposed, sine})})}};
}

// Optimisers ----------------------------------------------------------------------------------

std::vector<Value> inputs_of(Builder& b, DType t, const std::vector<Sizes>& shapes,
                             Range range = {0.5f, 0}) {
  std::vector<Value> values;
  for (const Sizes& shape : shapes) values.push_back(b.input(t, shape, range));
  return values;
}

// Operands of a step of AdamW: weights, both moments, gradients
std::vector<Value> adamw_operands(Builder& b, DType t, const std::vector<Sizes>& shapes,
                                  const std::vector<Value>& gradients) {
  std::vector<Value> operands = inputs_of(b, t, shapes);
  for (const Range& range : {Range{0.5f, 0}, Range{0.04f, 0.05f}}) {
    for (Value x : inputs_of(b, t, shapes, range)) operands.push_back(x);
  }
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  return operands;
}

Made many(Builder& b, const char* word, const std::vector<Value>& operands, size_t results) {
  const int count = static_cast<int>(results);
  const Value first = b.call(word, operands, {}, {}, count);
  Made made;
  for (int k = 0; k < count; k++) made.results.push_back(first + k);
  return made;
}

std::vector<Sizes> layers_of(const Sizes& s) {  // {tensors, width}
  const int64_t width = s[1];
  const Sizes shapes[] = {{width, width}, {width}, {4 * width, width}, {4 * width}};
  std::vector<Sizes> made;
  for (int64_t k = 0; k < s[0]; k++) made.push_back(shapes[k % 4]);
  return made;
}

std::vector<Sizes> gpt2_weights(const Sizes& s) {  // {tensors, width, words}
  const int64_t c = s[1], words = s[2];
  std::vector<Sizes> made = {{words, c}, {std::min<int64_t>(1024, words), c}};
  const Sizes layer[] = {{c}, {c}, {3 * c, c}, {3 * c}, {c, c},     {c},
                         {c}, {c}, {4 * c, c}, {4 * c}, {c, 4 * c}, {c}};
  while (static_cast<int64_t>(made.size()) + 2 < s[0])
    made.insert(made.end(), std::begin(layer), std::end(layer));
  made.insert(made.end(), {{c}, {c}});
  return made;
}

Made adamw_of_layers(Builder& b, DType t, const Sizes& s) {
  const auto shapes = layers_of(s);
  const auto gradients = inputs_of(b, t, shapes);
  return many(b, "adamw", adamw_operands(b, t, shapes, gradients), 3 * shapes.size());
}

Made sgd_of_layers(Builder& b, DType t, const Sizes& s) {
  const auto shapes = layers_of(s);
  std::vector<Value> operands = inputs_of(b, t, shapes);
  for (int kind = 0; kind < 2; kind++) {  // speeds, gradients
    for (Value x : inputs_of(b, t, shapes)) operands.push_back(x);
  }
  return many(b, "sgd", operands, 2 * shapes.size());
}

Made clip_and_adamw_of_gpt2(Builder& b, DType t, const Sizes& s) {
  const auto shapes = gpt2_weights(s);
  const Made clipped = many(b, "clip", inputs_of(b, t, shapes), shapes.size());
  return many(b, "adamw", adamw_operands(b, t, shapes, clipped.results), 3 * shapes.size());
}

// Places --------------------------------------------------------------------------------------

PatternMaker permuted(const Sizes& order) {
  return [order](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = t == DType::u8 ? b.integers(t, s, 256) : b.input(t, s);
    return {{b.call("contiguous", {b.call("permute", {x}, order)})}};
  };
}

Made heads_joined(Builder& b, DType t, const Sizes& s) {  // [B,heads,S,D] => [B,S,heads*D]
  const Value transposed = b.call("permute", {b.input(t, s)}, {0, 2, 1, 3});
  return {{b.call("reshape", {transposed}, {s[0], s[2], s[1] * s[3]})}};
}

Made cat_of_three(Builder& b, DType t, const Sizes& s) {
  return {{b.call("cat", {b.input(t, s), b.input(t, s), b.input(t, s)}, {1})}};
}

Made causal_softmax(Builder& b, DType t, const Sizes& s) {
  const Value x = b.scaled(b.input(t, s), 0.125);
  const Value row = b.call("unsqueeze", {b.call("arange", {x}, {s[2]})}, {1});
  const Value keep = b.call("at_least", {row, b.call("arange", {x}, {s[3]})});
  return {{b.call("softmax", {b.call("masked_fill", {x, keep})}, {3})}};
}

Made masked_mean(Builder& b, DType t, const Sizes& s) {  // of the tokens that are there
  const Value x = b.input(t, s), keep = b.to(t, b.mask({s[0], s[1], 1}, 0.7));
  const Value count = b.call("add_number", {b.call("sum", {keep}, {1})}, {}, {1e-3});
  return {{b.call("div", {b.call("sum", {b.call("mul", {x, keep})}, {1}), count})}};
}

PatternMaker max_pool(int64_t kernel, int64_t step) {
  return [=](Builder& b, DType t, const Sizes& s) -> Made {
    return {{b.call("max_pool2d", {b.input(t, s)}, {kernel, step, kernel / 2})}};
  };
}

Made mean_of_images(Builder& b, DType t, const Sizes& s) {
  return {{b.call("mean", {b.input(t, s)}, {2, 3})}};
}

PatternMaker depthwise_window(int64_t k) {  // k x k weights a channel, the picture's size kept
  return [k](Builder& b, DType t, const Sizes& s) -> Made {
    const int64_t edge = k / 2;
    const Value x = b.call("pad", {b.input(t, s)}, {edge, edge, edge, edge});
    const Value windows = b.call("unfold", {b.call("unfold", {x}, {2, k, 1})}, {3, k, 1});
    const Value weights = b.input(t, {s[1], 1, 1, k, k}, {0.2f, 0});
    return {{b.call("sum", {b.call("mul", {windows, weights})}, {4, 5})}};
  };
}

PatternMaker short_convolution(int64_t k) {  // Mamba's: [B, C, S], causal, silu of it
  return [k](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.call("pad", {b.input(t, s)}, {k - 1, 0});
    const Value windows = b.call("unfold", {x}, {2, k, 1});
    const Value y =
        b.call("sum", {b.call("mul", {windows, b.input(t, {s[1], 1, k}, {1, 0})})}, {3});
    return {{b.call("silu", {y})}};
  };
}

PatternMaker moving_mean(int64_t k) {
  return [k](Builder& b, DType t, const Sizes& s) -> Made {
    return {{b.call("mean", {b.call("unfold", {b.input(t, s)}, {1, k, 1})}, {2})}};
  };
}

// {B, S, C, words}
Made looked_up(Builder& b, DType t, const Sizes& s) {
  const Value index = b.integers(DType::i64, {s[0], s[1]}, s[3]),
              table = b.input(t, {s[3], s[2]});
  const double words = static_cast<double>(s[3]), count = static_cast<double>(s[0] * s[1]);
  const double chosen = words * (1 - std::pow(1 - 1 / words, count));
  b.reads_only(table, chosen * static_cast<double>(s[2]) * width_of(t));
  return {{b.call("embedding", {table, index})}, {table}, {s[0], s[1], s[2]}};
}

Made embedding_and_positions(Builder& b, DType t, const Sizes& s) {
  const Value words = looked_up(b, t, s).results[0];
  return {{b.call("add", {words, b.input(t, {s[1], s[2]})})}};
}

// Products: {rows, in, out} -------------------------------------------------------------------

Value weight_of(Builder& b, DType t, const Sizes& s) {  // so that a sum of products is about 1
  return b.input(t, {s[2], s[1]}, {1.7f / std::sqrt(static_cast<float>(s[1])), 0});
}

Made product(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, {s[0], s[1]}, {1, 0});
  return {{b.call("linear", {x, weight_of(b, t, s)})}};
}

Made product_of_i8_weights(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, {s[0], s[1]}, {1, 0});
  const Value q = b.to(t, b.integers(DType::i8, {s[2], s[1]}, 255, -127));
  const float unit = 0.01f / std::sqrt(static_cast<float>(s[1]));
  const Value scale = b.input(t, {s[2], 1}, {unit / 10, unit});
  return {{b.call("linear", {x, b.call("mul", {q, scale})})}};
}

Made product_with_column_sums(Builder& b, DType t, const Sizes& s) {
  return {{b.call("sum", {b.call("relu", {product(b, t, s).results[0]})}, {0})}};
}

Made product_gelu(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, {s[0], s[1]}, {1, 0}), w = weight_of(b, t, s);
  return {{b.call("gelu", {b.call("linear_bias", {x, w, b.input(t, {s[2]})})})}};
}

Made product_residual(Builder& b, DType t, const Sizes& s) {
  return {{b.call("add", {product(b, t, s).results[0], b.input(t, {s[0], s[2]})})}};
}

Made rms_norm_product(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, {s[0], s[1]}), w = b.input(t, {s[1]}, {0.5f, 1});
  return {{b.call("linear", {b.call("rms_norm", {x, w}), weight_of(b, t, s)})}};
}

Made swiglu_product(Builder& b, DType t, const Sizes& s) {
  const Value gate = b.call("silu", {b.input(t, {s[0], s[1]}, {1, 0})});
  const Value x = b.call("mul", {gate, b.input(t, {s[0], s[1]}, {1, 0})});
  return {{b.call("linear", {x, weight_of(b, t, s)})}};
}

Made scores_softmax(Builder& b, DType t, const Sizes& s) {  // {heads, S, D}
  const Value q = b.input(t, s, {1, 0}), k = b.input(t, s, {1, 0});
  const Value scores = b.call("matmul", {q, b.call("transpose", {k}, {1, 2})});
  return {{b.call("softmax", {b.scaled(scores, 0.125)}, {2})}};
}

Made weighted_values(Builder& b, DType t, const Sizes& s) {  // {heads, S, D}
  const float share = 1 / static_cast<float>(s[1]);
  const Value p = b.input(t, {s[0], s[1], s[1]}, {share / 2, share});
  return {{b.call("matmul", {p, b.input(t, s)})}};
}

// The table -----------------------------------------------------------------------------------

const Pattern kPatterns[] = {
    {"bias_gelu_bf16_16384x4096", "activation", bias_gelu, {37, 129}},
    {"bias_gelu_with_column_sums_bf16_16384x4096",
     "activation",
     bias_gelu_with_column_sums,
     {37, 129}},
    {"swiglu_of_halves_bf16_8192x22016", "activation", swiglu_of_halves, {9, 258}},
    {"bias_dropout_residual_f32_16384x2048", "activation", bias_dropout_residual, {37, 129}},
    {"bias_gelu_gradient_with_column_sums_bf16_16384x4096",
     "activation_gradient",
     bias_gelu,
     {37, 129}},
    {"bias_gelu_gradient_with_column_sums_f32_8192x3072",
     "activation_gradient",
     bias_gelu,
     {37, 129}},
    {"pointwise_chain_f32_2^25", "chain", pointwise_chain, {5003}},
    {"quantise_rows_to_i8_bf16_16384x4096", "quantise", quantise(1), {37, 129}},
    {"quantise_columns_to_i8_f32_8192x4096", "quantise", quantise(0), {129, 37}},
    {"quantise_everything_to_i8_f16_8192x4096", "quantise", quantise(-1), {37, 129}},
    {"dequantise_groups_of_128_to_bf16_i8_16384x4096",
     "dequantise",
     dequantise(128, DType::bf16),
     {7, 256}},
    {"dequantise_4bit_to_f16_u8_8192x5504",
     "dequantise",
     dequantise_4bit(DType::f16),
     {37, 65}},
    {"normalised_image_to_nchw_bf16_u8_128x224x224x3",
     "image",
     normalised_image(DType::bf16),
     {2, 9, 11, 3}},
    {"rotary_embedding_bf16_4x32x2048x128", "rotary", rotary, {2, 3, 9, 16}},
    {"adamw_tensors_f32_150x256", "optimiser", adamw_of_layers, {150, 2}},
    {"sgd_momentum_tensors_f32_160x512", "optimiser", sgd_of_layers, {160, 2}},
    {"clip_and_adamw_tensors_of_gpt2_f32_148x768x50257",
     "optimiser",
     clip_and_adamw_of_gpt2,
     {148, 4, 61}},
    {"layout_nhwc_to_nchw_u8_256x224x224x3", "layout", permuted({0, 3, 1, 2}), {2, 9, 11, 3}},
    {"layout_nchw_to_nhwc_f16_64x256x56x56", "layout", permuted({0, 2, 3, 1}), {2, 19, 5, 7}},
    {"transpose_f32_8192x8191", "layout", permuted({1, 0}), {37, 129}},
    {"heads_joined_f16_16x12x1024x64", "layout", heads_joined, {2, 3, 9, 16}},
    {"cat_of_three_trailing_axis_bf16_16384x2048", "join", cat_of_three, {37, 65}},
    {"causal_softmax_bf16_4x16x2048x2048", "mask", causal_softmax, {2, 3, 33, 33}},
    {"masked_mean_middle_axis_f32_64x512x768", "mask", masked_mean, {3, 33, 37}},
    {"max_pool_3_by_2_f32_64x64x112x112", "pooling", max_pool(3, 2), {2, 3, 16, 16}},
    {"mean_of_images_bf16_256x2048x7x7", "pooling", mean_of_images, {5, 33, 7, 7}},
    {"depthwise_window_7x7_f32_16x96x56x56", "window", depthwise_window(7), {1, 3, 14, 14}},
    {"short_convolution_of_4_bf16_4x4096x2048", "window", short_convolution(4), {2, 9, 65}},
    {"moving_mean_of_25_f32_1024x16408", "window", moving_mean(25), {5, 129}},
    {"embedding_and_positions_bf16_16x1024x768x50257",
     "embedding",
     embedding_and_positions,
     {3, 17, 33, 61}},
    {"embedding_gradient_f32_8x1024x768x50257",
     "embedding_gradient",
     looked_up,
     {3, 17, 33, 61}},
    {"thin_product_bf16_1x4096x14336", "thin_product", product, {1, 64, 67}},
    {"thin_product_of_i8_weights_bf16_4x4096x11008",
     "thin_product",
     product_of_i8_weights,
     {4, 64, 67}},
    {"thin_product_with_column_sums_f32_65536x512x16",
     "thin_product",
     product_with_column_sums,
     {129, 37, 16}},
    {"scores_and_softmax_bf16_96x1024x64", "batched_product", scores_softmax, {3, 33, 16}},
    {"weighted_values_f16_96x1024x64", "batched_product", weighted_values, {3, 33, 16}},
    {"rmsnorm_and_product_bf16_4096x2048x6144",
     "prologue_product",
     rms_norm_product,
     {37, 64, 67}},
    {"swiglu_and_product_bf16_4096x11008x4096",
     "prologue_product",
     swiglu_product,
     {37, 64, 67}},
    {"product_bias_gelu_bf16_8192x1024x4096", "epilogue_product", product_gelu, {37, 64, 67}},
    {"product_and_residual_f32_4096x1024x1024",
     "epilogue_product",
     product_residual,
     {37, 64, 67}},
};

}  // namespace

std::vector<Pattern> patterns_of_elements() {
  return {std::begin(kPatterns), std::end(kPatterns)};
}

}  // namespace bench
