// What fusion promises: how many launches a function takes, that they move the least bytes, and
// why two kernels stay apart.
#include "tiny_compile/loops/fuse.h"

#include <numeric>

#include "tests/loops/refusals.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/tracer.h"

using namespace tiny_compile;
using tests::require_refusal;

namespace {

struct Fused {
  Program program;
  std::vector<Tensor> inputs;
  int64_t launches() const { return static_cast<int64_t>(program.launches.size()); }
  int64_t bytes() const { return bytes_moved(program); }
  int64_t counted() const {  // distinct elements touched, counted while running
    const std::vector<int64_t> touched = bytes_touched(program, inputs);
    return std::accumulate(touched.begin(), touched.end(), int64_t{0});
  }
};

Fused fused(const TensorFunction& function, std::vector<Tensor> inputs) {
  const Traced traced = trace(function, inputs, "f");
  const Program program = run_pipeline(default_pipeline(), traced.graph, true).program;
  const std::vector<Tensor> want = interpret(traced.graph, inputs);
  const std::vector<Tensor> got = interpret(program, inputs);
  for (size_t k = 0; k < want.size(); k++) REQUIRE(same_bits(want[k], got[k]));
  return {program, std::move(inputs)};
}

using In = std::span<const Tensor>;
using Out = std::vector<Tensor>;

const Sizes kRagged = {1, 7, 1001};

// Runs `check` at every ragged number of rows and columns, tensors small enough to interpret.
void at_ragged_shapes(const std::function<void(int64_t rows, int64_t columns)>& check) {
  for (int64_t rows : kRagged) {
    for (int64_t columns : kRagged) {
      if (rows * columns > 100000) continue;
      INFO(rows << " rows of " << columns);
      check(rows, columns);
    }
  }
}

void require_least(const Fused& f, int64_t launches, int64_t floats) {
  INFO(print(f.program));
  REQUIRE(f.launches() == launches);
  REQUIRE(f.bytes() == 4 * floats);
  REQUIRE(f.counted() == 4 * floats);
}

}  // namespace

TEST_CASE("bias and gelu are one launch that reads x and the bias once", "[fuse]") {
  at_ragged_shapes([](int64_t n, int64_t c) {
    const auto f =
        fused([](In in) { return Out{gelu(in[0] + in[1])}; }, {randn({n, c}), randn({c})});
    require_least(f, 1, 2 * n * c + c);
  });
}

TEST_CASE("softmax and log_softmax are one launch, along either axis", "[fuse]") {
  at_ragged_shapes([](int64_t n, int64_t c) {
    for (int64_t axis : {0, 1}) {
      require_least(fused([&](In in) { return Out{softmax(in[0], axis)}; }, {randn({n, c})}), 1,
                    2 * n * c);
      require_least(
          fused([&](In in) { return Out{log_softmax(in[0], axis)}; }, {randn({n, c})}), 1,
          2 * n * c);
    }
  });
}

TEST_CASE("layer norm with weight and bias is one launch", "[fuse]") {
  at_ragged_shapes([](int64_t n, int64_t c) {
    const auto f = fused([&](In in) { return Out{layer_norm(in[0], {c}, in[1], in[2])}; },
                         {randn({n, c}), randn({c}), randn({c})});
    require_least(f, 1, 2 * n * c + 2 * c);
  });
}

TEST_CASE("adding and normalising is one launch with both results", "[fuse]") {
  at_ragged_shapes([](int64_t n, int64_t c) {
    const auto f = fused(
        [&](In in) {
          const Tensor sum = in[0] + in[1];
          return Out{rms_norm(sum, {c}, in[2]), sum};
        },
        {randn({n, c}), randn({n, c}), randn({c})});
    require_least(f, 1, 4 * n * c + c);
  });
}

TEST_CASE("the mean squared error is one launch, two where its row is long", "[fuse]") {
  auto loss = [](In in) { return Out{mse_loss(in[0], in[1])}; };
  at_ragged_shapes([&](int64_t n, int64_t c) {
    require_least(fused(loss, {randn({n, c}), randn({n, c})}), 1, 2 * n * c + 1);
  });
  const int64_t n = 20 * 1001, chunks = (n + 1023) / 1024;
  require_least(fused(loss, {randn({20, 1001}), randn({20, 1001})}), 2,
                2 * n + chunks + chunks + 1);
}

