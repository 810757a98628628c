// Donated arguments: results take their memory, and nobody uses them by mistake.
#include "tests/catch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

struct Adam {
  std::vector<Tensor> weights, means, squares;
};

Adam random_state(uint64_t seed) {
  manual_seed(seed);
  Adam state;
  for (const Sizes& shape : {Sizes{7}, Sizes{1001}, Sizes{33, 64}}) {
    state.weights.push_back(randn(shape));
    state.means.push_back(randn(shape));
    state.squares.push_back(square(randn(shape)));
  }
  return state;
}

Adam step(Adam state, std::vector<Tensor> gradients) {
  for (size_t k = 0; k < gradients.size(); k++) {
    const Tensor &g = gradients[k], &m = state.means[k], &v = state.squares[k];
    state.means[k] = 0.9 * m + 0.1 * g;
    state.squares[k] = 0.999 * v + 0.001 * g * g;
    state.weights[k] =
        state.weights[k] - 0.01 * state.means[k] / (sqrt(state.squares[k]) + 1e-8);
  }
  return state;
}

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("a donated state is written over, with the same bits", "[donate]") {
  const Adam state = random_state(1), same = random_state(1);
  const std::vector<Tensor> gradients = random_state(2).weights;
  const std::byte* const before = state.weights[2].bytes();
  const std::byte* const mean = state.means[2].bytes();
  auto donating = compile(step, {.donate = {0}, .name = "step"});
  auto plain = compile(step);
  const Adam a = donating(state, gradients), b = plain(same, gradients);
  for (size_t k = 0; k < 3; k++) {
    REQUIRE(same_bits(a.weights[k], b.weights[k]));
    REQUIRE(same_bits(a.means[k], b.means[k]));
    REQUIRE(same_bits(a.squares[k], b.squares[k]));
  }
  REQUIRE(a.weights[2].bytes() == before);
  REQUIRE(a.means[2].bytes() == mean);
  REQUIRE(gradients[0].numel() == 7);  // not donated
  const Adam again = donating(a, gradients), plain_again = plain(b, gradients);
  REQUIRE(same_bits(again.weights[1], plain_again.weights[1]));
}

TEST_CASE("a state is donated to a step of any batch", "[donate][dynamic]") {
  const auto step = [](Tensor w, Tensor x) {
    return w - 0.01 * matmul(x.t(), tanh(matmul(x, w)));
  };
  auto donating = compile(step, {.donate = {0}, .dynamic = {{1, 0}}, .name = "step"});
  auto plain = compile(step);
  manual_seed(3);
  Tensor w = randn({12, 5}), same = contiguous_copy(w);
  const std::byte* const before = w.bytes();
  for (const int64_t batch : {7, 3, 64}) {
    const Tensor x = randn({batch, 12});
    const Tensor used = w;
    w = donating(w, x);
    same = plain(same, x);
    REQUIRE(same_bits(w, same));
    REQUIRE(w.bytes() == before);
    REQUIRE(has(message_of([&] { used.sum(); }), "was donated to step"));
  }
  REQUIRE(donating.cache().size() == 1);
}

TEST_CASE("what is donated may be of any size, and lie otherwise", "[donate][dynamic]") {
  const auto next = [](Tensor x) { return tanh(x) + 1.0; };
  auto donating = compile(next, {.donate = {0}, .dynamic = {{0, 0}}, .name = "next"});
  manual_seed(4);
  for (const int64_t rows : {5, 9, 1001}) {
    Tensor x = randn({rows, 4});
    const std::byte* const before = x.bytes();
    const Tensor wanted = compile(next)(x), got = donating(x);
    REQUIRE(same_bits(got, wanted));
    REQUIRE(got.bytes() == before);
    REQUIRE(has(message_of([&] { x.sum(); }), "was donated to next"));
  }
  Tensor x = randn({4, 6}).t();
  const Tensor wanted = compile(next)(contiguous_copy(x));
  REQUIRE(same_bits(donating(x), wanted));
  REQUIRE(has(message_of([&] { x.sum(); }), "was donated to next"));
  REQUIRE(donating.cache().size() == 1);
}

