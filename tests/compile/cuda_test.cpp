// backend "cuda": what can be said without a GPU, then the same bits on one.
#include <algorithm>
#include <cmath>
#include <thread>

#include "tests/fuzz/harness.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tiny_compile.h"
//
#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;
using tests::message_of;

namespace {

Tensor numbers(Sizes shape, double step = 0.37) {
  Tensor result = empty_tensor(DType::f32, std::move(shape));
  for (int64_t i = 0; i < result.numel(); i++)
    result.data<float>()[i] = static_cast<float>(static_cast<double>(i % 23 - 11) * step);
  return result;
}

// The compiled function on the GPU, against the interpreter.
template <typename Function>
void check_on_gpu(Function function, std::vector<Tensor> inputs) {
  const auto expected = compile(function, {.backend = "interpreter"});
  const std::vector<Tensor> want = expected(inputs);
  for (const char* backend : {"", "cuda", "eager"}) {
    INFO(backend);
    std::vector<Tensor> there;
    for (const Tensor& input : inputs) there.push_back(input.to(cuda));
    const std::vector<Tensor> got = compile(function, {.backend = backend})(there);
    REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < got.size(); k++) {
      CHECK(got[k].device() == cuda);
      CHECK(same_bits(want[k], got[k].to(cpu)));
    }
  }
  std::vector<Tensor> there;
  for (const Tensor& input : inputs) there.push_back(input.to(cuda));
  const std::vector<Tensor> at_once = function(there);
  for (size_t k = 0; k < at_once.size(); k++) CHECK(same_bits(want[k], at_once[k].to(cpu)));
}

}  // namespace

TEST_CASE("backend cuda wants tensors of a GPU and says how to move them", "[cuda]") {
  const auto f = compile([](Tensor x) { return x + x; }, {.backend = "cuda", .name = "twice"});
  CHECK_THAT(message_of([&] { f(numbers({4})); }), ContainsSubstring("twice") &&
                                                       ContainsSubstring("input 0 is on cpu") &&
                                                       ContainsSubstring("to(...)"));
}

TEST_CASE("without a GPU the error says what is missing", "[cuda]") {
  if (why_no_gpu().empty()) SKIP("there is a GPU here");
  CHECK_THAT(message_of([] { numbers({4}).to(cuda); }), ContainsSubstring("cuda"));
  const auto constant = compile([]() { return full({2}, 1.0); }, {.backend = "cuda"});
  CHECK(message_of([&] { constant(); }) != "no error");
}

TEST_CASE("an unknown backend is named", "[cuda]") {
  CHECK_THAT(message_of([] { compile([](Tensor x) { return x; }, {.backend = "tpu"}); }),
             ContainsSubstring("'tpu'") && ContainsSubstring("cuda"));
}

TEST_CASE("on a GPU compiled, eager and uncompiled have the interpreter's bits", "[cuda]") {
  NEEDS_GPU;
  check_on_gpu([](std::vector<Tensor> x) { return std::vector{gelu(x[0] + x[1])}; },
               {numbers({7, 33}), numbers({33}, 0.1)});
  check_on_gpu(
      [](std::vector<Tensor> x) {
        return std::vector{x[0].softmax(-1), x[0].sum(0)};
      },
      {numbers({5, 1001})});
  check_on_gpu(
      [](std::vector<Tensor> x) {
        return std::vector{layer_norm(x[0], {64}, x[1], x[1]), tril(x[0]), x[0] * 2.0};
      },
      {numbers({9, 64}), numbers({64})});
  check_on_gpu([](std::vector<Tensor> x) { return x; }, {numbers({3})});  // no kernels
}

TEST_CASE("views of tensors on a GPU share storage, and strided ones are read right",
          "[cuda]") {
  NEEDS_GPU;
  const Tensor x = numbers({6, 10}), there = x.to(cuda);
  CHECK(there.t().info().storage == there.info().storage);
  CHECK(same_bits(x.t().contiguous(), there.t().contiguous().to(cpu)));
  CHECK(same_bits(x.flip({0}) + 1.0, (there.flip({0}) + 1.0).to(cpu)));
  CHECK(same_bits(x.t().reshape({60}), there.t().reshape({60}).to(cpu)));
  check_on_gpu(
      [](std::vector<Tensor> v) {
        return std::vector{v[0].t() + v[1], v[0].slice(1, 1, 9, 3) * 3.0, v[0].flip({1})};
      },
      {x, numbers({10, 6}, 0.2)});
  const auto f = compile([](Tensor v) { return v * 2.0; });
  for (int64_t start : {0, 1, 2, 3, 5}) {
    const Tensor part = numbers({301}).slice(0, start);
    CHECK(same_bits(part * 2.0, f(numbers({301}).to(cuda).slice(0, start)).to(cpu)));
  }
}

