#include "tests/trace/agree.h"
#include "tiny_compile/trace/functions.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// 0, 1, 2, ... in this shape.
Tensor counted(const Sizes& shape) { return arange(element_count(shape)).reshape(shape); }

void check_fails(const std::function<void()>& action, const std::string& says) {
  const std::string message = message_of(action);
  INFO(message);
  CHECK_THAT(message, ContainsSubstring("shapes_test.cpp:"));
  CHECK_THAT(message, ContainsSubstring(says));
}

}  // namespace

TEST_CASE("reshape and its relatives keep the row-major order", "[shapes]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{x.reshape({3, 4}),
                                   x.reshape({-1}),
                                   x.reshape({3, -1, 2}),
                                   x.t().reshape({-1}),
                                   x.flatten(),
                                   x.reshape({2, 3, 2}).flatten(1),
                                   x.unsqueeze(0),
                                   x.unsqueeze(-1),
                                   x.reshape({1, 6, 1, 2}).squeeze(),
                                   squeeze(x.unsqueeze(1), 1),
                                   squeeze(x, 0),
                                   sum(x).flatten(),
                                   x.reshape({2, 6}).view({12})};
      },
      counted({2, 6}));
  const Values rising = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<Sizes> shapes = {{3, 4},    {12},      {3, 2, 2}, {},     {12},  {2, 6},
                                     {1, 2, 6}, {2, 6, 1}, {6, 2},    {2, 6}, {2, 6}};
  for (size_t i = 0; i < shapes.size(); i++) {
    if (i != 3) check_is(y[i], int64, shapes[i], rising);
  }
  check_is(y[3], int64, {12}, {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11});
  check_is(y[11], int64, {1}, {66});
  check_is(y[12], int64, {12}, rising);
}

TEST_CASE("shapes that do not fit are refused with the numbers", "[shapes]") {
  const Tensor x = counted({2, 6});
  check_fails([&] { x.reshape({5, 2}); }, "12");
  check_fails([&] { x.reshape({-1, 5}); }, "12");
  check_fails([&] { x.reshape({-1, -1}); }, "only one");
  check_fails([&] { x.reshape({-2, -6}); }, "-2");
  check_fails([&] { zeros({0, 3}).reshape({-1, 0}); }, "reshape");
  check_fails([&] { x.t().view({12}); }, "reshape");
  check_fails([&] { x.permute({0}); }, "permute");
  check_fails([&] { x.permute({0, 0}); }, "permute");
  check_fails([&] { x.transpose(0, 2); }, "axis 2");
  check_fails([&] { x.expand({3, 6}); }, "expand");
  check_fails([&] { x.expand({6}); }, "expand");
  check_fails([&] { x.expand({-1, 2, 6}); }, "expand");
  check_fails([&] { x.unsqueeze(3); }, "axis 3");
  check_fails([&] { x.squeeze(-3); }, "axis -3");
  check_fails([&] { counted({1, 2, 3}).t(); }, "3 axes");
  check_fails([&] { x.flatten(1, 0); }, "flatten");
  check_fails([&] { sum(x, {1, -1}); }, "twice");
  check_fails([&] { x[2]; }, "index 2");
}

