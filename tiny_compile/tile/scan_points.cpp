// Where are a thread's points of a tile? Where rows lie along memory, neighbouring threads have neighbouring
// packs; where columns lie side by side a thread has the 16 elements of its own group:
//
//   x: 4096 = c*1024 + thread*4;  e = t*4096 + x        pack c of a block's only row
//   e = (t*16 + g)*16 + c                               element c of group g of a column
//
// A place beyond the rows is the last one there for what is read, and a condition for what is stored.
#include "tiny_compile/tile/scan_points.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kWord = 16;  // bytes that a thread moves at once

// The steps that go along the row, without what stands before it and what keeps results from memory.
std::vector<Step> steps_along(const Kernel& kernel) {
  std::vector<Step> steps;
  for (const Step& step : kernel.steps) {
    if (step.inner.empty()) continue;
    steps.push_back(step);
    steps.back().rhs = steps.back().mask = -1;
  }
  return steps;
}

std::vector<const Step*> pointers(const std::vector<Step>& steps) {
  std::vector<const Step*> result;
  for (const Step& step : steps) result.push_back(&step);
  return result;
}

bool is_wide_for(const ScanTile& s, const Expr& index, int buffer, int64_t vector) {
  return vector > 1 && s.program.buffers[buffer].align >= kWord &&
         is_contiguous(index, s.axis().symbol(), static_cast<int>(vector));
}

// Whether neighbours along the loop lie side by side, the last one first, where packs may begin.
bool is_reversed_for(const ScanTile& s, const Scalar& load, int64_t vector) {
  if (vector == 1 || !is_plain(load) || s.program.buffers[load.buffer].align < kWord)
    return false;
  const Expr mirrored = Expr(vector - 1) - s.axis().symbol();
  return is_contiguous(substitute(load.index, {{s.axis().name, mirrored}}), s.axis().symbol(),
                       static_cast<int>(vector));
}

// Elements that a thread moves at once: as many as suit the results too, if all loads are packs then.
int64_t vector_of(const ScanTile& s, const std::vector<int>& ids) {
  if (!s.shape.along || s.shape.transposed()) return 1;
  const int loop = s.scan.inner[0];
  std::vector<Step> steps = steps_along(s.kernel);
  const auto widest = [&] {
    return widest_pack(s.program, s.kernel, ids, pointers(steps), loop, s.shape.length);
  };
  const int vector = widest();
  for (Step& step : steps)
    if (!makes_register(step)) step.kind = StepKind::Store;
  const int wider = widest();
  const auto suits = [&](int id) {
    const Scalar& scalar = s.kernel.scalars[id];
    return scalar.kind != ScalarKind::Load || !depends_on(scalar.index, s.axis().name) ||
           is_wide_for(s, scalar.index, scalar.buffer, wider) ||
           is_reversed_for(s, scalar, wider);
  };
  return std::all_of(ids.begin(), ids.end(), suits) ? wider : vector;
}

}  // namespace

// body where all of them hold
Body where_all(const Conditions& conditions, Body body) {
  if (conditions.empty()) return body;
  if (conditions.size() == 1)
    return {if_less(conditions[0].first, conditions[0].second, std::move(body))};
  Expr most = conditions[0].first - conditions[0].second;
  for (const auto& [lesser, greater] : conditions) most = max(most, lesser - greater);
  return {if_less(most, 0, std::move(body))};
}

Expr ScanTile::index(const std::string& name, const Expr& extent) const {
  return Expr::index(unused(program, kernel, name), extent);
}

std::vector<int> needed_by(const ScanTile& s, const std::vector<int>& roots) {
  return evaluated_for(s.kernel, roots, [](int) { return false; });
}

Body define_within(const ScanTile& s, const std::vector<int>& ids, uint64_t axes,
                   std::vector<bool>& defined) {
  const std::vector<uint64_t> needs = axes_of_scalars(s.kernel);
  Body body;
  for (int id : ids) {
    const ScalarKind kind = s.kernel.scalars[id].kind;
    if (defined[id] || kind == ScalarKind::Constant || (needs[id] & ~axes) != 0) continue;
    defined[id] = true;
    body.push_back(define(id));
  }
  return body;
}

ScanPoints::ScanPoints(const ScanTile& s, const std::vector<int>& ids)
    : vector(vector_of(s, ids)), s_(s) {
  if (s.shape.along)
    count = ceil_divide(s.shape.block_rows * s.shape.columns(), s.threads() * vector);
}

Expr ScanPoints::number() const { return s_.index("c", count); }

bool ScanPoints::is_wide(const Expr& index, int buffer) const {
  return is_wide_for(s_, index, buffer, vector);
}

bool ScanPoints::is_reversed(const Scalar& load) const {
  return is_reversed_for(s_, load, vector);
}

Expr ScanPoints::at_start(const Expr& index, const Expr& e) const {
  return substitute(index, {{s_.axis().name, e}});
}

int64_t ScanPoints::padding() const {
  return s_.shape.transposed()
             ? kWord / size_of(compute_type(s_.kernel.scalars[s_.scan.value].dtype))
             : 0;
}

Expr ScanPoints::first_of_group(const Expr& tile) const {
  return (tile * s_.shape.groups + s_.g) * kGroup;
}

