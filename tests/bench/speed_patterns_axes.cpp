// Named patterns of what goes along axes: normalisations, softmaxes, losses and their gradients,
// sums, variances, argmax, scans, scatters.
//
//   layernorm_rows_bf16_4096x1024: F.layer_norm(x0, x1.shape, x1, x2) of x0 bf16[4096,1024]
#include "tests/bench/speed_families.h"
#include "tests/bench/speed_patterns.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;

constexpr int64_t kLeading = 0, kMiddle = 1, kTrailing = -1;

int64_t axis_at(int64_t place, const Sizes& s) {
  return place == kTrailing ? static_cast<int64_t>(s.size()) - 1 : place;
}

Value in_f32(Builder& b, DType t, Value x) { return t == DType::f32 ? x : b.to(DType::f32, x); }
Value weight_of(Builder& b, DType t, int64_t width) { return b.input(t, {width}, {0.5f, 1}); }

// Normalisations ------------------------------------------------------------------------------

Made layer_norm(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s), w = weight_of(b, t, s.back()), bias = b.input(t, {s.back()});
  return {{b.call("layer_norm", {x, w, bias})}, {x, w, bias}, s};
}

Made rms_norm(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s), w = weight_of(b, t, s.back());
  return {{b.call("rms_norm", {x, w})}, {x, w}, s};
}

Made add_rms_norm(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s), sum = b.call("add", {x, b.input(t, s)});
  return {{sum, b.call("rms_norm", {sum, weight_of(b, t, s.back())})}};
}

Made batch_norm(Builder& b, DType t, const Sizes& s) {  // weights in f32, as AMP keeps them
  const Value x = b.input(t, s), w = weight_of(b, DType::f32, s[1]),
              bias = b.input(DType::f32, {s[1]});
  return {{b.call("batch_norm", {x, w, bias})}, {x, w, bias}, s};
}

Made batch_norm_relu(Builder& b, DType t, const Sizes& s) {
  return {{b.call("relu", {batch_norm(b, t, s).results[0]})}};
}

PatternMaker group_norm(int64_t groups) {
  return [groups](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.input(t, s), w = weight_of(b, t, s[1]), bias = b.input(t, {s[1]});
    return {{b.call("group_norm", {x, w, bias}, {groups})}, {x, w, bias}, s};
  };
}

PatternMaker standardise(int64_t place) {  // (x - mean) / sqrt(var + eps)
  return [place](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.input(t, s), wide = in_f32(b, t, x);
    const Sizes axes = {axis_at(place, s)};
    const Value centred = b.call("sub", {wide, b.call("mean_keep", {wide}, axes)});
    const Value spread = b.call("add_number", {b.call("var_keep", {wide}, axes)}, {}, {1e-5});
    const Value y = b.call("mul", {centred, b.call("rsqrt", {spread})});
    return {{t == DType::f32 ? y : b.to(t, y)}, {x}, s};
  };
}

// One word along an axis ----------------------------------------------------------------------

PatternMaker along(const char* word, int64_t place) {
  return [=](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.input(t, s);
    return {{b.call(word, {x}, {axis_at(place, s)})}, {x}, s};
  };
}

PatternMaker over_all(const char* word) {
  return [word](Builder& b, DType t, const Sizes& s) -> Made {
    return {{b.call(word, {b.input(t, s)})}};
  };
}

PatternMaker over_all_but_last(const char* word) {
  return [word](Builder& b, DType t, const Sizes& s) -> Made {
    Sizes axes;
    for (size_t k = 0; k + 1 < s.size(); k++) axes.push_back(static_cast<int64_t>(k));
    return {{b.call(word, {b.input(t, s)}, axes)}};
  };
}

Made statistics_of_rows(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s);
  Made made;
  for (const char* word : {"mean", "var", "amin", "amax"})
    made.results.push_back(b.call(word, {x}, {1}));
  return made;
}

Made topk_gates(Builder& b, DType t, const Sizes& s) {  // of a router, the first 4
  const Value p = b.call("softmax", {b.input(t, s)}, {1});
  const Value top = b.call("topk", {p}, {4, 1}, {}, 2);
  return {{b.call("div", {top, b.call("sum_keep", {top}, {1})}), top + 1}};
}

