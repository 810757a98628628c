// How do C++ and Python get the same function? Each word of a draw has a line with both.
//
//   {"softmax", "torch.softmax($0, $i0)", ONE(tc::softmax(a[0], a.i(0)))}
//
// $0 $1 ..: operands; $*: all of them; $i: the integers as a tuple; $i0 $r0: the first integer,
// number; $d: the dtype.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "tests/bench/speed_words.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes, tc::Tensor;
using Tensors = std::vector<Tensor>;

struct Args {
  const Call& call;
  Tensors x;
  const Tensor& operator[](size_t k) const { return x.at(k); }
  int64_t i(size_t k) const { return call.integers.at(k); }
  double r(size_t k) const { return call.numbers.at(k); }
  const Sizes& list() const { return call.integers; }
  Sizes sizes_from(size_t first) const {
    return {list().begin() + static_cast<std::ptrdiff_t>(first), list().end()};
  }
};

// What PyTorch has a name for and tiny_compile writes in a few calls --------------------------

// Statistics over the axes, then the affine part of axis 1.
Tensor standardised(const Tensor& x, const tc::Axes& axes, double eps) {
  const Tensor wide = tc::is_half(x.dtype()) ? x.to(DType::f32) : x;
  const auto [variance, mean] = tc::var_mean(wide, axes, 0, true);
  return (wide - mean) * tc::rsqrt(variance + eps);
}

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias, DType dtype) {
  tc::SizeList shape(static_cast<size_t>(x.rank()), tc::Size(1));
  shape[1] = x.size(1);
  return (x * weight.reshape(shape) + bias.reshape(shape)).to(dtype);
}

Tensor batch_norm(const Args& a) {
  Sizes axes = {0};
  for (int64_t axis = 2; axis < a[0].rank(); axis++) axes.push_back(axis);
  return affine(standardised(a[0], axes, 1e-5), a[1], a[2], a[0].dtype());
}

Tensor group_norm(const Args& a) {
  const Tensor& x = a[0];
  const Tensor grouped = x.reshape({x.size(0), a.i(0), -1});
  const Tensor level = standardised(grouped, {2}, 1e-5).reshape(x.sizes());
  return affine(level, a[1], a[2], x.dtype());
}

Tensor normalize(const Args& a) {
  return a[0] / tc::clamp(a[0].norm(2, a.i(0), true), 1e-12, {});
}

Tensor bce_with_logits(const Args& a) {
  // Not relu, whose gradient at 0 is 0: PyTorch gives sigmoid(0) - y there, as two halves do.
  const Tensor positive = tc::maximum(a[0], 0.0), product = a[0] * a[1];
  return (positive - product + tc::log1p(tc::exp(-tc::abs(a[0])))).mean();
}

Tensor smooth_l1(const Args& a) {
  const Tensor off = tc::abs(a[0] - a[1]);
  return tc::where(off < 1.0, 0.5 * off * off, off - 0.5).mean();
}

// Optimiser steps: operands are the parameters, then each kind of state, then the gradients
// --------

Tensors adamw(const Args& a) {
  const size_t n = a.x.size() / 4;
  const double rate = 1e-3 / (1 - std::pow(0.9, 3)),
               root = 1 / std::sqrt(1 - std::pow(0.999, 3));
  Tensors made(3 * n);
  for (size_t k = 0; k < n; k++) {
    const Tensor &p = a[k], &g = a[3 * n + k];
    const Tensor first = a[n + k] * 0.9 + g * (1 - 0.9);
    const Tensor second = a[2 * n + k] * 0.999 + g * g * (1 - 0.999);
    made[k] = p * (1 - 1e-3 * 0.01) - rate * first / (tc::sqrt(second) * root + 1e-8);
    made[n + k] = first;
    made[2 * n + k] = second;
  }
  return made;
}

Tensors sgd(const Args& a) {  // with momentum and decay
  const size_t n = a.x.size() / 3;
  Tensors made(2 * n);
  for (size_t k = 0; k < n; k++) {
    made[n + k] = a[n + k] * 0.9 + (a[2 * n + k] + a[k] * 1e-4);
    made[k] = a[k] - made[n + k] * 0.1;
  }
  return made;
}

Tensors lion(const Args& a) {
  const size_t n = a.x.size() / 3;
  Tensors made(2 * n);
  for (size_t k = 0; k < n; k++) {
    const Tensor &m = a[n + k], &g = a[2 * n + k];
    made[k] = a[k] * (1 - 1e-4 * 0.1) - tc::sign(m * 0.9 + g * (1 - 0.9)) * 1e-4;
    made[n + k] = m * 0.99 + g * (1 - 0.99);
  }
  return made;
}

