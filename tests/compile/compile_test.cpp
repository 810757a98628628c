// What a user of tc::compile may rely on: any nesting of tensors in and out, no stale value, no
// needless recompilation, and errors at the line that made them.
#include "tiny_compile/compile/compile.h"

#include <atomic>
#include <cmath>
#include <thread>

#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// Every test case compiles into a cache of its own.
struct OwnCache {
  Scratch scratch;
  Setting setting{"TC_CACHE_DIR", scratch.path("cache")};
};

CompileOptions options(const std::string& backend) {
  CompileOptions result;
  result.backend = backend;
  return result;
}
// For what the back end has no part in.
CompileOptions interpreted() { return options("interpreter"); }

Tensor f32(const std::vector<float>& values, std::optional<Sizes> shape = {}) {
  return shape ? from_vector(values, *shape) : from_vector(values);
}
bool holds(const Tensor& tensor, const std::vector<float>& values) {
  return tensor.to_vector<float>() == values;
}

struct Linear {
  Tensor weight, bias;
};
struct Model {
  std::vector<Linear> layers;
  std::optional<Tensor> scale;
  float slope = 1;
};
struct Training {
  Model model;
  std::pair<Tensor, std::array<Tensor, 2>> rest;
  std::tuple<int, Tensor> counted;
  std::optional<std::vector<Tensor>> extra;
};
enum class Mode { Plus, Minus };

Model model_of(float start, bool scaled) {
  Model model;
  for (int k = 0; k < 2; k++)
    model.layers.push_back({full({2, 2}, start + k), full({2}, static_cast<double>(k))});
  if (scaled) model.scale = full({}, 3);
  return model;
}

// Uses and returns every tensor of the nesting.
Training train(Training in) {
  Training out = in;
  for (Linear& layer : out.model.layers) {
    layer.weight = layer.weight * in.model.slope + in.rest.first;
    layer.bias = layer.bias + 1;
  }
  if (out.model.scale) *out.model.scale = *in.model.scale * 2;
  std::swap(out.rest.second[0], out.rest.second[1]);
  std::get<1>(out.counted) = std::get<1>(in.counted) * std::get<0>(in.counted);
  if (!in.extra) out.extra = std::vector<Tensor>{in.rest.first - 1};
  return out;
}

std::vector<Tensor> tensors_of(Training& train) {
  std::vector<Tensor> result;
  tree::for_each_tensor(train, [&](Tensor& tensor) { result.push_back(tensor); });
  return result;
}

void check_same(const std::vector<Tensor>& lhs, const std::vector<Tensor>& rhs) {
  REQUIRE(lhs.size() == rhs.size());
  for (size_t k = 0; k < lhs.size(); k++) {
    INFO("tensor " << k << ": " << lhs[k] << " and " << rhs[k]);
    CHECK(same_bits(lhs[k], rhs[k]));
  }
}

}  // namespace

TEST_CASE("structs, vectors, tuples, arrays and optionals nest in and out", "[compile]") {
  const OwnCache cache;
  const auto compiled = compile(train);
  for (bool scaled : {false, true}) {
    Training in{model_of(2, scaled), {ones({2}), {zeros({1}), ones({1})}}, {7, f32({2})}, {}};
    Training want = train(in), got = compiled(in);
    CHECK(got.model.layers.size() == 2);
    CHECK(got.model.scale.has_value() == scaled);
    CHECK(got.model.slope == 1);
    CHECK(std::get<0>(got.counted) == 7);
    CHECK(got.extra->size() == 1);
    check_same(tensors_of(want), tensors_of(got));
  }
  CHECK(compiled.cache().size() == 2);
}