TEST_CASE("cross-entropy is two launches: a row's loss, and their mean", "[fuse]") {
  at_ragged_shapes([](int64_t n, int64_t c) {
    const auto f = fused([](In in) { return Out{cross_entropy(in[0], in[1])}; },
                         {randn({n, c}), randint(0, c, {n})});
    INFO(print(f.program));
    REQUIRE(f.launches() <= 2);
    REQUIRE(f.bytes() == f.counted());
    // logits and classes once; a loss a row written and read; the classes' count; the mean
    const int64_t rows = n > 1 ? 2 * n : 0, again = n > 1 ? 8 * n : 0;
    REQUIRE(f.bytes() <= 4 * n * c + 8 * n + 4 * rows + again + 4);
  });
}

TEST_CASE("a step of AdamW is one launch with three results", "[fuse]") {
  auto adamw = [](In in) {
    const Tensor &p = in[0], &g = in[1], &step = in[4];
    const Tensor m = 0.9 * in[2] + 0.1 * g, v = 0.999 * in[3] + 0.001 * g * g;
    const Tensor rate = in[5] / (1.0 - pow(0.9, step)), scale = sqrt(1.0 - pow(0.999, step));
    return Out{p * (1.0 - 0.01 * in[5]) - rate * m / (sqrt(v) / scale + 1e-8), m, v};
  };
  at_ragged_shapes([&](int64_t n, int64_t c) {
    const Tensor v = square(randn({n, c}));
    const auto f = fused(
        adamw, {randn({n, c}), randn({n, c}), randn({n, c}), v, full({}, 3.0), full({}, 1e-3)});
    require_least(f, 1, 7 * n * c + 2);
  });
}

TEST_CASE("transposes cost nothing: x.t() + y and x.t().softmax(0) are one launch", "[fuse]") {
  at_ragged_shapes([](int64_t n, int64_t c) {
    require_least(
        fused([](In in) { return Out{in[0].t() + in[1]}; }, {randn({c, n}), randn({n, c})}), 1,
        3 * n * c);
    require_least(fused([](In in) { return Out{in[0].t().softmax(0)}; }, {randn({n, c})}), 1,
                  2 * n * c);
  });
}

TEST_CASE("a two-layer MLP is two launches, bias and gelu in their epilogues", "[fuse]") {
  for (int64_t n : {1, 7, 33}) {
    const int64_t in_size = 17, hidden = 33, out_size = 5;
    INFO(n << " rows");
    const auto f = fused(
        [](In in) {
          const Tensor h = gelu(linear(in[0], in[1], in[2]));
          return Out{linear(h, in[3], in[4])};
        },
        {randn({n, in_size}), randn({hidden, in_size}), randn({hidden}),
         randn({out_size, hidden}), randn({out_size})});
    require_least(f, 2,
                  n * in_size + hidden * in_size + hidden + n * hidden +  // the first layer
                      n * hidden + out_size * hidden + out_size + n * out_size);
  }
}

TEST_CASE("what follows an embedding reads only the rows chosen", "[fuse]") {
  const auto f = fused([](In in) { return Out{relu(embedding(in[0], in[1]) + 1.0)}; },
                       {tensor({int64_t{3}, int64_t{3}, int64_t{0}}), randn({100, 7})});
  REQUIRE(f.launches() == 1);
  REQUIRE(f.counted() == 3 * 8 + 2 * 7 * 4 + 3 * 7 * 4);
  REQUIRE(f.bytes() >= f.counted());  // which rows is known only when it runs
}

TEST_CASE("fusing never moves more bytes than its parts did", "[fuse]") {
  const TensorFunction functions[] = {
      [](In in) { return Out{softmax(in[0] * 2.0, 1) + in[1]}; },
      [](In in) {
        return Out{in[0].sum(0), in[0].sum(1), in[0].max()};
      },
      [](In in) {
        return Out{exp(in[0]).t() + in[1].t(), exp(in[0])};
      },
      [](In in) {
        return Out{concat({in[0], in[1], in[0] * 2.0}, 0).sum(0)};
      },
      [](In in) { return Out{matmul(exp(in[0]), in[1].t()) + 1.0}; },
      [](In in) { return Out{cumsum(exp(in[0]), 1) / in[1].sum(1, true)}; },
  };
  for (const TensorFunction& function : functions) {
    const std::vector<Tensor> inputs = {randn({33, 17}), randn({33, 17})};
    const Program lowered = lower(trace(function, inputs, "f").graph), after = fuse(lowered);
    INFO(print(lowered) << print(after));
    REQUIRE(after.launches.size() <= lowered.launches.size());
    REQUIRE(bytes_moved(after) <= bytes_moved(lowered));
  }
}