TEST_CASE("memory that runs another way has the same bits: tiles, strips, short rows",
          "[cuda]") {
  NEEDS_GPU;
  using In = const std::vector<Tensor>&;
  using Out = std::vector<Tensor>;
  const auto transposed = [](int64_t rows, int64_t columns, DType type = float32) {
    return numbers({columns, rows}).to(type).t();
  };
  const auto products = [](In x) { return Out{tanh(x[0] * x[1] + x[2]) * sigmoid(x[0])}; };
  const auto softmaxes = [](In x) { return Out{softmax(x[0], 1), softmax(x[0], 1).t()}; };
  const auto sums = [](In x) { return Out{x[0] / x[0].sum(1, true), argmax(x[0], 1)}; };
  check_on_gpu(products, {transposed(96, 160), transposed(96, 160), transposed(96, 160)});
  check_on_gpu(products, {transposed(97, 45), transposed(97, 45), transposed(97, 45)});
  for (DType type : {float32, bfloat16, float64}) {
    check_on_gpu(products,
                 {transposed(130, 66, type), transposed(130, 66, type), transposed(130, 66)});
    check_on_gpu(softmaxes, {transposed(272, 1024, type)});
    check_on_gpu(softmaxes, {numbers({16385, 7}).to(type)});
    check_on_gpu(sums, {numbers({16400, 12}).to(type)});
    check_on_gpu(softmaxes, {numbers({1001, 1}).to(type)});
  }
  for (int64_t length : {37, 1000, 3000, 4096, 12000}) {
    check_on_gpu(softmaxes, {transposed(262, length)});
    check_on_gpu(sums, {transposed(256, length)});
  }
  // Blocks of a cluster share a strip.
  const auto several = [](In x) {
    return Out{log_softmax(x[0], 1), layer_norm(x[0], {x[0].size(1)}), max(x[0], {1})};
  };
  for (DType type : {float32, bfloat16, float64}) {
    check_on_gpu(softmaxes, {transposed(272, 5000, type)});
    check_on_gpu(several, {transposed(270, 4097, type)});
    check_on_gpu(several, {transposed(320, 16384, type)});
  }
  check_on_gpu([](In x) { return Out{softmax(x[0] + x[1].t(), 1)}; },
               {transposed(300, 3001), numbers({3001, 300})});
}

TEST_CASE("casts to integers know NaN, also of absolute values", "[cuda]") {
  NEEDS_GPU;
  const float nan = std::nanf(""), inf = HUGE_VALF;
  const Tensor x = from_vector<float>({nan, -nan, inf, -inf, -0.0f, -0.5f, 0.99f, 127.5f,
                                       255.9f, 256, -129, 4e9f, -4e9f, 3e38f, 1e-45f});
  for (DType dtype : {uint8, int8, int32, int64, uint32, uint64}) {
    check_on_gpu(
        [dtype](std::vector<Tensor> in) {
          return std::vector{abs(in[0]).to(dtype), in[0].to(dtype), (-in[0]).to(dtype)};
        },
        {x});
    check_on_gpu(
        [dtype](std::vector<Tensor> in) {
          return std::vector{abs(in[0].to(float64)).to(dtype)};
        },
        {x});
  }
  for (DType dtype : {bfloat16, float16}) {
    check_on_gpu(
        [](std::vector<Tensor> in) {
          const Tensor& a = in[0];
          return std::vector{sigmoid(a),
                             tanh(a),
                             silu(a),
                             gelu(a),
                             round(a.to(float32) * 0.75).to(int8),
                             minimum(maximum(round(a.to(float32)), -127.0), 127.0).to(uint8),
                             round(a.to(float32)).to(int32),
                             round(a.to(float32)).to(uint32)};
        },
        {x.to(dtype)});
  }
  for (DType dtype : {float32, float64, float16}) {
    check_on_gpu(
        [](std::vector<Tensor> in) {
          const Tensor size = abs(in[0]), two = where(size < 0.0, 1.0, 2.0);
          return std::vector{where(isnan(size), 0.0, two), where(size == size, two, 0.0)};
        },
        {x.to(dtype)});
  }
}