TEST_CASE("permute, transpose and expand", "[shapes]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{x.permute({2, 0, 1}),
                                   x.transpose(0, -1),
                                   x[0].t(),
                                   x[1][2].t(),
                                   x.slice(0, 0, 1).expand({2, -1, -1}),
                                   x.select(2, -1).unsqueeze(2).expand({3, -1, -1, 2}),
                                   sum(x).expand({2, 1})};
      },
      counted({2, 3, 2}));
  check_is(y[0], int64, {2, 2, 3}, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  check_is(y[1], int64, {2, 3, 2}, {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11});
  check_is(y[2], int64, {2, 3}, {0, 2, 4, 1, 3, 5});
  check_is(y[3], int64, {2}, {10, 11});
  check_is(y[4], int64, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  Values repeated;
  for (int copy = 0; copy < 3; copy++)
    for (int value = 1; value < 12; value += 2) repeated.insert(repeated.end(), 2, value);
  check_is(y[5], int64, {3, 2, 3, 2}, repeated);
  check_is(y[6], int64, {2, 1}, {66, 66});
}

TEST_CASE("slices are Python's", "[shapes]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{x.slice(0, 2),
                                   x.slice(0, {}, 3),
                                   x.slice(0, -3),
                                   x.slice(0, 1, -1, 2),
                                   x.slice(0, 0, 99, 3),
                                   x.slice(0, 5, 2),
                                   x.slice(0, -99, 2),
                                   x.slice(0, 3, 4, 100),
                                   x.narrow(0, 2, 3),
                                   x.flip({0}),
                                   x.flip({0}).slice(0, 1, {}, 2),
                                   x.slice(0, 1, {}, 2).flip({-1}),
                                   x.select(0, -2),
                                   x.slice(0, 1, {}, 2).slice(0, 1, {}, 2)};
      },
      counted({7}));
  const std::vector<Values> expected = {{2, 3, 4, 5, 6}, {0, 1, 2},
                                        {4, 5, 6},       {1, 3, 5},
                                        {0, 3, 6},       {},
                                        {0, 1},          {3},
                                        {2, 3, 4},       {6, 5, 4, 3, 2, 1, 0},
                                        {5, 3, 1},       {5, 3, 1}};
  for (size_t i = 0; i < expected.size(); i++)
    check_is(y[i], int64, {static_cast<int64_t>(expected[i].size())}, expected[i]);
  check_is(y[12], int64, {}, {5});
  check_is(y[13], int64, {1}, {3});
  check_fails([] { counted({4}).slice(0, 0, 4, 0); }, "step");
  check_fails([] { counted({4}).slice(0, 4, 0, -1); }, "flip");
  check_fails([] { counted({4}).select(0, 4); }, "index 4");
  check_fails([] { counted({4}).narrow(0, 2, 3); }, "narrow");
  check_fails([] { counted({4}).flip({0, 0}); }, "flip");
}

TEST_CASE("unfold gives windows", "[shapes]") {
  const auto y = agreed(
      [](Tensor x) {
        return std::vector<Tensor>{x.unfold(0, 3, 1), x.unfold(-1, 2, 3), x.unfold(0, 6, 9),
                                   x.reshape({2, 3}).unfold(1, 2, 1)};
      },
      counted({6}));
  check_is(y[0], int64, {4, 3}, {0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5});
  check_is(y[1], int64, {2, 2}, {0, 1, 3, 4});
  check_is(y[2], int64, {1, 6}, {0, 1, 2, 3, 4, 5});
  check_is(y[3], int64, {2, 2, 2}, {0, 1, 1, 2, 3, 4, 4, 5});
  check_fails([] { counted({4}).unfold(0, 5, 1); }, "5");
  check_fails([] { counted({4}).unfold(0, 2, 0); }, "0");
}

TEST_CASE("concat, stack, split and pad", "[shapes]") {
  const auto y = agreed(
      [](Tensor a, Tensor b) {
        std::vector<Tensor> results = {concat({a, b}),
                                       concat({a, a.t().reshape({2, 3})}, -1),
                                       stack({a, a * 10}),
                                       stack({a[0], b[0]}, -1),
                                       concat({a, b * 0.5}),
                                       pad(a, {1, 2}),
                                       pad(a, {0, 0, 1, 0}, 7),
                                       pad(a, {-1, 0}),
                                       concat({a.slice(0, 0, 0), b})};
        for (const Tensor& part : split(a.flatten(), 4)) results.push_back(part);
        for (const Tensor& part : split(a, 1, -1)) results.push_back(part);
        return results;
      },
      counted({2, 3}), counted({1, 3}));
  check_is(y[0], int64, {3, 3}, {0, 1, 2, 3, 4, 5, 0, 1, 2});
  check_is(y[1], int64, {2, 6}, {0, 1, 2, 0, 3, 1, 3, 4, 5, 4, 2, 5});
  check_is(y[2], int64, {2, 2, 3}, {0, 1, 2, 3, 4, 5, 0, 10, 20, 30, 40, 50});
  check_is(y[3], int64, {3, 2}, {0, 0, 1, 1, 2, 2});
  check_is(y[4], float32, {3, 3}, {0, 1, 2, 3, 4, 5, 0, .5, 1});
  check_is(y[5], int64, {2, 6}, {0, 0, 1, 2, 0, 0, 0, 3, 4, 5, 0, 0});
  check_is(y[6], int64, {3, 3}, {7, 7, 7, 0, 1, 2, 3, 4, 5});
  check_is(y[7], int64, {2, 2}, {1, 2, 4, 5});
  check_is(y[8], int64, {1, 3}, {0, 1, 2});
  REQUIRE(y.size() == 9 + 2 + 3);
  check_is(y[9], int64, {4}, {0, 1, 2, 3});
  check_is(y[10], int64, {2}, {4, 5});
  check_is(y[13], int64, {2, 1}, {2, 5});
}

