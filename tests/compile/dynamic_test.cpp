// One trace and one text for many sizes.
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor normalized(const Tensor& x) { return softmax(x * 2, 1) + x.sum(0); }

void check_sizes(const CompileOptions& options, Device device) {
  int traces = 0;
  const auto f = compile(
      [&traces](Tensor x) {
        traces++;
        return normalized(x);
      },
      options);
  const auto of_numbers = compile(normalized, {.backend = "interpreter"});
  for (const int64_t n : {5, 7, 1000, 33, 4096, 2}) {
    const Tensor x = randn({n, 12});
    const Tensor got = f(copy_to(x, device));
    CHECK(got.shape() == Sizes{n, 12});
    CHECK(same_bits(copy_to(got, cpu), of_numbers(x)));
  }
  CHECK(traces == 1);
  CHECK(f.cache().size() == 1);
  f(copy_to(randn({1, 12}), device));  // a number, as broadcasting asks for it
  CHECK(traces == 2);
  f(copy_to(randn({5, 13}), device));
  CHECK(traces == 3);
}

}  // namespace

TEST_CASE("a dynamic axis is traced and compiled once", "[compile][dynamic]") {
  check_sizes({.backend = "cpp", .dynamic = {{0, 0}}}, cpu);
  check_sizes({.backend = "interpreter", .dynamic = {{0, 0}}}, cpu);
}

TEST_CASE("a dynamic axis is compiled once for a GPU", "[compile][dynamic][gpu]") {
  if (!why_no_gpu().empty()) SKIP(why_no_gpu());
  check_sizes({.dynamic = {{0, 0}}}, cuda);
}

TEST_CASE("what a function asks about its sizes is a guard", "[compile][dynamic]") {
  int traces = 0;
  const auto f = compile(
      [&traces](Tensor x, Tensor y) {
        traces++;
        return x.size(0) > 100 ? x.sum(0) : x.sum(0) + y.sum(0);
      },
      {.dynamic = {{0, 0}, {1, 0}}});
  const auto call = [&](int64_t n, int64_t m) {
    return f(ones({n, 3}), ones({m, 3})).element({0}).as_double();
  };
  CHECK(call(5, 7) == 12);
  CHECK(call(50, 70) == 120);
  CHECK(traces == 1);
  CHECK(call(500, 7) == 500);
  CHECK(traces == 2);
  CHECK(call(5, 9) == 14);
  CHECK(call(900, 9) == 900);
  CHECK(traces == 2);
}

TEST_CASE("tensors that lie otherwise are copied for a text of sizes", "[compile][dynamic]") {
  const auto f = compile(normalized, {.backend = "cpp", .dynamic = {{0, 0}}});
  f(randn({5, 12}));
  const Tensor x = randn({12, 9}).t();
  CHECK(same_bits(f(x), f(contiguous_copy(x))));
  CHECK(f.cache().size() == 1);
}

TEST_CASE("dynamic names axes that there are", "[compile][dynamic]") {
  const Tensor x = ones({3, 4});
  CHECK_THROWS_WITH(compile(normalized, {.dynamic = {{0, 2}}})(x),
                    ContainsSubstring("dynamic names axis 2 of tensor 0 of 1"));
  CHECK_THROWS_WITH(compile(normalized, {.dynamic = {{1, 0}}})(x),
                    ContainsSubstring("of tensor 1 of 1"));
}
