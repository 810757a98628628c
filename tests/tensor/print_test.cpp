#include <cmath>
#include <cstring>

#include "tests/catch.h"
#include "tiny_compile/tensor/tensor.h"

using namespace tiny_compile;

namespace {

std::string printed(const std::vector<float>& values, std::optional<Sizes> shape = {}) {
  return (shape ? from_vector(values, *shape) : from_vector(values)).str();
}

std::vector<int64_t> count_to(int64_t n) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; i++) values.push_back(i);
  return values;
}

}  // namespace

// The expected texts are what torch.Tensor.__repr__ gives, but for the names of dtypes.

TEST_CASE("numbers print in one format, wide enough for the widest", "[print]") {
  CHECK(printed({1, -2.5, 0, INFINITY}, Sizes{2, 2}) ==
        "tensor([[ 1.0000, -2.5000],\n"
        "        [ 0.0000,     inf]])");
  CHECK(printed({0.1f, 0.25f, 12.345678f}) == "tensor([ 0.1000,  0.2500, 12.3457])");
}

TEST_CASE("whole floats print with a dot", "[print]") {
  CHECK(printed({1, 2, 3}) == "tensor([1., 2., 3.])");
  CHECK(printed({1, -20, 300}) == "tensor([  1., -20., 300.])");
  CHECK(printed({0, 0}) == "tensor([0., 0.])");
}

TEST_CASE("zeros and non-finite numbers do not widen the columns", "[print]") {
  CHECK(printed({NAN, 1}) == "tensor([nan, 1.])");
  CHECK(printed({-INFINITY, 1.5f}) == "tensor([  -inf, 1.5000])");
  CHECK(printed({NAN}) == "tensor([nan])");
  CHECK(printed({-0.0f, 1}) == "tensor([-0., 1.])");
  CHECK(printed({INFINITY, -INFINITY, NAN, 0}) == "tensor([inf, -inf, nan, 0.])");
}

TEST_CASE("a wide range or large numbers print in scientific form", "[print]") {
  CHECK(printed({1, 10000}) == "tensor([1.0000e+00, 1.0000e+04])");
  CHECK(printed({1, 1000}) == "tensor([   1., 1000.])");
  CHECK(printed({0.00001f, 0.5f}) == "tensor([1.0000e-05, 5.0000e-01])");
  CHECK(printed({1e9f, 1e9f}) == "tensor([1.0000e+09, 1.0000e+09])");
  CHECK(printed({1e8f}) == "tensor([100000000.])");
  CHECK(printed({-1.5e10f, 0, NAN}) == "tensor([-1.5000e+10,  0.0000e+00,         nan])");
  CHECK(printed({0.00005f}) == "tensor([5.0000e-05])");
  CHECK(from_vector<double>({1e300, 1e-300}).str() ==
        "tensor([1.0000e+300, 1.0000e-300], dtype=f64)");
}

TEST_CASE("a number alone", "[print]") {
  CHECK(printed({1.5f}, Sizes{}) == "tensor(1.5000)");
  CHECK(printed({-3}, Sizes{}) == "tensor(-3.)");
  CHECK(printed({INFINITY}, Sizes{}) == "tensor(inf)");
  CHECK(from_vector<int64_t>({7}, Sizes{}).str() == "tensor(7)");
  CHECK(filled_tensor(Literal::of(boolean, 1), {}).str() == "tensor(True)");
  CHECK(filled_tensor(Literal::of(bfloat16, 0.1), {}).str() == "tensor(0.1001, dtype=bf16)");
}

TEST_CASE("integers and bools", "[print]") {
  CHECK(from_vector<int64_t>({1, -20, 3}).str() == "tensor([  1, -20,   3])");
  CHECK(from_vector<uint8_t>({1, 255}).str() == "tensor([  1, 255], dtype=u8)");
  CHECK(from_vector<uint64_t>({~uint64_t{0}}).str() ==
        "tensor([18446744073709551615], dtype=u64)");
  CHECK(from_vector<int32_t>({-2147483647 - 1, 0}).str() ==
        "tensor([-2147483648,           0], dtype=i32)");
  CHECK(from_vector<bool>({true, false}).str() == "tensor([ True, False])");
  CHECK(from_vector<bool>({true, true}).str() == "tensor([True, True])");
}

