#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Conv1d;
using exercise::conv1d_type;

namespace {

Type type(const Shape& shape, DType dtype = DType::f32) { return {dtype, shape}; }

std::string other_type(const Type& got, const Type& want) {
  return got == want ? "" : "yours is " + got.str() + ", wanted: " + want.str();
}

// Whether it is refused by an Error that holds both texts.
std::string accepts(const Type& x, const Type& kernel, const Conv1d& how,
                    const std::vector<std::string>& named) {
  const std::string what = str(x.str(), " with ", kernel.str(), ", step ", how.step,
                               ", padding ", how.padding, ", dilation ", how.dilation);
  try {
    return "you accept " + what + " as " + conv1d_type(x, kernel, how).str();
  } catch (const Error& error) {
    for (const std::string& text : named) {
      if (std::string(error.what()).find(text) == std::string::npos)
        return "of " + what + " your message does not say '" + text + "': " + error.what();
    }
  }
  return "";
}

}  // namespace

TEST_CASE("a plain convolution") {
  EXPECT(other_type(conv1d_type(type({2, 3, 10}), type({7, 3, 3}), {}), type({2, 7, 8})));
  EXPECT(other_type(conv1d_type(type({2, 3, 10}, DType::f16), type({7, 3, 10}, DType::f16), {}),
                    type({2, 7, 1}, DType::f16)));
}

TEST_CASE("the size is that of the windows") {
  for (int64_t length : {5, 16, 257}) {
    for (int64_t width : {1, 2, 4}) {
      for (const Conv1d& how : {Conv1d{1, 0, 1}, {2, 1, 1}, {3, 2, 1}, {1, 3, 2}, {4, 5, 3}}) {
        const int64_t reach = how.dilation * (width - 1) + 1;
        if (reach > length + 2 * how.padding) continue;
        const Tensor padded = pad(zeros({1, 2, length}), {how.padding, how.padding});
        const int64_t windows = padded.unfold(2, reach, how.step).size(2);
        EXPECT(other_type(conv1d_type(type({1, 2, length}), type({3, 2, width}), how),
                          type({1, 3, windows})));
      }
    }
  }
}

TEST_CASE("operands of another rank or dtype are refused") {
  EXPECT(accepts(type({3, 10}), type({7, 3, 3}), {}, {"f32[3,10]"}));
  EXPECT(accepts(type({2, 3, 10}), type({3, 3}), {}, {"f32[3,3]"}));
  EXPECT(accepts(type({}), type({7, 3, 3}), {}, {"f32[]"}));
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 3}, DType::f16), {}, {"f32", "f16"}));
}

TEST_CASE("other channels are refused") {
  EXPECT(accepts(type({2, 3, 10}), type({7, 4, 3}), {}, {"3", "4"}));
}

TEST_CASE("a kernel that does not fit is refused") {
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 11}), {}, {"11", "10"}));
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 13}), {1, 1, 1}, {"13", "12"}));
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 5}), {2, 3, 4}, {"17", "16"}));
  EXPECT(
      other_type(conv1d_type(type({2, 3, 10}), type({7, 3, 12}), {1, 1, 1}), type({2, 7, 1})));
}

TEST_CASE("an empty kernel and absurd numbers are refused") {
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 0}), {}, {}));
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 3}), {0, 0, 1}, {"0"}));
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 3}), {1, -1, 1}, {"-1"}));
  EXPECT(accepts(type({2, 3, 10}), type({7, 3, 3}), {1, 0, 0}, {"0"}));
}

TEST_CASE("sizes may be symbols") {
  const Expr n = Expr::symbol({"n", SymbolKind::Size}, 1, 64),
             l = Expr::symbol({"l", SymbolKind::Size}, 2, 4096);
  EXPECT(other_type(conv1d_type(type({n, 3, 10}), type({7, 3, 3}), {}), type({n, 7, 8})));
  EXPECT(other_type(conv1d_type(type({n, 3, l}), type({7, 3, 5}), {2, 1, 1}),
                    type({n, 7, floor_div(l + 2 - 5, 2) + 1})));
  EXPECT(accepts(type({n, 3, l}), type({7, 3, 5000}), {}, {"5000"}));
}
