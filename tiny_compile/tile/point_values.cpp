// What is computed where? In the outermost place that knows all it depends on: what a row knows in front
// of its packs, the rest for each point. A scalar that an array has is read from there; of a choice that
// the loops decide, what is costly is done only where it is taken:
//
//   either3[0] = $6;  if $2 { $5 = tanh($4); either3[0] = $5 };  $7 = either3[0]
#include "tiny_compile/tile/point_values.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/loops/branches.h"
#include "tiny_compile/loops/counted.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {

Points points_for(const Program& program, const Kernel& kernel, bool any_count) {
  Points p = points_in(program, kernel, point_packs_of(program, kernel, any_count));
  p.any_count = any_count;
  return p;
}

Points points_in(const Program& program, const Kernel& kernel, PointPacks packs) {
  Points p{program, kernel, std::move(packs)};
  p.axes = axes_of_scalars(kernel);
  p.branches = costly_branches(kernel);
  p.inside.resize(kernel.scalars.size());
  for (const std::vector<int>& branch : p.branches)
    for (int id : branch) p.inside[id] = true;
  for (const Step& step : kernel.steps) p.roots.push_back(step.value);
  p.outer = row_axes(kernel);
  p.outer.pop_back();
  p.ids.resize(kernel.scalars.size());
  std::iota(p.ids.begin(), p.ids.end(), 0);
  p.tile.kernel = kernel;
  return p;
}

const Axis& last(const Points& p) { return last_row_axis(p.kernel); }
uint64_t all_rows(const Points& p) { return (uint64_t{1} << p.kernel.rows) - 1; }
uint64_t last_row(const Points& p) { return uint64_t{1} << (p.kernel.rows - 1); }
bool varies(const Points& p, int id) { return (p.axes[id] & last_row(p)) != 0; }
Expr element(const Points& p) {
  return p.packs.vector == 1 ? Expr(0) : Expr::index("v", p.packs.vector);
}

std::string unused(const Points& p, std::string name) {
  return unused(p.program, p.kernel, std::move(name));
}

int add_values(Points& p, const char* what, DType dtype, int64_t size) {
  return add_array(p.tile, {str(what, p.tile.arrays.size()), dtype, size});
}

// These scalars again, with axes that are elsewhere; operands that are not among them stay as they
// are. Gives all scalars' numbers in the tile.
std::vector<int> copied(Points& p, const std::vector<int>& which,
                        const Substitution& elsewhere) {
  std::vector<int> ids = p.ids;
  for (int id : which) {
    Scalar scalar = p.kernel.scalars[id];
    for (int& operand : scalar.operands) operand = ids[operand];
    if (scalar.mask >= 0) scalar.mask = ids[scalar.mask];
    scalar.index = substitute(scalar.index, elsewhere);
    ids[id] = static_cast<int>(p.tile.kernel.scalars.size());
    p.tile.kernel.scalars.push_back(std::move(scalar));
  }
  return ids;
}

PointScope nothing(const Points& p) { return {std::vector<bool>(p.kernel.scalars.size()), {}}; }

// What is to be computed for these, in order, but for what is done in a branch.
std::vector<int> needed(const Points& p, const PointScope& scope,
                        const std::vector<int>& roots) {
  std::vector<int> ids =
      evaluated_for(p.kernel, roots, [&](int id) { return scope.places.count(id) > 0; });
  std::erase_if(ids, [&](int id) { return static_cast<bool>(p.inside[id]); });
  return ids;
}

namespace {

//   either3[0] = $6;  if $2 { $5 = tanh($4); either3[0] = $5 };  $7 = either3[0]
Body choose(Points& p, PointScope scope, int id, uint64_t axes) {
  const Scalar& where = p.kernel.scalars[id];
  const int either = add_values(p, "either", where.dtype, 1);
  Body first = define_over(p, scope, p.branches[id], axes);
  first.push_back(set(either, 0, p.ids[where.operands[1]]));
  return {set(either, 0, p.ids[where.operands[2]]),
          if_true(p.ids[where.operands[0]], std::move(first)),
          define_from(p.ids[id], either, 0)};
}

Body define_one(Points& p, const PointScope& scope, int id, uint64_t axes) {
  if (const auto place = scope.places.find(id); place != scope.places.end())
    return {define_from(p.ids[id], place->second.array, place->second.index)};
  if (p.branches[id].empty()) return {define(p.ids[id])};
  return choose(p, scope, id, axes);
}

}  // namespace

Body define_over(Points& p, PointScope& scope, const std::vector<int>& ids, uint64_t axes) {
  Body body;
  for (int id : ids) {
    const bool is_constant = p.kernel.scalars[id].kind == ScalarKind::Constant;
    if (scope.defined[id] || is_constant || (p.axes[id] & ~axes) != 0) continue;
    scope.defined[id] = true;
    append(body, define_one(p, scope, id, axes));
  }
  return body;
}

namespace {

bool asks(const Points& p, const At& at) {
  return !at.left.is_constant(0) && (!p.packs.through || can_fail(p.kernel));
}

// Which point an element of a pack is. Beyond the last point, that one is computed again, and not
// stored.
Body name_point(const Points& p, const At& at) {
  if (!p.packs.through) return {let(last(p).name, last(p).extent, at.column + element(p))};
  const Expr extent = last(p).extent,
             beyond = at.left.is_constant(0) ? element(p) : min(element(p), at.left - 1),
             step = Expr::index(unused(p, "step"), extent + (p.packs.vector - 1)),
             above = Expr::index(unused(p, "above"), floor_div(p.packs.count, extent));
  const Expr row = at.row + floor_div(step, extent);
  Body body = {let(step.name(), extent + (p.packs.vector - 1), at.column + beyond)};
  if (p.outer.size() > 1)
    body.push_back(let(above.name(), floor_div(p.packs.count, extent), row));
  append(body, unpack(p.kernel, p.outer, p.outer.size() > 1 ? above : row, {}));
  body.push_back(let(last(p).name, extent, mod(step, extent)));
  return body;
}

}  // namespace

Body over_points(const Points& p, const At& at, Body each) {
  Body body = name_point(p, at);
  append(body, std::move(each));
  if (p.packs.vector == 1) return body;
  if (asks(p, at)) body = {if_less(element(p), at.left, std::move(body))};
  return {for_each("v", p.packs.vector, true, std::move(body))};
}

}  // namespace tiny_compile
