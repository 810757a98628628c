// What follows from a mask? It is comparisons of integers, joined by and, or and not: one of several
// conjunctions holds, and in each of them the index has to stay in its buffer.
//
//   i0*1024 + j0 < 73216   =>   i0*1056 + (j0/512)*528 + j0%512 < 75504
#include "tiny_compile/loops/mask_facts.h"

#include <algorithm>

#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostWays = 64;
constexpr int kDeepest = 200;  // ands, ors and nots in one another

Expr flipped(const Expr& fact) { return fact * -1 - 1; }  // not e >= 0  =>  -e - 1 >= 0

// Quotients by numbers in an index, and in what these divide: (i*32 + j/32)/65, then j/32.
void add_quotients_in(const Expr& index, std::vector<Expr>& all) {
  if (index.is_constant() || index.kind() == ExprKind::Symbol) return;
  if (index.kind() == ExprKind::FloorDiv && index.operands()[1].is_constant() &&
      std::find(all.begin(), all.end(), index) == all.end())
    all.push_back(index);
  for (const Expr& part : index.operands()) add_quotients_in(part, all);
}

// Of facts about i those about the i/d that are in the index: 73215 - 1024*j - i >= 0 says that
// 73215 - 1024*j - 512*(i/512) >= 0, and 1024*j + i - 6074 >= 0 that 1024*j + 2*(i/2) + 1 - 6074 >= 0.
std::vector<Expr> with_quotients_of(const Expr& index, std::vector<Expr> facts) {
  const size_t given = facts.size();
  std::vector<Expr> quotients;
  add_quotients_in(index, quotients);
  for (const Expr& quotient : quotients) {
    const Expr &divided = quotient.operands()[0], &divisor = quotient.operands()[1];
    for (size_t f = 0; f < given && facts.size() < kMostFacts; f++) {
      const int64_t c = coefficient(facts[f], divided);
      if (c == 0) continue;
      const Expr least = quotient * divisor, most = least + (divisor - 1);
      facts.push_back(facts[f] - divided * c + (c < 0 ? least : most) * c);
    }
  }
  return facts;
}

}  // namespace

MaskFacts::Ways MaskFacts::comparison(const Scalar& scalar, bool wanted) const {
  const auto lhs = integer_of(kernel_, scalar.operands[0]),
             rhs = integer_of(kernel_, scalar.operands[1]);
  if (!lhs || !rhs || largest_part(*lhs) > kUnbounded / 4 ||
      largest_part(*rhs) > kUnbounded / 4)
    return {{}};
  const Expr below = *rhs - *lhs - 1, above = *lhs - *rhs - 1;  // lhs < rhs, lhs > rhs
  switch (scalar.op) {
    case Op::lt: return {{wanted ? below : flipped(below)}};
    case Op::gt: return {{wanted ? above : flipped(above)}};
    case Op::ge: return {{wanted ? flipped(below) : below}};
    case Op::le: return {{wanted ? flipped(above) : above}};
    case Op::eq:
    case Op::ne:
      if (wanted == (scalar.op == Op::eq)) return {{flipped(below), flipped(above)}};
      return {{below}, {above}};
    default: return {{}};
  }
}

const MaskFacts::Ways& MaskFacts::ways(int scalar, bool wanted, int depth) {
  const std::pair<int, bool> key = {scalar, wanted};
  const auto found = ways_.find(key);
  return found != ways_.end()
             ? found->second
             : ways_.emplace(key, ways_of(scalar, wanted, depth)).first->second;
}

MaskFacts::Ways MaskFacts::ways_of(int id, bool wanted, int depth) {
  const Scalar& scalar = kernel_.scalars[id];
  if (scalar.kind == ScalarKind::Constant)
    return (scalar.value.as_integer() != 0) == wanted ? Ways{{}} : Ways{};
  if (scalar.kind != ScalarKind::Apply || depth > kDeepest) return {{}};
  if (scalar.op == Op::bitwise_not) return ways(scalar.operands[0], !wanted, depth + 1);
  const bool joins = scalar.op == Op::bitwise_and || scalar.op == Op::bitwise_or;
  if (!joins || scalar.dtype != DType::boolean)
    return scalar.operands.size() == 2 ? comparison(scalar, wanted) : Ways{{}};
  const Ways lhs = ways(scalar.operands[0], wanted, depth + 1),
             rhs = ways(scalar.operands[1], wanted, depth + 1);
  if (wanted == (scalar.op == Op::bitwise_or)) {  // either
    Ways all = lhs;
    all.insert(all.end(), rhs.begin(), rhs.end());
    return all.size() > kMostWays ? Ways{{}} : all;
  }
  if (lhs.size() * rhs.size() > kMostWays) return lhs.size() < rhs.size() ? lhs : rhs;
  Ways all;
  for (const std::vector<Expr>& left : lhs) {
    for (const std::vector<Expr>& right : rhs) {
      all.push_back(left);
      for (const Expr& fact : right) {
        if (all.back().size() < kMostFacts) all.back().push_back(fact);
      }
    }
  }
  return all;
}

bool MaskFacts::within(const Expr& index, const Expr& size, int mask) {
  const Interval bounds = index.bounds();
  const bool below =
      size.is_constant() ? bounds.high < size.constant() : max(index + 1, size) == size;
  if (bounds.low >= 0 && below) return true;
  if (mask < 0) return false;
  auto known = facts_.find(mask);
  if (known == facts_.end()) {
    std::vector<Facts> all;
    for (const std::vector<Expr>& way : ways(mask, true, 0)) all.emplace_back(way);
    known = facts_.emplace(mask, std::move(all)).first;
  }
  const Expr room = size - 1 - index;
  const auto imply = [&](const Facts& facts) {
    return facts.imply_at_least_zero(index) && facts.imply_at_least_zero(room);
  };
  if (std::all_of(known->second.begin(), known->second.end(), imply)) return true;
  const Ways& all = ways(mask, true, 0);
  return std::all_of(all.begin(), all.end(), [&](const std::vector<Expr>& way) {
    std::vector<Expr> facts = with_quotients_of(index, way);
    return facts.size() > way.size() && imply(Facts(std::move(facts)));
  });
}

bool MaskFacts::within(const Expr& index, const Expr& size, int mask,
                       const std::vector<Expr>& known) {
  if (within(index, size, mask)) return true;
  if (known.empty()) return false;
  const Ways all = mask < 0 ? Ways{{}} : ways(mask, true, 0);
  return std::all_of(all.begin(), all.end(), [&](std::vector<Expr> way) {
    way.insert(way.end(), known.begin(), known.end());
    const Facts facts(with_quotients_of(index, std::move(way)));
    return facts.imply_at_least_zero(index) && facts.imply_at_least_zero(size - 1 - index);
  });
}

}  // namespace tiny_compile