Tensors average(const Args& a) {  // of weights: an EMA
  const size_t n = a.x.size() / 2;
  Tensors made(n);
  for (size_t k = 0; k < n; k++) made[k] = a[k] * 0.999 + a[n + k] * (1 - 0.999);
  return made;
}

Tensors clip(const Args& a) {  // gradients, to a norm of at most 1 of all together
  Tensor squares = (a[0] * a[0]).sum();
  for (size_t k = 1; k < a.x.size(); k++) squares = squares + (a[k] * a[k]).sum();
  const Tensor scale = tc::clamp(1.0 / (tc::sqrt(squares) + 1e-6), {}, 1.0);
  Tensors made;
  for (const Tensor& g : a.x) made.push_back(g * scale);
  return made;
}

Tensors both(std::pair<Tensor, Tensor> pair) { return {pair.first, pair.second}; }

// The table -----------------------------------------------------------------------------------

struct Word {
  const char* name;
  const char* python;
  Tensor (*run)(const Args&);
};

struct ManyWord {  // of several results
  const char* name;
  const char* python;
  Tensors (*run)(const Args&);
};

#define ONE(expression) [](const Args& a) -> Tensor { return expression; }
#define MANY(expression) [](const Args& a) -> Tensors { return expression; }

const Word kWords[] = {
    // operators
    {"add", "$0 + $1", ONE(a[0] + a[1])},
    {"sub", "$0 - $1", ONE(a[0] - a[1])},
    {"mul", "$0 * $1", ONE(a[0] * a[1])},
    {"div", "$0 / $1", ONE(a[0] / a[1])},
    {"neg", "-$0", ONE(-a[0])},
    {"add_number", "$0 + $r0", ONE(a[0] + a.r(0))},
    {"mul_number", "$0 * $r0", ONE(a[0] * a.r(0))},
    {"from_number", "$r0 - $0", ONE(a.r(0) - a[0])},
    {"less", "$0 < $1", ONE(a[0] < a[1])},
    {"less_number", "$0 < $r0", ONE(a[0] < a.r(0))},
    {"at_least", "$0 >= $1", ONE(a[0] >= a[1])},
    {"equal", "$0 == $1", ONE(a[0] == a[1])},
    {"both", "$0 & $1", ONE(a[0] & a[1])},
    {"and_integer", "$0 & $i0", ONE(a[0] & a.i(0))},
    {"shift_right", "$0 >> $i0", ONE(a[0] >> a.i(0))},
    // pointwise
    {"exp", "torch.exp($0)", ONE(tc::exp(a[0]))},
    {"log1p", "torch.log1p($0)", ONE(tc::log1p(a[0]))},
    {"tanh", "torch.tanh($0)", ONE(tc::tanh(a[0]))},
    {"sigmoid", "torch.sigmoid($0)", ONE(tc::sigmoid(a[0]))},
    {"erf", "torch.erf($0)", ONE(tc::erf(a[0]))},
    {"sin", "torch.sin($0)", ONE(tc::sin(a[0]))},
    {"cos", "torch.cos($0)", ONE(tc::cos(a[0]))},
    {"sqrt", "torch.sqrt($0)", ONE(tc::sqrt(a[0]))},
    {"rsqrt", "torch.rsqrt($0)", ONE(tc::rsqrt(a[0]))},
    {"square", "torch.square($0)", ONE(tc::square(a[0]))},
    {"abs", "torch.abs($0)", ONE(tc::abs(a[0]))},
    {"round", "torch.round($0)", ONE(tc::round(a[0]))},
    {"maximum", "torch.maximum($0, $1)", ONE(tc::maximum(a[0], a[1]))},
    {"minimum", "torch.minimum($0, $1)", ONE(tc::minimum(a[0], a[1]))},
    {"clamp", "torch.clamp($0, $r0, $r1)", ONE(tc::clamp(a[0], a.r(0), a.r(1)))},
    {"gelu", "F.gelu($0)", ONE(tc::gelu(a[0]))},
    {"gelu_tanh", "F.gelu($0, approximate='tanh')", ONE(tc::gelu(a[0], "tanh"))},
    {"silu", "F.silu($0)", ONE(tc::silu(a[0]))},
    {"relu", "F.relu($0)", ONE(tc::relu(a[0]))},
    {"leaky_relu", "F.leaky_relu($0, 0.1)", ONE(tc::leaky_relu(a[0], 0.1))},
    {"softplus", "F.softplus($0)", ONE(tc::softplus(a[0]))},
    {"where", "torch.where($0, $1, $2)", ONE(tc::where(a[0], a[1], a[2]))},
    {"where_number", "torch.where($0, $1, $r0)", ONE(tc::where(a[0], a[1], a.r(0)))},
    {"masked_fill", "$0.masked_fill(~$1, -math.inf)",
     ONE(tc::masked_fill(a[0], ~a[1], -INFINITY))},
    {"to", "$0.to($d)", ONE(a[0].to(a.call.dtype))},
    // reductions
    {"sum", "$0.sum($i)", ONE(a[0].sum(a.list()))},
    {"sum_keep", "$0.sum($i, True)", ONE(a[0].sum(a.list(), true))},
    {"mean", "$0.mean($i)", ONE(a[0].mean(a.list()))},
    {"mean_keep", "$0.mean($i, True)", ONE(a[0].mean(a.list(), true))},
    {"mean_all", "$0.mean()", ONE(a[0].mean())},
    {"amax", "$0.amax($i)", ONE(a[0].max(a.list()))},
    {"amax_keep", "$0.amax($i, True)", ONE(a[0].max(a.list(), true))},
    {"amax_all", "$0.amax()", ONE(a[0].max())},
    {"amin", "$0.amin($i)", ONE(a[0].min(a.list()))},
    {"var", "$0.var($i)", ONE(a[0].var(a.list()))},
    {"var_keep", "$0.var($i, keepdim=True)", ONE(a[0].var(a.list(), 1, true))},
    {"var_all", "$0.var()", ONE(a[0].var())},
    {"norm", "torch.linalg.vector_norm($0, 2, $i)", ONE(a[0].norm(2, a.list()))},
    {"argmax", "$0.argmax($i0)", ONE(a[0].argmax(a.i(0)))},
    {"argmin", "$0.argmin($i0)", ONE(a[0].argmin(a.i(0)))},
    {"logsumexp", "torch.logsumexp($0, $i)", ONE(a[0].logsumexp(a.list()))},
    {"softmax", "torch.softmax($0, $i0)", ONE(tc::softmax(a[0], a.i(0)))},
    {"log_softmax", "torch.log_softmax($0, $i0)", ONE(tc::log_softmax(a[0], a.i(0)))},
    {"cumsum", "torch.cumsum($0, $i0)", ONE(tc::cumsum(a[0], a.i(0)))},
    {"cumprod", "torch.cumprod($0, $i0)", ONE(tc::cumprod(a[0], a.i(0)))},
    {"logcumsumexp", "torch.logcumsumexp($0, $i0)", ONE(tc::logcumsumexp(a[0], a.i(0)))},
    // layers and losses
    {"layer_norm", "F.layer_norm($0, $1.shape, $1, $2)",
     ONE(tc::layer_norm(a[0], a[1].sizes(), a[1], a[2]))},
    {"rms_norm", "F.rms_norm($0, $1.shape, $1, 1e-6)",
     ONE(tc::rms_norm(a[0], a[1].sizes(), a[1], 1e-6))},
    {"batch_norm", "F.batch_norm($0, None, None, $1, $2, True)", batch_norm},
    {"group_norm", "F.group_norm($0, $i0, $1, $2)", group_norm},
    {"normalize", "F.normalize($0, dim=$i0)", normalize},
    {"cross_entropy", "F.cross_entropy($0, $1)", ONE(tc::cross_entropy(a[0], a[1]))},
    {"mse_loss", "F.mse_loss($0, $1)", ONE(tc::mse_loss(a[0], a[1]))},
    {"bce_with_logits", "F.binary_cross_entropy_with_logits($0, $1)", bce_with_logits},
    {"smooth_l1", "F.smooth_l1_loss($0, $1)", smooth_l1},
    {"max_pool2d", "F.max_pool2d($0, $i0, $i1, $i2)",
     ONE(tc::max_pool2d(a[0], a.i(0), a.i(1), a.i(2)))},
    {"avg_pool2d", "F.avg_pool2d($0, $i0, $i1, $i2)",
     ONE(tc::avg_pool2d(a[0], a.i(0), a.i(1), a.i(2)))},
    {"linear", "F.linear($0, $1)", ONE(tc::linear(a[0], a[1]))},
    {"linear_bias", "F.linear($0, $1, $2)", ONE(tc::linear(a[0], a[1], a[2]))},
    {"matmul", "$0 @ $1", ONE(tc::matmul(a[0], a[1]))},
    // views and shapes
    {"reshape", "$0.reshape($i)",
     ONE(a[0].reshape(tc::SizeList(a.list().begin(), a.list().end())))},
    {"permute", "$0.permute($i)", ONE(a[0].permute(a.list()))},
    {"transpose", "$0.transpose($i0, $i1)", ONE(a[0].transpose(a.i(0), a.i(1)))},
    {"contiguous", "$0.clone(memory_format=torch.contiguous_format)", ONE(a[0].contiguous())},
    {"unsqueeze", "$0.unsqueeze($i0)", ONE(a[0].unsqueeze(a.i(0)))},
    {"squeeze", "$0.squeeze($i0)", ONE(a[0].squeeze(a.i(0)))},
    {"narrow", "$0.narrow($i0, $i1, $i2)", ONE(a[0].narrow(a.i(0), a.i(1), a.i(2)))},
    {"flip", "$0.flip($i)", ONE(a[0].flip(a.list()))},
    {"roll", "torch.roll($0, $i0, $i1)", ONE(tc::roll(a[0], a.i(0), a.i(1)))},
    {"unfold", "$0.unfold($i0, $i1, $i2)", ONE(a[0].unfold(a.i(0), a.i(1), a.i(2)))},
    {"pad", "F.pad($0, $i)", ONE(tc::pad(a[0], a.list()))},
    {"cat", "torch.cat(($*), $i0)", ONE(tc::cat(a.x, a.i(0)))},
    {"stack", "torch.stack(($*), $i0)", ONE(tc::stack(a.x, a.i(0)))},
    {"arange", "torch.arange($i0, device=$0.device)", ONE(tc::arange(a.i(0)))},
    // indices
    {"embedding", "F.embedding($1, $0)", ONE(tc::embedding(a[1], a[0]))},
    {"gather", "torch.gather($0, $i0, $1)", ONE(tc::gather(a[0], a.i(0), a[1]))},
    {"scatter_add", "torch.zeros($i0, dtype=$0.dtype, device=$0.device).scatter_add(0, $1, $0)",
     ONE(tc::scatter_add(tc::zeros({a.i(0)}, a[0].dtype()), 0, a[1], a[0]))},
};

