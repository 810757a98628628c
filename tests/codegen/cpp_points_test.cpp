// Loops that are cut where conditions change, and rows in runs and in registers: the bits are the
// interpreter's, and nobody asks in a loop what its bounds say.
#include <algorithm>
#include <array>
#include <cmath>

#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/executable.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"
#include "tests/codegen/scheduled.h"

namespace {

using namespace tiny_compile;
using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;

// The text, once its results have the interpreter's bits with units that end anywhere.
std::string check(const TensorFunction& function, const Out& inputs) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Out want = interpret(graph, inputs);
  std::string text;
  for (int64_t grain : {1, 5}) {
    const Staged staged =
        run_pipeline(scheduled([=](Schedule& s) { s.grain = grain; }), graph, true);
    text = staged.source.text;
    const Out got =
        Executable(staged.program, staged.source, build_cpp(text, default_toolchain()))
            .run(inputs);
    INFO(text);
    REQUIRE(got.size() == want.size());
    for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
  }
  return text.substr(text.find("extern \"C\" void k_"));
}

// Elements that a comparison, a sum or a maximum may get wrong.
Tensor special(Sizes shape) {
  Tensor x = randn(shape);
  const double values[] = {NAN, HUGE_VAL, -HUGE_VAL, -0.0, 0.0};
  for (size_t k = 0; k < 5; k++) x = where(rand(shape) < 0.06, values[k], x);
  return x;
}

}  // namespace

TEST_CASE("a pad's loops are cut where its elements begin and end", "[cpp_points]") {
  manual_seed(3);
  for (const DType dtype : {float32, bfloat16, float64, int8, boolean}) {
    const auto padded = [](In i) { return Out{pad(i[0], {1, 2, 3, 0})}; };
    const std::string text = check(padded, {randint(0, 2, {3, 5, 17}).to(dtype)});
    CHECK(text.find("in_x0[") != std::string::npos);
    CHECK(text.find("? in_x0[") == std::string::npos);
    CHECK(text.find("? tc_to_f32(in_x0[") == std::string::npos);
  }
  const auto of_values = [](In i) { return Out{pad(exp(i[0]) * i[1], {2, 1}) + 1.0}; };
  check(of_values, {special({7, 33}), special({33})});
}

TEST_CASE("a concat's operands have loops of their own, on any axis", "[cpp_points]") {
  manual_seed(4);
  for (const int64_t axis : {0, 1, 2}) {
    const auto joined = [axis](In i) {
      Out parts;
      for (int64_t k = 0; k < 12; k++) parts.push_back(k % 3 ? i[0] * (1.0 * k) : i[1] + i[0]);
      return Out{concat(parts, axis)};
    };
    const std::string text = check(joined, {special({2, 3, 5}), special({2, 1, 5})});
    CHECK(text.find("&& ") == std::string::npos);
    CHECK(text.find("? in_x0[") == std::string::npos);
  }
  check(
      [](In i) {
        return Out{concat({i[0], i[1], i[0]}, 0)};
      },
      {special({7}), special({1001})});
}