TEST_CASE("kernels with another between them stay apart", "[fuse]") {
  require_refusal(R"(graph f(%0 x: f32[8,64]) {
    %1: f32[8,64] = cumsum %0 {axis=1}
    %2: f32[8,64] = cumsum %1 {axis=1}
    %3: f32[8,64] = sub %2, %1
    return %3
  })",
                  "another kernel lies between them", 3);
}

TEST_CASE("what goes down long columns goes down them alone", "[fuse]") {
  auto centre = [](In in) { return Out{in[0] - in[0].mean(0)}; };
  auto norm = [](In in) {
    const Tensor c = in[0] - in[0].mean(0);
    return Out{c * rsqrt((c * c).mean(0) + 1e-5)};
  };
  auto moments = [](In in) { return Out{sum(in[0], {0}), sum(in[0] * in[0], {0})}; };
  auto mask = [](In in) {
    const Tensor dz = where(in[0] > 0.0, in[0], 0.0);
    return Out{dz, sum(dz, {0})};
  };
  struct Case {
    const TensorFunction function;
    int64_t apart;
  };
  const std::vector<Case> cases = {{centre, 2}, {norm, 3}, {moments, 2}, {mask, 2}};
  for (const Case& one : cases) {
    CHECK(fused(one.function, {randn({1025, 256})}).launches() == one.apart);
    CHECK(fused(one.function, {randn({1025, 255})}).launches() == 1);  // few elements
    CHECK(fused(one.function, {randn({1024, 300})}).launches() == 1);  // short columns
    CHECK(fused(one.function, {randn({255, 1025})}).launches() == 1);
  }
  CHECK(fused([](In in) { return Out{in[0] - in[0].mean(1, true)}; }, {randn({256, 1025})})
            .launches() == 1);  // rows
  CHECK(
      fused([](In in) { return Out{softmax(transpose(in[0], 0, 1), 1)}; }, {randn({1025, 256})})
          .launches() == 1);  // stored along rows: strips
  for (const Sizes& shape :
       {Sizes{8193, 512}, Sizes{8192, 513}}) {  // a cluster of a GPU's blocks holds more
    const std::vector<Tensor> inputs = {randn(shape)};
    const Graph graph = trace(norm, inputs, "f").graph;
    const Pipeline pipeline = until(default_pipeline(), "fuse");
    CHECK(run_pipeline(pipeline, graph, true, Target::Cuda).program.kernels.size() ==
          (shape[0] > 8192 ? 3 : 1));
  }
}

TEST_CASE("a gradient down long columns takes in what it computes anyway", "[fuse]") {
  // A softmax, and the gradient of another with its own maximum and sum, which turn out to be the same.
  const std::string both =
      R"(graph f(%0 x: f32[512,9000] {strides=[1,512]}, %1 y: f32[512,9000]) {
  %2: f32[512,1] = max %0 {axes=[1], keepdim=1}
  %3: f32[512,9000] = expand %2
  %4: f32[512,9000] = sub %0, %3
  %5: f32[512,9000] = exp %4
  %6: f32[512,1] = sum %5 {axes=[1], keepdim=1}
  %7: f32[512,9000] = expand %6
  %8: f32[512,9000] = div %5, %7
  %9: f32[512] = max %0 {axes=[1]}
  %10: f32[512,1] = reshape %9
  %11: f32[512,9000] = expand %10
  %12: f32[512,9000] = sub %0, %11
  %13: f32[512,9000] = exp %12
  %14: f32[512] = sum %13 {axes=[1]}
  %15: f32[512,1] = reshape %14
  %16: f32[512,9000] = expand %15
  %17: f32[512,9000] = div %13, %16
  %18: f32[512,9000] = mul %1, %17
  %19: f32[512] = sum %18 {axes=[1]}
  %20: f32[512,1] = reshape %19
  %21: f32[512,9000] = expand %20
  %22: f32[512,9000] = sub %1, %21
  %23: f32[512,9000] = mul %22, %17
)";
  const auto kernels = [](const std::string& graph) {
    return run_pipeline(until(default_pipeline(), "fuse"), parse_graph(graph), true,
                        Target::Cuda)
        .program.kernels.size();
  };
  CHECK(kernels(both + "  return %8, %23\n}") == 1);
  // What has reductions of its own goes down once more, by itself.
  CHECK(kernels(both + R"(  %24: f32[512,1] = sum %0 {axes=[1], keepdim=1}
  %25: f32[512,9000] = expand %24
  %26: f32[512,9000] = sub %0, %25
  %27: f32[512,9000] = mul %26, %26
  %28: f32[512,1] = sum %27 {axes=[1], keepdim=1}
  %29: f32[512,9000] = expand %28
  %30: f32[512,9000] = mul %26, %29
  return %8, %23, %30
})") == 2);
}

