// einsum against sums written as loops, and its errors at the user's line.
#include "tiny_compile/trace/einsum.h"

#include "tests/trace/agree.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor once(const std::string& equation, const std::vector<Tensor>& operands) {
  return agreed([&](std::vector<Tensor> given) { return std::vector{einsum(equation, given)}; },
                operands)[0];
}

std::string refusal(const std::string& equation, const std::vector<Tensor>& operands) {
  return message_of([&] { einsum(equation, operands); });
}

const Tensor a = tensor({{1., 2., 3.}, {4., 5., 6.}}),
             b = tensor({{1., 0.}, {2., 1.}, {0., 3.}}), block = tensor({{1., 2.}, {3., 4.}}),
             u = tensor({1., 2.}), v = tensor({3., 4., 5.});

}  // namespace

TEST_CASE("einsum multiplies matrices, in any order of the result's axes", "[einsum]") {
  check_is(once("ij,jk->ik", {a, b}), float64, {2, 2}, {5, 11, 14, 23});
  check_is(once("ij,jk->ki", {a, b}), float64, {2, 2}, {5, 14, 11, 23});
  check_is(once("ij,jk", {a, b}), float64, {2, 2}, {5, 11, 14, 23});
  check_is(once("kj,ik", {b, a}), float64, {2, 2}, {5, 11, 14, 23});  // alphabetical: ij
}

TEST_CASE("einsum of one operand sums, permutes and takes diagonals", "[einsum]") {
  check_is(once("ij->", {a}), float64, {}, {21});
  check_is(once("ij->j", {a}), float64, {3}, {5, 7, 9});
  check_is(once("ij->ji", {a}), float64, {3, 2}, {1, 4, 2, 5, 3, 6});
  check_is(once("ba", {a}), float64, {3, 2}, {1, 4, 2, 5, 3, 6});
  check_is(once("ii->i", {block}), float64, {2}, {1, 4});
  check_is(once("ii", {block}), float64, {}, {5});
  const Tensor cube = arange(8).reshape({2, 2, 2}).to(float64);
  check_is(once("iii->i", {cube}), float64, {2}, {0, 7});
  check_is(once("iji->j", {cube}), float64, {2}, {0 + 5, 2 + 7});
}

TEST_CASE("einsum without a common sum is a product of elements", "[einsum]") {
  check_is(once("i,j->ij", {u, v}), float64, {2, 3}, {3, 4, 5, 6, 8, 10});
  check_is(once("i,j->ji", {u, v}), float64, {3, 2}, {3, 6, 4, 8, 5, 10});
  check_is(once("ij,ij->ij", {a, a}), float64, {2, 3}, {1, 4, 9, 16, 25, 36});
  check_is(once(",i->i", {tensor({2.}).reshape(Sizes{}), u}), float64, {2}, {2, 4});
}

TEST_CASE("einsum contracts any number of operands", "[einsum]") {
  check_is(once("i,ij,j->", {u, a, v}), float64, {}, {1 * 26. + 2 * 62});
  check_is(once("i,ij,j,ii->i", {u, a, v, block}), float64, {2}, {26, 2 * 62. * 4});
  check_is(once("ij,jk,kl->il", {a, b, block}), float64, {2, 2}, {38, 54, 83, 120});
}

TEST_CASE("einsum batches, and its dots broadcast", "[einsum]") {
  const Tensor x = arange(12).reshape({2, 2, 3}).to(float64);
  const Values products = {1 * 2, 2 * 2 + 1 + 0, 0, 0};
  const Tensor y = once("bij,jk->bik", {x, b}), z = once("...ij,jk->...ik", {x, b});
  check_is(y, float64, {2, 2, 2}, {2, 7, 11, 19, 20, 31, 29, 43});
  CHECK(same_bits(y, z));
  check_is(once("...i->...", {x}), float64, {2, 2}, {3, 12, 21, 30});
  check_is(once("i...->...", {x}), float64, {2, 3}, {6, 8, 10, 12, 14, 16});
  check_is(once("...i,...i->i...", {a, v}), float64, {3, 2}, {3, 12, 8, 20, 15, 30});
  check_is(once("...", {u}), float64, {2}, {1, 2});
}

TEST_CASE("einsum of nothing is zeros", "[einsum]") {
  check_is(once("ij,jk->ik", {zeros({2, 0}), zeros({0, 1})}), float32, {2, 1}, {0, 0});
  check_is(once("ij,jk->ik", {zeros({0, 3}), zeros({3, 2})}), float32, {0, 2}, {});
  check_is(once("ii->i", {zeros({0, 0})}), float32, {0}, {});
}

TEST_CASE("an einsum that does not fit is an error at the user's line", "[einsum]") {
  for (const auto& [equation, operands, why] :
       std::vector<std::tuple<std::string, std::vector<Tensor>, std::string>>{
           {"ij,jk->ik", {a}, "2 terms for 1 operands"},
           {"ij", {u}, "'ij' does not name the axes of [2]"},
           {"i", {a}, "'i' does not name the axes of [2,3]"},
           {"ij,jk->ik", {a, a}, "'j' is 3 and 2"},
           {"ii", {a}, "'i' is 2 and 3"},
           {"ij->k", {a}, "'k' labels no operand's axis"},
           {"ij->ii", {a}, "names 'i' twice"},
           {"i j+", {a}, "'+' at position 3"},
           {"ij->i->j", {a}, "'-' at position 5"},
           {"......", {a}, "'.' at position 3"},
           {"ij", {Tensor()}, "undefined"},
       }) {
    INFO(equation);
    CHECK_THAT(refusal(equation, operands),
               ContainsSubstring("einsum_test.cpp") && ContainsSubstring(why));
  }
}
