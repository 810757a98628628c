// The generated CUDA on a machine without a GPU: its text runs thread by thread on the CPU and has
// the interpreter's bits. Clusters are for GPUs alone.
#include "tests/codegen/cuda_threads.h"
#include "tests/codegen/emit_programs.h"
#include "tests/codegen/scheduled.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/nvrtc.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;

namespace {

Tensor every(int64_t step, const Tensor& x) { return x.slice(1, 0, x.size(1), step); }
Out sum_down(In i) { return {i[0].sum(0)}; }

}  // namespace

TEST_CASE("integers of which a branch says what they are", "[codegen][threads]") {
  for (DType type : {int32, int64, int8}) {
    INFO(c_type(type));
    const Tensor x = (arange(64) - 32).to(type);
    check([](In i) { return Out{pow(~i[0], ~i[0])}; }, {x}, "pointwise");
    check([](In i) { return Out{pow(i[0] + 2, i[0] + 1)}; }, {x}, "pointwise");
    check(
        [](In i) {
          return Out{pow(i[0], (~i[0]) & 7), where(i[0] == 5, ~i[0] & 7, ~i[0] ^ 7)};
        },
        {x}, "pointwise");
  }
}

TEST_CASE("columns thread by thread, strided ones, and chunks of a few", "[codegen][threads]") {
  manual_seed(3);
  check(sum_down, {every(2, randn({900, 80}))}, "layouts");
  check(sum_down, {every(3, randn({70, 150}))}, "layouts");
  check(sum_down, {randn({17000, 127})}, "layouts layouts");
  check(sum_down, {randn({17000, 7})}, "layouts layouts");
  check(sum_down, {randn({17000, 131})}, "layouts layouts");
  check(sum_down, {every(2, randn({17000, 262}))}, "layouts layouts");
}

TEST_CASE("a thread without a row looks up places that are some", "[codegen][threads]") {
  manual_seed(5);
  const Function gates = [](In i) {
    const auto [values, places] = topk(softmax(i[0], 1), 2, 1);
    return Out{values / values.sum(1, true), places};
  };
  check_bits(gates, {randn({37, 60})});
}

TEST_CASE("values of a row stored before its elements", "[codegen][threads]") {
  manual_seed(13);
  const Function twice =
      [](In i) {  // a loss, its gradient, and another value of the row between
        const Tensor m = max(i[0], {1}, true), e = exp(i[0] - m), s = e.sum(1, true);
        const Tensor centred = i[0] - e / s, least = min(centred, {1}, true);
        return Out{m + log(s) * i[1], sqrt(least * least), e / s, centred - least};
      };
  for (int64_t length : {7, 33, 1000, 3000}) {
    const Tensor x = randn({5, length}), scale = randn({5, 1});
    check(twice, {x, scale}, "layouts", without_clusters());
  }
}

TEST_CASE("columns over two axes thread by thread", "[codegen][threads]") {
  manual_seed(12);
  const Function sum_twice = [](In i) { return Out{i[0].sum({0, 1})}; };
  const Function exponentials = [](In i) { return Out{logsumexp(i[0], {0, 1})}; };
  const Pipeline small = without_clusters();
  const auto apart = [](int64_t a, int64_t b, int64_t c) {  // axes that are not one in memory
    return randn({a, b + 1, c}).slice(1, 0, b);
  };
  check(sum_twice, {apart(70, 32, 100)}, "layouts", small);
  check(sum_twice, {apart(29, 40, 33)}, "layouts", small);
  check(sum_twice, {apart(3, 7, 65)}, "layouts", small);
  check(exponentials, {apart(5, 48, 40)}, "layouts", small);
}

TEST_CASE("rows thread by thread: whole chunks, partial ones, divisors out of range",
          "[codegen][threads]") {
  manual_seed(4);
  check(softmax_along, {randn({9, 1000})}, "layouts");
  check(softmax_along, {every(2, randn({5, 2002}))}, "layouts");
  check([](In i) { return Out{softmax(i[0] * 40.0, 1)}; }, {randn({3, 4097})}, "layouts");
  check([](In i) { return Out{i[0] / (i[0].sum(1, true) * 1e-25)}; }, {randn({3, 1025})},
        "layouts");
  Tensor zeros = randn({8, 737});
  for (int64_t k = 0; k < zeros.numel(); k += 7) zeros.data<float>()[k] = -0.0f;
  check([](In i) { return Out{i[0] / (abs(i[0]).sum(1, true) * 40.0)}; }, {zeros}, "layouts");
}