TEST_CASE("only a dtype that is no default is named", "[print]") {
  CHECK(filled_tensor(Literal::of(float16, 1), {2}).str() == "tensor([1., 1.], dtype=f16)");
  CHECK(filled_tensor(Literal::of(float64, 0.5), {1}).str() == "tensor([0.5000], dtype=f64)");
  CHECK(filled_tensor(Literal::of(int8, 3), {1}).str() == "tensor([3], dtype=i8)");
}

TEST_CASE("tensors of nothing show their shape and dtype", "[print]") {
  CHECK(empty_tensor(float32, {0}).str() == "tensor([])");
  CHECK(empty_tensor(float32, {0, 3}).str() == "tensor([], size=(0, 3))");
  CHECK(empty_tensor(int64, {0}).str() == "tensor([], dtype=i64)");
  CHECK(empty_tensor(boolean, {2, 0}).str() == "tensor([], size=(2, 0), dtype=bool)");
  CHECK(Tensor().str() == "tensor(undefined)");
}

TEST_CASE("an axis more, an empty line more", "[print]") {
  CHECK(from_vector(count_to(8), Sizes{2, 2, 2}).str() ==
        "tensor([[[0, 1],\n"
        "         [2, 3]],\n"
        "\n"
        "        [[4, 5],\n"
        "         [6, 7]]])");
  CHECK(from_vector(count_to(2), Sizes{2, 1, 1, 1}).str() ==
        "tensor([[[[0]]],\n"
        "\n"
        "\n"
        "        [[[1]]]])");
}

TEST_CASE("rows are broken at 80 columns", "[print]") {
  CHECK(from_vector(count_to(30)).str() ==
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
  const std::string two_rows = from_vector(count_to(40), Sizes{2, 20}).str();
  CHECK(two_rows ==
        "tensor([[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "         18, 19],\n"
        "        [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37,\n"
        "         38, 39]])");
  CHECK(printed(std::vector<float>(10, 0.5f)) ==
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000,\n"
        "        0.5000])");
}

TEST_CASE("a dtype that does not fit the line has its own", "[print]") {
  CHECK(filled_tensor(Literal::of(float64, 0.5), {9}).str() ==
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n"
        "       dtype=f64)");
}

TEST_CASE("more than 1000 elements show their edges", "[print]") {
  CHECK(from_vector(count_to(1001)).str() ==
        "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  CHECK(from_vector(count_to(2000), Sizes{1000, 2}).str() ==
        "tensor([[   0,    1],\n"
        "        [   2,    3],\n"
        "        [   4,    5],\n"
        "        ...,\n"
        "        [1994, 1995],\n"
        "        [1996, 1997],\n"
        "        [1998, 1999]])");
  // only what is shown decides the format
  std::vector<float> values(1001, 1);
  values[500] = 0.123f;
  CHECK(printed(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
  CHECK(with_layout(filled_tensor(Literal::of(float32, 2), {}), {1 << 20, 1 << 20}, {0, 0}, 0)
            .str()
            .size() < 400);
}

TEST_CASE("views print what they show", "[print]") {
  const Tensor x = from_vector(count_to(6), Sizes{2, 3});
  CHECK(with_layout(x, {3, 2}, {1, 3}, 0).str() ==
        "tensor([[0, 3],\n"
        "        [1, 4],\n"
        "        [2, 5]])");
  CHECK(with_layout(x, {3}, {-1}, 2).str() == "tensor([2, 1, 0])");
  CHECK(str(with_layout(x, {2}, {0}, 4)) == "tensor([4, 4])");
}

// Memory that only read() can see stands in for a GPU's.
TEST_CASE("a tensor on another device is read and names it", "[print]") {
  struct Elsewhere : Storage {
    Elsewhere() : Storage(nullptr, 8, cuda) {}
    void read(size_t first, size_t bytes, std::byte* to) const override {
      const uint8_t values[] = {0, 10, 20, 30, 40, 50, 60, 70};
      std::memcpy(to, values + first, bytes);
    }
  };
  auto data = std::make_shared<TensorData>();
  data->dtype = uint8;
  data->layout = layout_of({3}, {-2});
  data->offset = 6;
  data->storage = std::make_shared<Elsewhere>();
  const Tensor x(data);
  CHECK(x.device() == cuda);
  CHECK(x.str() == "tensor([60, 40, 20], device='cuda:0', dtype=u8)");
  CHECK(x.to_vector<int>() == std::vector<int>{60, 40, 20});
  CHECK_THROWS_AS(x.data<uint8_t>(), Error);
}
