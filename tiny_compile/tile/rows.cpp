// What does a thread do for a row? Its steps in order, each over all of the row:
//
//   rows(i0: 64) { r0 = sum(j0: 100) load x[i0*100 + j0] ; store y[i0*100 + j0] for (j0: 100) = div(.., r0) }
// =>
//   for i0: 64 = begin .. end {
//     for j0: 100 vector { $0 = load x[i0*100 + j0] ; t_f32[j0] = $0 }
//     tree sum t_f32 x 100
//     r0 = t_f32[0]
//     for j0: 100 vector { $0 = load x[i0*100 + j0] ; $1 = div($0, r0) ; store y[i0*100 + j0] = $1 }
//   }
//
// What is costly and serves several loops is kept in an array over them. Rows that are neighbours in memory
// may go side by side (tile/columns.h).
#include "tiny_compile/tile/rows.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/loops/costly_values.h"
#include "tiny_compile/loops/ends_of_rows.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/strips.h"
#include "tiny_compile/tile/columns.h"
#include "tiny_compile/tile/row_dots.h"
#include "tiny_compile/tile/row_reductions.h"
#include "tiny_compile/tile/row_scans.h"
#include "tiny_compile/tile/row_sorts.h"
#include "tiny_compile/tile/row_updates.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int kWarpsAlone = 4;           // of a block whose threads have a row each
constexpr int64_t kWorkAlone = 1 << 13;  // elements, some us, that one thread does alone

// The kernel's own where it has them; registers always.
void add_scalars(RowTile& r) {
  const size_t count = r.kernel.scalars.size();
  r.ids.resize(count);
  std::iota(r.ids.begin(), r.ids.end(), 0);
  if (r.kernel.scalars == r.tile.kernel.scalars) return;
  for (size_t id = 0; id < count; id++) {
    Scalar scalar = r.kernel.scalars[id];
    if (scalar.kind == ScalarKind::Register) {
      r.ids[id] = register_of(r.tile.kernel, scalar.step);
      continue;
    }
    for (int& operand : scalar.operands) operand = r.ids[operand];
    if (scalar.mask >= 0) scalar.mask = r.ids[scalar.mask];
    r.ids[id] = static_cast<int>(r.tile.kernel.scalars.size());
    r.tile.kernel.scalars.push_back(std::move(scalar));
  }
}

void plan_kept(RowTile& r) {
  const int64_t most = most_kept_bytes(r.program.machine);
  for (const auto& [id, inner] : costly_values(r.kernel, r.needs, most)) {
    int64_t count = 1;
    for (int axis : inner) count *= r.kernel.axes[axis].extent.bounds().high;
    const DType dtype = r.kernel.scalars[id].dtype;
    r.keeps[id] = add_array(r.tile, {str("keep_", id), dtype, count, Space::L2});
  }
}

// --- stores ----------------------------------------------------------------------------------------

// Stores s, s+1, ... over the same loops share them.
size_t end_of_stores(const Kernel& kernel, size_t step) {
  size_t end = step;
  while (end < kernel.steps.size() && kernel.steps[end].kind == StepKind::Store &&
         kernel.steps[end].inner == kernel.steps[step].inner)
    end++;
  return end;
}

// Stores that share their loops, and what they take.
struct Stores {
  std::vector<const Step*> steps;
  std::vector<int> values, wanted;
};

Stores stores_of(const RowTile& r, size_t first, size_t end) {
  Stores s;
  for (size_t k = first; k < end; k++) {
    s.steps.push_back(&r.kernel.steps[k]);
    s.values.push_back(r.ids[s.steps.back()->value]);
  }
  s.wanted = wanted_by(r, s.steps);
  return s;
}

Body store_each(const Stores& s) {
  Body body;
  for (size_t k = 0; k < s.steps.size(); k++)
    body.push_back(store(s.steps[k]->buffer, s.steps[k]->index, s.values[k]));
  return body;
}