TEST_CASE("lengths, presence, numbers, enums, strings and bools are guarded", "[compile]") {
  const auto f = compile(train, interpreted());
  Training in{model_of(2, false), {ones({2}), {zeros({1}), ones({1})}}, {7, f32({2})}, {}};
  const auto entries_with = [&](const std::function<void(Training&)>& change) {
    change(in);
    Training want = train(in), got = f(in), again = f(in);
    check_same(tensors_of(want), tensors_of(got));
    check_same(tensors_of(want), tensors_of(again));
    return f.cache().size();
  };
  CHECK(entries_with([](Training&) {}) == 1);
  CHECK(entries_with([](Training& s) { s.model.layers.pop_back(); }) == 2);
  CHECK(entries_with([](Training& s) { s.model.scale = ones({}); }) == 3);
  CHECK(entries_with([](Training& s) { s.model.slope = 0.5; }) == 4);
  CHECK(entries_with([](Training& s) { std::get<0>(s.counted) = 8; }) == 5);
  CHECK(entries_with([](Training& s) { s.extra = std::vector<Tensor>{}; }) == 6);
  CHECK(entries_with([](Training& s) { s.model.layers[0].bias = full({2}, 9); }) == 6);

  const auto g = compile(
      [](Tensor x, Mode mode, std::string how, std::vector<bool> flags) {
        Tensor y = mode == Mode::Plus ? x + 1 : x - 1;
        if (how == "square") y = y * y;
        for (const bool flag : flags) y = flag ? y * 2 : y / 2;
        return y;
      },
      interpreted());
  const Tensor x = f32({3});
  CHECK(holds(g(x, Mode::Plus, "id", std::vector<bool>{}), {4}));
  CHECK(holds(g(x, Mode::Minus, "id", std::vector<bool>{}), {2}));
  CHECK(holds(g(x, Mode::Minus, std::string("square"), std::vector<bool>{}), {4}));
  CHECK(holds(g(x, Mode::Minus, "square", std::vector<bool>{true, false}), {4}));
  CHECK(holds(g(x, Mode::Minus, "square", std::vector<bool>{true, true}), {16}));
  CHECK(g.cache().size() == 5);
}

TEST_CASE("guarded numbers differ where their bits do", "[compile]") {
  const auto real =
      compile([](Tensor x, std::array<double, 1> by) { return x * by[0]; }, interpreted());
  using One = std::array<double, 1>;
  CHECK(same_bits(real(f32({1}), One{0.0}), f32({0.0f})));
  CHECK(same_bits(real(f32({1}), One{-0.0}), f32({-0.0f})));
  for (int k = 0; k < 3; k++)
    CHECK(std::isnan(real(f32({1}), One{std::nan("")}).item<float>()));
  CHECK(real.cache().size() == 3);

  const auto whole =
      compile([](Tensor x, std::array<int64_t, 1> by) { return x + by[0]; }, interpreted());
  const int64_t big = int64_t{1} << 60;
  const Tensor zero = zeros({1}, int64);
  CHECK(whole(zero, std::array<int64_t, 1>{big}).item<int64_t>() == big);
  CHECK(whole(zero, std::array<int64_t, 1>{big + 1}).item<int64_t>() == big + 1);
}

TEST_CASE("a number for a tensor is a 0-d input and compiles nothing again", "[compile]") {
  const OwnCache cache;
  const auto f = compile([](Tensor x, Tensor rate) { return x - rate * x; });
  for (double rate : {0.5, -0.25, 0.0, 1e300})
    CHECK(holds(f(f32({4}), rate), {4 - static_cast<float>(rate) * 4}));
  CHECK(f.cache().size() == 1);
  CHECK(holds(f(f32({4}), 0.5f), {2}));  // f32[]
  CHECK(holds(f(f32({4}), 2), {-4}));    // i64[]
  CHECK(f.cache().size() == 3);
  CHECK(f(f32({4}), 2).dtype() == float32);  // a 0-d tensor promotes no other
  const auto generic = compile([](auto x, auto y) { return x + y; }, interpreted());
  CHECK(holds(generic(f32({1}), 2), {3}));
  CHECK(holds(generic(f32({1}), 3), {4}));
  CHECK(generic.cache().size() == 1);
}

