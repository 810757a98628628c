// How do two results of a reduction become one? By the statements of a tile program, whatever the op:
//
//   sum        $2 = sum0[p + 8]; $3 = sum0[p]; $4 = add($3, $2); sum0[p] = $4
//   argmax     the same of the values, and of the places where they stand
#include "tiny_compile/tile/accumulator.h"

#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

// The better of two and its place: NaN beats all, and of equals the first is taken.
Body set_better(Tile& tile, const Accumulator& all, const Expr& at, int value, int place) {
  Body body;
  const auto make = [&](Op op, DType dtype, std::vector<int> operands) {
    return computed(tile, body, op, dtype, std::move(operands));
  };
  const auto ask = [&](Op op, int a, int b) { return make(op, DType::boolean, {a, b}); };
  const int mine = add_element(tile, all.values, at), here = add_element(tile, all.places, at);
  body.push_back(define(mine));
  body.push_back(define(here));
  const int wins = ask(all.op == Op::argmax ? Op::gt : Op::lt, value, mine),
            equal = ask(Op::eq, value, mine), sooner = ask(Op::lt, place, here);
  int takes = wins, same = equal;
  if (is_float(all.dtype)) {
    const int nan = ask(Op::ne, value, value), my_nan = ask(Op::ne, mine, mine),
              mine_is_number = ask(Op::eq, mine, mine);
    takes = ask(Op::bitwise_or, wins, ask(Op::bitwise_and, nan, mine_is_number));
    same = ask(Op::bitwise_or, equal, ask(Op::bitwise_and, nan, my_nan));
  }
  takes = ask(Op::bitwise_or, takes, ask(Op::bitwise_and, same, sooner));
  const int better = make(Op::where, all.dtype, {takes, value, mine}),
            where = make(Op::where, DType::i64, {takes, place, here});
  body.push_back(set(all.values, at, better));
  body.push_back(set(all.places, at, where));
  return body;
}

}  // namespace

bool is_exact(const Accumulator& all) { return is_exact(all.op, all.dtype); }

Body each(const char* name, int64_t count, const std::function<Body(const Expr&)>& body) {
  if (count == 1) return body(0);
  return {for_each(name, count, true, body(Expr::index(name, count)))};
}

std::vector<int> add_scalars(Tile& tile, const Kernel& kernel,
                             const std::vector<std::pair<int, int>>& given) {
  std::vector<int> ids(kernel.scalars.size(), -1);
  for (const auto& [scalar, id] : given) ids[static_cast<size_t>(scalar)] = id;
  for (size_t k = 0; k < ids.size(); k++) {
    if (ids[k] >= 0) continue;
    Scalar scalar = kernel.scalars[k];
    for (int& operand : scalar.operands) operand = ids[static_cast<size_t>(operand)];
    if (scalar.mask >= 0) scalar.mask = ids[static_cast<size_t>(scalar.mask)];
    ids[k] = static_cast<int>(tile.kernel.scalars.size());
    tile.kernel.scalars.push_back(std::move(scalar));
  }
  return ids;
}

int add_index(Tile& tile, const Expr& value) {
  Scalar index;
  index.kind = ScalarKind::Index;
  index.dtype = DType::i64;
  index.index = value;
  tile.kernel.scalars.push_back(std::move(index));
  return static_cast<int>(tile.kernel.scalars.size()) - 1;
}

int computed(Tile& tile, Body& body, Op op, DType dtype, std::vector<int> operands) {
  const int id = add_apply(tile, op, dtype, std::move(operands));
  body.push_back(define(id));
  return id;
}

int as_data(Tile& tile, Body& body, const Expr& value, DType dtype) {
  if (value.is_constant())
    return add_constant(tile, Literal::of_integer(dtype, value.constant()));
  const int id = add_index(tile, value);
  body.push_back(define(id));
  return dtype == DType::i64 ? id : computed(tile, body, Op::cast, dtype, {id});
}

int read_element(Tile& tile, Body& body, int array, const Expr& index, const Expr& lane_xor) {
  const int id = add_element(tile, array, index, lane_xor);
  body.push_back(define(id));
  return id;
}