TEST_CASE("a later use of what was donated says to which call", "[donate]") {
  for (const char* backend : {"", "interpreter", "eager"}) {
    auto call = compile([](Tensor w) { return w * 2.0; },
                        {.backend = backend, .donate = {0}, .name = "next"});
    const Tensor w = randn({5});
    const Tensor view = w.slice(0, 1, 3);
    const std::vector<float> seen = view.to_vector<float>();
    const Tensor result = call(w);
    REQUIRE(view.to_vector<float>() == seen);
    for (const auto& use :
         std::vector<std::function<void()>>{[&] { w.to_vector<float>(); }, [&] { w + 1.0; },
                                            [&] { call(w); }, [&] { (void)w.str(); }}) {
      const std::string message = message_of(use);
      REQUIRE(has(message, "f32[5]"));
      REQUIRE(has(message, "was donated to next"));
    }
    REQUIRE(result.numel() == 5);
  }
}

TEST_CASE("what cannot be written over is still used up", "[donate]") {
  auto next =
      compile([](Tensor w) { return w.sum() + w.t(); }, {.donate = {0}, .name = "next"});
  const Tensor base = randn({4, 3});
  const Tensor w = base.t();
  const std::vector<float> seen = base.to_vector<float>();
  const Tensor expected = w.sum() + w.t();
  REQUIRE(same_bits(next(w), expected));
  REQUIRE(base.to_vector<float>() == seen);
  REQUIRE(has(message_of([&] { w.sum(); }), "was donated to next"));
}

TEST_CASE("a tensor is not donated and used once more in one call", "[donate]") {
  const Tensor w = randn({5});
  auto both =
      compile([](Tensor a, Tensor b) { return a + b; }, {.donate = {0}, .name = "both"});
  REQUIRE(has(message_of([&] { both(w, w); }),
              "both: a tensor f32[5] is donated and passed or "
              "captured once more"));
  auto captures = compile([&](Tensor a) { return a + w; }, {.donate = {0}, .name = "captures"});
  REQUIRE(has(message_of([&] { captures(w); }), "captures: a tensor f32[5] is donated"));
  REQUIRE(w.numel() == 5);  // and nothing has happened to it
  const Tensor view = w.slice(0, 0, 5);
  const Tensor expected = w + view;
  REQUIRE(same_bits(both(w, view), expected));
}

TEST_CASE("donate names arguments that are there", "[donate]") {
  auto f = compile([](Tensor a) { return a + 1.0; }, {.donate = {1}, .name = "f"});
  REQUIRE(
      has(message_of([&] { f(randn({2})); }), "f: donate names argument 1, but a call has 1"));
}

TEST_CASE("a call that fails keeps what was donated, or says that it is lost", "[donate]") {
  const auto take = [](Tensor w, Tensor index) { return w + gather(w, 0, index); };
  auto f = compile(take, {.donate = {0}, .name = "take"});
  const Tensor bad = from_vector<int64_t>({0, 1, 9});
  const Tensor w = randn({3});
  const std::vector<float> seen = w.to_vector<float>();
  REQUIRE(has(message_of([&] { f(w, bad); }), "index"));
  REQUIRE(w.to_vector<float>() == seen);  // read at chosen places, so not written over

  auto g = compile(
      [](Tensor v, Tensor u, Tensor index) {
        return std::vector<Tensor>{v * 2.0, gather(u, 0, index)};
      },
      {.donate = {0}, .name = "scale"});
  const Tensor v = randn({3});
  REQUIRE(has(message_of([&] { g(v, from_vector(seen), bad); }), "index"));
  REQUIRE(
      has(message_of([&] { v.sum(); }), "was donated to scale, which failed and had begun"));
}