TEST_CASE("a number that the function takes as a number is a constant and guarded",
          "[compile]") {
  const auto f = compile(
      [](Tensor x, int times) {
        Tensor y = x;
        for (int k = 0; k < times; k++) y = y + x;
        return y;
      },
      interpreted());
  CHECK(holds(f(f32({1}), 2), {3}));
  CHECK(holds(f(f32({1}), 5), {6}));
  CHECK(f.cache().size() == 2);
  CHECK(f.specialization(f32({1}), 2).traced.graph.size() == 3);  // x + x + x
}

TEST_CASE("captured tensors are read at each call", "[compile]") {
  const OwnCache cache;
  Tensor w = f32({1, 2});
  const auto f = compile([&w](Tensor x) { return x * w; });
  CHECK(holds(f(f32({3, 3})), {3, 6}));
  w.data<float>()[0] = 10;  // its value changed
  CHECK(holds(f(f32({3, 3})), {30, 6}));
  w = f32({5, 7});  // another tensor of the kind
  CHECK(holds(f(f32({3, 3})), {15, 21}));
  CHECK(f.cache().size() == 1);
  w = f32({2});  // of another shape
  CHECK(holds(f(f32({3, 3})), {6, 6}));
  w = tensor({int64_t{4}});  // of another dtype
  CHECK(holds(f(f32({3, 3})), {12, 12}));
  CHECK(f.cache().size() == 3);
  w = Tensor();
  CHECK_THAT(message_of([&] { f(f32({3, 3})); }), ContainsSubstring("undefined"));
}

TEST_CASE("a tensor captured by value shares its elements, as eager code does", "[compile]") {
  Tensor w = f32({2});
  const auto f = compile([w](Tensor x) { return x + w; }, interpreted());
  CHECK(holds(f(f32({1})), {3}));
  w.data<float>()[0] = 5;
  CHECK(holds(f(f32({1})), {6}));
  w = f32({100});  // the closure's own is the old one
  CHECK(holds(f(f32({1})), {6}));
}

TEST_CASE("captured variables that share a tensor today need not tomorrow", "[compile]") {
  Tensor m = f32({1}), v = m;
  const auto f = compile([&m, &v](Tensor x) { return x * m + v; }, interpreted());
  CHECK(holds(f(f32({2})), {3}));
  v = f32({10});
  CHECK(holds(f(f32({2})), {12}));
  m = f32({4});
  CHECK(holds(f(f32({2})), {18}));
  CHECK(f.cache().size() == 1);
}

TEST_CASE("a captured tensor whose variable is out of reach is missed when it is gone",
          "[compile]") {
  Linear linear{f32({2}), f32({1})};
  std::vector<Tensor> list = {f32({1})};
  const auto f = compile(
      [&linear, &list](Tensor x) {
        const Tensor copy = linear.weight;
        return concat({x * copy + linear.bias + f32({0.5f}), list[0]});
      },
      interpreted());
  const auto g = compile([&f](Tensor x) { return f(x) * 2; }, interpreted());
  for (float k : {1.f, 2.f, 3.f}) {
    linear.bias = f32({10 * k});
    CHECK(holds(f(f32({1})), {2 * k + 10 * k + 0.5f, k}));
    list[0] = f32({k + 1});
    CHECK(holds(f(f32({1})), {2 * k + 10 * k + 0.5f, k + 1}));
    CHECK(holds(g(f32({1})), {4 * k + 20 * k + 1, 2 * k + 2}));
    linear.weight = f32({2 * (k + 1)});
    CHECK(holds(f(f32({1})), {2 * (k + 1) + 10 * k + 0.5f, k + 1}));
    CHECK(f.cache().size() == 1);  // what is stale does not stay
  }
  f(f32({1, 1}));
  CHECK(f.cache().size() == 2);
  f(f32({1, 1}));
  f(f32({1}));
  CHECK(f.cache().size() == 2);
}