TEST_CASE("what is made of one long sum a column, or makes its elements, is in its kernel",
          "[fuse]") {
  const std::vector<Tensor> inputs = {randn({1025, 256}), randn({256})};
  auto scaled = [](In in) { return Out{rsqrt(in[0].mean(0) * in[1] + 1.0)}; };
  auto elements = [](In in) { return Out{sum(gelu(in[0] + in[1]), {0})}; };
  for (const TensorFunction& function : {TensorFunction(scaled), TensorFunction(elements)})
    CHECK(fused(function, inputs).launches() == 1);
}

TEST_CASE("a GPU's points do not wait for a sum down more than a chunk", "[fuse]") {
  const auto kernels = [](int64_t length) {
    const std::string shape = str("f32[", length, ",768]");
    return run_pipeline(until(default_pipeline(), "fuse"),
                        parse_graph(str("graph f(%0 x: ", shape, ") {\n  %1: ", shape,
                                        " = abs %0\n  %2: f32[768] = sum %1 {axes=[0]}\n",
                                        "  return %1, %2\n}\n")),
                        true, Target::Cuda)
        .program.kernels.size();
  };
  CHECK(kernels(1024) == 1);
  CHECK(kernels(1025) == 2);
}

TEST_CASE("columns of a costly result that is in memory are added up from there", "[fuse]") {
  auto backward = [](In in) {
    const Tensor dz = gelu_backward(in[0], in[1], "tanh");
    return Out{dz, sum(dz, {0})};
  };
  auto sums = [](In in) { return Out{sum(gelu_backward(in[0], in[1], "tanh"), {0})}; };
  auto rows = [](In in) {
    const Tensor dz = gelu_backward(in[0], in[1], "tanh");
    return Out{dz, sum(dz, {1})};
  };
  at_ragged_shapes([&](int64_t n, int64_t c) {
    if (n == 1 || c == 1) return;
    const std::vector<Tensor> inputs = {randn({n, c}), randn({n, c})};
    CHECK(fused(backward, inputs).launches() == 2);
    CHECK(fused(sums, inputs).launches() == 1);
    CHECK(fused(rows, inputs).launches() == 1);
  });
}

TEST_CASE("a reduction that ops of other shapes repeat is taken once", "[fuse]") {
  const Tensor x = randn({6, 5, 7});
  const Fused f = fused(
      [](In in) {
        const Tensor flat = in[0].reshape({6, 35});
        return Out{in[0] - in[0].sum({1, 2}, true), flat * flat.sum({1}, true)};
      },
      {x});
  INFO(print(f.program));
  REQUIRE(f.launches() == 1);
  const std::vector<Step>& steps = f.program.kernels[0].steps;
  REQUIRE(std::count_if(steps.begin(), steps.end(), makes_register) == 1);
}

TEST_CASE("a row's steps do not each find out from which of many operands an element comes",
          "[fuse]") {
  const TensorFunction normalised = [](In in) {
    const Tensor all = concat({in.begin(), in.end()}, 1);
    return Out{layer_norm(all, {all.size(1)})};
  };
  const Tensor x = randn({9, 5});
  REQUIRE(fused(normalised, {x, x, x}).launches() == 1);
  const Fused four = fused(normalised, {x, x, x, x});
  INFO(join(four.program.refusals, "\n"));
  REQUIRE(four.launches() == 2);
  const std::string reason = "its steps would each choose among more than 3 buffers";
  REQUIRE(std::any_of(four.program.refusals.begin(), four.program.refusals.end(),
                      [&](const std::string& r) { return r.ends_with(reason); }));
}