const ManyWord kManyWords[] = {
    {"topk", "torch.topk($0, $i0, $i1)", MANY(both(tc::topk(a[0], a.i(0), a.i(1))))},
    {"max_along", "torch.max($0, $i0)", MANY((Tensors{a[0].max(a.i(0)), a[0].argmax(a.i(0))}))},
    {"sort", "torch.sort($0, $i0)", MANY(both(tc::sort(a[0], a.i(0))))},
    {"cummax", "torch.cummax($0, $i0)", MANY(both(tc::cummax(a[0], a.i(0))))},
    {"adamw", "adamw($*)", adamw},
    {"sgd", "sgd($*)", sgd},
    {"lion", "lion($*)", lion},
    {"average", "average($*)", average},
    {"clip", "clip($*)", clip},
};

template <typename Table>
auto find(const Table& table, const std::string& name) {
  const auto* at = std::find_if(std::begin(table), std::end(table),
                                [&](const auto& word) { return name == word.name; });
  return at == std::end(table) ? nullptr : at;
}

Tensors run(const Call& call, Tensors operands) {
  const Args args{call, std::move(operands)};
  if (const Word* word = find(kWords, call.word)) return {word->run(args)};
  const ManyWord* word = find(kManyWords, call.word);
  if (!word) tc::fail("no word '", call.word, "' in speed_words.cpp");
  return word->run(args);
}