Made max_and_place(Builder& b, DType t, const Sizes& s) {
  const Value both = b.call("max_along", {b.input(t, s)}, {1}, {}, 2);
  return {{both, both + 1}};
}

// Losses --------------------------------------------------------------------------------------

Made cross_entropy(Builder& b, DType t, const Sizes& s) {
  const Value x = b.input(t, s), target = b.integers(DType::i64, {s[0]}, s[1]);
  return {{b.call("cross_entropy", {in_f32(b, t, x), target})}, {x}};
}

Made segmentation_loss(Builder& b, DType t, const Sizes& s) {  // classes in the middle
  const Value x = b.input(t, s), target = b.integers(DType::i64, {s[0], 1, s[2]}, s[1]);
  const Value p = b.call("log_softmax", {in_f32(b, t, x)}, {1});
  const Value chosen = b.call("mean_all", {b.call("gather", {p, target}, {1})});
  return {{b.scaled(chosen, -1)}, {x}};
}

PatternMaker loss_between(const char* word) {  // two tensors of the same shape
  return [word](Builder& b, DType t, const Sizes& s) -> Made {
    const Value x = b.input(t, s), y = b.input(t, s, {0.5f, 0.5f});
    return {{b.call(word, {in_f32(b, t, x), in_f32(b, t, y)})}, {x}};
  };
}

Made kl_divergence(Builder& b, DType t, const Sizes& s) {  // of rows: sum p*(log p - log q)
  const Value x = b.input(t, s), wide = in_f32(b, t, x), y = in_f32(b, t, b.input(t, s));
  const Value p = b.call("softmax", {y}, {1}), q = b.call("log_softmax", {wide}, {1});
  const Value gap = b.call("sub", {b.call("log_softmax", {y}, {1}), q});
  const Value rows = b.call("sum", {b.call("mul", {p, gap})}, {1});
  return {{b.call("mean_all", {rows})}, {x}};
}

// Scatters ------------------------------------------------------------------------------------

PatternMaker scatter_add(int64_t bins) {
  return [bins](Builder& b, DType t, const Sizes& s) -> Made {
    const Value values = t == DType::i32 ? b.integers(t, s, 10) : b.input(t, s, {1, 1});
    return {{b.call("scatter_add", {values, b.integers(DType::i64, s, bins)}, {bins})}};
  };
}

// The table -----------------------------------------------------------------------------------

