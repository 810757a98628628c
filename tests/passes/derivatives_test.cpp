// Every op's derivative beside central differences in f64, and the derivative's own.
#include "tiny_compile/passes/derivatives.h"

#include <functional>
#include <set>

#include "tests/catch.h"
#include "tiny_compile/compile/grad.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/sorts.h"
#include "tiny_compile/trace/tracer.h"
#include "tiny_compile/trace/windows.h"

using namespace tiny_compile;

namespace {

using In = std::span<const Tensor>;
using Out = std::vector<Tensor>;

struct Case {
  std::string name;
  TensorFunction function;
  std::vector<Tensor> inputs;  // f64: differentiated; others are not
  bool second = true;          // whether its derivative is differentiated too
};

// Numbers without ties or zeros, in (low, high).
Tensor values(const Sizes& shape, double low, double high, uint64_t seed = 1) {
  manual_seed(seed);
  return rand(shape, DType::f64) * (high - low) + low;
}

std::vector<int> floats_of(const std::vector<Tensor>& inputs) {
  std::vector<int> result;
  for (size_t k = 0; k < inputs.size(); k++)
    if (inputs[k].dtype() == DType::f64) result.push_back(static_cast<int>(k));
  return result;
}

double dot(const Tensor& a, const Tensor& b) {
  return a.numel() == 0 ? 0.0 : (a * b).sum().item<double>();
}

std::vector<Tensor> weights_for(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> result;
  for (const Tensor& output : outputs)
    if (output.dtype() == DType::f64)
      result.push_back(values(output.shape(), 0.5, 1.5, 7 + result.size()));
  return result;
}

// The derivative of sum(weights * outputs) with respect to inputs[k] in the direction `to`.
double difference(const Graph& graph, std::vector<Tensor> inputs, size_t k, const Tensor& to,
                  const std::vector<Tensor>& weights) {
  const double step = 1e-5;
  const Tensor middle = inputs[k];
  double result = 0;
  for (const double sign : {1.0, -1.0}) {
    inputs[k] = middle + to * (sign * step);
    size_t next = 0;
    for (const Tensor& output : interpret(graph, inputs))
      if (output.dtype() == DType::f64) result += sign * dot(output, weights[next++]);
  }
  return result / (2 * step);
}

// vjp(graph) against differences, in a random direction of each input; returns it.
Graph check(const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<int> wrt = floats_of(inputs);
  const Graph both = vjp(graph, wrt);
  verify(both);
  REQUIRE(parse_graph(print(both)) == both);
  const std::vector<Tensor> outputs = interpret(graph, inputs), weights = weights_for(outputs);
  std::vector<Tensor> given = inputs;
  given.insert(given.end(), weights.begin(), weights.end());
  const std::vector<Tensor> made = interpret(both, given);
  for (size_t k = 0; k < outputs.size(); k++) REQUIRE(same_bits(made[k], outputs[k]));
  for (size_t k = 0; k < wrt.size(); k++) {
    const size_t input = static_cast<size_t>(wrt[k]);
    const Tensor& gradient = made[outputs.size() + k];
    REQUIRE(gradient.shape() == inputs[input].shape());
    const Tensor direction = values(inputs[input].shape(), -1, 1, 99 + k);
    const double want = difference(graph, inputs, input, direction, weights);
    INFO("input " << input << "\n" << print(both));
    REQUIRE(dot(gradient, direction) == Catch::Approx(want).epsilon(2e-7).margin(2e-7));
  }
  return both;
}

// The derivative of the backward part, its cotangents among its inputs.
void check_second(const Graph& graph, const std::vector<Tensor>& inputs) {
  Graph backward = vjp(graph, floats_of(inputs));
  backward.outputs.erase(backward.outputs.begin(),
                         backward.outputs.begin() + static_cast<long>(graph.outputs.size()));
  std::vector<Tensor> given = inputs;
  for (const Tensor& weight : weights_for(interpret(graph, inputs))) given.push_back(weight);
  check(dce(backward), given);
}

Case unary(const std::string& name, Tensor (*f)(const Operand&), double low = -2,
           double high = 2) {
  return {name, [=](In in) { return Out{f(in[0])}; }, {values({3, 4}, low, high)}};
}

Case binary(const std::string& name, const std::function<Tensor(Tensor, Tensor)>& f,
            double low = 0.5, double high = 2) {
  return {name,
          [=](In in) { return Out{f(in[0], in[1])}; },
          {values({3, 4}, low, high), values({3, 4}, low, high, 2)}};
}

Case of(const std::string& name, const std::function<Tensor(Tensor)>& f,
        const Sizes& shape = {3, 4}, double low = -2, double high = 2) {
  return {name, [=](In in) { return Out{f(in[0])}; }, {values(shape, low, high)}};
}

std::vector<Case> pointwise_cases() {
  return {
      binary("add", [](Tensor a, Tensor b) { return a + b; }),
      binary("sub", [](Tensor a, Tensor b) { return a - b; }),
      binary("mul", [](Tensor a, Tensor b) { return a * b; }),
      binary("div", [](Tensor a, Tensor b) { return a / b; }),
      binary(
          "remainder", [](Tensor a, Tensor b) { return a % b; }, 0.5, 0.9),
      binary("pow", [](Tensor a, Tensor b) { return pow(a, b); }),
      of("pow 3", [](Tensor a) { return pow(a, 3.0); }),
      binary("minimum", [](Tensor a, Tensor b) { return minimum(a, b); }),
      binary("maximum", [](Tensor a, Tensor b) { return maximum(a, b); }),
      binary(
          "logaddexp", [](Tensor a, Tensor b) { return logaddexp(a, b); }, -2, 2),
      binary(
          "atan2", [](Tensor a, Tensor b) { return atan2(a, b); }, -2, 2),
      binary("fma", [](Tensor a, Tensor b) { return fma(a, b, a * 0.5); }),
      binary("where", [](Tensor a, Tensor b) { return where(a > 1.0, a * b, b); }),
      of("neg", [](Tensor a) { return -a; }),
      unary("abs", abs),
      unary("exp", exp),
      unary("expm1", expm1),
      unary("log", log, 0.5, 3),
      unary("log1p", log1p, -0.5, 3),
      unary("exp2", exp2),
      unary("log2", log2, 0.5, 3),
      unary("log10", log10, 0.5, 3),
      unary("sin", sin),
      unary("cos", cos),
      unary("tan", tan, -1, 1),
      unary("asin", asin, -0.8, 0.8),
      unary("acos", acos, -0.8, 0.8),
      unary("atan", atan),
      unary("tanh", tanh),
      unary("sigmoid", sigmoid),
      unary("erf", erf),
      unary("erfinv", erfinv, -0.8, 0.8),
      unary("lgamma", lgamma, 0.5, 4),
      unary("digamma", digamma, 0.5, 4),
      of(
          "polygamma", [](Tensor a) { return polygamma(2, a); }, {3}, 0.5, 4),
      of("gelu", [](Tensor a) { return gelu(a); }),
      unary("silu", silu),
      unary("softplus", softplus),
      unary("sqrt", sqrt, 0.5, 3),
      unary("rsqrt", rsqrt, 0.5, 3),
      unary("reciprocal", reciprocal, 0.5, 3),
      of("flat",
         [](Tensor a) {
           return floor(a) + ceil(a) + round(a) + trunc(a) + sign(a) + floor_divide(a, 0.7) + a;
         }),
  };
}

std::vector<Case> shape_cases() {
  return {
      of("reshape",
         [](Tensor a) {
           return a.reshape({2, 6}) * 2.0;
         }),
      of("permute",
         [](Tensor a) {
           return a.permute({2, 0, 1});
         },
         {2, 3, 4}),
      of("expand",
         [](Tensor a) {
           return a.reshape({3, 1, 4}).expand({2, 3, 5, 4});
         }),
      of("slice", [](Tensor a) { return a.slice(1, 2, 6); }, {3, 7}),
      of("slice by 3", [](Tensor a) { return a.slice(0, 1, 8, 3); }, {8, 2}),
      of("flip",
         [](Tensor a) {
           return a.flip({0, 1}) * a;
         }),
      of("window", [](Tensor a) { return a.unfold(0, 3, 1); }, {7, 2}),
      of("window by 2", [](Tensor a) { return a.unfold(1, 5, 2); }, {2, 12, 3}),
      of("window apart", [](Tensor a) { return a.unfold(0, 2, 3); }, {9}),
      of("window in a row", [](Tensor a) { return a.unfold(0, 3, 3); }, {9}),
      of("concat",
         [](Tensor a) {
           return concat({a, a * a, a.slice(0, 1)}, 0);
         }),
      of("pad",
         [](Tensor a) {
           return pad(a, {1, -2, 0, 3}, 5);
         }),
      binary(
          "matmul", [](Tensor a, Tensor b) { return matmul(a, b.t()); }, -1, 1),
      of("matmul in batches", [](Tensor a) { return matmul(a, a.transpose(1, 2)); }, {2, 3, 4}),
  };
}

std::vector<Case> reduction_cases() {
  return {
      of("sum", [](Tensor a) { return a.sum(1); }),
      of("sum of all", [](Tensor a) { return a.sum(); }),
      of("prod",
         [](Tensor a) {
           return a.prod({0, 2});
         },
         {2, 3, 2}),
      of("max", [](Tensor a) { return a.max(0); }),
      of("min",
         [](Tensor a) {
           return a.min({0, 1}, true);
         }),
      of("sum_exp", [](Tensor a) { return sum_exp(a, 1); }),
      of("cumsum", [](Tensor a) { return cumsum(a, 1); }),
      of("cumprod", [](Tensor a) { return cumprod(a, 0); }, {5, 2}),
      of("logcumsumexp", [](Tensor a) { return logcumsumexp(a, 1); }),
      of("cummax", [](Tensor a) { return cummax(a, 1).first; }),
      of("sort", [](Tensor a) { return sort(a, 1, true).first; }),
      of("topk", [](Tensor a) { return topk(a, 2, 0).first; }),
  };
}

std::vector<Case> indexed_cases() {
  const Tensor places = from_vector<int64_t>({4, 0, 4, 1, 1, 1}, {3, 2});
  const auto scattered = [&](const std::string& name, const std::string& reduce) {
    return Case{name,
                [=](In in) {
                  return Out{reduce.empty() ? scatter(in[0], 0, in[2], in[1])
                                            : scatter_reduce(in[0], 0, in[2], in[1], reduce)};
                },
                {values({5, 2}, 0.5, 2), values({3, 2}, 0.5, 2, 3), places}};
  };
  return {
      {"gather",
       [](In in) { return Out{gather(in[0], 0, in[1])}; },
       {values({5, 2}, -1, 1), places}},
      {"gather of one place a row",
       [](In in) { return Out{gather(in[0], 1, in[1])}; },
       {values({3, 5}, -1, 1), from_vector<int64_t>({4, 0, 2}, {3, 1})}},
      {"embedding",
       [](In in) { return Out{embedding(in[1], in[0])}; },
       {values({5, 2}, -1, 1), places}},
      scattered("scatter", ""),
      scattered("scatter_add", "sum"),
      scattered("scatter_prod", "prod"),
      scattered("scatter_max", "amax"),
      scattered("scatter_min", "amin"),
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& list :
       {pointwise_cases(), shape_cases(), reduction_cases(), indexed_cases()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

TEST_CASE("every op's derivative is that of central differences", "[derivatives]") {
  for (const Case& c : all_cases()) {
    INFO(c.name);
    const Graph graph = trace(c.function, c.inputs, "f").graph;
    check(graph, c.inputs);
    if (c.second) check_second(graph, c.inputs);
  }
}

TEST_CASE("no op that makes floats of floats is without a case", "[derivatives]") {
  std::set<Op> seen = {Op::cast};  // below
  for (const Case& c : all_cases())
    for (const Node& node : trace(c.function, c.inputs, "f").graph.nodes) seen.insert(node.op);
  const std::set<Op> others = {
      Op::iota,    Op::philox, Op::argmax,     Op::argmin,  Op::any,
      Op::all,     Op::cummax, Op::cummin,     Op::argsort, Op::argsort_descending,
      Op::bitcast, Op::call,   Op::custom_vjp, Op::item,    Op::checkpoint};
  for (int k = 0; k <= static_cast<int>(Op::item); k++) {
    const Op op = static_cast<Op>(k);
    const OpInfo& row = info(op);
    const bool has_floats = row.domain != Domain::Bits && row.domain != Domain::Integer &&
                            row.result != Result::Bool;
    INFO(row.name);
    if (has_floats && !others.count(op)) CHECK(seen.count(op));
  }
}

TEST_CASE("a cast's cotangent is cast back", "[derivatives]") {
  const Tensor x = values({3}, -1, 1), d = ones({3}, DType::f32);
  const Graph graph = trace([](In in) { return Out{in[0].to(DType::f32)}; }, {{x}}, "f").graph;
  const Tensor gradient = interpret(vjp(graph, {0}), {{x, d}})[1];
  REQUIRE(same_bits(gradient, ones({3}, DType::f64)));
}

namespace {

// Composites, as a gradient sees them: traced to be differentiated.
Graph differentiated(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  const Differentiated inside(true);
  return trace(function, inputs, "f").graph;
}

std::vector<Case> composite_cases() {
  const Tensor classes = from_vector<int64_t>({2, 0, -100, 3});
  const auto losses = [](Reduction reduction) {
    return [=](In in) { return Out{cross_entropy(in[0], in[1], reduction)}; };
  };
  return {
      of("relu", [](Tensor a) { return relu(a) * a; }),
      of("leaky_relu", [](Tensor a) { return leaky_relu(a) * a; }),
      of("clamp", [](Tensor a) { return clamp(a, -0.5, 1.0) * a; }),
      of("gelu tanh", [](Tensor a) { return gelu(a, "tanh"); }),
      of("mean", [](Tensor a) { return a.mean(1); }),
      of("var", [](Tensor a) { return a.var(1); }),
      of("var of all", [](Tensor a) { return a.var(); }, {2, 3, 4}),
      of("std", [](Tensor a) { return a.std(0); }),
      of("norm", [](Tensor a) { return norm(a, 2, 1); }),
      of("norm 3", [](Tensor a) { return norm(a, 3, 1); }),
      of("norm 1", [](Tensor a) { return norm(a, 1); }),
      of("logsumexp", [](Tensor a) { return logsumexp(a, 1); }),
      of("softmax", [](Tensor a) { return softmax(a, 0); }),
      of("log_softmax", [](Tensor a) { return log_softmax(a, 1); }),
      of("layer_norm", [](Tensor a) { return layer_norm(a, {4}); }),
      of("rms_norm", [](Tensor a) { return rms_norm(a, {4}); }),
      binary("mse_loss", [](Tensor a, Tensor b) { return mse_loss(a, b); }),
      {"cross_entropy", losses(Reduction::Mean), {values({4, 5}, -2, 2), classes}},
      {"cross_entropy of rows", losses(Reduction::None), {values({4, 5}, -2, 2), classes}},
      {"nll_loss",
       [](In in) { return Out{nll_loss(in[0], in[1])}; },
       {values({4, 5}, -2, 2), classes}},
      binary(
          "attention",
          [](Tensor a, Tensor b) { return scaled_dot_product_attention(a, b, b, {}, true); }),
      {"conv2d",
       [](In in) { return Out{conv2d(in[0], in[1], {}, 2, 1)}; },
       {values({1, 2, 5, 4}, -1, 1), values({3, 2, 3, 3}, -1, 1, 5)}},
      of("max_pool2d", [](Tensor a) { return max_pool2d(a, 3, 2, 1); }, {1, 2, 5, 6}),
      of("max_pool2d, no square",
         [](Tensor a) {
           return max_pool2d(a, {4, 2}, {3, 1}, {2, 1});
         },
         {1, 2, 7, 6}),
      of("avg_pool2d", [](Tensor a) { return avg_pool2d(a, 2); }, {1, 2, 5, 6}),
      {"batch_norm",
       [](In in) { return Out{batch_norm(in[0], in[1], in[2])}; },
       {values({4, 3}, -2, 2), values({3}, -1, 1, 5), values({3}, 0.5, 2, 6)}},
      of("slices side by side",
         [](Tensor a) {
           return slice(a, 1, 3, 4) * slice(a, 1, 0, 1) + exp(slice(a, 1, 1, 2));
         },
         {3, 5}),
      of("slices that overlap, of two axes",
         [](Tensor a) {
           const Tensor rows = slice(a, 0, 0, 3) * slice(a, 0, 1, 4);
           const Tensor columns = slice(a, 1, 0, 2) * slice(a, 1, 2, 4);
           return rows.sum() * columns.sum() + slice(a, 0, 2, 4).sum();
         },
         {4, 4}),
      of("roll, tril", [](Tensor a) { return roll(a, 1, 1) + tril(a * a); }),
  };
}

std::vector<double> gradient_of(const std::function<Tensor(Tensor)>& f,
                                const std::vector<double>& x) {
  return grad([&](const Tensor& a) { return f(a).sum(); })(from_vector<double>(x))
      .to_vector<double>();
}

}  // namespace

TEST_CASE("every composite's derivative is that of central differences", "[derivatives]") {
  for (const Case& c : composite_cases()) {
    INFO(c.name);
    for (const Graph& graph :
         {trace(c.function, c.inputs, "f").graph, differentiated(c.function, c.inputs)}) {
      check(graph, c.inputs);
      check_second(graph, c.inputs);
    }
  }
}

TEST_CASE("gradients of a recurrence's steps are put side by side", "[derivatives]") {
  const auto recurrence = [](In in) {
    Tensor h = slice(in[0], 1, 0, 1);
    for (int64_t t = 1; t < 6; t++) h = tanh(h) * slice(in[0], 1, t, t + 1);
    return Out{h};
  };
  const Out inputs = {values({3, 7}, -1, 1)};
  const Graph graph = vjp(trace(recurrence, inputs, "f").graph, {0});
  const auto count = [&](Op op) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [&](const Node& node) { return node.op == op; });
  };
  CHECK(count(Op::concat) == 1);
  CHECK(count(Op::pad) == 1);  // step 6, which nobody reads
}

TEST_CASE("thin products with one matrix have one product for its gradient", "[derivatives]") {
  const auto steps = [](In in) {  // the matrix transposed anew in each step, as a Linear does
    Tensor h = in[0];
    for (int64_t t = 0; t < 6; t++) h = tanh(matmul(h, transpose(in[1], 0, 1)));
    return Out{h};
  };
  const auto products = [&](const Out& inputs) {
    const Graph graph = vjp(trace(steps, inputs, "f").graph, {1});
    return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                         [](const Node& node) { return node.op == Op::matmul; });
  };
  const Out thin = {values({2, 9}, -1, 1), values({9, 9}, -1, 1, 5)};
  CHECK(products(thin) == 6 + 5 + 1);
  const Out thick = {values({90, 2}, -1, 1), values({2, 2}, -1, 1, 5)};
  CHECK(products(thick) == 6 + 5 + 6);  // side by side they would be longer than their sums
  for (const Out& inputs : {thin, thick}) check(trace(steps, inputs, "f").graph, inputs);
}

TEST_CASE("at ties and zeros derivatives are PyTorch's", "[derivatives]") {
  using V = std::vector<double>;
  const V zero = {0}, same = {3, 3, 1};
  CHECK(gradient_of([](Tensor a) { return relu(a); }, zero) == V{0});
  CHECK(gradient_of([](Tensor a) { return abs(a); }, zero) == V{0});
  CHECK(gradient_of([](Tensor a) { return softplus(a); }, zero) == V{0.5});
  CHECK(gradient_of([](Tensor a) { return leaky_relu(a, 0.25); }, zero) == V{0.25});
  CHECK(gradient_of([](Tensor a) { return clamp(a, 0.0, 1.0); }, {0, 1, 2}) == V{1, 1, 0});
  CHECK(gradient_of([](Tensor a) { return maximum(a, a * 0.0); }, zero) == V{0.5});
  CHECK(gradient_of([](Tensor a) { return norm(a); }, {0, 0}) == V{0, 0});
  CHECK(gradient_of([](Tensor a) { return a.std(); }, {2, 2}) == V{0, 0});
  CHECK(gradient_of([](Tensor a) { return a.max(); }, same) == V{0.5, 0.5, 0});
  CHECK(gradient_of([](Tensor a) { return a.prod(); }, {2, 0, 3}) == V{0, 6, 0});
  CHECK(gradient_of([](Tensor a) { return a.prod(); }, {0, 0, 3}) == V{0, 0, 0});
  CHECK(gradient_of([](Tensor a) { return cumprod(a, 0); }, {2, 0, 3}) == V{1, 8, 0});
  CHECK(gradient_of([](Tensor a) { return pow(a, 2.0); }, zero) == V{0});
  CHECK(gradient_of([](Tensor a) { return pow(a, 0.0); }, zero) == V{0});
  CHECK(gradient_of([](Tensor a) { return sqrt(a); }, zero) == V{HUGE_VAL});
  CHECK(gradient_of([](Tensor a) { return softmax(a, 0)[0]; }, {0, -HUGE_VAL}) == V{0, 0});
  CHECK(gradient_of([](Tensor a) { return logsumexp(a, 0); }, {0, -HUGE_VAL}) == V{1, 0});
  const auto pooled = [](Tensor a) { return max_pool2d(a.reshape({1, 1, 1, 3}), {1, 3}); };
  CHECK(gradient_of(pooled, same) == V{1, 0, 0});
  CHECK(std::isnan(gradient_of([](Tensor a) { return relu(a); }, {NAN})[0]) == false);
  CHECK(gradient_of([](Tensor a) { return atan2(a, a * 0.0) + atan2(a * 0.0, a); }, zero) ==
        V{0});
}

// Found by PyTorch 2.11's autograd on the same points. Where we part from it: a NaN stays NaN in
// the derivative of abs (0 there); a product's is the product of the others (NaN there where the
// result is infinite); the first of equals is topk's.
TEST_CASE("at infinities and NaN derivatives are PyTorch's", "[derivatives]") {
  using V = std::vector<double>;
  constexpr double kInf = HUGE_VAL, kNaN = NAN;
  const auto is = [](const V& got, const V& want) {
    INFO(str("got ", join(got, " "), ", want ", join(want, " ")));
    REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < got.size(); k++)
      CHECK((std::isnan(want[k]) ? std::isnan(got[k]) : got[k] == want[k]));
  };
  const V points = {-kInf, -1, 0, kInf, kNaN};
  is(gradient_of([](Tensor a) { return exp(a); }, {-kInf, kInf, kNaN}), {0, kInf, kNaN});
  is(gradient_of([](Tensor a) { return log(a); }, points), {-0.0, -1, kInf, 0, kNaN});
  is(gradient_of([](Tensor a) { return sqrt(a); }, points), {kNaN, kNaN, kInf, 0, kNaN});
  is(gradient_of([](Tensor a) { return rsqrt(a); }, points), {kNaN, kNaN, -kInf, 0, kNaN});
  is(gradient_of([](Tensor a) { return relu(a); }, points), {0, 0, 0, 1, 1});
  is(gradient_of([](Tensor a) { return clamp(a, -1.0, 1.0); }, points), {0, 1, 1, 0, 0});
  is(gradient_of([](Tensor a) { return sigmoid(a); }, {-kInf, kInf, kNaN}), {0, 0, kNaN});
  is(gradient_of([](Tensor a) { return tanh(a); }, {-kInf, kInf, kNaN}), {0, 0, kNaN});
  is(gradient_of([](Tensor a) { return where(a > 0.0, sqrt(a), 0.0); }, {-1, 0, 4}),
     {kNaN, kNaN, 0.25});
  is(gradient_of([](Tensor a) { return a.max(); }, {1, kNaN, 2}), {kNaN, kNaN, kNaN});
  is(gradient_of([](Tensor a) { return a.max(); }, {kInf, kInf, 2}), {0.5, 0.5, 0});
  is(gradient_of([](Tensor a) { return a.min(); }, {kInf, kInf, kInf}),
     {1 / 3., 1 / 3., 1 / 3.});
  is(gradient_of([](Tensor a) { return logsumexp(a, 0); }, {-kInf, -kInf}), {kNaN, kNaN});
  is(gradient_of([](Tensor a) { return softmax(a, 0)[0]; }, {-kInf, -kInf}), {kNaN, kNaN});
  is(gradient_of([](Tensor a) { return abs(a); }, {-kInf, kInf, kNaN}), {-1, 1, kNaN});
  is(gradient_of([](Tensor a) { return a.prod(); }, {kInf, 2, 3}), {6, kInf, kInf});
}