TEST_CASE("a captured tensor that is also an argument is two inputs", "[compile]") {
  const Tensor w = f32({3});
  const auto f = compile([&w](Tensor x) { return x - w; }, interpreted());
  CHECK(holds(f(w), {0}));
  CHECK(holds(f(f32({5})), {2}));
  CHECK(f.cache().size() == 1);
}

TEST_CASE("one entry for each rank, shape, dtype and layout", "[compile]") {
  const OwnCache cache;
  const auto f = compile([](Tensor x) { return x * 2; });
  const Tensor x = arange(24).to(float32).reshape({4, 6});
  size_t entries = 0;
  for (const Tensor& input : {x, x.reshape({24}), x.reshape({6, 4}), x.to(float64), x.t(),
                              x.slice(1, 0, 6, 2), x.select(0, 1).expand({4, 6})}) {
    CHECK(same_bits(f(input), input * 2));
    CHECK(f.cache().size() == ++entries);
    CHECK(same_bits(f(input), input * 2));
  }
  CHECK(same_bits(f(x.slice(0, 1, 2)), x.slice(0, 1, 2) * 2));
  const size_t before = f.cache().size();
  CHECK(same_bits(f(x.slice(0, 2, 3)), x.slice(0, 2, 3) * 2));  // another offset only
  CHECK(f.cache().size() == before);
}

TEST_CASE("of more kinds than the limit the least recently used goes", "[compile]") {
  int traced = 0;
  CompileOptions few = interpreted();
  few.cache_limit = 2;
  const auto f = compile([&traced](Tensor x) { return traced++, x + 1; }, few);
  const auto call = [&](int64_t size) {
    CHECK(same_bits(f(zeros({size})), ones({size})));
    return traced;
  };
  CHECK(call(1) == 1);
  CHECK(call(2) == 2);
  CHECK(call(1) == 2);
  CHECK(call(3) == 3);  // 2 goes
  CHECK(call(1) == 3);
  CHECK(call(2) == 4);
  CHECK(f.cache().size() == 2);
  few.cache_limit = 0;
  CHECK(same_bits(compile([](Tensor x) { return x + 1; }, few)(zeros({2})), ones({2})));
}

TEST_CASE("copies of a compiled function share what was compiled", "[compile]") {
  const auto f = compile([](Tensor x) { return x + 1; }, interpreted());
  const auto g = f;
  f(zeros({2}));
  g(zeros({2}));
  CHECK(g.cache().size() == 1);
  CHECK(&f.cache() == &g.cache());
}

TEST_CASE("all back ends give the same bits", "[compile]") {
  const OwnCache cache;
  const auto function = [](Tensor x, Tensor w) {
    const Tensor h = layer_norm(gelu(matmul(x, w)), {5});
    return std::vector<Tensor>{softmax(h, -1), h.sum(0), (x > 0).to(int64).sum(), x.t()};
  };
  const Tensor x = randn({7, 3}), w = randn({3, 5});
  const std::vector<Tensor> want = function(x, w);
  for (const char* backend : {"cpp", "eager", "interpreter"}) {
    INFO(backend);
    check_same(want, compile(function, options(backend))(x, w));
  }
}

TEST_CASE("long rows of several inputs, whose next rows are asked for", "[compile]") {
  manual_seed(3);
  for (DType dtype : {float32, bfloat16, float64}) {
    const auto shares = [](Tensor x, Tensor y, Tensor z) {
      const Tensor all = x + y * z, e = exp(all - all.max({1}, true));
      return e / e.sum(1, true);
    };
    const std::vector<Tensor> in = {randn({9, 2100}).to(dtype), randn({9, 2100}).to(dtype),
                                    randn({9, 2100}).to(dtype)};
    const Tensor got = compile(shares, {.backend = "cpp"})(in[0], in[1], in[2]);
    CHECK(same_bits(got, compile(shares, {.backend = "interpreter"})(in[0], in[1], in[2])));
  }
}

