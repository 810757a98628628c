// What networks become where the library multiplies: how many launches, and which of them are
// calls with what behind the product.
#include "tiny_compile/loops/use_library.h"

#include <functional>
#include <random>

#include "tests/fuzz/random_graph.h"
#include "tests/loops/library_calls.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/trace/nn.h"
#include "tiny_compile/trace/windows.h"

using namespace tiny_compile;
using tests::for_library;
using tests::ForLibrary;
using tests::In;
using tests::Out;

namespace {

// The calls among the launches, in order.
std::vector<std::string> calls_of(const ForLibrary& f) {
  std::vector<std::string> calls;
  for (const std::string& call : f.calls) {
    if (!call.empty()) calls.push_back(call);
  }
  return calls;
}

std::vector<Tensor> random_tensors(const std::vector<Sizes>& shapes, DType dtype = DType::f32) {
  std::vector<Tensor> tensors;
  for (const Sizes& shape : shapes) tensors.push_back(randn(shape).to(dtype));
  return tensors;
}

constexpr int64_t kBatch = 2, kLength = 8, kHeads = 4, kHead = 16, kWidth = kHeads * kHead;

// x -> projection(attention(qkv(x))), without the residual: weights from `at` on.
Tensor attend(const Tensor& x, In i, size_t at) {
  const Tensor qkv = reshape(linear(x, i[at], i[at + 1]), {kBatch, kLength, 3, kHeads, kHead});
  auto part = [&](int64_t k) {
    return permute(squeeze(slice(qkv, 2, k, k + 1), 2), {0, 2, 1, 3});
  };
  const Tensor y = scaled_dot_product_attention(part(0), part(1), part(2), {}, true);
  return linear(reshape(permute(y, {0, 2, 1, 3}), {kBatch, kLength, kWidth}), i[at + 2],
                i[at + 3]);
}

}  // namespace

TEST_CASE("a 2-layer MLP is two calls", "[library]") {
  auto mlp = [](In i) {
    return Out{linear(gelu(linear(i[0], i[1], i[2]), "tanh"), i[3], i[4])};
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ForLibrary f =
        for_library(mlp, random_tensors({{2, 16, 24}, {96, 24}, {96}, {24, 96}, {24}}, dtype));
    INFO(print(f.program) << f.refusals);
    REQUIRE(f.calls == std::vector<std::string>{
                           str(dtype, " 96x32x24 (m x n x k), A transposed, + bias, gelu"),
                           str(dtype, " 24x32x96 (m x n x k), A transposed, + bias")});
  }
}

TEST_CASE("attention is four calls and its softmax, without a copy", "[library]") {
  const ForLibrary f =
      for_library([](In i) { return Out{attend(i[0], i, 1)}; },
                  random_tensors({{2, 8, 64}, {192, 64}, {192}, {64, 64}, {64}}));
  INFO(print(f.program) << f.refusals);
  REQUIRE(f.calls ==
          std::vector<std::string>{"f32 192x16x64 (m x n x k), A transposed, + bias",
                                   "f32 8x8x16 (m x n x k), batch 4, loop 2, A transposed", "",
                                   "f32 16x8x8 (m x n x k), batch 4, loop 2",
                                   "f32 64x16x64 (m x n x k), A transposed, + bias"});
}

TEST_CASE("a block of GPT-2 is ten launches, six of them calls", "[library]") {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ForLibrary f = for_library(
        [](In i) {
          const Tensor x = i[0] + attend(layer_norm(i[0], {kWidth}, i[1], i[2]), i, 3);
          const Tensor h = layer_norm(x, {kWidth}, i[7], i[8]);
          return Out{x + linear(gelu(linear(h, i[9], i[10]), "tanh"), i[11], i[12])};
        },
        random_tensors({{2, 8, 64},
                        {64},
                        {64},
                        {192, 64},
                        {192},
                        {64, 64},
                        {64},
                        {64},
                        {64},
                        {256, 64},
                        {256},
                        {64, 256},
                        {64}},
                       dtype));
    INFO(print(f.program) << f.refusals);
    REQUIRE(f.program.launches.size() == 10);
    REQUIRE(calls_of(f).size() == 6);
    REQUIRE(calls_of(f)[4] == str(dtype, " 256x16x64 (m x n x k), A transposed, + bias, gelu"));
  }
}