TEST_CASE("schedule rows: a row each thread, whatever it does of it", "[codegen][threads]") {
  manual_seed(16);
  check(softmax_along, {randn({40, 70})}, "rows", without_layouts());
  check(softmax_along, {every(2, randn({5, 2202}))}, "rows", without_layouts());
  check(
      [](In i) {
        return Out{(i[0] - i[0].mean(1, true)).to(bfloat16), argmax(i[0], 1)};
      },
      {randn({37, 60})}, "rows", without_layouts());
}

TEST_CASE("products thread by thread, however large a tile is", "[codegen][threads]") {
  const auto product = [](In i) { return Out{relu(matmul(i[0], i[1]))}; };
  const std::pair<int, int> tiles[] = {{1, 16}, {2, 8}, {2, 64}, {4, 4},
                                       {4, 16}, {8, 2}, {8, 32}};
  for (const auto& [each, slice] : tiles) {
    CAPTURE(each, slice);
    const Pipeline pipeline = scheduled([&](Schedule& s) { s.each = each, s.slice = slice; });
    for (const auto& [rows, depth, columns] :
         {std::array<int64_t, 3>{37, 19, 71}, {3, 1, 9}, {129, 33, 17}}) {
      const Staged all =
          check_bits(product, {randn({2, rows, depth}), randn({2, depth, columns})}, pipeline);
      CHECK(all.program.kernels[0].schedule->each == each);
    }
  }
}

TEST_CASE("points divide by what a pack shares, and the long way where that is not exact",
          "[codegen][threads]") {
  manual_seed(9);
  const auto quantise = [](In i) { return Out{round(i[0] / i[1])}; };
  const auto scaled = [](DType type, double by) {
    const Tensor x =
        randn({40, 512}) * exp(randn({40, 512}) * 40.0);  // some are no longer normal
    return where(arange(512) % 5 < 1, x * 0.0, x * by).to(type);
  };
  for (const DType type : {float32, bfloat16, float16}) {
    for (const double by : {0.37, 1e-30, 3e38, 0.0, -0.0}) {
      INFO(c_type(type) << " by " << by);
      const std::string text =
          check(quantise, {scaled(type, 1.0), full({40, 1}, by).to(type)}, "pointwise");
      CHECK(text.find("const tc_divisor by_") < text.find(", exact)"));
      CHECK(text.find(", exact)") != std::string::npos);
    }
  }
  const auto active = [](In i) {
    const Tensor x = i[0] / i[1];
    return Out{sigmoid(x), tanh(x), gelu(x), silu(x)};
  };
  for (const DType type :
       {bfloat16, float16}) {  // all of a pack goes the long way with one of its elements
    const Tensor some = where(arange(512) % 5 < 1, HUGE_VAL, randn({40, 512}) * 3.0);
    check(active, {some.to(type), full({40, 1}, 0.37).to(type)}, "pointwise");
  }
  const std::string own =
      check(quantise, {scaled(float32, 1.0), randn({40, 512})}, "pointwise");
  CHECK(own.find("tc_divide_by(") == std::string::npos);
}

TEST_CASE("a conversion rounds what was rounded, where that has a name", "[codegen][threads]") {
  manual_seed(10);
  const auto text_of = [](const Function& f, const Tensor& x, const char* strategy) {
    const std::string text = check(f, {x}, strategy);
    if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
    return text;
  };
  const Tensor x = randn({64, 1025}) * 40.0;
  for (const DType type : {int8, uint8, int32, uint32}) {
    const auto clipped = [type](In i) {
      return Out{minimum(maximum(round(i[0] * 3.0), -127.0), 127.0).to(type)};
    };
    CHECK(text_of(clipped, x, "pointwise").find("tc_nearest<") != std::string::npos);
  }
  const auto bounded = [](In i) {
    return Out{minimum(maximum(round(i[0]), -126.5), 127.0).to(int8)};
  };
  CHECK(text_of(bounded, x, "pointwise").find("tc_nearest<") == std::string::npos);
  const auto slid = [](In i) {
    const Tensor left = i[0].slice(1, 0, 1024), right = i[0].slice(1, 1, 1025);
    return Out{round(left).to(int8) + round(right).to(int8)};
  };
  text_of(slid, x, "pointwise");
  const auto kept = [](In i) {
    const Tensor whole = round(i[0] * 0.5), most = whole.max({1}, true);
    return Out{whole.to(int32) - most.to(int32)};
  };
  text_of(kept, x, "layouts");
}