TEST_CASE("sums over more than the caches hold, by chunks that go by way of L1", "[compile]") {
  const auto rows = [](Tensor x) { return x.sum(1); };
  const auto all = [](Tensor x, Tensor y) { return mse_loss(x, y); };
  for (int64_t columns : {4096, 4099}) {
    const Tensor x = randn({1031, columns}), y = randn({1031, columns});
    CHECK(same_bits(compile(rows)(x), compile(rows, {.backend = "interpreter"})(x)));
    CHECK(same_bits(compile(all)(x, y), compile(all, {.backend = "interpreter"})(x, y)));
  }
}

TEST_CASE("an unknown back end is refused with those there are", "[compile]") {
  const auto refusal = [](const char* backend) {
    return message_of([&] { compile([](Tensor x) { return x; }, options(backend)); });
  };
  CHECK_THAT(refusal("llvm"), ContainsSubstring("no backend 'llvm'") &&
                                  ContainsSubstring("cpp, cuda, eager and interpreter"));
}

TEST_CASE("an input returned is the input, and a result may be returned twice", "[compile]") {
  const OwnCache cache;
  for (const char* backend : {"cpp", "eager", "interpreter"}) {
    INFO(backend);
    const auto f = compile(
        [](Tensor x, Tensor y) {
          const Tensor z = x + y;
          return std::vector<Tensor>{x, z, z, y, x + y, x.t()};
        },
        options(backend));
    const Tensor x = randn({2, 2}), y = randn({2, 2}).t();
    const std::vector<Tensor> got = f(x, y);
    check_same({x, x + y, x + y, y, x + y, x.t()}, got);
    CHECK(got[0].info().storage == x.info().storage);
  }
  const auto identity = compile([](Tensor x) { return x; });
  const Tensor reversed = arange(5).flip({0});
  CHECK(same_bits(identity(reversed), reversed));
}

TEST_CASE("results live on when inputs, function and later calls are gone", "[compile]") {
  const OwnCache cache;
  Tensor first, second;
  {
    const auto f = compile([](Tensor x) { return std::vector<Tensor>{x, x + 1}; });
    first = f(zeros({1000}))[1];
    second = f(ones({1000}))[1];
    f(full({1000}, 5));
  }
  CHECK(same_bits(first, ones({1000})));
  CHECK(same_bits(second, full({1000}, 2)));
}

TEST_CASE("tensors without elements and without axes go in and out", "[compile]") {
  const OwnCache cache;
  const auto f = compile([](Tensor x) {
    return std::vector<Tensor>{x * 2, x.sum(-1), x.sum(), concat({x, x}, 0), matmul(x.t(), x)};
  });
  for (const Sizes& shape : {Sizes{0, 3}, Sizes{3, 0}, Sizes{0, 0}}) {
    const Tensor x = zeros(shape);
    check_same({x * 2, x.sum(-1), x.sum(), concat({x, x}, 0), matmul(x.t(), x)}, f(x));
  }
  const auto scalar = compile([](Tensor x) { return x * x; });
  CHECK(scalar(full({}, 3)).shape().empty());
  CHECK(scalar(full({}, 3)).item<float>() == 9);
}

TEST_CASE("reversed, strided and repeated inputs mean what they show", "[compile]") {
  const OwnCache cache;
  const Tensor x = arange(24).to(float32).reshape({4, 6});
  const Tensor captured = x.flip({1});
  for (const char* backend : {"cpp", "eager"}) {
    const auto f = compile([&](Tensor a) { return a.sum(0) * 2 + captured.select(0, 1); },
                           options(backend));
    for (const Tensor& a : {x.flip({0}), x.flip({0, 1}), x.slice(0, 0, 4, 3).flip({1}),
                            x.select(0, 2).expand({3, 6}), x.t().flip({0}).t()}) {
      INFO(backend << " " << a);
      CHECK(same_bits(f(a), a.sum(0) * 2 + captured.select(0, 1)));
    }
  }
}

