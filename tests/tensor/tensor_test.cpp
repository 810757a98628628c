#include "tiny_compile/tensor/tensor.h"

#include <cmath>
#include <cstdint>

#include "tests/catch.h"
#include "tiny_compile/trace/creation.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;
using Values = std::vector<int64_t>;

namespace {

// 0, 1, 2, ... in this shape.
Tensor counted(const Sizes& shape) {
  Values values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); i++) values[i] = static_cast<int64_t>(i);
  return from_vector(values, shape);
}

bool shares_storage(const Tensor& lhs, const Tensor& rhs) {
  return lhs.info().storage == rhs.info().storage;
}

// A view of x: these elements, in x's own storage.
void check_view(const Tensor& x, const Tensor& view, const Sizes& shape, const Values& values) {
  CHECK(view.shape() == shape);
  CHECK(view.to_vector<int64_t>() == values);
  CHECK(shares_storage(x, view));
}

}  // namespace

TEST_CASE("a new tensor is row-major", "[tensor]") {
  const Tensor x = counted({2, 3, 4});
  CHECK(x.dtype() == int64);
  CHECK(x.rank() == 3);
  CHECK(x.dim() == 3);
  CHECK(x.numel() == 24);
  CHECK(x.size(0) == 2);
  CHECK(x.size(-1) == 4);
  CHECK(x.strides() == Sizes{12, 4, 1});
  CHECK(x.is_contiguous());
  CHECK(x.device() == cpu);
  CHECK(x.element({1, 2, 3}).as_integer() == 23);
  CHECK_THROWS_AS(x.size(3), Error);
  CHECK_THROWS_AS(x.size(-4), Error);
}

TEST_CASE("contiguous strides skip sizes of 0 and 1", "[tensor]") {
  CHECK(contiguous_strides({6, 4, 2}) == Sizes{8, 2, 1});
  CHECK(contiguous_strides({}) == Sizes{});
  CHECK(contiguous_strides({3, 0, 2}) == Sizes{2, 2, 1});
  CHECK(with_layout(counted({6}), {1, 6}, {99, 1}, 0).is_contiguous());
  CHECK_FALSE(with_layout(counted({6}), {2, 3}, {1, 2}, 0).is_contiguous());
  CHECK(with_layout(counted({6}), {0, 3}, {7, 7}, 0).is_contiguous());
}

TEST_CASE("handles share storage, copies do not", "[tensor]") {
  const Tensor x = counted({4});
  const Tensor same = x, copy = contiguous_copy(x), clone = x.clone();
  same.data<int64_t>()[0] = 9;
  CHECK(x.element({0}).as_integer() == 9);
  CHECK(copy.element({0}).as_integer() == 0);
  CHECK(clone.element({0}).as_integer() == 0);
  CHECK(x.contiguous().handle()->storage == x.handle()->storage);
}