TEST_CASE("quotients thread by thread that later passes keep", "[codegen][threads]") {
  manual_seed(21);
  const auto gradient = [](In i) {
    const Tensor e = exp(i[0] - i[0].max({1}, true)), y = e / e.sum({1}, true);
    return Out{y, (i[1] - (y * i[1]).sum({1}, true)) * y};
  };
  const auto twice = [](In i) {  // its exponents are quotients that are kept
    const Tensor y = softmax(i[0], 1), e = exp(y - y.max({1}, true));
    return Out{e / e.sum({1}, true), (y * i[1]).sum({1})};
  };
  const Tensor far =
      randn({3, 700}) * 60.0;  // exponentials and quotients that are denormal, or 0
  for (const auto& f : {Function(gradient), Function(twice)}) {
    check(f, {randn({3, 700}), randn({3, 700})}, "layouts");
    check(f, {far, randn({3, 700})}, "layouts");
  }
}

TEST_CASE("equal kernels thread by thread: they share a function", "[codegen][threads]") {
  manual_seed(12);
  const std::string text = check(
      [](In i) {
        return Out{softmax(i[0], 1), softmax(i[1], 1)};
      },
      {randn({3, 1000}), randn({3, 1000})}, "layouts layouts");
  CHECK(text.find("__global__") == text.rfind("__global__"));
}

TEST_CASE("rows thread by thread that are written over what they read", "[codegen][threads]") {
  manual_seed(14);
  const auto between = [](const std::function<Tensor(const Tensor&)>& rows) {
    return [rows](In i) { return Out{matmul(rows(cumsum(i[0], 1)), i[1])}; };
  };
  const auto normed = [](const Tensor& x) {
    const Tensor centred = x - x.mean(1, true);
    return centred * rsqrt((centred * centred).mean(1, true) + 1e-5);
  };
  const auto halved = [](const Tensor& x) { return x / (abs(x).sum(1, true) * 1e-25); };
  for (int64_t length : {7, 33, 1000, 3000, 9001}) {
    for (const auto& rows : {between([](const Tensor& x) { return softmax(x, 1); }),
                             between(normed), between(halved)}) {
      const Staged all =
          check_bits(rows, {randn({5, length}), randn({length, 2})}, without_clusters());
      CHECK(print(all.program).find(" over ") != std::string::npos);
      CHECK(print(all.program).find("schedule rows") != std::string::npos);
      CHECK(all.source.text.find("lane") != std::string::npos);
    }
  }
}

TEST_CASE("wide rows and long columns thread by thread, where a GPU has no clusters",
          "[codegen][threads]") {
  manual_seed(8);
  const Pipeline small = without_clusters();
  check(softmax_along, {randn({2, 30011})}, "layouts", small);
  check(
      [](In i) {
        return Out{logsumexp(i[0], {1}), i[0].sum(1)};
      },
      {randn({2, 9001})}, "layouts", small);
  check(sum_down, {randn({4000, 96})}, "layouts", small);
  check(softmax_along, {randn({2048, 300}).t()}, "layouts", small);
}

TEST_CASE("points thread by thread: packs across rows, operands transposed in tiles",
          "[codegen][threads]") {
  manual_seed(5);
  check([](In i) { return Out{gelu(i[0] + i[1])}; }, {randn({33, 1023}), randn({1023})},
        "pointwise");
  check([](In i) { return Out{gelu(i[0] + i[1])}; },
        {randn({33, 127}).to(bfloat16), randn({127}).to(bfloat16)}, "pointwise");
  for (int64_t row : {3, 6, 7, 8})  // a pack of eight goes on into several rows, or into one
    check([](In i) { return Out{gelu(i[0] + i[1]) * i[2]}; },
          {randn({2, 37, row}).to(float16), randn({row}).to(float16),
           randn({2, 37, 1}).to(float16)},
          "pointwise");
  check([](In i) { return Out{tanh(i[0] * i[1] + i[2])}; },
        {randn({70, 45}).t(), randn({70, 45}).t(), randn({45, 70})}, "layouts");
}