const Pattern kPatterns[] = {
    {"layernorm_rows_bf16_4096x1024", "norm", layer_norm, {37, 129}},
    {"layernorm_rows_f32_16384x4096", "norm", layer_norm, {37, 129}},
    {"rmsnorm_ragged_rows_f32_8192x4095", "norm", rms_norm, {37, 129}},
    {"add_rmsnorm_rows_bf16_16384x4096", "norm", add_rms_norm, {37, 129}},
    {"batchnorm_training_f32_64x256x56x56", "norm", batch_norm, {3, 5, 6, 7}},
    {"batchnorm_relu_training_bf16_64x256x28x28", "norm", batch_norm_relu, {3, 5, 6, 7}},
    {"groupnorm_of_32_bf16_32x320x64x64", "norm", group_norm(32), {2, 64, 5, 5}},
    {"standardise_leading_axis_f32_4096x8192", "norm", standardise(kLeading), {129, 37}},
    {"l2_normalise_middle_axis_f32_32x1024x768",
     "norm",
     along("normalize", kMiddle),
     {3, 65, 9}},
    {"layernorm_gradient_bf16_16384x1024", "norm_gradient", layer_norm, {37, 129}},
    {"rmsnorm_gradient_f32_8192x4096", "norm_gradient", rms_norm, {37, 129}},
    {"batchnorm_gradient_f32_32x128x56x56", "norm_gradient", batch_norm, {3, 5, 6, 7}},
    {"groupnorm_of_32_gradient_bf16_16x512x32x32",
     "norm_gradient",
     group_norm(32),
     {2, 64, 4, 4}},
    {"softmax_trailing_axis_f16_4x16x1024x1024",
     "softmax",
     along("softmax", kTrailing),
     {2, 3, 9, 65}},
    {"softmax_middle_axis_f32_64x21x50176", "softmax", along("softmax", kMiddle), {3, 21, 65}},
    {"softmax_leading_axis_f32_1024x32768", "softmax", along("softmax", kLeading), {129, 37}},
    {"logsumexp_trailing_axis_f32_4096x50257",
     "softmax",
     along("logsumexp", kTrailing),
     {5, 1029}},
    {"logsumexp_leading_axis_bf16_4096x16384",
     "softmax",
     along("logsumexp", kLeading),
     {129, 37}},
    {"log_softmax_trailing_axis_bf16_8192x32000",
     "softmax",
     along("log_softmax", kTrailing),
     {5, 1029}},
    {"softmax_trailing_axis_gradient_bf16_24576x1024",
     "softmax_gradient",
     along("softmax", kTrailing),
     {37, 129}},
    {"log_softmax_middle_axis_gradient_f32_16x150x16384",
     "softmax_gradient",
     along("log_softmax", kMiddle),
     {3, 21, 65}},
    {"cross_entropy_f32_4096x50257", "loss", cross_entropy, {5, 1029}},
    {"mse_loss_bf16_8192x8192", "loss", loss_between("mse_loss"), {37, 129}},
    {"smooth_l1_loss_ragged_f32_16777259", "loss", loss_between("smooth_l1"), {4099}},
    {"bce_with_logits_f32_16384x1000", "loss", loss_between("bce_with_logits"), {37, 129}},
    {"cross_entropy_backward_bf16_8192x32000", "loss_gradient", cross_entropy, {5, 1029}},
    {"segmentation_loss_backward_f32_16x21x65536",
     "loss_gradient",
     segmentation_loss,
     {3, 21, 65}},
    {"kl_divergence_backward_f32_8192x4096", "loss_gradient", kl_divergence, {37, 129}},
    {"column_sum_leading_axis_f32_16384x4096", "reduction", along("sum", kLeading), {1290, 37}},
    {"column_sum_leading_axis_bf16_100000x768",
     "reduction",
     along("sum", kLeading),
     {1290, 37}},
    {"mean_middle_axis_f32_64x1024x1024", "reduction", along("mean", kMiddle), {3, 65, 19}},
    {"mean_trailing_axis_bf16_65536x1000", "reduction", along("mean", kTrailing), {37, 129}},
    {"norm_trailing_axis_f32_512x100000", "reduction", along("norm", kTrailing), {3, 2050}},
    {"sum_of_channels_last_f32_32x56x56x256",
     "reduction",
     over_all_but_last("sum"),
     {3, 7, 7, 37}},
    {"variance_of_everything_f32_2^26", "statistics", over_all("var_all"), {5003}},
    {"variance_leading_axis_f32_65536x1024", "statistics", along("var", kLeading), {1290, 37}},
    {"mean_var_min_max_of_rows_f32_16384x4096", "statistics", statistics_of_rows, {37, 129}},
    {"argmax_trailing_f32_4096x50257", "argmax", along("argmax", kTrailing), {5, 1029}},
    {"argmax_leading_f32_4096x8192", "argmax", along("argmax", kLeading), {129, 37}},
    {"max_and_place_middle_axis_f32_16x150x16384", "argmax", max_and_place, {3, 21, 65}},
    {"topk_gates_f32_65536x64", "argmax", topk_gates, {37, 64}},
    {"cumsum_f32_2^26", "scan", along("cumsum", kTrailing), {5003}},
    {"cumsum_leading_axis_f32_8192x4096", "scan", along("cumsum", kLeading), {129, 37}},
    {"cumsum_trailing_axis_bf16_16384x4096", "scan", along("cumsum", kTrailing), {37, 129}},
    {"scatter_add_64_bins_f32_2^26", "scatter", scatter_add(64), {5003}},
    {"scatter_add_64_bins_i32_2^26", "scatter", scatter_add(64), {5003}},
};

}  // namespace

std::vector<Pattern> patterns_of_axes() { return {std::begin(kPatterns), std::end(kPatterns)}; }

}  // namespace bench