TEST_CASE("two layers and their gradients are six launches, gelu and gelu' among them",
          "[library]") {
  auto step = [](In i) {
    auto t = [](const Tensor& x) { return transpose(x, 0, 1); };
    const Tensor z = matmul(i[0], i[1]) + i[2], h = gelu(z, "tanh");
    const Tensor dy = (matmul(h, i[3]) + i[4] - i[5]) * 0.01;
    const Tensor dz = gelu_backward(matmul(dy, t(i[3])), z, "tanh");
    return Out{matmul(t(h), dy), sum(dy, {0}), matmul(t(i[0]), dz), sum(dz, {0})};
  };
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ForLibrary f = for_library(
        step, random_tensors({{64, 16}, {16, 40}, {40}, {40, 24}, {24}, {64, 24}}, dtype));
    INFO(print(f.program) << f.refusals);
    const std::string name = str(dtype, " ");
    REQUIRE(calls_of(f) ==
            std::vector<std::string>{
                name + "40x64x16 (m x n x k), + bias, gelu of what it saves",
                name + "24x64x40 (m x n x k)", name + "24x40x64 (m x n x k), B transposed",
                name + "40x64x24 (m x n x k), A transposed, times gelu', sums of D", "of D",
                name + "40x16x64 (m x n x k), B transposed"});
    REQUIRE(f.program.launches.size() == 6);
  }
}

TEST_CASE("what a product makes for others as well is not taken for gelu's", "[library]") {
  const std::vector<Tensor> inputs =
      random_tensors({{48, 16}, {16, 40}, {40}, {48, 40}, {48, 16}});
  const auto product = [](In i) { return matmul(i[0], i[1]); };
  const auto both = [](In i, const Tensor& z) {
    return Out{gelu(z, "tanh"), gelu_backward(i[3], z, "tanh")};
  };
  const auto with = [](Out out, const Tensor& more) {
    out.push_back(more);
    return out;
  };
  const std::pair<const char*, std::function<Out(In)>> kGraphs[] = {
      {"y is returned",
       [&](In i) {
         return Out{product(i), gelu(product(i) + i[2], "tanh")};
       }},
      {"y is a factor",
       [&](In i) { return with(both(i, product(i) + i[2]), matmul(i[4].t(), product(i))); }},
      {"y is summed", [&](In i) { return with(both(i, product(i) + i[2]), product(i).sum()); }},
      {"y is scaled before the bias", [&](In i) { return both(i, product(i) * 0.5 + i[2]); }},
      {"y is scaled", [&](In i) { return both(i, product(i) * 0.5); }},
      {"all of them", [&](In i) {
         const Tensor y = product(i), z = y + i[2];
         return with(with(both(i, z), y * y), z);
       }}};
  for (const auto& [what, graph] : kGraphs) {
    INFO(what);
    REQUIRE_NOTHROW(for_library(graph, inputs));
  }
}

TEST_CASE("a gelu that nobody multiplies stays with who reads it", "[library]") {
  const ForLibrary f = for_library(
      [](In i) {
        const Tensor z = matmul(i[0], i[1]);
        return Out{gelu(z, "tanh").sum(1), z.sum(1)};
      },
      random_tensors({{64, 32}, {32, 40}}, DType::bf16));
  INFO(print(f.program) << f.refusals);
  REQUIRE(f.program.launches.size() == 2);
  const ForLibrary sums = for_library(
      [](In i) {
        const Tensor dz = gelu_backward(matmul(i[0], i[1]), i[2], "tanh");
        return Out{dz + i[3], dz.sum(0)};
      },
      random_tensors({{48, 24}, {24, 40}, {48, 40}, {48, 40}}));
  INFO(print(sums.program) << sums.refusals);
  REQUIRE(sums.program.launches.size() == 2);
}

