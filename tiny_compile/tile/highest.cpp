// Less the row's maximum no element is above 0, as long as that maximum is finite; so a thread
// asks once which way all its exponentials take, not for each:
//
//   r0 = max(j0) x[j0];  exp(x[j0] - min(r0, 3.4e38))
//   =>   $9 = r0 - min(r0, 3.4e38), which is 0, or infinite
#include "tiny_compile/tile/highest.h"

#include <algorithm>

#include "tiny_compile/loops/kept_values.h"

namespace tiny_compile {
namespace {

// The row's maximum of these elements, of which `number` is made; -1: none is.
int maximum_in(const Lowering& l, int number, int elements) {
  for (int id : evaluated_for(l.kernel, {number}, [](int) { return false; })) {
    const Scalar& s = l.kernel.scalars[id];
    if (s.kind != ScalarKind::Register || !l.defined[id]) continue;
    const Step& step = l.kernel.steps[s.step];
    const bool is_maximum = step.kind == StepKind::Reduce && step.op == Op::max;
    if (is_maximum && step.value == elements && step.inner == l.inner) return id;
  }
  return -1;
}

// What is at most the row's maximum is, less a number of the row's, at most the maximum less
// that.
int highest(Lowering& l, int id, Body& body) {
  const Scalar& s = l.kernel.scalars[id];
  if (s.kind != ScalarKind::Apply || s.op != Op::sub || s.dtype != DType::f32 ||
      !l.defined[s.operands[1]])
    return -1;
  const int number = s.operands[1], maximum = maximum_in(l, number, s.operands[0]),
            above = maximum < 0 ? highest(l, s.operands[0], body) : maximum;
  if (above < 0) return -1;
  const int less = add_apply(l.tile, Op::sub, DType::f32, {above, number});
  body.push_back(define(less));
  return less;
}

bool lanes_share(const Share& k) {
  return std::any_of(k.bits.begin(), k.bits.end(),
                     [](const Bit& bit) { return bit.level == Level::Lane && bit.step == 1; });
}

}  // namespace

int highest_exponent(Lowering& l, const std::vector<int>& ids, const Share& k, Body& body) {
  if (l.row_registers() > 1 || !lanes_share(k)) return -1;
  int most = -1;
  Body all;
  std::vector<int> exponents;
  for (int id : ids) {
    const Scalar& s = l.kernel.scalars[id];
    if (s.kind != ScalarKind::Apply || l.defined[id] || is_known(l, id)) continue;
    if (s.op == Op::div) return -1;
    if (s.op == Op::exp && s.dtype == DType::f32 &&
        std::count(exponents.begin(), exponents.end(), s.operands[0]) == 0)
      exponents.push_back(s.operands[0]);
  }
  for (int exponent : exponents) {
    const int one = highest(l, exponent, all);
    if (one < 0) return -1;
    const bool is_first = most < 0;
    most = is_first ? one : add_apply(l.tile, Op::maximum, DType::f32, {most, one});
    if (!is_first) all.push_back(define(most));
  }
  append(body, std::move(all));
  return most;
}

}  // namespace tiny_compile