TEST_CASE("permute, transpose and t change strides only", "[tensor]") {
  const Tensor x = counted({2, 3});
  check_view(x, x.t(), {3, 2}, {0, 3, 1, 4, 2, 5});
  CHECK(x.t().strides() == Sizes{1, 3});
  CHECK_FALSE(x.t().is_contiguous());
  check_view(x, x.transpose(-1, 0), {3, 2}, {0, 3, 1, 4, 2, 5});
  const Tensor y = counted({2, 3, 2});
  check_view(y, y.permute({2, 0, 1}), {2, 2, 3}, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  check_view(y, y.permute({-1, 0, 1}).permute({1, 2, 0}), {2, 3, 2},
             {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK_THROWS_AS(y.t(), Error);
  CHECK_THROWS_AS(y.permute({0, 1}), Error);
  CHECK_THROWS_AS(y.permute({0, 1, 1}), Error);
  CHECK_THROWS_AS(y.transpose(0, 3), Error);
}

TEST_CASE("expand repeats without copying", "[tensor]") {
  const Tensor x = counted({2, 1});
  check_view(x, x.expand({2, 3}), {2, 3}, {0, 0, 0, 1, 1, 1});
  CHECK(x.expand({2, 3}).strides()[1] == 0);
  check_view(x, x.expand({2, -1, 2}), {2, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1});
  CHECK_THROWS_AS(x.expand({3, 3}), Error);
  CHECK_THROWS_AS(x.expand({2}), Error);
}

TEST_CASE("slice, select and narrow take parts, as Python does", "[tensor]") {
  const Tensor x = counted({2, 6});
  check_view(x, x.slice(1, 1, 5, 2), {2, 2}, {1, 3, 7, 9});
  check_view(x, x.slice(1, -2), {2, 2}, {4, 5, 10, 11});
  check_view(x, x.slice(1, {}, -4), {2, 2}, {0, 1, 6, 7});
  check_view(x, x.slice(-1, 4, 100), {2, 2}, {4, 5, 10, 11});
  check_view(x, x.slice(0, 1, 1), {0, 6}, {});
  check_view(x, x.slice(1, 5, 2), {2, 0}, {});
  check_view(x, x.slice(1, 0, 6, 4).slice(1, 1, 2), {2, 1}, {4, 10});
  check_view(x, x[1], {6}, {6, 7, 8, 9, 10, 11});
  check_view(x, x[-1][2], {}, {8});
  check_view(x, x.select(1, 3), {2}, {3, 9});
  check_view(x, x.narrow(1, 2, 3), {2, 3}, {2, 3, 4, 8, 9, 10});
  CHECK(x.slice(1, 1, 5, 2).strides() == Sizes{6, 2});
  CHECK_THROWS_AS(x.slice(1, 0, 6, 0), Error);
  CHECK_THROWS_AS(x.slice(1, 0, 6, -1), Error);
  CHECK_THROWS_AS(x[2], Error);
  CHECK_THROWS_AS(x.select(1, -7), Error);
  CHECK_THROWS_AS(x.slice(2, 0), Error);
}

TEST_CASE("flip turns strides negative", "[tensor]") {
  const Tensor x = counted({2, 3});
  check_view(x, x.flip({1}), {2, 3}, {2, 1, 0, 5, 4, 3});
  check_view(x, x.flip({0, -1}), {2, 3}, {5, 4, 3, 2, 1, 0});
  CHECK(x.flip({0, 1}).strides() == Sizes{-3, -1});
  CHECK(x.flip({0, 1}).info().offset == 5);
  check_view(x, x.flip({0, 1}).slice(1, 0, 3, 2), {2, 2}, {5, 3, 2, 0});
  check_view(x, x.flip({1}).t().flip({1}), {3, 2}, {5, 2, 4, 1, 3, 0});
  check_view(x, x.slice(0, 2, 2).flip({0}), {0, 3}, {});
  CHECK_THROWS_AS(x.flip({0, 0}), Error);
}

TEST_CASE("unfold shows windows of one storage", "[tensor]") {
  const Tensor x = counted({5});
  check_view(x, x.unfold(0, 3, 1), {3, 3}, {0, 1, 2, 1, 2, 3, 2, 3, 4});
  check_view(x, x.unfold(0, 2, 2), {2, 2}, {0, 1, 2, 3});
  CHECK(x.unfold(0, 3, 1).strides() == Sizes{1, 1});
  const Tensor y = counted({3, 2});
  check_view(y, y.unfold(0, 2, 1), {2, 2, 2}, {0, 2, 1, 3, 2, 4, 3, 5});
  CHECK_THROWS_AS(x.unfold(0, 6, 1), Error);
  CHECK_THROWS_AS(x.unfold(0, 2, 0), Error);
}

TEST_CASE("reshape shares storage wherever strides allow", "[tensor]") {
  const Tensor x = counted({4, 6});
  const Values all = x.to_vector<int64_t>();
  check_view(x, x.reshape({2, 2, 3, 2}), {2, 2, 3, 2}, all);
  check_view(x, x.reshape({-1}), {24}, all);
  check_view(x, x.reshape({3, -1}), {3, 8}, all);
  check_view(x, x.reshape({1, 4, 1, 6, 1}), {1, 4, 1, 6, 1}, all);
  // rows of a slice stay apart, but each may be cut
  const Tensor part = x.slice(1, 0, 4);
  check_view(x, part.reshape({2, 2, 2, 2}), {2, 2, 2, 2}, part.to_vector<int64_t>());
  check_view(x, x.t().reshape({3, 2, 4}), {3, 2, 4}, x.t().to_vector<int64_t>());
  check_view(x, x.flip({0, 1}).reshape({24}), {24}, Values(all.rbegin(), all.rend()));
  const Tensor wide = counted({2, 1}).expand({2, 6});
  check_view(wide, wide.reshape({2, 2, 3}), {2, 2, 3}, wide.to_vector<int64_t>());
  const Tensor one = counted({1});
  check_view(one, one.expand({2, 3}).reshape({6}), {6}, Values(6, 0));
  check_view(one, one.reshape({}), {}, {0});
  CHECK(x.slice(0, 0, 0).reshape({2, 0, 5}).numel() == 0);
}

TEST_CASE("reshape copies where no strides can, and view refuses", "[tensor]") {
  const Tensor x = counted({2, 3});
  const Tensor part = counted({4, 6}).slice(1, 0, 4), wide = counted({2, 1}).expand({2, 3});
  for (const Tensor& tensor : {x.t(), x.flip({1}), part, wide}) {
    const Tensor flat = tensor.reshape({-1});
    CHECK(flat.to_vector<int64_t>() == tensor.to_vector<int64_t>());
    CHECK_FALSE(shares_storage(flat, tensor));
    CHECK_THROWS_WITH(tensor.view({-1}), ContainsSubstring("use reshape, which copies"));
  }
  CHECK(shares_storage(x.view({3, 2}), x));
  CHECK_THROWS_AS(x.reshape({4}), Error);
  CHECK_THROWS_AS(x.reshape({-1, -1}), Error);
  CHECK_THROWS_AS(x.reshape({-1, 4}), Error);
  CHECK_THROWS_AS(x.reshape({-6}), Error);
}

TEST_CASE("squeeze, unsqueeze and flatten add and remove sizes of 1", "[tensor]") {
  const Tensor x = counted({1, 3, 1, 2});
  const Values all = {0, 1, 2, 3, 4, 5};
  check_view(x, x.squeeze(), {3, 2}, all);
  check_view(x, x.squeeze(0), {3, 1, 2}, all);
  check_view(x, x.squeeze(-2), {1, 3, 2}, all);
  check_view(x, x.squeeze(1), {1, 3, 1, 2}, all);
  check_view(x, x.unsqueeze(-1), {1, 3, 1, 2, 1}, all);
  check_view(x, x.unsqueeze(0), {1, 1, 3, 1, 2}, all);
  check_view(x, x.flatten(), {6}, all);
  check_view(x, x.flatten(1, 2), {1, 3, 2}, all);
  CHECK_THROWS_AS(x.unsqueeze(6), Error);
  CHECK_THROWS_AS(x.squeeze(4), Error);
}

TEST_CASE("views see what is written through their operand", "[tensor]") {
  const Tensor x = counted({2, 3});
  const Tensor view = x.t().flip({0}).slice(0, 0, 1);
  CHECK(view.to_vector<int64_t>() == Values{2, 5});
  x.data<int64_t>()[5] = 50;
  CHECK(view.to_vector<int64_t>() == Values{2, 50});
  CHECK(view.data<int64_t>() == x.data<int64_t>() + 2);
}

TEST_CASE("a view keeps its storage alive", "[tensor]") {
  Tensor view = counted({1000}).slice(0, 990);
  const Tensor other = filled_tensor(Literal::of(int64, -1), {1000});
  CHECK(view.to_vector<int64_t>()[9] == 999);
  CHECK_FALSE(shares_storage(view, other));
}

TEST_CASE("contiguous copies a strided tensor once", "[tensor]") {
  const Tensor x = counted({2, 3});
  const Tensor transposed = x.t(), rows = transposed.contiguous();
  CHECK(rows.strides() == Sizes{2, 1});
  CHECK_FALSE(shares_storage(rows, x));
  CHECK(same_bits(rows, transposed));
  CHECK(shares_storage(rows.contiguous(), rows));
}

TEST_CASE("copies of every element size follow the strides", "[tensor]") {
  for (const DType dtype : {int8, float16, int32, float64}) {
    const Tensor x = counted({3, 2}).to(dtype);
    CAPTURE(dtype);
    CHECK(contiguous_copy(x.t().flip({0})).to_vector<int64_t>() == Values{1, 3, 5, 0, 2, 4});
    CHECK(contiguous_copy(x.slice(0, 3)).numel() == 0);
  }
  CHECK(contiguous_copy(counted({})).to_vector<int64_t>() == Values{0});
}

TEST_CASE("values are read converted", "[tensor]") {
  const Tensor x = from_vector<float>({1.9f, -1.9f, NAN, 1e30f});
  CHECK(x.to_vector<int32_t>() == std::vector<int32_t>{1, -1, 0, INT32_MAX});
  CHECK(x.to_vector<uint8_t>() == std::vector<uint8_t>{1, 0, 0, 255});
  CHECK(x.to_vector<bool>() == std::vector<bool>{true, true, true, true});
  CHECK(x[0].item<double>() == double{1.9f});
  const Tensor large = from_vector<uint64_t>({~uint64_t{0}, 5});
  CHECK(large[0].item<uint64_t>() == ~uint64_t{0});
  CHECK(large[0].item<float>() == 0x1p64f);
  CHECK(from_vector<int64_t>({INT64_MIN})[0].item<int64_t>() == INT64_MIN);
  CHECK(filled_tensor(Literal::of(bfloat16, 1.5), {}).item<float>() == 1.5f);
  CHECK(static_cast<bool>(from_vector<float>({0.5f})));
  CHECK_FALSE(static_cast<bool>(from_vector<int8_t>({0})));
}

TEST_CASE("reading what is not there is the caller's error", "[tensor]") {
  const Tensor x = counted({2, 3});
  CHECK_THROWS_WITH(x.item<int64_t>(), ContainsSubstring("has 6 elements, not one"));
  CHECK_THROWS_WITH(x.item<int64_t>(), ContainsSubstring("tensor_test.cpp:"));
  CHECK_THROWS_WITH(x.data<float>(), ContainsSubstring("holds i64"));
  CHECK_THROWS_WITH(static_cast<bool>(x), ContainsSubstring("elements, not one"));
  CHECK_THROWS_AS(x.element({0}), Error);
  CHECK_THROWS_AS(x.element({0, 3}), Error);
  CHECK_THROWS_AS(x.element({-1, 0}), Error);
  CHECK_THROWS_WITH(Tensor().shape(), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(Tensor().item<float>(), ContainsSubstring("undefined"));
  CHECK_THROWS_AS(Tensor() + x, Error);
}

TEST_CASE("shapes that cannot be are errors", "[tensor]") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({2, 0, 3}) == 0);
  CHECK_THROWS_WITH(element_count({2, -1}), ContainsSubstring("sizes are not negative"));
  CHECK_THROWS_WITH(element_count({INT64_MAX, 2}), ContainsSubstring("too many elements"));
  // strides multiply although there is no element
  CHECK_THROWS_AS(element_count({0, int64_t{1} << 40, int64_t{1} << 40}), Error);
  CHECK_THROWS_AS(empty_tensor(float32, {-3}), Error);
  CHECK_THROWS_WITH(from_vector<float>({1, 2, 3}, Sizes{2, 2}),
                    ContainsSubstring("3 values do not fill shape [2,2]"));
}

TEST_CASE("same_bits tells -0 from 0, but no NaN from another", "[tensor]") {
  const auto same = [](std::vector<float> lhs, std::vector<float> rhs) {
    return same_bits(from_vector(lhs), from_vector(rhs));
  };
  CHECK(same({1, NAN}, {1, -NAN}));
  CHECK_FALSE(same({0}, {-0.0f}));
  CHECK_FALSE(same({1}, {1, 1}));
  CHECK_FALSE(same_bits(counted({2}), counted({2}).to(int32)));
  CHECK_FALSE(same_bits(counted({0}), counted({0}).to(int32)));
  CHECK(same_bits(counted({2, 3}).t().contiguous(), counted({2, 3}).t()));
  const Tensor x = counted({100, 100});
  Tensor y = contiguous_copy(x);
  y.data<int64_t>()[7654] = -1;
  CHECK(first_difference(x, y) == 7654);
  CHECK(first_difference(x, x) == std::nullopt);
}