// Products, what stands behind them, and who reads any of that.
TEST_CASE("random steps of training mean the same where the library multiplies", "[library]") {
  const std::vector<Tensor> inputs =
      random_tensors({{48, 16}, {16, 40}, {40}, {48, 40}, {40, 40}});
  for (unsigned seed = 1; seed <= 300; seed++) {
    const auto step = [seed](In i) {
      std::mt19937 random(seed);
      const auto below = [&](size_t n) { return random() % n; };
      Out made = {matmul(i[0], i[1])}, out;
      for (size_t ops = 3 + below(7); ops > 0; ops--) {
        const Tensor x = made[below(made.size())], y = made[below(made.size())];
        switch (below(8)) {
          case 0: made.push_back(x + i[2]); break;
          case 1: made.push_back(x * 0.5); break;
          case 2: made.push_back(gelu(x, "tanh")); break;
          case 3: made.push_back(gelu_backward(below(2) ? y : i[3], x, "tanh")); break;
          case 4: made.push_back(matmul(x, i[4])); break;
          case 5: out.push_back(x.sum(below(2))); break;
          case 6: out.push_back(matmul(i[0].t(), x)); break;
          case 7: made.push_back(x + y); break;
        }
        if (below(3) == 0) out.push_back(made.back());
      }
      out.push_back(made.back());
      return out;
    };
    INFO("seed " << seed);
    REQUIRE_NOTHROW(for_library(step, inputs));
  }
}

TEST_CASE("a factor in another order is copied once, windows are not", "[library]") {
  const ForLibrary heads = for_library(
      [](In i) {
        return Out{matmul(reshape(permute(i[0], {1, 0, 2}), {8, 64}), i[1])};
      },
      random_tensors({{4, 8, 16}, {64, 5}}));
  INFO(print(heads.program) << heads.refusals);
  REQUIRE(heads.calls == std::vector<std::string>{"", "f32 5x8x64 (m x n x k)"});
  const ForLibrary windows = for_library([](In i) { return Out{conv2d(i[0], i[1])}; },
                                         random_tensors({{1, 2, 6, 6}, {4, 2, 3, 3}}));
  REQUIRE(windows.calls == std::vector<std::string>{""});
}

TEST_CASE("products of the same elements in another order share their copy", "[library]") {
  // A layer's product and its weights' gradient, of heads side by side.
  const auto layer = [](const Tensor& heads, In i) {
    const Tensor x = reshape(permute(heads, {1, 0, 2}), {8, 64});
    return Out{matmul(x, i[1]), matmul(x.t(), i[2])};
  };
  const std::vector<Tensor> inputs = random_tensors({{4, 8, 16}, {64, 5}, {8, 5}});
  const ForLibrary copied = for_library([&](In i) { return layer(i[0], i); }, inputs);
  INFO(print(copied.program) << copied.refusals);
  CHECK(copied.calls == std::vector<std::string>{"", "f32 5x8x64 (m x n x k)",
                                                 "f32 5x64x8 (m x n x k), B transposed"});
  CHECK(copied.program.kernels[0].steps.size() == 1);
  // Who makes them writes them in that order.
  const ForLibrary made =
      for_library([&](In i) { return layer(matmul(i[0], i[3]), i); },
                  random_tensors({{4, 8, 16}, {64, 5}, {8, 5}, {4, 16, 16}}));
  INFO(print(made.program) << made.refusals);
  CHECK(made.calls.size() == 3);
  CHECK(calls_of(made).size() == 3);
}

TEST_CASE("a shared copy is made before whoever is launched first", "[library]") {
  const std::string kernel =
      "  kernel NAME rows(i0: 8, i1: 5) {\n    r0: f32 = dot(j0: 64) "
      "load x[(j0/16)*128 + i0*16 + j0%16], load w[i1 + j0*5]\n    store OUT[i0*5 + i1] = r0\n "
      " }\n";
  const auto named = [&](const char* name, const char* out) {
    return replace_all(replace_all(kernel, "NAME", name), "OUT", out);
  };
  const Program program = parse_program(
      "program f on cuda {\n  input x: f32[4,8,16]\n  input w: f32[64,5]\n  output y: "
      "f32[8,5]\n"
      "  output z: f32[8,5]\n" +
      named("matmul_1", "y") + named("matmul_2", "z") +
      "  launch matmul_2\n  launch matmul_1\n  return y, z\n}\n");
  const Program left = use_library_matmul(program, Matmul::Library);
  INFO(print(left));
  CHECK_NOTHROW(verify(left));
  CHECK(left.kernels.size() == 3);
}

TEST_CASE("a copy's rows are not odd where the other way they are even", "[library]") {
  const auto rows_of_copy = [](int64_t rows) {
    const Program program = use_library_matmul(
        for_machine(lower(parse_graph(str("graph f(%0 x: bf16[4,16,", rows,
                                          "], %1 w: bf16[64,64]) {\n  %2: bf16[", rows,
                                          ",16,4] = permute %0 {axes=[2,1,0]}\n  %3: bf16[",
                                          rows, ",64] = reshape %2\n  %4: bf16[", rows,
                                          ",64] = matmul %3, %1\n  return %4\n}"))),
                    default_machine(Target::Cuda)),
        Matmul::Library);
    INFO(print(program));
    const Buffer& copy = program.buffers.back();
    return copy.type.shape.back().constant();
  };
  CHECK(rows_of_copy(13) == 64);
  CHECK(rows_of_copy(16) == 16);
}

