#include "lessons/tools/check.h"
#include "exercise.h"

#include <set>

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::call_padded;

namespace {

Tensor head(Tensor x) { return softmax(x * 3 + 1, -1); }

// The batches that f is called with for these.
std::vector<int64_t> seen_for(const std::vector<int64_t>& batches) {
  std::vector<int64_t> seen;
  const exercise::RowFunction f = [&](Tensor x) {
    seen.push_back(x.size(0));
    return x;
  };
  for (int64_t batch : batches) call_padded(f, randn({batch, 3}));
  return seen;
}

}  // namespace

TEST_CASE("the result has the rows of x and their bits") {
  for (int64_t batch : {1, 2, 3, 5, 31, 33}) {
    const Tensor x = randn({batch, 257});
    const Tensor got = call_padded(head, x), wanted = head(x);
    INFO("a batch of " << batch);
    REQUIRE(got.shape() == wanted.shape());
    CHECK(same_bits(got, wanted));
  }
}

TEST_CASE("a hundred batches compile eight times") {
  const auto f = compile(head, {.backend = "interpreter", .cache_limit = 128});  // keeps all
  for (int64_t batch = 1; batch <= 100; batch++) {
    const Tensor x = randn({batch, 7});
    CHECK(same_bits(call_padded(f, x), head(x)));
  }
  score("compilations", int64_t(f.cache().size()), 8);
  CHECK(f.cache().size() <= 8);
}

TEST_CASE("fewer than twice the rows are computed") {
  const std::vector<int64_t> batches = {1, 3, 9, 65, 100, 129}, seen = seen_for(batches);
  REQUIRE(seen.size() == batches.size());
  for (size_t k = 0; k < seen.size(); k++) {
    INFO("a batch of " << batches[k] << " is called with " << seen[k] << " rows");
    CHECK(seen[k] < 2 * batches[k]);
  }
}

TEST_CASE("a power of two is called as it is") {
  CHECK(seen_for({1, 2, 4, 64}) == std::vector<int64_t>{1, 2, 4, 64});
}

TEST_CASE("a batch of nothing is called as it is") {
  CHECK(seen_for({0}) == std::vector<int64_t>{0});
  CHECK(call_padded(head, zeros({0, 5})).shape() == Sizes{0, 5});
}

TEST_CASE("added rows raise no error that the user's rows do not") {
  const exercise::RowFunction divide = [](Tensor x) { return floor_divide(100, x); };
  const Tensor x = tensor({7, 5, 3, 2, 1});
  const Tensor got = call_padded(compile(divide, {.backend = "interpreter"}), x);
  CHECK(same_bits(got, divide(x)));
}

TEST_CASE("rows of any shape, dtype and layout will do") {
  for (const Tensor& x : {randn({3}), randn({3, 2, 5}), randn({7, 3}).t(), arange(3),
                          randn({3, 4}, float64), randn({5, 2}).flip({0})}) {
    const exercise::RowFunction f = [](Tensor t) { return t + 1; };
    CHECK(same_bits(call_padded(f, x), f(x)));
  }
}