Tensors run_all(const Draw& draw, const Tensors& x) {
  Tensors values;
  auto at = [&](Value v) { return v < 0 ? x.at(-1 - v) : values.at(v); };
  for (const Call& call : draw.calls) {
    Tensors operands;
    for (Value v : call.operands) operands.push_back(at(v));
    for (Tensor& made : run(call, std::move(operands))) values.push_back(std::move(made));
  }
  Tensors outputs;
  for (Value v : draw.outputs) outputs.push_back(at(v));
  return outputs;
}

// Python --------------------------------------------------------------------------------------

std::string name_of(Value v) { return v < 0 ? tc::str("x", -1 - v) : tc::str("v", v); }

std::string number_text(double value) {
  char text[40];
  const std::string digits(text, std::to_chars(text, text + sizeof text, value).ptr);
  return value < 0 ? "(" + digits + ")" : digits;
}

std::string tuple(const Sizes& values) {
  if (values.size() == 1) return tc::str("(", values[0], ",)");
  return tc::str("(", tc::join(values, ", "), ")");
}

std::string all_names(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (Value v : values) names.push_back(name_of(v));
  return tc::join(names, ", ");
}

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "torch.float32";
    case DType::f16: return "torch.float16";
    case DType::bf16: return "torch.bfloat16";
    case DType::i8: return "torch.int8";
    case DType::u8: return "torch.uint8";
    case DType::i32: return "torch.int32";
    case DType::i64: return "torch.int64";
    default: return "torch.bool";
  }
}