TEST_CASE("a stack's text is as long as its operands", "[cpp_points]") {
  const auto lines = [](int64_t count) {
    const auto stacked = [count](In i) {
      Out parts;
      for (int64_t k = 0; k < count; k++) parts.push_back(slice(i[0], 0, k, k + 1) * i[1]);
      return Out{concat(parts, 0)};
    };
    const std::string text = check(stacked, {randn({count, 9}), randn({9})});
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(static_cast<double>(lines(40)) < 2.2 * static_cast<double>(lines(20)));
}

TEST_CASE("conditions that no cut decides stay", "[cpp_points]") {
  const auto rolled = [](In i) {
    const Tensor place = arange(i[0].size(1));
    return Out{where((place % 3) < 1, i[0], pad(i[0], {1, 0}).slice(1, 0, i[0].size(1)))};
  };
  check(rolled, {special({5, 31})});
}

TEST_CASE("points that a division tells apart are several of one turn", "[cpp_points]") {
  manual_seed(5);
  for (const DType dtype : {float32, bfloat16, float64, int32}) {
    for (const int64_t n : {8, 37, 129}) {
      INFO(n);
      const auto pairs = [](In i) {  // x0 and x1 in turns
        return Out{stack({exp(i[0].to(float32)), i[1].to(float32)}, -1).reshape({5, -1}) + 1.0};
      };
      const std::string text = check(pairs, {randn({5, n}).to(dtype), randn({5, n}).to(dtype)});
      CHECK(text.find("%2") == std::string::npos);
      CHECK(text.find(" ? ") == text.find(" ? first"));  // where a unit ends, and no other
    }
  }
  const auto of_pictures = [](In i) {  // the places of a flat picture
    return Out{reshape(slice(slice(i[0], 2, 1, 17), 3, 2, 18), {2, 3, 256}) * i[1]};
  };
  const std::string lines = check(of_pictures, {special({2, 3, 18, 20}), special({3, 1})});
  CHECK(lines.find("/16)*20") == std::string::npos);
  const auto rotated = [](In i) {  // interleaved rotary positions
    const Tensor pair = i[0].reshape({4, 9, 16, 2});
    const Tensor a = slice(pair, 3, 0, 1), b = slice(pair, 3, 1, 2);
    return Out{concat({a * i[1] - b * i[2], a * i[2] + b * i[1]}, 3).reshape({4, 9, 32})};
  };
  check(rotated, {special({4, 9, 32}), special({9, 16, 1}), special({9, 16, 1})});
}

TEST_CASE("products of few terms that share nothing are points", "[cpp_points]") {
  manual_seed(6);
  for (const DType dtype : {float32, bfloat16, float64}) {
    const auto depthwise = [](In i) {
      const Tensor y = conv2d(i[0], i[1], {}, 1, 1, 1, 5);
      const Tensor z = conv2d(i[0], i[1], {}, 2, 0, 1, 5);
      return Out{y, z};
    };
    const std::string text =
        check(depthwise, {special({2, 5, 19, 23}).to(dtype), special({5, 1, 3, 3}).to(dtype)});
    CHECK(text.find("tc_tile_") == std::string::npos);
    CHECK(text.find("tc_fma(") != std::string::npos);
  }
  const auto outer = [](In i) { return Out{matmul(i[0], i[1])}; };  // of one term
  check(outer, {special({7, 33, 1}), special({7, 1, 40})});
  const auto row = [](In i) { return Out{matmul(i[0], i[1])}; };  // a row by a matrix
  CHECK(check(row, {special({9, 1, 4}), special({9, 4, 70})}).find("tc_tile_") ==
        std::string::npos);
  CHECK(check(row, {special({9, 1, 40}), special({9, 40, 70})}).find("tc_tile_") !=
        std::string::npos);
}

TEST_CASE("short windows are registers of a lane", "[cpp_points]") {
  manual_seed(5);
  const Tensor x = special({3, 2, 19, 21});
  for (const int64_t step : {1, 2, 3}) {
    const auto windows = [step](const Tensor& a) {
      return unfold(unfold(a, 2, 3, step), 3, 3, step);
    };
    const auto all = [&](In i) {
      const Tensor w = windows(i[0]);
      const Tensor flat = flatten(w, -2, -1);
      return Out{max(w, {-2, -1}),       min(w, {-2, -1}),          sum(w, {-2, -1}),
                 prod(w, {-2, -1}),      argmax(flat, -1),          argmin(flat, -1),
                 any(w > 0.0, {-2, -1}), sum(w.to(int32), {-2, -1})};
    };
    check(all, {where(isnan(x), 0.5, x)});
    const auto floats = [&](In i) {
      const Tensor w = windows(i[0]);
      const Tensor flat = flatten(w, -2, -1);
      return Out{max(w, {-2, -1}), min(w, {-2, -1}), sum(w, {-2, -1}), argmax(flat, -1),
                 argmin(flat, -1)};
    };
    for (const DType dtype : {float32, bfloat16, float64}) check(floats, {x.to(dtype)});
  }
}

TEST_CASE("a row of several loops is filled run by run", "[cpp_points]") {
  manual_seed(6);
  for (const int64_t width : {1, 7, 8, 33, 64}) {
    const auto sums = [](In i) {
      const Tensor shown = pad(i[0], {1, 1}).slice(3, 0, i[0].size(3));
      return Out{sum(shown, {0, 2, 3}), max(shown, {0, 2, 3}),
                 logsumexp(shown * i[1], {0, 2, 3})};
    };
    check(sums, {randn({3, 2, 41, width}), randn({1, 2, 1, 1})});
  }
}

TEST_CASE("a row that indices divide is filled run by run, and asks once where it ends",
          "[cpp_points]") {
  manual_seed(11);
  const auto variation = [](In i) {
    const Tensor x = i[0], inner = x.slice(2, 0, x.size(2) - 1);
    return Out{sum(abs(x.slice(2, 1, x.size(2)) - inner), {0, 1, 2}), max(inner)};
  };
  const auto loss = [](In i) { return Out{mean(log_softmax(i[0], 1)), min(i[0] * i[1])}; };
  const std::vector<std::array<int64_t, 3>> shapes = {{5, 64, 65}, {2, 75, 129}, {5, 41, 101}};
  for (const auto& [a, b, c] : shapes) {
    INFO(a << " " << b << " " << c);
    check(variation, {special({a, b, c})});
    check(variation, {special({a, b, c}).to(bfloat16)});
    const std::string text = check(loss, {special({a * b, c}), special({a * b, 1})});
    CHECK(text.find("lt_") == std::string::npos);
    CHECK(text.find("for (long long run = ") != std::string::npos);
    check(loss, {special({a * b, c}).to(float64), special({a * b, 1}).to(float64)});
  }
}

TEST_CASE(
    "rows of any length are filled by whole vectors, and none is read where it was written",
    "[cpp_points]") {
  manual_seed(7);
  const auto softmaxes = [](In i) { return Out{softmax(i[0], -1), exp(i[0]).sum(-1)}; };
  for (const int64_t n : {1, 7, 15, 17, 31, 77, 97, 197, 1001, 1031}) {
    INFO(n);
    check(softmaxes, {special({3, n})});
    check(softmaxes, {special({3, n}).to(bfloat16)});
  }
  const auto doubles = [](In i) { return Out{softmax(i[0], -1)}; };
  check(doubles, {special({3, 77}).to(float64)});
  const auto masked = [](In i) { return Out{softmax(where(i[1], i[0], -1e9), -1)}; };
  check(masked, {special({5, 77}), rand({5, 77}) < 0.5});
}

TEST_CASE("exponentials are summed down columns of several chunks", "[cpp_points]") {
  manual_seed(8);
  const auto down = [](In i) { return Out{logsumexp(i[0], 0), log_softmax(i[0], 0)}; };
  for (const int64_t n : {1023, 1024, 1025, 2048, 3001}) {
    INFO(n);
    const std::string text = check(down, {special({n, 37}) * 30.0});
    CHECK((text.find("mosts_f32[") != std::string::npos) == (n > 1024));
  }
  check(down, {special({2050, 9}).to(bfloat16)});
  check(down, {special({2050, 9}).to(float64)});
  check(down, {filled_tensor(Literal::of(DType::f32, -HUGE_VAL), {1500, 8})});
}

TEST_CASE("a product's rows are read where they lie", "[cpp_points]") {
  manual_seed(9);
  const auto product = [](In i) { return Out{matmul(i[0], i[1]) + 1.0}; };
  for (const int64_t m : {1, 5, 12, 13, 29, 130}) {
    for (const int64_t k : {1, 33, 600, 1024}) {  // of one block of depth, and of two
      INFO(m << " by " << k);
      check(product, {special({m, k}), special({k, 70})});
      check(product, {special({m, k}), special({70, k}).t()});
      check(product, {special({k, m}).t(), special({k, 70})});
    }
  }
  CHECK(check(product, {special({29, 100}), special({100, 70})}).find("__restrict left") ==
        std::string::npos);
  CHECK(check(product, {special({29, 100}).to(bfloat16), special({100, 70}).to(bfloat16)})
            .find("__restrict left") != std::string::npos);
  check(product, {special({2, 3, 29, 40}), special({2, 3, 40, 70})});
}

TEST_CASE("the least and largest of bools as bytes are 0 or 1", "[cpp_points]") {
  for (const int64_t n : {4, 16, 64, 65}) {
    const auto bytes = [](In i) {
      Out results;
      for (const DType dtype : {uint8, int8, int32})
        for (const Tensor& x : {i[0] & i[1], i[0] | i[1], i[2] < i[3]})
          results.insert(results.end(), {x.to(dtype).min({0}), x.to(dtype).max({0})});
      return results;
    };
    const Tensor all = filled_tensor(Literal::of(DType::boolean, 1), {n}),
                 none = filled_tensor(Literal::of(DType::boolean, 0), {n}),
                 low = filled_tensor(Literal::of(DType::f32, 0), {n});
    check(bytes, {all, all, low, low + 1.0});
    check(bytes, {all, none, low + 1.0, low});
    check(bytes, {none, none, low, low});
  }
}
