// What a compiled function captured is seen as it is now, wherever it stands and whoever else
// holds it; and where nothing changed nothing is traced again.
#include "tiny_compile/compile/compile.h"

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const CompileOptions kOptions = {.backend = "interpreter", .name = "f"};

Tensor number(double value) { return full({}, value); }
double value_of(const Tensor& tensor) { return tensor.item<double>(); }

struct Model {
  Tensor w;
};
struct Layer {
  Tensor weight, bias;
};
struct Network {
  Layer first, second;
};

// A compiled function of `read`, which reads captured tensors, and how often it was traced.
template <typename Read>
auto counting(Read read, std::shared_ptr<std::atomic<int>> traces) {
  return compile(
      [read, traces](Tensor x) {
        ++*traces;
        return x * read();
      },
      kOptions);
}
template <typename Read>
struct Watched {
  explicit Watched(Read read) : f(counting(read, traces)) {}
  double operator()() const { return value_of(f(number(1))); }

  std::shared_ptr<std::atomic<int>> traces = std::make_shared<std::atomic<int>>(0);
  decltype(counting(std::declval<Read>(), nullptr)) f;
};

Tensor by_value(Tensor w) { return w; }

Tensor global_weight;

}  // namespace

TEST_CASE("a member is read as it is now, also where a copy keeps the old tensor",
          "[captured]") {
  Model model{number(2)};
  const Model before = model;
  const Watched f([&model] { return model.w + 0; });
  CHECK(f() == 2);
  const Model best = model;
  const Tensor alone = model.w;
  model.w = number(3);
  CHECK(f() == 3);
  const Tensor after = model.w;
  model.w = model.w + 1;
  CHECK(f() == 4);
  model = best;
  CHECK(f() == 2);
  std::swap(model.w, model.w);
  Model other{number(9)};
  std::swap(model, other);
  CHECK(f() == 9);
  CHECK(*f.traces == 1);  // the variable is the same
  CHECK(value_of(before.w) + value_of(alone) + value_of(after) == 7);
}

TEST_CASE("structs of structs, a static and a global are read as they are now", "[captured]") {
  Network net{{number(1), number(2)}, {number(3), number(4)}};
  static Tensor fixed = number(10);
  global_weight = number(100);
  const auto f = compile(
      [&net](Tensor x) {
        return x * net.first.weight + net.second.bias + fixed + global_weight;
      },
      kOptions);
  CHECK(value_of(f(number(1))) == 115);
  const Network best = net;
  const Tensor kept[] = {fixed, global_weight};
  net.second.bias = number(5);
  CHECK(value_of(f(number(1))) == 116);
  fixed = number(20);
  global_weight = number(200);
  CHECK(value_of(f(number(1))) == 226);
  net = best;
  CHECK(value_of(f(number(1))) == 225);
  CHECK(value_of(kept[0]) + value_of(kept[1]) == 110);
}

TEST_CASE("an element of a vector is read as it is now, wherever it went", "[captured]") {
  std::vector<Tensor> ws = {number(2)};
  const Watched f([&ws] { return ws.back() + 0; });
  CHECK(f() == 2);
  const Tensor w = number(3);
  auto best = ws;
  ws.clear();
  ws.push_back(w);  // stands where the old one stood
  CHECK(f() == 3);
  best = ws;
  for (int k = 0; k < 20; k++) {
    ws.reserve(ws.capacity() + 1);  // moves the elements
    CHECK(f() == 3);
  }
  ws[0] = number(4);
  CHECK(f() == 4);
  ws.assign({number(5), number(6)});
  CHECK(f() == 6);
  ws.pop_back();
  CHECK(f() == 5);
  ws = best;
  CHECK(f() == 3);
  ws.erase(ws.begin());
  ws.insert(ws.begin(), {number(7), number(8)});
  CHECK(f() == 8);
  const int before = *f.traces;
  CHECK(f() == 8);
  CHECK(f() == 8);
  CHECK(*f.traces == before);
  CHECK(f.f.cache().size() == 1);  // what is gone does not stay
}