TEST_CASE("a function without arguments compiles", "[compile]") {
  const OwnCache cache;
  Tensor w = f32({1, 2});
  const auto constant = compile([] { return ones({3}) * 2; });
  const auto captured = compile([&w] { return w * 2; });
  CHECK(holds(constant(), {2, 2, 2}));
  CHECK(holds(constant(), {2, 2, 2}));
  CHECK(holds(captured(), {2, 4}));
  w = f32({5, 5});
  CHECK(holds(captured(), {10, 10}));
  CHECK(compile([] { return std::vector<Tensor>{}; })().empty());
  CHECK_FALSE(compile([] { return std::optional<Tensor>{}; })().has_value());
}

TEST_CASE("random numbers: eager's draws, new ones each call", "[compile]") {
  const OwnCache cache;
  const auto function = [](Tensor x) {
    return std::vector<Tensor>{dropout(x, 0.5), rand({3}), randint(0, 100, {9})};
  };
  const Tensor x = ones({64});
  for (const char* backend : {"cpp", "eager", "interpreter"}) {
    INFO(backend);
    const auto f = compile(function, options(backend));
    manual_seed(3);
    const std::vector<Tensor> want[2] = {function(x), function(x)};
    manual_seed(3);
    const std::vector<Tensor> got[2] = {f(x), f(x)};
    for (int call : {0, 1}) check_same(want[call], got[call]);
    for (size_t k = 0; k < 3; k++) CHECK_FALSE(same_bits(got[0][k], got[1][k]));
    CHECK(f.cache().size() == 1);
  }
}

TEST_CASE("threads may call one function, for kinds old and new", "[compile]") {
  const OwnCache cache;
  const Tensor w = f32({2});
  const auto f = compile([&w](Tensor x) { return (x * w + 1).sum(0); });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 60; k++) {
        const int64_t size = 1 + (k + t) % 3;
        const float want = static_cast<float>(size * (2 * t + 1));
        wrong += f(full({size}, t)).item<float>() != want;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(f.cache().size() >= 3);
}