// The innermost loop, over the lanes or the last axis; element number `flat` of the row.
Body store_elements(RowTile& r, const Stores& s, const Expr& flat) {
  const std::vector<int>& inner = s.steps[0]->inner;
  if (!r.lanes) {
    const Axis& along = r.kernel.axes[inner.back()];
    return store_loop(r.tile, r.blocks, {r.program, r.kernel, along, s.steps, s.values}, 0,
                      along.extent,
                      element_at(r, s.wanted, {{}, r.ids, r.defined}, {flat}).body);
  }
  return in_lanes(r, s.wanted, [&](Body& each) {
    append(each, element_at(r, s.wanted, {{}, r.ids, r.defined}, {flat}).body);
    append(each, store_each(s));
  });
}

Body store_row(RowTile& r, size_t first, size_t end) {
  const Stores s = stores_of(r, first, end);
  const std::vector<int>& inner = s.steps[0]->inner;
  Body body = define_within(r, s.wanted, shared_scope(r), r.defined);
  if (inner.empty() && !r.lanes) {
    append(body, store_each(s));
    return body;
  }
  const size_t loops = r.lanes ? inner.size() : inner.size() - 1;
  append(body, over_axes(r, inner, loops, s.wanted,
                         [&](const Expr& flat) { return store_elements(r, s, flat); }));
  mark_kept(r, s.wanted);
  return body;
}

// --- rows ------------------------------------------------------------------------------------------

Body row_steps(RowTile& r) {
  Body body;
  for (size_t s = 0; s < r.kernel.steps.size();) {
    const Step& step = r.kernel.steps[s];
    const int number = static_cast<int>(s);
    const bool stores = step.kind == StepKind::Store;
    const size_t end = stores ? end_of_stores(r.kernel, s) : s + 1;
    append(body, stores                           ? store_row(r, s, end)
                 : is_scan(step)                  ? scan_row(r, number)
                 : step.kind == StepKind::Scatter ? update_row(r, number)
                 : step.kind == StepKind::Dot     ? dot_row(r, number)
                 : step.kind == StepKind::Sort    ? sort_row(r, number)
                                                  : reduce_row(r, number));
    s = end;
  }
  return body;
}

// What L1 has no room for is in L2, the largest first.
void settle_spaces(RowTile& r) {
  int64_t bytes = 0;
  for (const Array& array : r.tile.arrays)
    if (array.space == Space::L1) bytes += bytes_of(array).constant();
  while (bytes > r.program.machine.l1) {
    Array* largest = nullptr;
    for (Array& array : r.tile.arrays) {
      if (array.space == Space::L1 &&
          (!largest || array.size.constant() > largest->size.constant()))
        largest = &array;
    }
    largest->space = Space::L2;
    bytes -= bytes_of(*largest).constant();
  }
}

// The thread's rows, one after the other.
Body each_of_rows(RowTile& r) {
  const bool is_axis = r.kernel.rows == 1;
  const Expr row = is_axis ? r.kernel.axes[0].symbol() : r.index("row", r.tile.units);
  Body each = is_axis ? Body() : unpack(r.kernel, row_axes(r.kernel), row, {});
  append(each, row_steps(r));
  return {
      for_range(row.name(), r.tile.units, begin_of(r.tile), end_of(r.tile), std::move(each))};
}

// On a GPU: its row, if there is one for it.
Body own_row(RowTile& r) {
  const Expr rows = row_count(r.kernel), row = r.index("row", rows),
             number = block_of(r.tile) * (32 * r.tile.warps) + thread_of(r.tile);
  Body each = {let(row.name(), rows, number)};
  append(each, unpack(r.kernel, row_axes(r.kernel), row, {}));
  append(each, row_steps(r));
  return {if_less(number, rows, std::move(each))};
}

// Of rows that are sorted its element, of one of them.
Body own_element(RowTile& r) {
  const Expr rows = row_count(r.kernel), count = inner_count(r.kernel, r.kernel.steps[0]),
             all = rows * count, point = r.index("point", all), row = r.index("row", rows),
             at = r.index("at_row", count),
             number = block_of(r.tile) * (32 * r.tile.warps) + thread_of(r.tile);
  Body each = {let(point.name(), all, number), let(row.name(), rows, floor_div(point, count)),
               let(at.name(), count, mod(point, count))};
  append(each, unpack(r.kernel, row_axes(r.kernel), row, {}));
  append(each, rank_element(r, at));
  return {if_less(number, all, std::move(each))};
}

