// What all stages of a run's kernel share: its numbers, the names of the run, and how a scalar of any update is
// computed.
#include "tiny_compile/tile/run_tile.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/stores.h"

namespace tiny_compile {
namespace {

// With a row axis, of one row where it had none.
Kernel with_rows(const Program& program, Kernel kernel) {
  if (kernel.rows > 0) return kernel;
  kernel.axes.insert(kernel.axes.begin(), {unused(program, kernel, "column"), 1});
  kernel.rows = 1;
  for (Step& step : kernel.steps)
    for (int& axis : step.inner) axis++;
  return kernel;
}

PointPacks packs_of(const Kernel& kernel, int vector) {
  PointPacks packs;
  packs.count = row_count(kernel);
  packs.extent = last_row_axis(kernel).extent;
  packs.vector = vector;
  return packs;
}

Points points_of(const Program& program, const Kernel& kernel, const RunShape& shape) {
  const Kernel own = with_rows(program, kernel);
  Points p = points_in(program, own, packs_of(own, shape.vector));
  p.tile.kernel = kernel;
  p.tile.grid = ceil_divide(shape.points(), shape.run);
  p.tile.warps = RunShape::threads / kLanes;
  p.tile.resident = schedule_of(kernel).resident;
  return p;
}

}  // namespace

RunTile::RunTile(const Program& program, const Kernel& kernel)
    : shape(program, kernel),
      p(points_of(program, kernel, shape)),
      base(p.kernel.steps[0]),
      scatter(p.kernel.steps[1]),
      dtype(scatter.dtype),
      most(shape.most_targets()),
      begins(shared("begins", DType::i32, most + 1)),
      thread(thread_of(p.tile)) {}

Body RunTile::name_run() {
  const int64_t points = shape.points();
  Body body;
  first = name(body, "first", points, block_of(p.tile) * shape.run);
  last = name(body, "last", points + 1, min(first + shape.run, points));
  lowest = name(body, "lowest", shape.targets, floor_div(first, shape.packs));
  const Expr highest = floor_div(last - 1, shape.packs);
  targets = name(body, "targets", most + 1, min(max(highest - lowest + 1, 0), most));
  return body;
}

int RunTile::shared(const char* what, DType type, int64_t size) {
  return add_array(p.tile, {what, type, size, Space::Shared});
}

int RunTile::own(const char* what, DType type, int64_t size) {
  return add_array(p.tile, {what, type, size});
}

int RunTile::make(Body& body, Op op, DType type, std::vector<int> operands) {
  return computed(p.tile, body, op, type, std::move(operands));
}

int RunTile::number(int64_t value, DType type) {
  return add_constant(p.tile, Literal::of_integer(type, value));
}

int RunTile::data(Body& body, const Expr& value, DType type) {
  return as_data(p.tile, body, value, type);
}

int RunTile::read(Body& body, int array, const Expr& at, const Expr& lane_xor) {
  return read_element(p.tile, body, array, at, lane_xor);
}

Expr RunTile::name(Body& body, const char* what, const Expr& extent, const Expr& value) {
  const std::string own_name = unused(p, what);
  body.push_back(let(own_name, extent, value));
  return Expr::index(own_name, extent);
}

Expr RunTile::chosen(Body& body, const char* what, int64_t extent, int value) {
  const std::string own_name = unused(p, what);
  body.push_back(let_chosen(own_name, extent, value));
  return Expr::index(own_name, extent);
}

Expr RunTile::index(const char* what, int64_t extent) const {
  return Expr::index(unused(p, what), extent);
}

int RunTile::scalar_at(Body& body, int scalar, const Expr& update) {
  std::vector<int> all = evaluated_for(p.kernel, {scalar}, [](int) { return false; });
  std::erase_if(all, [&](int id) { return p.kernel.scalars[id].kind == ScalarKind::Constant; });
  const std::vector<int> ids = copied(p, all, unflatten(p.kernel, scatter.inner, update));
  for (int id : all) body.push_back(define(ids[id]));
  return ids[scalar];
}

int RunTile::is_stray(Body& body, int place) {
  return ask(body, Op::bitwise_or, ask(body, Op::lt, place, number(0, DType::i64)),
             ask(body, Op::ge, place, number(shape.targets, DType::i64)));
}

Statement RunTile::tell(int stray, int place) {
  Substitution nowhere;
  for (int a = 0; a < p.kernel.rows; a++) nowhere.push_back({p.kernel.axes[a].name, 0});
  const int nothing = add_constant(p.tile, Literal{dtype, 0});
  return if_true(stray, {update(scatter.op, scatter.buffer, substitute(scatter.index, nowhere),
                                scatter.limit, place, nothing)});
}

Expr RunTile::ordered(Body& body, const Expr& at) {
  return chosen(body, "u", shape.updates, scalar_at(body, scatter.order, at));
}

}  // namespace tiny_compile
