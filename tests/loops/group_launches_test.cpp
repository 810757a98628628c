// Many small kernels in one launch: which come together, which do not, and why.
#include "tiny_compile/loops/group_launches.h"

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/counted.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/nn/optimiser.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

using Tensors = std::vector<Tensor>;

Tensor shaped(const Sizes& shape) { return empty_tensor(DType::f32, shape); }

// The parameters of GPT-2.
Tensors gpt2_parameters() {
  constexpr int64_t wide = 768;
  Tensors all = {shaped({50257, 768}), shaped({1024, 768})};
  for (int layer = 0; layer < 12; layer++) {
    for (const Sizes& shape : std::initializer_list<Sizes>{{wide},
                                                           {wide},
                                                           {wide, 3 * wide},
                                                           {3 * wide},
                                                           {wide, wide},
                                                           {wide},
                                                           {wide},
                                                           {wide},
                                                           {wide, 4 * wide},
                                                           {4 * wide},
                                                           {4 * wide, wide},
                                                           {wide}})
      all.push_back(shaped(shape));
  }
  all.push_back(shaped({wide}));
  all.push_back(shaped({wide}));
  return all;
}

// AdamW's step over all of them: parameters, gradients, first and second moments come in.
Graph adamw_step(const Tensors& parameters) {
  Tensors inputs;
  for (int copy = 0; copy < 4; copy++)
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  inputs.push_back(full({}, 1e-3));
  inputs.push_back(full({}, 3, DType::i64));
  const size_t n = parameters.size();
  return trace(
             [n](std::span<const Tensor> x) {
               const auto part = [&](size_t k) {
                 return Tensors(x.begin() + static_cast<std::ptrdiff_t>(k * n),
                                x.begin() + static_cast<std::ptrdiff_t>((k + 1) * n));
               };
               const nn::AdamState<Tensors> state{part(2), part(3), x[4 * n + 1]};
               auto [moved, next] = nn::adamw(0.1).update(part(0), part(1), state, x[4 * n]);
               Tensors results = moved;
               for (const Tensors& more : {next.first, next.second})
                 results.insert(results.end(), more.begin(), more.end());
               return results;
             },
             inputs, "step")
      .graph;
}

Staged on_cuda(const Graph& graph) {
  return run_pipeline(default_pipeline(), graph, true, Target::Cuda);
}

size_t functions_in(const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find("__global__"); at != std::string::npos;
       at = text.find("__global__", at + 1))
    count++;
  return count;
}

}  // namespace

TEST_CASE("AdamW over GPT-2's 148 tensors is a handful of launches and functions",
          "[group_launches]") {
  const Tensors parameters = gpt2_parameters();
  REQUIRE(parameters.size() == 148);
  const Staged all = on_cuda(adamw_step(parameters));
  CHECK(all.program.kernels.size() > 100);  // neighbours of one size were fused
  CHECK(all.program.launches.size() <= 6);
  CHECK(functions_in(all.source.text) <= 6);
}

TEST_CASE("kernels of other sizes come together, of other work or in a chain do not",
          "[group_launches]") {
  const auto one_in = [](const Tensors& inputs, const auto& function) {
    return on_cuda(trace(function, inputs, "f").graph).program.launches;
  };
  const Tensors inputs = {zeros({7}), zeros({3, 70}), zeros({5000})};
  const auto scaled = [](std::span<const Tensor> x) {
    return Tensors{x[0] * 2.0, x[1] * 2.0, x[2] * 2.0};
  };
  const auto differ = [](std::span<const Tensor> x) {
    return Tensors{x[0] * 2.0, x[1] * 3.0, exp(x[2])};
  };
  const auto chain = [](std::span<const Tensor> x) {
    const Tensor a = cumsum(x[0], 0), b = cumsum(a, 0);
    return Tensors{a, b, cumsum(b, 0)};
  };
  CHECK(one_in(inputs, scaled) == std::vector<std::vector<int>>{{0, 1, 2}});
  CHECK(one_in(inputs, differ).size() == 3);
  CHECK(one_in(inputs, chain).size() == 3);
}

TEST_CASE("a launch holds as many kernels as its table has room for", "[group_launches]") {
  Tensors inputs(300, zeros({9}));
  const Staged all = on_cuda(trace(
                                 [](std::span<const Tensor> x) {
                                   Tensors results;
                                   for (const Tensor& t : x) results.push_back(t * 2.0);
                                   return results;
                                 },
                                 inputs, "f")
                                 .graph);
  size_t kernels = 0;
  for (const std::vector<int>& launch : all.program.launches) {
    CHECK(launch.size() <= static_cast<size_t>(most_in_launch(2)));
    kernels += launch.size();
  }
  CHECK(kernels == 300);
  CHECK(all.program.launches.size() == 3);
  CHECK(functions_in(all.source.text) == 1);
}

TEST_CASE("what waits for a group goes behind it, what a group waits for before",
          "[group_launches]") {
  const Program apart = parse_program(R"(program f on cuda {
  input x: f32[8]
  input z: f32[9]
  output t: f32[]
  output y: f32[9]
  temp s: f32[8]
  kernel a rows(i0: 8) {
    store s[i0] = exp(load x[i0])
    schedule pointwise
  }
  kernel b rows() {
    r0: f32 = sum(j0: 8) load s[j0]
    store t[0] = r0
    schedule rows
  }
  kernel c rows(i0: 9) {
    store y[i0] = exp(load z[i0])
    schedule pointwise
  }
  launch a
  launch b
  launch c
  return t, y
}
)");
  const Program grouped = group_launches(apart);
  verify(grouped);
  REQUIRE(grouped.launches == std::vector<std::vector<int>>{{0, 1}, {2}});
  CHECK(grouped.kernels[1].name == "c");
  CHECK(parse_program(print(grouped)) == grouped);
  const Tensors inputs = {arange(8).to(float32), arange(9).to(float32)};
  const Tensors want = interpret(apart, inputs), got = interpret(grouped, inputs);
  for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
}

TEST_CASE("a kernel with large temporaries waits for nobody, and says so", "[group_launches]") {
  const auto after_sums = [](std::span<const Tensor> x) {
    Tensors results;
    for (const Tensor& t : x) results.push_back(cumsum(cumsum(t, 0), 1));
    return results;
  };
  const Tensors inputs(3, zeros({1000, 1000}));
  const Staged all = on_cuda(trace(after_sums, inputs, "f").graph);
  const auto says = [&](const std::string& what) {
    return std::any_of(all.program.refusals.begin(), all.program.refusals.end(),
                       [&](const std::string& r) { return r.find(what) != std::string::npos; });
  };
  CHECK(all.program.launches.size() == all.program.kernels.size());
  CHECK(says("bytes of temporaries alive until the others go"));
}

TEST_CASE("programs for the CPU keep their launches", "[group_launches]") {
  const auto scaled = [](std::span<const Tensor> x) { return Tensors{x[0] * 2.0, x[1] * 2.0}; };
  const Graph graph = trace(scaled, Tensors{zeros({7}), zeros({9})}, "f").graph;
  CHECK(run_pipeline(default_pipeline(), graph, true, Target::Cpp).program.launches.size() ==
        2);
}