TEST_CASE("joins that do not fit are refused", "[shapes]") {
  const Tensor a = counted({2, 3}), b = counted({2, 2});
  check_fails([&] { concat({a, b}); }, "concat");
  check_fails([&] { concat({a, counted({3})}); }, "concat");
  check_fails([&] { concat({a, a}, 2); }, "axis 2");
  check_fails([&] { concat({}); }, "no tensors");
  check_fails([&] { stack({a, b}); }, "[2,2]");
  check_fails([&] { stack({a, a}, 3); }, "axis 3");
  check_fails([&] { stack({}); }, "no tensors");
  check_fails([&] { split(a, 0); }, "positive");
  check_fails([&] { split(a, 1, 2); }, "axis 2");
  check_fails([&] { pad(a, {1}); }, "pair");
  check_fails([&] { pad(a, {-2, -2}); }, "pad");
  check_fails([&] { concat({a, Tensor()}); }, "undefined");
}

TEST_CASE("gather, index_select, embedding, one_hot and scatter_add", "[shapes]") {
  const Tensor index = tensor({2, 0, 2, 1}).reshape({2, 2});
  const auto y = agreed(
      [](Tensor x, Tensor index) {
        const Tensor flat = index.flatten();
        return std::vector<Tensor>{gather(x, 1, index),
                                   gather(x, 0, index.slice(1, 1).to(int32)),
                                   index_select(x, 1, flat),
                                   index_select(x, -2, flat.slice(0, 1, 2)),
                                   embedding(index, x.t()),
                                   embedding(sum(index) - 4, x),
                                   one_hot(flat, 3),
                                   scatter_add(x, 1, index, index * 0 + 100),
                                   scatter_add(zeros({3}), 0, flat, ones({4})),
                                   scatter_add(zeros({3}), 0, flat.slice(0, 0, 2), x[0] * .5)};
      },
      counted({2, 3}), index);
  check_is(y[0], int64, {2, 2}, {2, 0, 5, 4});
  check_is(y[1], int64, {2, 1}, {0, 3});
  check_is(y[2], int64, {2, 4}, {2, 0, 2, 1, 5, 3, 5, 4});
  check_is(y[3], int64, {1, 3}, {0, 1, 2});
  check_is(y[4], int64, {2, 2, 2}, {2, 5, 0, 3, 2, 5, 1, 4});
  check_is(y[5], int64, {3}, {3, 4, 5});
  check_is(y[6], int64, {4, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0});
  check_is(y[7], int64, {2, 3}, {100, 1, 102, 3, 104, 105});
  check_is(y[8], float32, {3}, {1, 1, 2});
  check_is(y[9], float32, {3}, {.5, 0, 0});
}

TEST_CASE("indices that do not fit are refused; values out of range when read", "[shapes]") {
  const Tensor x = counted({2, 3});
  check_fails([&] { gather(x, 1, ones({2, 2})); }, "integers");
  check_fails([&] { gather(x, 1, counted({2})); }, "gather");
  check_fails([&] { index_select(x, 0, counted({1, 1})); }, "one axis");
  check_fails([&] { embedding(counted({2}), counted({3})); }, "two axes");
  check_fails([&] { scatter_add(x, 2, x, x); }, "axis 2");
  const std::string message = message_of([&] {
    gather(x, 1, tensor({0, 3}).reshape({2, 1})).to_vector<int64_t>();
  });
  INFO(message);
  CHECK_THAT(message, ContainsSubstring("out of range"));
}