TEST_CASE("points thread by thread: a pack is several rows of few results",
          "[codegen][threads]") {
  manual_seed(53);
  const auto parts = [](int64_t count) {
    return [count](In i) {
      std::vector<Tensor> all;
      for (int64_t k = 0; k < count; k++) all.push_back((i[0] * (k + 3)) >> (k + 1));
      return Out{stack(all, -1).reshape({i[0].size(0), -1}).to(float32) * i[1]};
    };
  };
  const Tensor x = (arange(130 * 129).reshape({130, 129}) * 37).to(uint8),
               scale = randn({130, 1});
  for (const int64_t count : {2, 4}) {
    const std::string text = check(parts(count), {x, scale}, "pointwise");
    CHECK(text.find("tc_write<4>(out_") != std::string::npos);
    CHECK(text.find("shared") == std::string::npos);
  }
  check(parts(3), {x, scale}, "layouts");  // whose packs would be of parts of rows
}

TEST_CASE("points thread by thread: windows of a row share what they read",
          "[codegen][threads][window]") {
  manual_seed(59);
  const auto filter = [](In i) {
    return Out{(i[0].unfold(1, i[1].size(0), 1) * i[1]).sum(-1)};
  };
  for (const DType type : {float32, bfloat16}) {
    for (const int64_t columns : {1027, 1031, 1034}) {
      const std::string text =
          check(filter, {randn({17, columns}).to(type), randn({3}).to(type)}, "pointwise");
      CHECK(text.find(columns == 1034 ? "if (column < " : "if ((column > ") !=
            std::string::npos);
    }
  }
  check(filter, {randn({300, 77}), randn({5})},
        "layouts");  // many packs would end behind a row
  check(filter, {randn({17, 1027}), randn({17})}, "layouts");
}

TEST_CASE("points thread by thread: padded windows slide, and so does what is done to them",
          "[codegen][threads][window]") {
  manual_seed(61);
  const auto count = [](const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++) found++;
    return found;
  };
  const auto sum_of_tanh = [](int64_t step) {
    return [step](In i) {
      const Tensor x = pad(i[0], {step, step}), y = where(i[1] > 0, x, -x) / 3.0;
      const int64_t n = i[0].size(1);
      return Out{y.slice(1, 0, n) + y.slice(1, step, n + step) +
                 y.slice(1, 2 * step, n + 2 * step)};
    };
  };
  for (const DType type : {float32, bfloat16}) {
    const std::vector<Tensor> inputs = {randn({300, 64}).to(type), randn({300, 1}).to(type)};
    const std::string text = check(sum_of_tanh(1), inputs, "pointwise");
    CHECK(count(text, "float slide") == 1);
    CHECK(count(text, "= slide") == 3);
    CHECK(count(text, " ? in_x0[") + count(text, " ? tc_to_f32(in_x0[") == 1);
    CHECK(count(check(sum_of_tanh(9), inputs, "pointwise"), "float slide") == 0);
  }
}

TEST_CASE("points thread by thread: slabs of whole rows, and of what goes on into the next",
          "[codegen][threads]") {
  manual_seed(9);
  const auto biased = [](In i) { return Out{gelu(i[0] + i[1])}; };
  for (int64_t row : {1000, 1023}) {
    const std::string text = check(
        biased,
        {randn({(int64_t{1} << 23) / row + 13, row}).to(bfloat16), randn({row}).to(bfloat16)},
        "pointwise");
    CHECK((text.find("turn < 3") != std::string::npos) ==
          (row == 1023));  // the last lacks some
  }
  check([](In i) { return Out{gelu(i[0])}; }, {randn({(int64_t{1} << 22) + 3})}, "pointwise");
}

TEST_CASE("whether a number is one is asked in words of our own", "[codegen][threads]") {
  const Tensor x = from_vector<float>({std::nanf(""), -1, 0, HUGE_VALF});
  for (DType dtype : {float32, float64, bfloat16}) {
    const std::string text = check(
        [](In i) {
          const Tensor size = abs(i[0]);
          return Out{where(isnan(size), 0.0, where(size < 0.0, 1.0, 2.0)), size == size};
        },
        {x.to(dtype)}, "pointwise");
    CHECK(text.find("= tc_is_nan(") != std::string::npos);
    CHECK(text.find("= !tc_is_nan(") != std::string::npos);
    if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
  }
}