TEST_CASE("columns of what the library reads are added up from memory", "[library]") {
  const Graph graph =
      parse_graph(R"(graph f(%0 x: f32[64,8192], %1 y: f32[8192,64], %2 w: f32[128,8]) {
    %3: f32[8192,64] = permute %0 {axes=[1,0]}
    %4: f32[8192,128] = concat %3, %1 {axis=1}
    %5: f32[128] = sum %4 {axes=[0]}
    %6: f32[8192,8] = matmul %4, %2
    return %5, %6
  })");
  const Machine gpu = default_machine(Target::Cuda);
  const Program program =
      fuse(use_library_matmul(for_machine(lower(graph), gpu), Matmul::Library));
  INFO(print(program));
  REQUIRE(program.kernels.size() == 3);
  CHECK(program.kernels[0].steps.size() == 1);  // the concat alone
}

TEST_CASE("who multiplies is part of a Program and of its text", "[library]") {
  const Program program = run_pipeline(until(default_pipeline(), "lower"),
                                       trace([](In i) { return Out{matmul(i[0], i[1])}; },
                                             random_tensors({{3, 4}, {4, 5}}), "f")
                                           .graph,
                                       true)
                              .program;
  REQUIRE(use_library_matmul(program, Matmul::Generated) == program);
  const Program library = use_library_matmul(program);
  REQUIRE(!(library == program));
  REQUIRE(parse_program(print(library)) == library);
  REQUIRE_THROWS_WITH(parse_program("program f {\n  matmul cublas\n  return\n}\n"),
                      Catch::Matchers::ContainsSubstring("library or library_tf32"));
}

TEST_CASE("random graphs mean the same where the library multiplies", "[library]") {
  for (uint64_t seed = 1; seed <= 500; seed++) {
    const Graph graph = random_graph(seed);
    INFO("seed " << seed);
    try {
      for_library(graph, random_inputs(graph, seed));
    } catch (const Error& error) {  // an index out of range, a division by zero
      SUCCEED(error.what());
    }
  }
}

TEST_CASE("the stage stands before the first of a Program, in a prefix as well", "[library]") {
  REQUIRE(with_library({}, Matmul::Library)[0].name == "library");
  const Pipeline library = with_library(default_pipeline(), Matmul::Library);
  REQUIRE(library[4].name == "thin_products");
  REQUIRE(library[5].name == "pad_products");
  REQUIRE(library[6].name == "lower");
  REQUIRE(library[7].name == "library");
  REQUIRE(with_library(default_pipeline(), Matmul::Generated).size() ==
          default_pipeline().size());
}

TEST_CASE("where a size is a symbol, nothing is left to the library, inside calls as well",
          "[library]") {
  const Graph graph = parse_graph(
      R"(graph f[n: 1..64](%0 x: f32[n,64], %1 w: bf16[1,512], %2 v: bf16[512,640]) {
    %3: (bf16[1,640]) = call %1, %2 {
      graph g(%0 a: bf16[1,512], %1 b: bf16[512,640]) {
        %2: bf16[1,640] = matmul %0, %1
        return %2
      }
    }
    %4: bf16[1,640] = item %3 {index=0}
    %5: f32[n,64] = exp %0
    return %4, %5
  })");
  const Pipeline library = with_library(default_pipeline(), Matmul::Library);
  const Staged symbolic = run_pipeline(library, graph, true, Target::Cuda);
  CHECK(symbolic.program.matmul == Matmul::Generated);
  CHECK_THAT(print(symbolic.graph), Catch::Matchers::ContainsSubstring("matmul"));
  CHECK(symbolic.seconds.size() == library.size());
  const Staged numbers = run_pipeline(
      library, substitute(graph, bind_sizes(symbols(graph), {{"n", 30}})), true, Target::Cuda);
  CHECK(numbers.program.matmul == Matmul::Library);
  CHECK(print(numbers.graph).find("matmul") == std::string::npos);  // one row: a sum
}