TEST_CASE("rows that warps share and exponentials of long rows, special values too", "[cuda]") {
  NEEDS_GPU;
  using In = std::span<const Tensor>;
  using Out = std::vector<Tensor>;
  const auto normed = [](In i) {
    const Tensor centred = i[0] - i[0].mean(1, true);
    return Out{centred * rsqrt((centred * centred).mean(1, true) + 1e-5), i[0].max({1})};
  };
  for (int64_t length : {600, 1000, 1023, 1024}) check_on_gpu(normed, {numbers({37, length})});
  check_on_gpu(normed, {numbers({37, 2046}).slice(1, 0, 2046, 2)});
  check_on_gpu(normed, {numbers({37, 1025}).slice(1, 1, 1025)});
  check_on_gpu(normed, {numbers({33000, 600})});
  const auto shares = [](In i) {
    const Tensor all = logsumexp(i[0], {1}, true);
    return Out{softmax(i[0], 1), exp(i[0] - all), exp(i[0]), all};
  };
  for (int64_t length : {9001, 50257}) {
    Tensor x = numbers({101, length}, 0.9);
    const auto row = [&](int64_t r) { return x.data<float>() + r * length; };
    row(1)[77] = HUGE_VALF;
    row(2)[length - 1] = std::nanf("");
    std::fill_n(row(3), 3000, -HUGE_VALF);
    std::fill_n(row(4), length, -HUGE_VALF);
    for (int64_t k = 0; k < length; k += 500) row(5)[k] = 40 + static_cast<float>(k) / 400;
    check_on_gpu(shares, {x});
  }
}

TEST_CASE("long columns, several kernels, have the C++ back end's bits", "[cuda]") {
  NEEDS_GPU;
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  auto function = [](Tensor x, Tensor dy) {
    const Tensor c = x - x.mean(0), dz = where(x > 0.0, dy, 0.0),
                 dg = gelu_backward(dy, x, "tanh");
    return std::array<Tensor, 7>{c * rsqrt((c * c).mean(0) + 1e-5),
                                 sum(x, {0}),
                                 sum(x * dy, {0}),
                                 dz,
                                 sum(dz, {0}),
                                 dg,
                                 sum(dg, {0})};
  };
  for (const Sizes& shape : {Sizes{2049, 2049}, Sizes{65537, 65}}) {
    const Tensor x = numbers(shape), dy = numbers(shape, -0.11) + 0.05;
    const auto want = compile(function)(x, dy),
               got = compile(function)(x.to(cuda), dy.to(cuda));
    for (size_t k = 0; k < want.size(); k++) {
      INFO("result " << k);
      CHECK(same_bits(want[k], got[k].to(cpu)));
    }
  }
}

TEST_CASE("tensors of two devices do not mix, numbers go along", "[cuda]") {
  NEEDS_GPU;
  const Tensor x = numbers({4}), there = x.to(cuda);
  CHECK_THAT(message_of([&] { x + there; }),
             ContainsSubstring("cuda_test.cpp") && ContainsSubstring("to(...)"));
  const auto f = compile([](Tensor a, Tensor b) { return a + b; }, {.name = "mix"});
  CHECK_THAT(message_of([&] { f(x, there); }), ContainsSubstring("mix") &&
                                                   ContainsSubstring("input 0 is on cpu") &&
                                                   ContainsSubstring("input 1 on cuda:0"));
  const auto g = compile([w = x](Tensor a) { return a + w; });
  CHECK_THAT(message_of([&] { g(there); }), ContainsSubstring("captured tensor 0"));
  CHECK(same_bits(x + 2.5f, f(there, 2.5f).to(cpu)));
  CHECK(same_bits(x + 3.5f, f(there, 3.5f).to(cpu)));
  CHECK(f.cache().size() == 1);
}