int load_from(Tile& tile, Body& body, int buffer, DType dtype, const Expr& index) {
  Scalar load;
  load.kind = ScalarKind::Load;
  load.dtype = dtype;
  load.value = {dtype, 0};
  load.buffer = buffer;
  load.index = index;
  tile.kernel.scalars.push_back(std::move(load));
  const int id = static_cast<int>(tile.kernel.scalars.size()) - 1;
  body.push_back(define(id));
  return id;
}

int updated(Tile& tile, Body& body, Op op, DType dtype, int before, int update) {
  const std::optional<Op> both = combiner(op);
  return both ? computed(tile, body, *both, dtype, {before, update}) : update;
}

int clamped(Tile& tile, Body& body, int value, DType dtype) {
  const double most = dtype == DType::f64 ? 0x1.fffffffffffffp+1023 : double{0x1.fffffep+127f};
  for (const auto& [op, limit] : {std::pair{Op::maximum, -most}, std::pair{Op::minimum, most}})
    value =
        computed(tile, body, op, dtype, {value, add_constant(tile, Literal::of(dtype, limit))});
  return value;
}

Body copy(Tile& tile, const Accumulator& to, const Expr& at, const Accumulator& from,
          const Expr& place) {
  const int value = add_element(tile, from.values, place);
  Body body = {define(value), set(to.values, at, value)};
  if (to.places < 0) return body;
  const int where = add_element(tile, from.places, place);
  append(body, {define(where), set(to.places, at, where)});
  return body;
}

Accumulator like(Tile& tile, const Accumulator& all, const char* what, int64_t size,
                 Space space) {
  Accumulator result = all;
  const std::string name = what + std::to_string(tile.arrays.size());
  result.values = add_array(tile, {name, all.dtype, size, space});
  if (all.places >= 0) result.places = add_array(tile, {name + "_at", DType::i64, size, space});
  return result;
}

Body combine(Tile& tile, const Accumulator& all, const Expr& at, const Accumulator& other,
             const Expr& place, const Expr& lane_xor) {
  Body body;
  const int value = add_element(tile, other.values, place, lane_xor);
  body.push_back(define(value));
  if (all.places >= 0) {
    const int where = add_element(tile, other.places, place, lane_xor);
    body.push_back(define(where));
    append(body, set_better(tile, all, at, value, where));
    return body;
  }
  const int mine = add_element(tile, all.values, at),
            result = add_apply(tile, pairwise(all.op), all.dtype, {mine, value});
  append(body, {define(mine), define(result), set(all.values, at, result)});
  return body;
}

Body set_identity(Tile& tile, const Accumulator& all, const Expr& at) {
  const Op op = all.op == Op::argmax || all.op == Op::sum_exp ? Op::max
                : all.op == Op::argmin                        ? Op::min
                                                              : all.op;
  Body body = {set(all.values, at, add_constant(tile, identity(op, all.dtype)))};
  if (all.places >= 0) {
    const int nowhere = add_constant(tile, Literal::of_integer(DType::i64, INT64_MAX));
    body.push_back(set(all.places, at, nowhere));
  }
  return body;
}

Body set_element(Tile& tile, const Accumulator& all, const Expr& at, int value,
                 const Expr& place) {
  Body body;
  if (compute_type(tile.kernel.scalars[value].dtype) != all.dtype)
    value = computed(tile, body, Op::cast, all.dtype, {value});
  body.push_back(set(all.values, at, value));
  if (all.places < 0) return body;
  const int id = add_index(tile, place);
  append(body, {define(id), set(all.places, at, id)});
  return body;
}

int finished(Tile& tile, Body& body, const Step& step, const Accumulator& all,
             const Expr& row) {
  const int array = all.places >= 0 ? all.places : all.values;
  int value = add_element(tile, array, row);
  body.push_back(define(value));
  if (is_float(all.dtype) && all.places < 0 && (step.op == Op::max || step.op == Op::min))
    value = computed(tile, body, Op::add, all.dtype,
                     {value, add_constant(tile, Literal::of(all.dtype, 0))});
  if (is_half(step.dtype)) value = computed(tile, body, Op::cast, step.dtype, {value});
  return value;
}

}  // namespace tiny_compile
