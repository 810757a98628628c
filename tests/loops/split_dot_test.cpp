// Products with the zeros between an operand's elements are left out, and no bit tells.
#include "tiny_compile/loops/split_dot.h"

#include <limits>

#include "tests/catch.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Body = std::function<Out(In)>;

// A convolution's geometry: its input is [n, c, h, w], its kernel k x k.
struct Image {
  int64_t n, c, h, w, o, k, stride, padding;
  int64_t out(int64_t size) const { return (size + 2 * padding - k) / stride + 1; }
};

// Elements of the last two axes `stride` apart, zeros between them.
Tensor drawn_apart(const Tensor& x, int64_t stride) {
  const int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  const Tensor apart = pad(x.reshape({n, c, h, 1, w, 1}), {0, stride - 1, 0, 0, 0, stride - 1})
                           .reshape({n, c, h * stride, w * stride});
  return slice(slice(apart, 2, 0, (h - 1) * stride + 1), 3, 0, (w - 1) * stride + 1);
}

// The gradient of a convolution's input, of its result's and its weights.
Tensor input_gradient(const Image& i, const Tensor& gradient, const Tensor& w) {
  const int64_t before = i.k - 1 - i.padding;
  const auto after = [&](int64_t size) {
    return size + i.k - 1 - before - ((i.out(size) - 1) * i.stride + 1);
  };
  const Tensor padded =
      pad(drawn_apart(gradient, i.stride), {before, after(i.w), before, after(i.h)});
  return conv2d(padded, w.flip({2, 3}).permute({1, 0, 2, 3}));
}

Body gradient_of(const Image& i) {
  return [i](In in) { return Out{input_gradient(i, in[0], in[1])}; };
}

Out inputs_of(const Image& i, DType dtype = float32) {
  return {(randn({i.n, i.o, i.out(i.h), i.out(i.w)}) * 3).to(dtype),
          (randn({i.o, i.c, i.k, i.k}) * 3).to(dtype)};
}

bool is_split(const Program& program) {
  return print(program).find("_phase_") != std::string::npos;
}

Program scheduled(const Body& body, const Out& inputs) {
  const Graph graph = trace(body, inputs, "f").graph;
  return run_pipeline(until(default_pipeline(), "schedule"), graph, true).program;
}

Out interpreted(const Body& body, const Out& inputs) {
  return interpret(trace(body, inputs, "f").graph, inputs);
}

void check_split(const Body& body, const Out& inputs) {
  const Program program = scheduled(body, inputs);
  INFO(print(program));
  CHECK(is_split(program));
  CHECK(parse_program(print(program)) == program);
  const Out wanted = interpreted(body, inputs);
  CHECK(same_bits(interpret(program, inputs)[0], wanted[0]));
  const Out compiled = compile(body, {.backend = "cpp"})(inputs);
  CHECK(same_bits(compiled[0], wanted[0]));
}

}  // namespace

TEST_CASE("gradients of strided convolutions' inputs multiply no zeros", "[split_dot]") {
  manual_seed(1);
  for (const Image& image : std::vector<Image>{{2, 16, 14, 14, 32, 3, 2, 1},
                                               {1, 16, 13, 15, 32, 3, 2, 1},
                                               {2, 32, 14, 14, 32, 1, 2, 0},
                                               {1, 32, 13, 31, 32, 1, 2, 0},
                                               {1, 16, 16, 16, 24, 2, 2, 0},
                                               {1, 8, 17, 19, 16, 5, 2, 2},
                                               {1, 8, 19, 20, 16, 4, 3, 1},
                                               {1, 8, 22, 21, 16, 3, 4, 1},
                                               {1, 3, 33, 32, 16, 7, 2, 3}}) {
    CAPTURE(image.h, image.k, image.stride);
    check_split(gradient_of(image), inputs_of(image));
  }
}

TEST_CASE("a split dot of any dtype has its bits", "[split_dot]") {
  manual_seed(2);
  const Image image = {1, 16, 13, 14, 32, 3, 2, 1};
  for (const DType dtype : {float64, bfloat16, float16, int32, int64, int8, uint8}) {
    CAPTURE(c_type(dtype));
    check_split(gradient_of(image), inputs_of(image, dtype));
  }
}

TEST_CASE("a weight that is not finite spoils the products that are left out", "[split_dot]") {
  manual_seed(3);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const int64_t k : {1, 3}) {
    const Image image = {2, 32, 13, 14, 32, k, 2, k / 2};
    for (const float wrong : {kInf, -kInf, std::nanf("")}) {
      Out inputs = inputs_of(image);
      float* const w = inputs[1].data<float>();
      for (int64_t tap = 0; tap < k * k; tap++) w[(5 * 32 + tap) * k * k + tap] = wrong;
      CAPTURE(k, wrong);
      check_split(gradient_of(image), inputs);
    }
  }
}

TEST_CASE("zeros of a split dot have the sign that all products give", "[split_dot]") {
  const Image image = {1, 32, 13, 14, 32, 3, 2, 1};
  for (const DType dtype : {float32, bfloat16, float16}) {
    const double tiny = dtype == float16 ? 1e-7 : 1e-30;
    Out inputs = inputs_of(image, dtype);
    inputs[0] = full(inputs[0].sizes(), tiny, dtype);
    inputs[1] = full(inputs[1].sizes(), -tiny, dtype);
    check_split(gradient_of(image), inputs);
  }
}

TEST_CASE("what makes a drawn apart operand, and what reads the dot, keep their kernels",
          "[split_dot]") {
  manual_seed(4);
  const Image image = {2, 16, 14, 14, 32, 3, 2, 1};
  check_split(
      [&](In in) {
        const Tensor g = exp(in[0]) * in[0] - 1.0;  // is not drawn apart in memory
        return Out{relu(input_gradient(image, g, in[1]) + in[2]), sum(g, {1})};
      },
      {inputs_of(image)[0], inputs_of(image)[1], randn({2, 16, 14, 14})});
}

TEST_CASE("a row of a matrix between zeros is a phase as well", "[split_dot]") {
  manual_seed(5);
  check_split(
      [](In in) {
        const Tensor apart = pad(in[0].reshape({100, 1, 64}), {0, 0, 1, 2}).reshape({400, 64});
        return Out{matmul(apart, in[1])};
      },
      {randn({100, 64}), randn({64, 48})});
  check_split(
      [](In in) {
        const Tensor apart = pad(in[0].reshape({100, 1, 64}), {0, 0, 1, 2}).reshape({400, 64});
        return Out{matmul(in[1], apart.transpose(0, 1))};
      },
      {randn({100, 64}), randn({48, 64})});
}

TEST_CASE("a dot that multiplies few zeros stays one kernel", "[split_dot]") {
  manual_seed(6);
  const Image plain = {1, 32, 14, 14, 32, 3, 1, 1}, small = {1, 2, 8, 8, 4, 3, 2, 1};
  for (const Image& image : {plain, small})
    CHECK_FALSE(is_split(scheduled(gradient_of(image), inputs_of(image))));
  const auto with_ones = [](In in) {
    const Tensor apart = pad(in[0].reshape({100, 1, 64}), {0, 0, 0, 3}, 1.0).reshape({400, 64});
    return Out{matmul(apart, in[1])};
  };
  CHECK_FALSE(is_split(scheduled(with_ones, {randn({100, 64}), randn({64, 48})})));
}