TEST_CASE("maps, optionals and pointers' targets are read as they are now", "[captured]") {
  std::map<std::string, Tensor> named = {{"w", number(1)}};
  std::optional<Tensor> maybe = number(2);
  auto owned = std::make_unique<Model>(Model{number(4)});
  const auto f = compile(
      [&](Tensor x) {
        const Tensor y = x * named["w"] + owned->w;
        return maybe ? y + *maybe : y;
      },
      kOptions);
  CHECK(value_of(f(number(1))) == 7);
  const auto named_then = named;
  const auto maybe_then = maybe;
  const Model owned_then = *owned;
  named = {{"w", number(10)}};
  CHECK(value_of(f(number(1))) == 16);
  named.clear();
  named["w"] = number(20);
  CHECK(value_of(f(number(1))) == 26);
  maybe.reset();
  CHECK(value_of(f(number(1))) == 24);
  owned = std::make_unique<Model>(Model{number(40)});
  CHECK(value_of(f(number(1))) == 60);
}

TEST_CASE("a tensor captured by way of copies is read from the first variable", "[captured]") {
  Model model{number(2)};
  std::vector<Tensor> ws = {number(3)};
  const Watched f([&] {
    const Model copy = model;
    Tensor local;
    local = by_value(copy.w);
    std::vector<Tensor> list;
    for (Tensor w : ws) list.push_back(std::move(w));
    list.push_back(local.clone());
    return list[0] * list[1].view({});
  });
  CHECK(f() == 6);
  const Model best = model;
  const auto all = ws;
  model.w = number(5);
  CHECK(f() == 15);
  ws[0] = number(7);
  CHECK(f() == 35);
  CHECK(*f.traces == 2);  // an element may be another's tomorrow
}

TEST_CASE("a tensor captured by value is the closure's own", "[captured]") {
  Model model{number(2)};
  const Watched f([model] { return model.w + 0; });
  CHECK(f() == 2);
  const Model best = model;
  model.w = number(3);
  CHECK(f() == 2);
  CHECK(*f.traces == 1);
}

TEST_CASE("a captured tensor that is returned as it is, is the one of now", "[captured]") {
  Model model{number(2)};
  const auto f = compile([&model](Tensor) { return model.w; }, kOptions);
  CHECK(value_of(f(number(1))) == 2);
  const Model best = model;
  model.w = number(3);
  CHECK(value_of(f(number(1))) == 3);
}

TEST_CASE("loops that keep the best weights, or an average, see the weights of now",
          "[captured]") {
  Model model{number(8)}, best, average{number(0)};
  const Watched loss([&model] { return model.w * model.w; });
  const Watched distance([&] { return model.w - average.w; });
  double least = 1e9;
  for (int step = 0; step < 8; step++) {
    const double now = value_of(model.w);
    CHECK(loss() == now * now);
    CHECK(distance() == now - value_of(average.w));
    if (loss() < least) {
      least = loss();
      best = model;
    }
    average.w = average.w * 0.5 + model.w * 0.5;
    model.w = step == 5 ? number(9) : model.w - 1;
  }
  CHECK(value_of(best.w) == 3);
  CHECK(*loss.traces == 1);
  CHECK(*distance.traces == 1);
}

TEST_CASE("unrelated copies of a captured tensor trace nothing again", "[captured]") {
  std::vector<Layer> layers(2, {number(2), number(3)});
  const Watched f([&layers] {
    Tensor y = number(0);
    for (const Layer& layer : layers) y = y * layer.weight + layer.bias;
    return y;
  });
  std::vector<Tensor> kept;
  for (int k = 0; k < 10; k++) {
    CHECK(f() == 9);
    kept.push_back(layers[0].weight);
    const auto copy = layers;
    const Tensor used = copy[1].bias * layers[1].weight;
  }
  kept.clear();
  CHECK(f() == 9);
  CHECK(*f.traces == 1);
}

TEST_CASE("a function traced again is not compiled again where its graph is the same",
          "[captured]") {
  const Scratch scratch;
  const Setting setting("TC_CACHE_DIR", scratch.path("cache"));
  std::vector<Tensor> ws = {number(2), number(3)};
  const auto f = compile([&ws](Tensor x) { return x * ws[0] + ws[1]; });
  CHECK(value_of(f(number(1))) == 5);
  const Setting broken("TC_CXX", scratch.path("no-compiler"));
  std::filesystem::remove_all(scratch.path("cache"));
  ws = std::vector<Tensor>{number(4), number(5)};
  CHECK(value_of(f(number(1))) == 9);
  ws.insert(ws.begin(), number(6));
  CHECK(value_of(f(number(1))) == 10);
  CHECK(f.cache().size() == 1);
}