// What stands for the $.. at `at`, and how many characters that is.
std::pair<std::string, size_t> filled_in(const Call& call, const std::string& text, size_t at) {
  const char kind = text[at + 1];
  const auto digit = [&](size_t where) { return static_cast<size_t>(text.at(where) - '0'); };
  const bool numbered = at + 2 < text.size() && std::isdigit(text[at + 2]);
  if (kind == '*') return {all_names(call.operands), 2};
  if (kind == 'd') return {torch_name(call.dtype), 2};
  if (kind == 'r') return {number_text(call.numbers.at(digit(at + 2))), 3};
  if (kind == 'i' && numbered) return {tc::str(call.integers.at(digit(at + 2))), 3};
  if (kind == 'i') return {tuple(call.integers), 2};
  return {name_of(call.operands.at(digit(at + 1))), 2};
}

std::string python_of(const Call& call) {
  const Word* word = find(kWords, call.word);
  const std::string text = word ? word->python : find(kManyWords, call.word)->python;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    const auto [part, length] = filled_in(call, text, at);
    out += part;
    at += length;
  }
  return out;
}

std::vector<Value> inputs_of(const Draw& draw, size_t count) {
  std::vector<Value> values;
  for (size_t k = 0; k < std::min(count, draw.inputs.size()); k++)
    values.push_back(-1 - static_cast<Value>(k));
  return values;
}

std::string call_text(const Draw& draw, const std::string& inputs) {
  const std::string all = all_names(inputs_of(draw, draw.inputs.size()));
  std::string text = tc::str("def call(f, ", all, "):\n");
  if (draw.leaves.empty()) return tc::str(text, "    return f(", inputs, ")\n");
  std::vector<Value> leaves;
  for (int k : draw.leaves) {
    leaves.push_back(-1 - k);
    text += tc::str("    x", k, " = x", k, ".detach().requires_grad_()\n");
  }
  text += tc::str("    y = f(", inputs, ")\n    return (y.detach(), *torch.autograd.grad(y, (",
                  all_names(leaves), ",)");
  return text + (draw.cotangent < 0 ? "" : tc::str(", x", draw.cotangent)) + "))\n";
}

}  // namespace

Tensors evaluate(const Draw& draw, const Tensors& x) {
  if (draw.leaves.empty()) return run_all(draw, x);
  Tensors leaves;
  for (int k : draw.leaves) leaves.push_back(x.at(k));
  const auto function = [draw, x](const Tensors& varied) {
    Tensors inputs = x;
    for (size_t k = 0; k < varied.size(); k++) inputs[draw.leaves[k]] = varied[k];
    return run_all(draw, inputs).at(0);
  };
  auto [y, gradients] = [&] {
    if (draw.cotangent < 0) return tc::value_and_grad(function)(leaves);
    auto [value, pull] = tc::vjp(function)(leaves);
    return std::pair(value, std::get<0>(pull(x.at(draw.cotangent))));
  }();
  Tensors made = {y};
  made.insert(made.end(), gradients.begin(), gradients.end());
  return made;
}

std::string python(const Draw& draw) {
  const size_t given = draw.cotangent < 0 ? draw.inputs.size() : draw.inputs.size() - 1;
  const std::string inputs = all_names(inputs_of(draw, given));
  std::string text = tc::str("def f(", inputs, "):\n");
  Value next = 0;
  for (const Call& call : draw.calls) {
    std::vector<Value> made;
    for (int k = 0; k < call.results; k++) made.push_back(next++);
    text += tc::str("    ", all_names(made), " = ", python_of(call), "\n");
  }
  text += tc::str("    return ", all_names(draw.outputs), "\n\n");
  return text + call_text(draw, inputs);
}

std::vector<std::string> all_words() {
  std::vector<std::string> names;
  for (const Word& word : kWords) names.push_back(word.name);
  for (const ManyWord& word : kManyWords) names.push_back(word.name);
  return names;
}

}  // namespace bench