// A state that each step keeps a part of, adds to and reads a sum of: what an unrolled selective
// state space does.
Program unrolled(int64_t steps, bool gradient) {
  const auto states = [steps](In in) {
    Tensor h = in[1] * 0.0;
    Out found;
    for (int64_t t = 0; t < steps; t++) {
      h = h * exp(slice(in[0], 0, t, t + 1)) + slice(in[2], 0, t, t + 1);
      found.push_back(sum(h * in[1], {1}));
    }
    return Out{concat(found, 0)};
  };
  const std::vector<Tensor> inputs = {randn({steps, 8}), randn({1, 8}), randn({steps, 8})};
  Graph graph = trace(states, inputs, "f").graph;
  if (!gradient) return run_pipeline(until(default_pipeline(), "fuse"), graph, true).program;
  graph = vjp(graph, {0, 1, 2});
  return run_pipeline(until(default_pipeline(), "fuse"), graph, true).program;
}

TEST_CASE("work is not done again for each step of a recurrence", "[fuse]") {
  const auto work = [](const Program& program) {  // products of all points of all steps
    int64_t total = 0;
    for (const Kernel& kernel : program.kernels) {
      for (const Step& step : kernel.steps) {
        const std::vector<bool> wanted = reachable(kernel, step);
        for (size_t id = 0; id < wanted.size(); id++) {
          if (wanted[id] && kernel.scalars[id].op == Op::mul)
            total += row_count(kernel).constant() * inner_count(kernel, step).constant();
        }
      }
    }
    return static_cast<double>(total);
  };
  for (const bool gradient : {false, true})
    CHECK(work(unrolled(96, gradient)) < 3 * work(unrolled(48, gradient)));
}

TEST_CASE("a kernel reads no more than 128 buffers", "[fuse]") {
  std::vector<Tensor> inputs;
  for (int k = 0; k < 300; k++) inputs.push_back(randn({7}));
  const auto f = fused(
      [](In in) {
        Tensor sum = in[0];
        for (size_t k = 1; k < in.size(); k++) sum = sum + in[k];
        return Out{sum};
      },
      inputs);
  REQUIRE(f.launches() == 3);
  const auto join = [](In in) { return Out{concat(Out(in.begin(), in.end()), 0)}; };
  require_least(fused(join, {inputs.begin(), inputs.begin() + 128}), 1, 2 * 7 * 128);
  REQUIRE(fused(join, inputs).launches() == 3);  // 128, 128, and these with the other 44
}

TEST_CASE("many large products are added up in turns, so that few of them wait", "[fuse]") {
  const auto sum_of_products = [](In in) {
    Tensor sum;
    for (int k = 0; k < 8; k++) {
      const Tensor product = matmul(slice(in[0], 1, 8 * k, 8 * k + 8), in[1]);
      sum = sum.defined() ? sum + product : product;
    }
    return Out{sum};
  };
  const auto arena = [&](int64_t rows) {
    const std::vector<Tensor> inputs = {empty_tensor(float32, {rows, 64}),
                                        empty_tensor(float32, {8, 1024})};
    const Pipeline library = with_library(default_pipeline(), Matmul::Library);
    const Graph graph = trace(TensorFunction(sum_of_products), inputs, "f").graph;
    return run_pipeline(until(library, "plan_memory"), graph, true, Target::Cuda)
        .program.arena_bytes;
  };
  REQUIRE(arena(16) == 8 * 16 * 1024 * 4);
  REQUIRE(arena(1024) <= 4 * 1024 * 1024 * 4);
}

TEST_CASE("what nobody reads after fusing is neither stored nor computed", "[fuse]") {
  const Program program = fuse(parse_program(R"(program f {
    input x: f32[8]
    input z: f32[8]
    temp t1: f32[8]
    temp t2: f32[8]
    output y: f32[8]
    kernel exp_1 rows(i0: 8) {
      store t1[i0] = exp(load x[i0])
    }
    kernel neg_2 rows(i0: 8) {
      store t2[i0] = neg(load t1[i0])
    }
    kernel sin_3 rows(i0: 8) {
      store y[i0] = sin(load z[i0])
    }
    launch exp_1
    launch neg_2
    launch sin_3
    return y
  })"));
  REQUIRE(print(program) == R"(program f {
  input x: f32[8]
  input z: f32[8]
  output y: f32[8]
  kernel sin_3 rows(i0: 8) {
    store y[i0] = sin(load z[i0])
  }
  launch sin_3
  return y
}
)");
}
