// Which scalars has an element of a row? Those that its step needs, but what the row has already or an
// earlier step has kept:
//
//   store z[i0*1000 + j0] for (j0: 1000) = div($2, r1)   =>   $2 = keep_2[j0] ; $3 = div($2, r1)
//
// Where several elements stand side by side, each has its own: of load x[j0], load x[l + 128].
#include "tiny_compile/tile/row_elements.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/stores.h"

namespace tiny_compile {
namespace {

bool is_given(const RowTile& r, const Scalar& scalar) {  // no line computes it
  return scalar.kind == ScalarKind::Constant ||
         (scalar.kind == ScalarKind::Register && !r.lanes);
}

// The scalar for another place.
int moved(RowTile& r, int id, const std::vector<int>& ids, const Substitution& axes) {
  Scalar scalar = r.kernel.scalars[id];
  for (int& operand : scalar.operands) operand = ids[operand];
  if (scalar.mask >= 0) scalar.mask = ids[scalar.mask];
  scalar.index = substitute(scalar.index, axes);
  r.tile.kernel.scalars.push_back(std::move(scalar));
  return static_cast<int>(r.tile.kernel.scalars.size()) - 1;
}

}  // namespace

Expr RowTile::index(const std::string& name, const Expr& extent) const {
  return Expr::index(unused(program, name), extent);
}

RowTile row_tile(const Program& program, const Kernel& kernel) {
  RowTile r{program, kernel};
  r.tile.kernel = kernel;
  r.needs = needs_of(kernel);
  r.defined.resize(kernel.scalars.size());
  r.ids.resize(kernel.scalars.size());
  std::iota(r.ids.begin(), r.ids.end(), 0);
  return r;
}

Expr own_place(const RowTile& r, const Expr& number) {
  return r.lanes ? number * r.lanes->most + r.lanes->lane : number;
}

Body for_lanes(const RowTile& r, Body each) {
  if (!r.lanes) return each;
  const Strip& s = *r.lanes;
  return {vector_loop({s.lane.name(), s.most}, 0, s.stop - s.start, std::move(each))};
}

int scratch(RowTile& r, const std::string& name, DType dtype, int64_t size) {
  if (r.lanes) size *= r.lanes->most;
  const auto known = r.arrays.find(name);
  if (known == r.arrays.end())
    return r.arrays[name] = add_array(
               r.tile, {name, dtype, size, r.is_alone() ? Space::Register : Space::L1});
  Array& array = r.tile.arrays[known->second];
  array.size = std::max(array.size.constant(), size);
  return known->second;
}

int read_back(RowTile& r, Body& body, int array, const Expr& index) {
  return read_element(r.tile, body, array, index);
}

int register_of(const Kernel& kernel, int step) {
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (scalar.kind == ScalarKind::Register && scalar.step == step) return static_cast<int>(id);
  }
  return -1;
}

uint64_t row_scope(const RowTile& r) {
  return ((uint64_t{1} << r.kernel.rows) - 1) | kRegisters;
}

uint64_t shared_scope(const RowTile& r) {
  return r.lanes ? (uint64_t{1} << (r.kernel.rows - 1)) - 1 : row_scope(r);
}

std::vector<int> wanted_by(const RowTile& r, const std::vector<const Step*>& steps) {
  std::vector<int> roots;
  for (const Step* step : steps) {
    for (int root : step->roots())
      if (root >= 0) roots.push_back(root);
  }
  return evaluated_for(r.kernel, roots, [&](int id) { return r.kept.count(id) > 0; });
}

Body define_within(const RowTile& r, const std::vector<int>& wanted, uint64_t axes,
                   std::vector<bool>& defined) {
  Body body;
  for (int id : wanted) {
    const Scalar& scalar = r.kernel.scalars[id];
    if (defined[id] || is_given(r, scalar) || (r.needs[id] & ~axes) != 0) continue;
    defined[id] = true;
    body.push_back(scalar.kind == ScalarKind::Register
                       ? define_from(r.ids[id], r.registers.at(scalar.step), own_place(r, 0))
                       : define(r.ids[id]));
  }
  return body;
}

Body in_lanes(RowTile& r, const std::vector<int>& wanted,
              const std::function<void(Body&)>& each) {
  const std::vector<bool> shared = r.defined;
  Body body;
  if (r.lanes) {
    const Axis& axis = r.lanes->axis;
    body.push_back(let(axis.name, axis.extent, r.lanes->start + r.lanes->lane));
  }
  append(body, define_within(r, wanted, row_scope(r), r.defined));
  each(body);
  r.defined = shared;
  return for_lanes(r, std::move(body));
}

RowElement element_at(RowTile& r, const std::vector<int>& wanted, RowElement known,
                      const RowPlace& place, uint64_t axes) {
  RowElement e{{}, std::move(known.ids), std::move(known.defined)};
  for (int id : wanted) {
    if (e.defined[id] || is_given(r, r.kernel.scalars[id]) || (r.needs[id] & ~axes) != 0)
      continue;
    e.defined[id] = true;
    const bool has_names = place.axes.empty(), is_kept = r.kept.count(id) > 0;
    if (is_kept && has_names) {
      e.body.push_back(define_from(r.ids[id], r.keeps.at(id), place.flat));
      continue;
    }
    if (is_kept)
      e.ids[id] = add_element(r.tile, r.keeps.at(id), place.flat);
    else if (!has_names)
      e.ids[id] = moved(r, id, e.ids, place.axes);
    e.body.push_back(define(e.ids[id]));
    if (!is_kept && r.keeps.count(id) > 0)
      e.body.push_back(set(r.keeps.at(id), place.flat, e.ids[id]));
  }
  return e;
}

Body over_axes(RowTile& r, const std::vector<int>& inner, size_t loops,
               const std::vector<int>& wanted, const std::function<Body(const Expr&)>& each) {
  const std::vector<bool> before = r.defined;
  std::vector<Body> outer;
  uint64_t scope = shared_scope(r);
  Expr flat = 0;
  for (size_t k = 0; k < inner.size(); k++) {
    const Axis& axis = r.kernel.axes[inner[k]];
    flat = flat * axis.extent + axis.symbol();
    scope |= uint64_t{1} << inner[k];
    if (k < loops) outer.push_back(define_within(r, wanted, scope, r.defined));
  }
  Body body = each(flat);
  for (size_t k = loops; k-- > 0;) {
    const Axis& axis = r.kernel.axes[inner[k]];
    append(outer[k], std::move(body));
    body = {for_range(axis.name, axis.extent, 0, axis.extent, std::move(outer[k]))};
  }
  r.defined = before;
  return body;
}

void mark_kept(RowTile& r, const std::vector<int>& ids) {
  for (int id : ids) {
    if (r.keeps.count(id) > 0) r.kept.insert(id);
  }
}

}  // namespace tiny_compile