TEST_CASE("a tensor captured in two functions is seen by both", "[captured]") {
  auto ws = std::make_unique<std::vector<Tensor>>(1, number(2));
  const Watched f([&ws] { return (*ws)[0] + 0; });
  const Watched g([&ws] { return (*ws)[0] * 10; });
  CHECK(f() + g() == 22);
  const auto best = *ws;
  (*ws)[0] = number(3);
  CHECK(f() + g() == 33);
  ws = std::make_unique<std::vector<Tensor>>(1, number(4));
  CHECK(g() + f() == 44);
  CHECK(*f.traces == 3);
}

TEST_CASE("variables that are empty or gone are the function's error, and mended by a new one",
          "[captured]") {
  Model model{number(2)};
  const Watched f([&model] { return model.w + 0; });
  CHECK(f() == 2);
  const Tensor taken = std::move(model.w);
  CHECK_THAT(message_of([&] { f(); }), ContainsSubstring("undefined"));
  model.w = taken;
  CHECK(f() == 2);
}

TEST_CASE("what a function reads of a captured tensor only once is refused", "[captured]") {
  Tensor w = number(2);
  const auto reads = compile([&w](Tensor x) { return x * w.item<float>(); }, kOptions);
  CHECK_THAT(message_of([&] { reads(number(1)); }), ContainsSubstring("as an argument"));
  const auto lists =
      compile([&w](Tensor x) { return x * w.to_vector<float>().at(0); }, kOptions);
  CHECK_THAT(message_of([&] { lists(number(1)); }), ContainsSubstring("captured_test.cpp:"));
  const auto assigns = compile([&w](Tensor x) { return w = x * w; }, kOptions);
  CHECK_THAT(message_of([&] { assigns(number(1)); }), ContainsSubstring("return the new one"));
}

TEST_CASE("threads call a function while another copies what it captured", "[captured]") {
  std::vector<Tensor> ws = {number(2), number(3)};
  const Watched f([&ws] { return ws[0] * ws[1]; });
  const Watched g([&ws] { return ws[0] + ws[1]; });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; k++) wrong += f() + g() != 11;
    });
  }
  threads.emplace_back([&] {
    for (int k = 0; k < 2000; k++) {
      auto copy = ws;
      const Tensor other = std::move(copy[0]);
      wrong += value_of(other) != 2;
    }
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

// Inside a gradient, a jvp, a vjp and a checkpoint: traces within the trace.
TEST_CASE("what a nested trace captures is read as it is now", "[captured]") {
  Model model{number(2)};
  const auto square = [&](const Tensor& x) { return x * x * model.w; };
  const std::vector<std::function<Tensor(const Tensor&)>> nested = {
      [&](const Tensor& x) { return grad(square)(x); },
      [&](const Tensor& x) { return value_and_grad(square)(x).second; },
      [&](const Tensor& x) {
        return grad([&](const Tensor& a) { return grad(square)(a); })(x);
      },
      [&](const Tensor& x) {
        return jvp(square)(std::tuple(x), std::tuple(ones_like(x))).second;
      },
      [&](const Tensor& x) {
        const auto [y, pullback] = vjp(square)(x);
        return std::get<0>(pullback(ones_like(y)));
      },
      [&](const Tensor& x) { return grad(checkpoint(square))(x); }};
  const std::vector<double> slopes = {6, 6, 2, 6, 6, 6};  // at x = 3, for w = 1
  for (size_t k = 0; k < nested.size(); k++) {
    INFO("function " << k);
    model.w = number(2);
    const auto f = compile(nested[k], kOptions);
    CHECK(value_of(f(number(3))) == 2 * slopes[k]);
    model.w = number(5);
    CHECK(value_of(f(number(3))) == 5 * slopes[k]);
    const Model best = model;
    model.w = number(-1);
    CHECK(value_of(f(number(3))) == -slopes[k]);
    CHECK(value_of(best.w) == 5);
    CHECK(value_of(nested[k](number(3))) == -slopes[k]);
  }
}