bool sorts(const Kernel& kernel) { return kernel.steps[0].kind == StepKind::Sort; }

// Who has which rows: a CPU's thread some, one after the other or so many side by side; a GPU's its own.
struct Turns {
  int64_t lanes = 0;
  bool alone = false;
};

RowTile planned(const Program& program, const Kernel& kernel, const Turns& turns) {
  const bool one_by_one = turns.lanes == 0 && !turns.alone;
  EndedRows rows = one_by_one ? ended_rows(kernel) : EndedRows{over_whole_axes(kernel), {}};
  RowTile r{program, std::move(rows.kernel), std::move(rows.ends)};
  r.tile.kernel = kernel;
  r.tile.alone = turns.alone;
  if (turns.alone) {
    r.tile.warps = kWarpsAlone;
    const Expr each = sorts(kernel) ? inner_count(kernel, kernel.steps[0]) : Expr(1);
    r.tile.grid = ceil_div(row_count(kernel) * each, kWarpsAlone * 32);
  } else {
    r.tile.units = row_count(kernel);
    r.tile.grain = grain_of(kernel);
  }
  r.needs = needs_of(r.kernel);
  r.defined.resize(r.kernel.scalars.size());
  add_scalars(r);
  if (turns.lanes > 0) plan_strips(r, turns.lanes);
  if (one_by_one) plan_kept(r);
  return r;
}

Tile lower_rows(const Program& program, const Kernel& kernel, const Turns& turns) {
  RowTile r = planned(program, kernel, turns);
  std::vector<const Step*> steps;
  for (const Step& step : r.kernel.steps) steps.push_back(&step);
  r.tile.body = define_within(r, wanted_by(r, steps), 0, r.defined);
  append(r.tile.body, turns.alone       ? sorts(kernel) ? own_element(r) : own_row(r)
                            : turns.lanes > 0 ? over_strips(r, [&] { return row_steps(r); })
                                        : each_of_rows(r));
  if (!turns.alone) settle_spaces(r);
  return numbered(std::move(r.tile), kernel.scalars.size());
}

// Legality has counted them (loops/strips.h).
bool has_counted_arrays(const Tile& tile, const Kernel& kernel, int64_t lanes) {
  int64_t bytes = 0;
  for (const Array& array : tile.arrays) bytes += bytes_of(array).constant();
  return bytes == strip_bytes(kernel).of(lanes);
}

}  // namespace

bool has_rows(const Program& program, const Kernel& kernel) {
  const Strategy strategy = schedule_of(kernel).strategy;
  if (row_count(kernel).is_constant(0) ||
      std::any_of(kernel.steps.begin(), kernel.steps.end(),
                  [](const Step& step) { return step.kind == StepKind::Fold; }))
    return false;
  if (program.target == Target::Cpp)
    return strategy == Strategy::Rows || strategy == Strategy::Columns;
  return strategy != Strategy::Layouts && strategy != Strategy::Library &&
         !is_sorted_together(program, kernel) &&
         scatters_by(program, kernel) == ScatterBy::Thread;
}

Tile lower_rows(const Program& program, const Kernel& kernel) {
  const Schedule schedule = schedule_of(kernel);
  if (program.target == Target::Cuda) return lower_rows(program, kernel, {0, true});
  if (schedule.strategy == Strategy::Rows) return lower_rows(program, kernel, {});
  Tile tile = lower_rows(program, kernel, {schedule.lanes});
  CHECK(has_counted_arrays(tile, kernel, schedule.lanes));
  return tile;
}

Expr grain_of(const Kernel& kernel) {
  const Schedule schedule = schedule_of(kernel);
  Expr work = 0;
  for (const Step& step : kernel.steps) work = work + inner_count(kernel, step);
  if (work.is_constant()) return std::max<int64_t>(schedule.grain, 1);
  if (schedule.strategy == Strategy::Columns) work = work * columns_unit(schedule);
  return max(schedule.grain, floor_div(kWorkAlone, max(work, 1)));
}

}  // namespace tiny_compile