TEST_CASE("a second GPU has memory, kernels and streams of its own", "[cuda][devices]") {
  NEEDS_GPU;
  CHECK_THAT(message_of([] {
               numbers({4}).to({DeviceKind::Cuda, 99});
             }),
             ContainsSubstring("no cuda:99"));
  if (cuda_device_count() < 2) SKIP("there is one GPU here");
  const Device second{DeviceKind::Cuda, 1};
  const auto function = [](Tensor x, Tensor y) {
    return std::vector{softmax(x + y, 1), (x * y).sum(0), matmul(x, y.t()).sum(1)};
  };
  const auto exact = [](Tensor x, Tensor y) {
    return std::vector{softmax(x + y, 1), (x * y).sum(0), logsumexp(x, {1})};
  };
  const auto f = compile(exact);
  const auto with_library = compile(function);
  const Tensor x = numbers({70, 20480}), y = numbers({70, 20480}, 0.11);
  const std::vector<Tensor> want = compile(exact, {.backend = "interpreter"})(x, y);
  const std::vector<Tensor> products = with_library(x.to(cuda), y.to(cuda));
  for (int call = 0; call < 4; call++) {
    for (const Device device : {cuda, second}) {
      INFO("call " << call << " on " << device.str());
      const Tensor a = x.to(device), b = y.to(device);
      const std::vector<Tensor> got = f(a, b), at_once = exact(a, b);
      for (size_t k = 0; k < want.size(); k++) {
        CHECK(got[k].device() == device);
        CHECK(same_bits(want[k], got[k].to(cpu)));
        CHECK(same_bits(want[k], at_once[k].to(cpu)));
      }
      CHECK(same_bits(products[2].to(cpu), with_library(a, b)[2].to(cpu)));
    }
  }
  CHECK(same_bits(x, x.to(cuda).to(second).to(cpu)));
  CHECK(same_bits(x, x.to(second).to(cuda).to(cpu)));
  CHECK_THAT(message_of([&] { f(x.to(cuda), y.to(second)); }),
             ContainsSubstring("cuda:0") && ContainsSubstring("cuda:1"));
  std::vector<int> wrong(2);
  std::vector<std::thread> threads;
  for (int index : {0, 1}) {
    threads.emplace_back([&, index] {
      const Device device{DeviceKind::Cuda, index};
      const Tensor a = x.to(device), b = y.to(device);
      for (int call = 0; call < 10; call++)
        wrong[index] += !same_bits(want[0], f(a, b)[0].to(cpu));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector{0, 0});
}

TEST_CASE("a kernel's mistake is thrown when its result is read", "[cuda]") {
  NEEDS_GPU;
  const auto f = compile([](Tensor t, Tensor i) { return embedding(i, t); }, {.name = "look"});
  const Tensor table = numbers({4, 8}).to(cuda);
  const Tensor bad = f(table, from_vector<int64_t>({0, 9}).to(cuda));
  CHECK_THAT(message_of([&] { bad.to(cpu); }), ContainsSubstring("look"));
  const Tensor good = f(table, from_vector<int64_t>({0, 3}).to(cuda));
  CHECK(good.to(cpu).numel() == 16);
}

TEST_CASE("draws on a GPU are those of the CPU", "[cuda]") {
  NEEDS_GPU;
  const auto f = compile([](Tensor x) { return dropout(x, 0.5); });
  const Tensor x = numbers({1000});
  manual_seed(7);
  const Tensor first = f(x), second = f(x);
  manual_seed(7);
  const Tensor there = f(x.to(cuda)), again = f(x.to(cuda));
  manual_seed(7);
  const Tensor at_once = dropout(x.to(cuda), 0.5);
  CHECK(same_bits(first, there.to(cpu)));
  CHECK(same_bits(second, again.to(cpu)));
  CHECK(same_bits(first, at_once.to(cpu)));
  CHECK(!same_bits(first, second));
}

TEST_CASE("a GPU's memory running out names the sizes", "[cuda]") {
  NEEDS_GPU;
  const auto f = compile([](Tensor x, Tensor y) { return x + y; }, {.name = "outer"});
  const Tensor x = numbers({1 << 20}).to(cuda);
  CHECK_THAT(message_of([&] {
               f(x.reshape({-1, 1}), x);
             }),
             ContainsSubstring("out of memory on cuda:0") &&
                 ContainsSubstring("f32[1048576,1048576]") && ContainsSubstring("outer"));
  CHECK(f(x, x).to(cpu).numel() == 1 << 20);
}

TEST_CASE("work goes to the user's stream, from several threads", "[cuda]") {
  NEEDS_GPU;
  const auto f = compile([](Tensor x) { return x.softmax(-1) * 2.0; });
  const Tensor x = numbers({64, 1000});
  const Tensor want = f(x);
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < errors.size(); t++)
    threads.emplace_back([&, t] {
      errors[t] = message_of([&] {
        const CudaScope device(0);
        const CudaStreamScope stream(0, driver::create_stream());
        for (int i = 0; i < 20; i++) {
          if (!same_bits(want, f(x.to(cuda)).to(cpu))) fail("other bits");
        }
      });
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error == "no error");
}

TEST_CASE("random graphs have the interpreter's bits on a GPU", "[cuda][fuzz]") {
  NEEDS_GPU;
  use_no_cache();
  for (const FuzzFailure& failure : fuzz_cuda(500, 72)) {
    INFO("seed " << failure.seed << " after " << failure.stage << "\n" << failure.text);
    CHECK(false);
  }
}
