// Models in files: names, structures that do not fit, and a process killed while it saves.
#include "tiny_compile/nn/files.h"

#include <random>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Block {
  static constexpr const char* names[] = {"norm", "mix", "rate"};
  nn::LayerNorm norm;
  nn::Linear mix;
  double rate = 1;
};

struct Network {
  static constexpr const char* names[] = {"blocks", "head", "scale", "pair"};
  std::vector<Block> blocks;
  nn::Sequential<nn::Linear, nn::Gelu, nn::Linear> head;
  std::optional<Tensor> scale;
  std::pair<Tensor, int> pair;
};

struct Unnamed {
  nn::Linear first;
  int steps = 0;
  nn::Embedding second;
};

struct Twins {
  static constexpr const char* names[] = {"a", "a"};
  Tensor first, second;
};

Network network() {
  return {{{nn::make_layer_norm({3}), nn::make_linear(3, 3)},
           {nn::make_layer_norm({3}), nn::make_linear(3, 3, {.bias = false})}},
          nn::make_sequential(nn::make_linear(3, 4), nn::Gelu{}, nn::make_linear(4, 2)),
          ones({}),
          {zeros({2}), 3}};
}

template <typename Model>
std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : nn::named_tensors(model)) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("a tensor's name is the path of members to it", "[nn]") {
  CHECK(names_of(network()) ==
        std::vector<std::string>{"blocks.0.norm.weight", "blocks.0.norm.bias",
                                 "blocks.0.mix.weight", "blocks.0.mix.bias",
                                 "blocks.1.norm.weight", "blocks.1.norm.bias",
                                 "blocks.1.mix.weight", "head.0.weight", "head.0.bias",
                                 "head.2.weight", "head.2.bias", "scale", "pair.0"});
  const Unnamed unnamed{nn::make_linear(1, 1), 2, nn::make_embedding(1, 1)};
  CHECK(names_of(unnamed) == std::vector<std::string>{"0.weight", "0.bias", "2.weight"});
}

TEST_CASE("a model comes back from its file", "[nn]") {
  const Scratch scratch;
  manual_seed(1);
  const Network saved = network(), other = network();
  for (const char* name : {"n.safetensors", "n.npz"}) {
    const std::string path = scratch.path(name);
    nn::save(path, saved);
    const Network loaded = nn::load(path, other);
    tree::map(
        [](const Tensor& a, const Tensor& b) {
          CHECK(same_bits(a, b));
          return a;
        },
        saved, loaded);
    CHECK(loaded.pair.second == 3);
  }
  const auto halves = nn::to(saved, DType::bf16);
  nn::save(scratch.path("h.safetensors"), halves);
  CHECK(nn::load(scratch.path("h.safetensors"), halves).scale->dtype() == DType::bf16);
}

TEST_CASE("a file of another model is refused by name", "[nn]") {
  const Scratch scratch;
  const std::string path = scratch.path("n.npz");
  const nn::Linear layer = nn::make_linear(3, 2),
                   plain = nn::make_linear(3, 2, {.bias = false});
  nn::save(path, layer);
  CHECK_THROWS_WITH(nn::load(path, plain), ContainsSubstring("also holds 'bias', f32[2]"));
  CHECK_THROWS_WITH(nn::load(path, nn::make_linear(2, 2)),
                    ContainsSubstring("'weight' is f32[2,3], the model's f32[2,2]"));
  CHECK_THROWS_WITH(nn::load(path, nn::to(layer, DType::f64)), ContainsSubstring("nn::to"));
  CHECK_THROWS_WITH(
      nn::load(path, network()),
      ContainsSubstring("lacks 'blocks.0.norm.weight'") && ContainsSubstring("bias, weight"));
  CHECK_THROWS_WITH(nn::save(path, Twins{ones({1}), ones({1})}),
                    ContainsSubstring("called 'a'"));
  nn::save(path, nn::Linear{full({1, 2}, NAN), {}});
  CHECK_THROWS_WITH(nn::load(path, nn::make_linear(2, 1, {.bias = false})),
                    ContainsSubstring("NaN in 'weight' at [0,0]"));
}

TEST_CASE("kill -9 while a model is saved leaves a whole one", "[nn]") {
  const Scratch scratch;
  std::mt19937_64 random(3);
  const nn::Linear versions[] = {{full({100, 300}, 1), full({100}, 1)},
                                 {full({100, 300}, 2), full({100}, 2)}};
  for (const char* name : {"n.safetensors", "n.npz"}) {
    const std::string path = scratch.path(name);
    nn::save(path, versions[0]);
    for (int turn = 0; turn < 15; turn++) {
      const Child child([&] {
        for (int version = 0;; version++) nn::save(path, versions[version % 2]);
        return 0;
      });
      usleep(static_cast<useconds_t>(random() % 8000));
      kill(child.pid(), SIGKILL);
      child.wait();
      const nn::Linear found = nn::load(path, versions[0]);
      const bool is_second = found.weight[0][0].item<float>() == 2;
      REQUIRE(same_bits(found.weight, versions[is_second].weight));
      REQUIRE(same_bits(*found.bias, *versions[is_second].bias));
    }
  }
}