TEST_CASE("threads that want one kind of call at once compile it once", "[compile]") {
  const OwnCache cache;
  std::atomic<int> traces = 0, ready = 0, failures = 0;
  const auto f = compile([&](Tensor x) {
    traces++;
    if (x.numel() == 3) fail("three is refused");
    return x * 2 + 1;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; t++) {
    threads.emplace_back([&] {
      ready++;
      while (ready < 6) std::this_thread::yield();
      for (const int64_t size : {1, 2, 3, 4}) {
        try {
          f(ones({size}));
        } catch (const Error&) {
          failures++;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(f.cache().size() == 3);
  CHECK(traces == 3 + 6);
  CHECK(failures == 6);  // nobody waits for one who failed
}

TEST_CASE("an index out of range names op, line, value and size", "[compile]") {
  const OwnCache cache;
  for (const char* backend : {"cpp", "interpreter"}) {
    INFO(backend);
    int line = 0;
    const auto f = compile(
        [&](Tensor table, Tensor index) {
          const Tensor ones = gather(table, 0, index * 0) + 1;
          line = __LINE__ + 1;
          return gather(table, 0, index + 1) * ones;
        },
        options(backend));
    const Tensor table = f32({1, 2, 3});
    CHECK(holds(f(table, tensor({int64_t{1}})), {6}));
    const std::string message = message_of([&] { f(table, tensor({int64_t{6}})); });
    CHECK_THAT(message, ContainsSubstring(str("compile_test.cpp:", line,
                                              ": gather: an index is out of range: 7 for size "
                                              "3; check")));
    const auto g =
        compile([](Tensor x, Tensor index) { return scatter_add(x, 0, index, ones({2})); },
                options(backend));
    CHECK_THAT(message_of([&] {
                 g(table, tensor({int64_t{0}, int64_t{-1}}));
               }),
               ContainsSubstring("scatter_add: an index is out of range: -1 for size 3"));
  }
}

TEST_CASE("reading a value inside names the user's line, and the next call works",
          "[compile]") {
  int line = 0;
  bool read = true, branch = false;
  const auto f = compile(
      [&](Tensor x) {
        line = __LINE__ + 1;
        if (read) return x * x.sum().item<float>();
        if (!branch) return x + 1;
        line = __LINE__ + 1;
        return x.sum() > 0 ? x : -x;
      },
      interpreted());
  const auto check_line = [&](const char* what) {
    const std::string message = message_of([&] { f(ones({2})); });
    CHECK_THAT(message, ContainsSubstring(str("compile_test.cpp:", line, ":")) &&
                            ContainsSubstring(what));
    CHECK_FALSE(is_tracing());
    CHECK(f.cache().size() == 0);
  };
  check_line("item");
  read = false, branch = true;
  check_line("where()");
  branch = false;
  CHECK(same_bits(f(ones({2})), full({2}, 2)));
}

TEST_CASE("mistakes that only some inputs make leave the others' entries", "[compile]") {
  const auto f = compile([](Tensor x) { return x + ones({3}); }, interpreted());
  CHECK(same_bits(f(ones({3})), full({3}, 2)));
  CHECK_THAT(message_of([&] { f(ones({4})); }),
             ContainsSubstring(str("compile_test.cpp:", __LINE__ - 3, ":")));
  CHECK_THAT(message_of([&] { f(Tensor()); }), ContainsSubstring("undefined"));
  CHECK(same_bits(f(ones({3})), full({3}, 2)));
  CHECK(f.cache().size() == 1);
}

TEST_CASE("an error of a kernel is one of the call, with its name", "[compile]") {
  const OwnCache cache;
  for (const char* backend : {"cpp", "eager", "interpreter"}) {
    INFO(backend);
    const auto f =
        compile([](Tensor table, Tensor index) { return embedding(index, table) + 1; },
                options(backend));
    const Tensor table = f32({1, 2, 3}, Sizes{3, 1});
    CHECK(holds(f(table, tensor({int64_t{2}})), {4}));
    CHECK_THROWS_AS(f(table, tensor({int64_t{3}})), Error);
    CHECK(holds(f(table, tensor({int64_t{0}})), {2}));
  }
}

TEST_CASE("a compiled function inside another becomes part of it", "[compile]") {
  const OwnCache cache;
  const auto inner = compile([](Tensor x, Tensor by) { return x * by; });
  const auto outer = compile([&](Tensor x) { return inner(x + 1, 3) - 1; });
  CHECK(holds(outer(f32({1, 2})), {5, 8}));
  CHECK(inner.cache().size() == 0);
  CHECK(holds(inner(f32({1}), 3), {3}));
  CHECK(holds(outer(f32({1, 2, 4})), {5, 8, 14}));
}

TEST_CASE("walking a value meets its tensors in order, ten members at most", "[compile]") {
  struct Ten {
    Tensor a;
    int b;
    std::vector<Tensor> c;
    Tensor d;
    std::string e;
    std::array<Tensor, 2> f;
    Mode g;
    std::optional<Tensor> h;
    double i;
    Tensor j;
  };
  Ten ten{f32({0}),   1,        {f32({1}), f32({2})},
          f32({3}),   "e",      {f32({4}), f32({5})},
          Mode::Plus, f32({6}), .5,
          f32({7})};
  std::vector<float> seen;
  tree::for_each_tensor(ten, [&](Tensor& tensor) { seen.push_back(tensor.item<float>()); });
  CHECK(seen == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  static_assert(tree::member_count<Ten>() == 10 && tree::member_count<Linear>() == 2);
}