TEST_CASE("an index is compared with integers that no index can be", "[codegen][threads]") {
  const Tensor labels =
      from_vector<int64_t>({3, -1, 0, (int64_t{1} << 32) + 3, 69, -(int64_t{1} << 40)});
  const auto one_hot = [](In i) {
    return Out{where(arange(70).unsqueeze(0) == i[0].unsqueeze(1), i[1], -i[1])};
  };
  check(one_hot, {labels, ones({6, 70})}, "pointwise");
}

TEST_CASE("indices are compared as ints, with each other and with constants",
          "[codegen][threads]") {
  const Tensor x = ones({6, 70});
  using Compare = Tensor (*)(const Tensor&, const Tensor&);
  const Compare compares[] = {[](const Tensor& a, const Tensor& b) { return a < b; },
                              [](const Tensor& a, const Tensor& b) { return a <= b; },
                              [](const Tensor& a, const Tensor& b) { return a == b; },
                              [](const Tensor& a, const Tensor& b) { return a != b; }};
  const auto at = [](Compare compare, int other) {
    return [=](In i) {
      const Tensor column = arange(70).unsqueeze(0), row = arange(6).unsqueeze(1);
      const Tensor others[] = {row, row * 3 - 5, column * 0 + 12,
                               column * 0 + (int64_t{1} << 40)};
      return Out{where(compare(column + 2, others[other]), i[0], -i[0]),
                 where(compare(others[other], column), i[0], -i[0])};
    };
  };
  for (int other = 0; other < 4; other++) {
    for (Compare compare : compares)
      check(at(compare, other), {x}, other == 1 ? "layouts" : "pointwise");
  }
  const std::string text = check(at(compares[1], 0), {x}, "pointwise");
  INFO(text);
  CHECK(text.find(" = i0 <= i1;") != std::string::npos);
}

TEST_CASE("exponentials of halves: a row's maximum says whether all are in range",
          "[codegen][threads]") {
  manual_seed(13);
  const float inf = HUGE_VALF, nan = std::nanf("");
  Tensor x = randn({12, 1000});
  float* rows = x.data<float>();
  const float firsts[] = {0, inf, -inf, nan, 3e38f, -3e38f, 200, -200, 0, 0, 0, 0};
  for (size_t row = 0; row < 12; row++) rows[row * 1000 + 7] = firsts[row];
  for (int64_t k = 0; k < 1000; k++) rows[9000 + k] = k % 2 ? -3e38f : 3e38f;
  for (int64_t k = 0; k < 1000; k++) rows[10000 + k] = -inf;
  for (int64_t k = 0; k < 1000; k++) rows[11000 + k] = inf;
  for (DType dtype : {bfloat16, float16}) {
    const auto likelihoods = [](In i) {
      const Tensor y = log_softmax(i[0].to(float32), 1);
      return Out{exp(y).to(i[0].dtype()), y.sum(1)};
    };
    const std::string asked = check(softmax_along, {x.to(dtype)}, "layouts");
    CHECK(asked.find(" < 43.0f) {") != std::string::npos);
    const std::string decided = check(likelihoods, {x.to(dtype)}, "layouts");
    CHECK(decided.find(" < 43.0f) {") != std::string::npos);
  }
}

TEST_CASE("an exponential that is stored beside a softmax is not below its maximum",
          "[codegen][threads]") {
  const auto both = [](In i) { return Out{softmax(i[0], 1), exp(i[0])}; };
  manual_seed(43);
  check_bits(both, {randn({3, 3000}) * 30.0});
}

TEST_CASE("several rows a warp: no lane meets the others in a branch of its row's own",
          "[codegen][threads]") {
  manual_seed(15);
  const auto sums = [](In i) {
    const Tensor x = i[0].to(float32);
    return Out{logsumexp(x, {1}), softmax(x, 1).to(i[0].dtype())};
  };
  for (int64_t length : {7, 33, 64, 200}) {
    Tensor x = randn({64, length});
    x.data<float>()[3 * length + 5] = HUGE_VALF;
    x.data<float>()[9 * length + 1] = std::nanf("");
    for (DType dtype : {bfloat16, float16}) {
      check(sums, {x.to(dtype)}, "layouts");
    }
  }
}

