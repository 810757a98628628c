// How does one thread add up products? One after the other, from zero on:
//
//   r0 = dot(j0: 100) load x[i0*100 + j0], load w[j0]
// =>
//   dot_f32[0] = f32 0
//   for j0: 100 = 0 .. 100 { .. $2 = dot_f32[0] ; $3 = fma($0, $1, $2) ; dot_f32[0] = $3 }
//   r0 = dot_f32[0]
//
// A sum of -0 is +0; narrow integers add up in i32.
#include "tiny_compile/tile/row_dots.h"

#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/row_reductions.h"

namespace tiny_compile {

Body dot_row(RowTile& r, int number) {
  const Step& step = r.kernel.steps[number];
  const DType dtype = r.kernel.scalars[step.value].dtype;
  const bool is_narrow = is_integer(dtype) && size_of(dtype) < 4;
  const DType type = is_narrow ? DType::i32 : compute_type(dtype);
  const std::vector<int> wanted = wanted_by(r, {&step});
  const int sum = scratch(r, str("dot_", type), type, 1),
            zero = add_constant(r.tile, Literal::of(type, 0));
  Body body = define_within(r, wanted, shared_scope(r), r.defined);
  body.push_back(set(sum, 0, zero));
  append(body, over_axes(r, step.inner, step.inner.size(), wanted, [&](const Expr& flat) {
           Body each = element_at(r, wanted, {{}, r.ids, r.defined}, {flat}).body;
           const int a = as_added(r, each, type, r.ids[step.value]),
                     b = as_added(r, each, type, r.ids[step.rhs]),
                     so_far = read_back(r, each, sum, 0);
           const auto both = [&](Op op, std::vector<int> operands) {
             return computed(r.tile, each, op, type, std::move(operands));
           };
           each.push_back(set(sum, 0,
                              is_float(type) ? both(Op::fma, {a, b, so_far})
                                             : both(Op::add, {so_far, both(Op::mul, {a, b})})));
           return each;
         }));
  if (is_float(type)) {
    const int all = read_back(r, body, sum, 0);
    body.push_back(set(sum, 0, computed(r.tile, body, Op::add, type, {all, zero})));
  }
  append(body, make_register(RowReduction{r, step, type}, number, sum));
  mark_kept(r, wanted);
  return body;
}

}  // namespace tiny_compile
