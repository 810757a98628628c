// What is done with two panels? The sums of a tile, some rows by some columns, stay in registers while the loop goes
// along their depth; then each is a result, of which the stores make what the kernel says:
//
//   for e vector { sums[e] = 0 }
//   for k multiplied { for i { for l vector { sums[i*32 + l] = fma(left[k*12 + i], right[k*32 + l], sums[i*32 + l]) } } }
//   for i { for i1 vector { .. store y[..] = sums[i*32 + i1 - column] } }
//
// While the first rows are multiplied, which of the operands comes next is asked for.
#include "tiny_compile/tile/panel_sums.h"

#include <algorithm>

#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kCacheLine = 64;  // bytes

// Of two panels of a block.
struct Place {
  Expr row_panel, column_panel;
  Expr row, top, column;  // top: its first row, of which those above `row` have been stored
  Expr sums;              // where they are in the array
};

Body clear_sums(PanelProduct& p, const Place& at) {
  const Expr e = p.number("e", p.tile_size());
  const int zero = add_constant(p.tile, Literal::of(p.shape.type, 0));
  Body body = {vector_loop({e.name(), p.tile_size()}, 0, p.tile_size(),
                           {set(p.sums, at.sums + e, zero)})};
  if (p.shape.is_deep) body = {if_less(p.steps.first, 1, std::move(body))};
  return body;
}

// Two lines at each step, while there is enough to do.
Body ask_prefetch(const PanelProduct& p, const Place& at, const Expr& k) {
  if (!p.next) return {};
  const DotView& view = p.columns_view;
  const int64_t line = kCacheLine / size_of(p.shape.type);
  const Scalar& load = view.kernel.scalars[p.next->lies.load];
  const Axis &lane = view.kernel.axes[view.lists[0][0]],
             &step = view.kernel.axes[view.lists[1][0]];
  const bool along_depth = p.next->lies.step == 1;
  Body asks;
  for (int64_t second : {0, 1}) {
    const Expr of_lane = along_depth ? mod(k, line) * 2 + second : Expr(second * line),
               of_step = along_depth ? floor_div(k, line) * line : k,
               first = p.next->first_lane + at.column_panel * p.schedule.across;
    Substitution there = p.next->batch;
    there.push_back({lane.name, min(first + of_lane, lane.extent - 1)});
    there.push_back({step.name, min(p.next->first_step + of_step, step.extent - 1)});
    asks.push_back(ahead_of(load.buffer, substitute(load.index, there), 1));
  }
  return {if_less(at.row_panel, 1, std::move(asks))};
}

// An element of the left operand, packed or where it lies.
int left_value(PanelProduct& p, const Place& at, const Expr& i, const Expr& k) {
  const int64_t down = p.schedule.down;
  if (p.rows.array >= 0)
    return add_element(p.tile, p.rows.array,
                       p.left + at.row_panel * (p.shape.steps * down) + k * down + i);
  const DotView& view = p.rows_view;
  Scalar load = view.kernel.scalars[p.shape.axes.left];
  load.index =
      substitute(load.index, {{view.kernel.axes[view.lists[0][0]].name, at.top + i},
                              {view.kernel.axes[view.lists[1][0]].name, p.steps.first + k}});
  p.tile.kernel.scalars.push_back(std::move(load));
  return static_cast<int>(p.tile.kernel.scalars.size()) - 1;
}

Statement multiply(PanelProduct& p, const Place& at) {
  const int64_t across = p.schedule.across;
  const Expr k = p.number("k", p.shape.steps), i = p.number("i", p.schedule.down),
             l = p.number("l", across), place = at.sums + i * across + l,
             of_right = p.right + at.column_panel * (p.shape.steps * across) + k * across + l;
  const int left = left_value(p, at, i, k),
            right = add_element(p.tile, p.columns.array, of_right),
            sum = add_element(p.tile, p.sums, place);
  Body each = {define(right), define(sum)};
  const auto both = [&](Op op, std::vector<int> operands) {
    return computed(p.tile, each, op, p.shape.type, std::move(operands));
  };
  const int more = is_float(p.shape.type) ? both(Op::fma, {left, right, sum})
                                          : both(Op::add, {sum, both(Op::mul, {left, right})});
  each.push_back(set(p.sums, place, more));
  Body body = ask_prefetch(p, at, k);
  body.push_back(
      for_each(i.name(), p.schedule.down, true,
               {define(left), vector_loop({l.name(), across}, 0, across, std::move(each))}));
  Statement loop = for_range(k.name(), p.shape.steps, 0, p.steps.count, std::move(body));
  loop.multiplied = true;
  return loop;
}

// --- results -----------------------------------------------------------------------------------------

// A -0 becomes +0; halves are rounded once.
int finished(PanelProduct& p, Body& body, int sum) {
  const DType dtype = p.kernel.steps[p.shape.axes.step].dtype;
  if (is_float(p.shape.type)) {
    const int zero = add_constant(p.tile, Literal::of(p.shape.type, 0));
    sum = computed(p.tile, body, Op::add, p.shape.type, {sum, zero});
  }
  return dtype == p.shape.type ? sum : computed(p.tile, body, Op::cast, dtype, {sum});
}