Conditions ScanPoints::conditions_of_row() const {
  const ScanShape& shape = s_.shape;
  Conditions conditions;
  if (s_.threads() != shape.threads())
    conditions.push_back(shape.along ? std::pair(s_.r, Expr(shape.block_rows))
                                     : std::pair(s_.g, Expr(shape.groups)));
  if (!is_whole())
    conditions.push_back({block_of(s_.tile) * shape.block_rows + s_.r, shape.rows});
  return conditions;
}

Body ScanPoints::name_row() const {
  const Expr row = block_of(s_.tile) * s_.shape.block_rows + s_.r,
             own = s_.index("own", s_.shape.rows);
  const bool is_there = is_whole() && s_.r.bounds().high < s_.shape.block_rows;
  Body body = {let(own.name(), s_.shape.rows, is_there ? row : min(row, s_.shape.rows - 1))};
  append(body, unpack(s_.kernel, row_axes(s_.kernel), own, {}));
  return body;
}

Body ScanPoints::where_row(Body body) const {
  return where_all(conditions_of_row(), std::move(body));
}

// Number c of the thread's in a tile. `clamps`: beyond the rows it is the last place.
ScanPoint ScanPoints::point(const Expr& tile, bool transposed, bool clamps) const {
  const ScanShape& shape = s_.shape;
  const Expr c = number();
  ScanPoint at;
  Expr e;
  if (shape.along) {
    const int64_t step = s_.threads() * vector, all = count * step;
    const Expr p = c * step + thread_of(s_.tile) * vector;
    const int64_t beside = transposed ? shape.block_rows : shape.columns();
    const bool has_rows = shape.block_rows > 1;
    const Expr fast = has_rows ? mod(p, beside) : p, slow = has_rows ? floor_div(p, beside) : 0;
    const int64_t fasts = has_rows ? beside : all,
                  slows = has_rows ? ceil_divide(all, beside) : 1;
    at.x = s_.index("x", transposed ? slows : fasts);
    at.y = s_.index("y", transposed ? fasts : slows);
    at.names = {let(at.x.name(), at.x.bounds().high + 1, transposed ? slow : fast),
                let(at.y.name(), at.y.bounds().high + 1, transposed ? fast : slow)};
    if (at.x.bounds().high >= shape.columns()) at.inside.push_back({at.x, shape.columns()});
    if (at.y.bounds().high >= shape.block_rows) at.inside.push_back({at.y, shape.block_rows});
    at.conditions = at.inside;
    at.row = block_of(s_.tile) * shape.block_rows + at.y;
    if (!is_whole()) at.conditions.push_back({at.row, shape.rows});
    e = tile * shape.columns() + at.x;
  } else {
    at.conditions = conditions_of_row();
    e = first_of_group(tile) + c;
  }
  const bool may_leave = shape.is_ragged() && (shape.tiles() > 1 || !shape.along);
  if (may_leave) at.conditions.push_back({e, shape.length});
  at.e = e;
  const bool is_beyond =
      shape.along ? at.x.bounds().high >= shape.columns() : s_.g.bounds().high >= shape.groups;
  if (!clamps || !(may_leave || is_beyond)) return at;
  // Of whole groups all elements are steps from the first, which alone is clamped: one address for 16.
  if (!shape.along && shape.length % kGroup == 0)
    at.e = min(first_of_group(tile), shape.length - kGroup) + c;
  else
    at.e = min(e, shape.length - vector);
  return at;
}

// Names the row's axes and, of a pack, where it begins.
Body ScanPoints::name_place(ScanPoint& at, bool clamps) const {
  const ScanShape& shape = s_.shape;
  Body body;
  if (shape.along) {
    const bool is_there = is_whole() && at.y.bounds().high < shape.block_rows;
    Expr row = at.row;
    if (!is_there) {
      const Expr own = s_.index("row", shape.rows);
      body.push_back(let(own.name(), shape.rows, clamps ? min(row, shape.rows - 1) : row));
      row = own;
    }
    append(body, unpack(s_.kernel, row_axes(s_.kernel), row, {}));
  }
  if (at.e.kind() == ExprKind::Symbol) return body;
  const Expr e = s_.index("e", shape.length);
  body.push_back(let(e.name(), shape.length, at.e));
  at.e = e;
  return body;
}

// For each element of a pack, its axis by name.
Body ScanPoints::each_element(const ScanPoint& at, Body each) const {
  const Expr v = s_.index("v", vector);
  const Axis& axis = s_.axis();
  each.insert(each.begin(), let(axis.name, axis.extent, vector == 1 ? at.e : at.e + v));
  if (vector == 1) return each;
  return {for_each(v.name(), vector, true, std::move(each))};
}

Expr ScanPoints::element() const { return vector == 1 ? Expr(0) : s_.index("v", vector); }

Body ScanPoints::each_point(Body body) const {
  return {for_each(number().name(), count, true, std::move(body))};
}

Expr ScanPoints::in_shared(const ScanPoint& at, int64_t pitch) const {
  return (at.y * s_.shape.groups + floor_div(at.x, kGroup)) * pitch + at.y * padding() +
         mod(at.x, kGroup);
}

Expr ScanPoints::of_group(int64_t pitch) const {
  return thread_of(s_.tile) * pitch + s_.r * padding();
}

}  // namespace tiny_compile