TEST_CASE("masks, running sums and triangles", "[shapes]") {
  const auto y = agreed(
      [](Tensor x, Tensor mask) {
        return std::vector<Tensor>{masked_fill(x, mask, -1),
                                   masked_fill(x * 0.5, mask, -HUGE_VAL),
                                   cumsum(x, 0),
                                   cumsum(x.to(float32), -1),
                                   tril(x),
                                   triu(x),
                                   tril(x, -1),
                                   triu(x, 2),
                                   tril(x.unsqueeze(0).expand({2, -1, -1}), 1),
                                   clamp(x, 1, 3),
                                   clamp(x, {}, 2.5),
                                   clamp(x, 4, 2)};
      },
      counted({2, 3}), tensor({true, false, true}));
  check_is(y[0], int64, {2, 3}, {-1, 1, -1, -1, 4, -1});
  check_is(y[1], float32, {2, 3}, {-HUGE_VAL, .5, -HUGE_VAL, -HUGE_VAL, 2, -HUGE_VAL});
  check_is(y[2], int64, {2, 3}, {0, 1, 2, 3, 5, 7});
  check_is(y[3], float32, {2, 3}, {0, 1, 3, 3, 7, 12});
  check_is(y[4], int64, {2, 3}, {0, 0, 0, 3, 4, 0});
  check_is(y[5], int64, {2, 3}, {0, 1, 2, 0, 4, 5});
  check_is(y[6], int64, {2, 3}, {0, 0, 0, 3, 0, 0});
  check_is(y[7], int64, {2, 3}, {0, 0, 2, 0, 0, 0});
  check_is(y[8], int64, {2, 2, 3}, {0, 1, 0, 3, 4, 5, 0, 1, 0, 3, 4, 5});
  check_is(y[9], int64, {2, 3}, {1, 1, 2, 3, 3, 3});
  check_is(y[10], float32, {2, 3}, {0, 1, 2, 2.5, 2.5, 2.5});
  check_is(y[11], int64, {2, 3}, {2, 2, 2, 2, 2, 2});
}

TEST_CASE("matmul takes vectors, matrices and batches", "[shapes]") {
  const auto y = agreed(
      [](Tensor a, Tensor b) {
        const Tensor v = b.select(1, 0);
        return std::vector<Tensor>{matmul(a, b),
                                   matmul(a, v),
                                   matmul(v, b),
                                   matmul(v, v),
                                   matmul(stack({a, a * 2}), b),
                                   matmul(a.unsqueeze(0).unsqueeze(0), stack({b, b + 1}))};
      },
      counted({2, 3}), counted({3, 2}));
  check_is(y[0], int64, {2, 2}, {10, 13, 28, 40});
  check_is(y[1], int64, {2}, {10, 28});
  check_is(y[2], int64, {2}, {20, 26});
  check_is(y[3], int64, {}, {20});
  check_is(y[4], int64, {2, 2, 2}, {10, 13, 28, 40, 20, 26, 56, 80});
  check_is(y[5], int64, {1, 2, 2, 2}, {10, 13, 28, 40, 13, 16, 40, 52});
  check_fails([] { matmul(counted({2, 3}), counted({2, 3})); }, "[2,3]");
  check_fails([] { matmul(counted({2, 3, 4}), counted({3, 4, 2})); }, "broadcast");
  check_fails([] { matmul(counted({2, 3}), full({}, 2)); }, "*");
}

TEST_CASE("reductions over listed axes, empty ones included", "[shapes]") {
  const auto y = agreed(
      [](Tensor x, Tensor none) {
        return std::vector<Tensor>{sum(x, {0, 2}), sum(x, {-1}, true),  max(x, {1}),
                                   argmax(x, 0),   argmin(x, -1, true), sum(none, {0}),
                                   prod(none),     any(none),           all(none),
                                   sum(none, {1}), x.sum(-1),           x.min({2, 0}, true)};
      },
      counted({2, 3, 2}), zeros({0, 3}));
  check_is(y[0], int64, {3}, {14, 22, 30});
  check_is(y[1], int64, {2, 3, 1}, {1, 5, 9, 13, 17, 21});
  check_is(y[2], int64, {2, 2}, {4, 5, 10, 11});
  check_is(y[3], int64, {3, 2}, {1, 1, 1, 1, 1, 1});
  check_is(y[4], int64, {2, 3, 1}, {0, 0, 0, 0, 0, 0});
  check_is(y[5], float32, {3}, {0, 0, 0});
  check_is(y[6], float32, {}, {1});
  check_is(y[7], boolean, {}, {0});
  check_is(y[8], boolean, {}, {1});
  check_is(y[9], float32, {0}, {});
  check_is(y[10], int64, {2, 3}, {1, 5, 9, 13, 17, 21});
  check_is(y[11], int64, {1, 3, 1}, {0, 2, 4});
  check_fails([] { max(zeros({0, 3}), {0}); }, "max");
}
