// What does a call cost the host beside its kernels? Prints it; asserts what calls return.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/catch.h"
#include "tiny_compile/tensor/cuda_stream.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

using Tensors = std::vector<Tensor>;

struct State {
  Tensors weights, momenta, variances;
};

State adam(const State& state, const Tensors& gradients) {
  State next;
  for (size_t i = 0; i < gradients.size(); i++) {
    const Tensor& g = gradients[i];
    const Tensor m = state.momenta[i] * .9 + g * .1;
    const Tensor v = state.variances[i] * .99 + g * g * .01;
    next.momenta.push_back(m);
    next.variances.push_back(v);
    next.weights.push_back(state.weights[i] - m / (sqrt(v) + 1e-8));
  }
  return next;
}

Tensors vectors(int count, Device device) {
  Tensors made;
  for (int i = 0; i < count; i++)
    made.push_back((arange(16).to(DType::f32) * .5 + i).to(device));
  return made;
}

template <typename Call>
double microseconds_of(Call call, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; i++) call();
  const std::chrono::duration<double, std::micro> spent =
      std::chrono::steady_clock::now() - start;
  return spent.count() / calls;
}

void print_times(Device device) {
  std::thread([] {}).join();  // from now on counts of owners are atomic, as with a GPU's driver
  for (const int count : {1, 2, 48, 148}) {
    const auto f = compile(adam);
    const State state{vectors(count, device), vectors(count, device), vectors(count, device)};
    const Tensors gradients = vectors(count, device);
    double best = 1e9;
    for (int round = 0; round < 20; round++) {
      best = std::min(best, microseconds_of([&] { f(state, gradients); }, 20000 / count));
      synchronize(device);
    }
    std::printf("%4d tensors on %s: %.2f us a call\n", 7 * count, device.str().c_str(), best);
  }
}

}  // namespace

TEST_CASE("hundreds of tensors, passed and returned in vectors, keep their places",
          "[compile]") {
  const auto f = compile(adam, {.name = "adam"});
  State state{vectors(50, cpu), vectors(50, cpu), vectors(50, cpu)};
  const Tensors gradients = vectors(50, cpu);
  for (int step = 0; step < 3; step++) {
    const State wanted = adam(state, gradients);
    state = f(state, gradients);
    for (size_t i = 0; i < 50; i++) {
      CHECK(same_bits(state.weights[i], wanted.weights[i]));
      CHECK(same_bits(state.momenta[i], wanted.momenta[i]));
      CHECK(same_bits(state.variances[i], wanted.variances[i]));
    }
  }
  CHECK(f.cache().size() == 1);
}

TEST_CASE("one tensor among hundreds that changes is noticed", "[compile]") {
  const auto f = compile(adam, {.name = "adam"});
  State state{vectors(50, cpu), vectors(50, cpu), vectors(50, cpu)};
  Tensors gradients = vectors(50, cpu);
  f(state, gradients);
  const Tensor kept = gradients[49];
  for (const Tensor& other :
       {kept.to(DType::f64), concat({kept, kept}, 0),
        concat({kept, kept}, 0).slice(0, 0, 32, 2), kept.flip({0}), kept.reshape({1, 16})}) {
    const size_t before = f.cache().size();
    gradients[49] = other;
    if (other.numel() != 16)
      state.weights[49] = state.momenta[49] = state.variances[49] = other;
    const State wanted = adam(state, gradients), got = f(state, gradients);
    CHECK(same_bits(got.weights[49], wanted.weights[49]));
    CHECK(f.cache().size() == before + 1);
    state.weights[49] = state.momenta[49] = state.variances[49] = kept;
  }
}

TEST_CASE("a call leaves nobody behind that owns its arguments", "[compile]") {
  const Tensors many = vectors(3, cpu);
  const auto f = compile([](const Tensors& all) { return all[0] + all[1] + all[2]; });
  const Tensor first = f(many);
  CHECK(same_bits(f(many), first));
  for (const Tensor& tensor : many) CHECK(tensor.info().storage.use_count() == 1);
}

TEST_CASE("an argument that comes back as it is has an owner", "[compile]") {
  for (const char* backend : {"cpp", "interpreter", "eager"}) {
    const auto f = compile(
        [](const Tensor& x, const Tensor& y) {
          return Tensors{x, x + y, x};
        },
        {.backend = backend});
    const Tensor y = ones({16});
    for (int call = 0; call < 3; call++) {
      Tensors kept;
      {
        const Tensor x = arange(16).to(DType::f32) + 1.0 * call;
        kept = f(x, y);
      }
      const Tensor other = zeros({16});  // where that would have been
      CHECK(same_bits(kept[0], arange(16).to(DType::f32) + 1.0 * call));
      CHECK(kept[0].handle().use_count() > 0);
      CHECK(same_bits(kept[2], kept[0]));
    }
  }
}

TEST_CASE("a function may replace what it was given while it is traced", "[compile]") {
  Tensor x = ones({8});
  const Tensor two = filled_tensor(Literal::of(DType::f32, 2), {8});
  const auto f = compile([&x](const Tensor& y) {
    if (!y.is_traced()) return y;
    Tensor sum = y + 1.0;
    x = Tensor();  // the caller's own
    return sum;
  });
  CHECK(same_bits(f(x), two));
}

TEST_CASE("the time of a call on the CPU", "[.call_time]") { print_times(cpu); }

TEST_CASE("the time of a call on a GPU", "[.call_time]") {
  if (!why_no_cuda().empty()) SKIP(why_no_cuda());
  print_times(cuda);
}