// The stores of a tile's results, as these see the rows and columns.
class Results {
 public:
  Results(PanelProduct& p, const Place& at)
      : p_(p), at_(at), view_(results_view(p.kernel, p.shape.axes)) {
    std::vector<int> roots;
    for (const Step& step : view_.kernel.steps) {
      if (step.kind != StepKind::Store) continue;
      stores_.push_back(&step);
      roots.push_back(step.value);
    }
    sum_ = add_element(p.tile, p.sums, 0);
    const int result = finished(p, finish_, sum_);
    std::vector<std::pair<int, int>> given;
    for (size_t id = 0; id < view_.kernel.scalars.size(); id++) {
      if (view_.kernel.scalars[id].kind == ScalarKind::Register)
        given.push_back({static_cast<int>(id), result});
    }
    scalars_.emplace(p.tile, view_, roots, given);
  }

  Body store_all() {
    const std::vector<int>& columns = view_.lists[1];
    const Expr i = p_.number("i", p_.schedule.down);
    Body each;
    Expr number = at_.top + i;
    if (view_.lists[0].size() > 1) number = p_.named(each, "own", p_.shape.rows, number);
    append(each, unpack(view_.kernel, view_.lists[0], number, {}));
    append(each, scalars_->define_within(all_but(view_.kernel, columns)));
    const Expr till = p_.named(each, "till", p_.shape.columns + 1,
                               min(at_.column + p_.schedule.across, p_.stop_column));
    const Stretch row{p_.program,
                      view_.kernel,
                      columns,
                      "column",
                      at_.column,
                      till,
                      p_.schedule.across,
                      {at_.column + p_.schedule.across, p_.stop_column}};
    append(each, over_runs(row, [&](const Run& run) { return store_run(i, row, run); }));
    return {for_range(i.name(), p_.schedule.down, at_.row - at_.top, p_.schedule.down,
                      {if_less(at_.top + i, p_.stop_row, std::move(each))})};
  }

 private:
  Body store_run(const Expr& i, const Stretch& row, const Run& run) {
    const std::vector<int>& columns = view_.lists[1];
    return scalars_->within([&] {
      Body body = scalars_->define_within(all_but_last(view_.kernel, columns));
      append(body, along_run(row, run, [&] {
               return store_point(i, run.base + last_of(view_.kernel, columns));
             }));
      return body;
    });
  }

  Body store_point(const Expr& i, const Expr& column) {
    return scalars_->within([&] {
      Body body;
      const Expr place = p_.named(body, "place", p_.schedule.across, column - at_.column);
      p_.tile.kernel.scalars[sum_].index = at_.sums + i * p_.schedule.across + place;
      body.push_back(define(sum_));
      append(body, finish_);
      append(body, scalars_->define_within(~uint64_t{0}));
      for (const Step* step : stores_)
        body.push_back(store(step->buffer, step->index, scalars_->id(step->value)));
      return body;
    });
  }

  PanelProduct& p_;
  const Place& at_;
  const DotView view_;
  std::vector<const Step*> stores_;
  int sum_ = -1;
  Body finish_;  // what makes a result of a sum
  std::optional<ViewScalars> scalars_;
};

}  // namespace

Expr PanelProduct::number(const std::string& what, const Expr& extent) const {
  return Expr::index(unused(program, kernel, what), extent);
}

Expr PanelProduct::named(Body& body, const std::string& what, const Expr& extent,
                         const Expr& value) const {
  return tiny_compile::named(program, kernel, body, what, extent, value);
}

Body over_panels(PanelProduct& p) {
  const Schedule& s = p.schedule;
  Place at;
  at.row_panel = p.number("row_panel", s.panels_down);
  at.column_panel = p.number("column_panel", s.panels_across);
  const Expr row = p.first_row + at.row_panel * s.down,
             column = p.first_column + at.column_panel * s.across;
  Body down, across;
  at.row = p.named(down, "row", p.shape.rows, row);
  // A tile that would go beyond the last row begins above it, and stores no row again.
  at.top = s.packs_rows
               ? at.row
               : p.named(down, "top", p.shape.rows, min(at.row, p.shape.rows - s.down));
  at.column = p.named(across, "column", p.shape.columns, column);
  at.sums = p.shape.is_deep ? (at.row_panel * s.panels_across + at.column_panel) * p.tile_size()
                            : Expr(0);
  append(across, clear_sums(p, at));
  if (p.multiplies()) across.push_back(multiply(p, at));
  Body results = Results(p, at).store_all();
  if (p.shape.is_deep) results = {if_less(p.shape.depth - 1, p.steps.stop, std::move(results))};
  append(across, std::move(results));
  down.push_back(for_range(at.column_panel.name(), s.panels_across, 0, s.panels_across,
                           {if_less(column, p.stop_column, std::move(across))}));
  return {for_range(at.row_panel.name(), s.panels_down, 0, s.panels_down,
                    {if_less(row, p.stop_row, std::move(down))})};
}

}  // namespace tiny_compile