TEST_CASE("halves are rounded once, where they are stored", "[codegen][threads]") {
  manual_seed(14);
  std::vector<double> ties;  // of bf16 and of f16, and beside them by what a float drops
  for (int k = 0; k < 512; k++)
    ties.push_back((1 + (2 * k + 1) * 0x1p-9) * (1 + (k % 3 - 1) * 0x1p-40));
  for (int k = 0; k < 512; k++)
    ties.push_back((1 + (2 * k + 1) * 0x1p-12) * (1 + (k % 3 - 1) * 0x1p-40));
  const Tensor x = from_vector<double>(ties).reshape({4, 256});
  for (DType dtype : {bfloat16, float16}) {
    for (DType from : {float64, float32, int64}) {
      const auto cast = [=](In i) { return Out{(i[0] * 1.0).to(from).to(dtype)}; };
      check(cast, {x * (from == int64 ? 1e6 : 1.0)}, "pointwise");
    }
    const auto centred = [=](In i) { return Out{(i[0] - i[0].mean(1, true)).to(dtype)}; };
    check(centred, {randn({4, 1000})}, "layouts");
  }
}

TEST_CASE("folds thread by thread: columns summed while a block goes over its rows",
          "[codegen][threads]") {
  manual_seed(7);
  const auto gradients = [](In i) {
    const Tensor h = i[0] * rsqrt((i[0] * i[0]).mean(-1, true) + 1e-5);
    return Out{h + i[1], (i[1] * h).sum(0), i[1].sum(0)};
  };
  check(gradients, {randn({4096, 128}), randn({4096, 128})}, "layouts layouts");
  check(gradients, {randn({4096, 136}).to(bfloat16), randn({4096, 136}).to(bfloat16)},
        "layouts layouts");
  const auto batched = [](In i) {
    const Tensor h = i[0] * rsqrt((i[0] * i[0]).mean(-1, true) + 1e-5);
    return Out{h, (i[1] * h).sum({0, 1})};
  };
  const std::string text =
      check(batched, {randn({5, 1024, 129}), randn({5, 1024, 129})}, "layouts layouts");
  CHECK(text.find("if (turn_row < 7)") != std::string::npos);  // asks for its next
}

TEST_CASE("folds of two dtypes and widths, and of no loop, whatever the layouts say",
          "[codegen][threads][folds]") {
  const std::string two = R"(program f on cuda {
  input x: f32[64,130]
  input w: f64[64,9]
  output y: f32[2,130]
  output z: f64[2,9]
  output a: f64[2]
  kernel k rows(i0: 2, i1: 32) {
    $0 = load x[i0*4160 + i1*130 + j0]
    r0: f32 = sum(j0: 130) $0
    fold y[i0*130 + j0] for (j0: 130) = sum(i1) mul($0, r0)
    fold z[i0*9 + j1] for (j1: 9) = sum(i1) load w[i0*288 + i1*9 + j1]
    fold a[i0] = sum(i1) load w[i0*288 + i1*9 + 4]
)";
  manual_seed(8);
  const std::vector<Tensor> inputs = {randn({64, 130}), randn({64, 9}, float64)};
  const std::string layouts = "    schedule layouts rows ";
  for (const std::string& schedule :
       {std::string(), layouts + "warp 4 · serial 8 loop register 8 · lane 32 loop lane 16",
        layouts + "warp 32 loop register 16 · lane 16 loop register 2 · lane 8",
        layouts + "serial 32 loop register 4 · lane 32 · vector 2 loop register 16",
        layouts + "warp 8 · serial 4 loop register 8 · lane 32 loop lane 16 keep=0"}) {
    const Program program =
        parse_program(two + schedule + (schedule.empty() ? "" : " outer=1\n") +
                      "  }\n  launch k\n  return y, z, a\n}\n");
    const std::vector<Tensor> wanted = interpret(program, inputs);
    const Source source = emit_cuda(program);
    for (bool last_thread_first : {false, true}) {
      const std::vector<Tensor> got = run(program, source, inputs, last_thread_first);
      INFO(schedule);
      for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
    }
  }
}

TEST_CASE("each byte is a half of its own", "[codegen][threads]") {
  const std::vector<Tensor> bytes = {arange(256).to(DType::u8),
                                     (arange(256) - 128).to(DType::i8)};
  const Function halves = [](In i) {
    return Out{i[0].to(DType::f16) * 0.5, i[0].to(DType::bf16) * 0.5, i[1].to(DType::f16) * 0.5,
               i[1].to(DType::bf16) * 0.5};
  };
  check_bits(halves, bytes);
}
