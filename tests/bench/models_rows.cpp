// What do a model's weights look like to two programs that share no file? Their shapes are the
// model's own, their sizes a rule of the shape:
//
//   conv.weight [16, 3, 3, 3]   =>   within +-1/3: the scores keep the size of what goes in
//   norm.weight [16]            =>   1 +- 0.1
//   norm.bias [16]              =>   +-0.1
#include "tests/bench/models_rows.h"

#include <cmath>

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Tensor;
using Tensors = std::vector<Tensor>;

const char* const kForward = "/forward";
const char* const kGradients = "/gradients";

Input weight_input(const std::string& name, const tc::Sizes& shape, uint32_t seed) {
  Input input = dense_input(DType::f32, shape, seed);
  if (shape.size() > 1) {
    const double fan = static_cast<double>(tc::element_count(shape) / shape[0]);
    input.scale = static_cast<float>(std::sqrt(3 / fan));
    return input;
  }
  input.scale = 0.1f;
  input.shift = name.ends_with("weight") ? 1 : 0;
  return input;
}

double bytes_of(const Input& input) {
  return static_cast<double>(input.count) * static_cast<double>(tc::size_of(input.dtype));
}

Tensor loss_of(const Tensor& scores, const Tensor& target) {
  if (tc::is_float(target.dtype())) return tc::mse_loss(scores, target);
  return tc::cross_entropy(tc::flatten(scores, 0, -2), tc::flatten(target));
}

// inputs: weights, x and, of gradients, the target.
Tensors evaluate(const Network& network, bool gradients, const Tensors& inputs) {
  const size_t count = network.weights.size();
  const Tensors weights(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count));
  if (!gradients) return {network.scores(weights, inputs[count])};
  const auto loss = [&](const Tensors& w, const Tensor& x, const Tensor& target) {
    return loss_of(network.scores(w, x), target);
  };
  const auto [value, slopes] =
      tc::value_and_grad(loss)(weights, inputs[count], inputs[count + 1]);
  Tensors results = {value};
  results.insert(results.end(), slopes.begin(), slopes.end());
  return results;
}

Ready bound_to(const Network& network, bool gradients, tc::CompileOptions options,
               const std::string& name, const Tensors& x) {
  options.name = name;
  const auto f = tc::compile(
      [=](const Tensors& inputs) { return evaluate(network, gradients, inputs); }, options);
  Ready ready;
  ready.call = [=] { f(x); };
  ready.results = [=] { return f(x); };
  ready.graph = [=] { return f.specialization(x).traced.graph; };
  return ready;
}

std::vector<std::pair<std::string, NetworkMaker>> networks() {
  auto all = image_networks();
  for (const auto& one : sequence_networks()) all.push_back(one);
  return all;
}

GpuRow row_of(const std::string& name, const Network& network, bool gradients) {
  GpuRow row;
  row.name = name + (gradients ? kGradients : kForward);
  row.family = name;
  row.what = network.what;
  uint32_t seed = 1;
  for (const auto& [weight, shape] : network.weights)
    row.inputs.push_back(weight_input(weight, shape, seed++));
  row.inputs.push_back(network.x);
  if (gradients) row.inputs.push_back(network.target);
  for (const Input& input : row.inputs) row.bytes += bytes_of(input);
  row.prepare = [=](const tc::CompileOptions& options, const Tensors& x) {
    return bound_to(network, gradients, options, name, x);
  };
  return row;
}

}  // namespace

Input floats(tc::Sizes shape) { return dense_input(DType::f32, std::move(shape), 1001); }

Input classes(tc::Sizes shape, int64_t count) {
  Input input = dense_input(DType::i64, std::move(shape), 1002);
  input.classes = count;
  return input;
}

std::vector<std::string> model_row_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : networks()) {
    names.push_back(name + kForward);
    names.push_back(name + kGradients);
  }
  return names;
}

GpuRow make_model_row(const std::string& name, bool small) {
  for (const auto& [own, make] : networks()) {
    if (name == own + kForward) return row_of(own, make(small), false);
    if (name == own + kGradients) return row_of(own, make(small), true);
  }
  tc::fail("no model '", name, "': build/models --list");
}

}  // namespace bench
