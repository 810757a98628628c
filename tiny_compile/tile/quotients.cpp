#include "tiny_compile/tile/quotients.h"

namespace tiny_compile {
namespace {

int64_t coefficient_of(const Expr& sum, const Expr& factor) {
  for (const Term& term : terms(sum)) {
    if (term.factor == factor) return term.coefficient;
  }
  return 0;
}

}  // namespace

Expr with_min_outside(const Expr& sum) {
  for (const Term& term : terms(sum)) {
    if (term.coefficient != 1 || term.factor.kind() != ExprKind::Min) continue;
    const std::vector<Expr>& parts = term.factor.operands();
    Expr result = sum - term.factor + parts[0];
    for (size_t k = 1; k < parts.size(); k++)
      result = min(result, sum - term.factor + parts[k]);
    return result;
  }
  return sum;
}

Expr joined_quotients(const Expr& value) {
  const auto is_quotient = [](const Term& term) {
    return term.coefficient == 1 && !term.factor.is_constant() &&
           term.factor.kind() == ExprKind::FloorDiv && term.factor.operands()[1].is_constant();
  };
  const std::vector<Term> all = terms(value);
  for (const Term& lower : all) {
    for (const Term& upper : all) {
      if (!is_quotient(lower) || !is_quotient(upper)) continue;
      const Expr &a = upper.factor.operands()[0], &n = upper.factor.operands()[1],
                 &b = lower.factor.operands()[0], &all_of_b = lower.factor.operands()[1];
      const int64_t times = all_of_b.constant() / n.constant();
      const Expr rest = mod(a, n);
      if (!(n * times == all_of_b) || rest.is_constant() || coefficient_of(b, rest) != times)
        continue;
      const Expr both = with_min_outside(b - rest * times + a * times);
      return value - upper.factor - lower.factor + floor_div(both, all_of_b);
    }
  }
  return value;
}

}  // namespace tiny_compile
