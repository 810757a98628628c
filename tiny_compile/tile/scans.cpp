// How do the threads of a block scan rows together, in the contract's order? Each has a group of 16
// elements, scanned one after the other in registers. What stands before a group are the totals
// of the groups before it, scanned by the same rule: threads exchange totals through shared memory.
//
//   scan y[i0*28996 + j0] for (j0: 28996) = cumsum load x[i0*28996 + j0]
// =>
//   for t < 8 {                                      a tile: 256 groups, 4096 elements
//     shared[..] = ..;  barrier                      tile/scan_moves.h; the next tile is asked for
//     total = total + values[k];  values[k] = total  within the group
//     totals[thread] = total;  barrier               every thread combines the 16 of its group of groups:
//     lower = totals[..] + ..                        what stands before it there, and their total
//     above[thread/16] = lower;  barrier             and 16 of these are the tile
//     upper = above[..] + ..
//     before = (stands + upper.before) + lower.before
//     values[k] = before + values[k]
//     stands = ..                                    before the next tile (tile/running.h)
//   }
//
// Columns side by side go in tiles of 16 groups, of one level. A scan's total needs no results.
//
// An operator of many instructions (logaddexp has 63) is not applied where it need not be: one
// thread of 16 combines their totals for all of them, and groups of the last tile behind the row's end
// are skipped.
#include "tiny_compile/tile/scans.h"

#include <algorithm>

#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/tile/scan_exchange.h"
#include "tiny_compile/tile/scan_moves.h"

namespace tiny_compile {
namespace {

// Blocks, their threads, and which row and group each of these has.
ScanTile planned(const Program& program, const Kernel& kernel) {
  ScanTile s{program, kernel, scan_of(kernel), scan_shape(kernel)};
  const ScanShape& shape = s.shape;
  s.tile.kernel = kernel;
  s.tile.warps = static_cast<int>(shape.warps());
  s.tile.grid = ceil_divide(shape.rows, shape.block_rows);
  s.tile.resident = schedule_of(kernel).resident;
  const int64_t by = shape.along ? shape.groups : shape.block_rows;
  const Expr thread = thread_of(s.tile), slow = floor_div(thread, by), fast = mod(thread, by);
  s.r = s.index("r", shape.along ? ceil_divide(s.threads(), by) : by);
  s.g = s.index("g", shape.along ? by : ceil_divide(s.threads(), by));
  s.tile.body = {let(s.r.name(), s.r.bounds().high + 1, shape.along ? slow : fast),
                 let(s.g.name(), s.g.bounds().high + 1, shape.along ? fast : slow)};
  return s;
}

// What is stored of each row once its total is known, by its first thread.
Body store_of_row(const ScanTile& s, const ScanMoves& moves, int total) {
  Body stores = s.shape.along ? moves.points().name_row() : Body();
  std::vector<int> roots;
  for (const Step& step : s.kernel.steps)
    if (step.kind == StepKind::Store) roots.push_back(step.value);
  for (int id : needed_by(s, roots)) {
    const ScalarKind kind = s.kernel.scalars[id].kind;
    if (moves.defined[id] || kind == ScalarKind::Constant) continue;
    stores.push_back(kind == ScalarKind::Register ? define_from(id, total, 0) : define(id));
  }
  for (const Step& step : s.kernel.steps)
    if (step.kind == StepKind::Store)
      stores.push_back(store(step.buffer, step.index, step.value));
  return {if_less(s.g, 1, moves.points().where_row(std::move(stores)))};
}

class ScanLowering {
 public:
  ScanLowering(const Program& program, const Kernel& kernel)
      : s_(planned(program, kernel)),
        running_(s_.tile, s_.scan, kernel.scalars[s_.scan.value].dtype, s_.shape.length),
        moves_(s_, running_),
        exchange_(s_, running_) {}

  Tile lower() {
    const ScanShape& shape = s_.shape;
    add(moves_.begin());
    stands_ = running_.array("stands", 1);
    total_ = running_.array("total", 1);
    add(running_.set(stands_, 0, running_.identity()));
    if (!is_total() && s_.scan.rhs >= 0) add(start());
    if (shape.tiles() > 1) {
      groups_.emplace(running_, scan_levels(shape.length) - (shape.has_two_levels() ? 2 : 1));
      add(groups_->begin(stands_));
    }
    add(moves_.ask(0));
    const Expr t = shape.tiles() > 1 ? s_.index("t", shape.tiles()) : Expr(0);
    Body tile = one_tile(t);
    if (shape.tiles() > 1) tile = {for_each(t.name(), shape.tiles(), false, std::move(tile))};
    add(std::move(tile));
    if (is_total()) {
      Body body;
      const Stood all = shape.tiles() > 1 ? groups_->total(body, running_.identity())
                                          : running_.read(body, total_, 0);
      append(body, running_.set(total_, 0, all));
      append(body, store_of_row(s_, moves_, total_.values));
      add(std::move(body));
    }
    return numbered(std::move(s_.tile), s_.kernel.scalars.size());
  }

 private:
  bool is_total() const { return makes_register(s_.scan); }
  bool skips_groups() const {
    return running_.is_costly() && s_.shape.tiles() > 1 &&
           s_.shape.tiles() * s_.shape.groups > ceil_divide(s_.shape.length, kGroup);
  }
  void add(Body body) { append(s_.tile.body, std::move(body)); }

  // What stands before the row, whose names are gone behind it.
  Body start() {
    Body body = s_.shape.along ? moves_.points().name_row() : Body();
    std::vector<bool> known = moves_.defined;
    append(body, define_within(s_, needed_by(s_, {s_.scan.rhs}), ~uint64_t{0}, known));
    append(body, running_.set(stands_, 0, {s_.scan.rhs}));
    return {for_each(s_.index("once", 1).name(), 1, true, std::move(body))};  // for its names
  }

  Body one_tile(const Expr& t) {
    const ScanShape& shape = s_.shape;
    Body body = moves_.put(t);
    if (shape.along) body.push_back(barrier());
    if (shape.tiles() > 1 && moves_.asks())
      body.push_back(if_less(t + 1, shape.tiles(), moves_.ask(t + 1)));
    append(body, moves_.take());
    append(body, within(t));
    const ScanTotals before = exchange_.totals(body, running_.read(body, total_, 0), t);
    if (!is_total()) append(body, results(t, before));
    if (shape.tiles() > 1)
      append(body, groups_->next(t, before.total, stands_));
    else
      append(body, running_.set(total_, 0, before.total));
    return body;
  }

  // What only groups of the row do.
  Body of_row(const Expr& t, Body body) const {
    if (!skips_groups()) return body;
    return {if_less(moves_.points().first_of_group(t), s_.shape.length, std::move(body))};
  }

  Stood element(Body& body, const Expr& t, const Expr& k) {
    const int value = add_element(s_.tile, moves_.values, k);
    body.push_back(define(value));
    return running_.element(body, value, moves_.points().first_of_group(t) + k, s_.shape.length,
                            s_.shape.is_ragged());
  }

  // The group one element after the other. Values become what stands before them in their group, or
  // before the next.
  Body within(const Expr& t) {
    Body body, nothing = running_.set(total_, 0, running_.identity());
    const bool first_alone = running_.is_costly();
    if (first_alone) {
      const Stood first = element(body, t, 0);
      append(body, keep(0, running_.identity(), first));
    }
    const int64_t count = kGroup - first_alone;
    const Expr k = s_.index("k", count), place = k + first_alone;
    Body each;
    const Stood here = element(each, t, place), so_far = running_.read(each, total_, 0),
                upto = running_.both(each, so_far, here);
    append(each, keep(place, so_far, upto));
    body.push_back(for_each(k.name(), count, true, std::move(each)));
    append(nothing, of_row(t, std::move(body)));
    return nothing;
  }

  Body keep(const Expr& place, const Stood& so_far, const Stood& upto) {
    Body body;
    if (!is_total() && !running_.has_places())
      body.push_back(set(moves_.values, place, (s_.scan.exclusive ? so_far : upto).value));
    append(body, running_.set(total_, 0, upto));
    return body;
  }

  Body results(const Expr& t, const ScanTotals& before) {
    Body body = of_row(t, results_of_group(t, before));
    const Step* beside = values_beside(s_.kernel, s_.scan);
    const Body given = moves_.give();
    append(body, given);
    if (s_.shape.along) body.push_back(barrier());
    if (beside != nullptr) append(body, moves_.home(t, *beside));
    append(body, moves_.home(t, s_.scan));
    if (s_.shape.along && s_.shape.tiles() > 1 && s_.shape.transposed())
      body.push_back(barrier());
    return body;
  }

  Body results_of_group(const Expr& t, const ScanTotals& before) {
    Body body;
    Stood all = running_.read(body, stands_, 0);
    for (const Stood& stood : before.before) all = running_.both(body, all, stood);
    const Expr k = s_.index("k", kGroup);
    Body each;
    if (running_.has_places()) {
      const StoodArray upto = running_.array("upto", 1);
      append(body, running_.set(upto, 0, all));
      const Stood here = element(each, t, k), so_far = running_.read(each, upto, 0),
                  next = running_.both(each, so_far, here);
      append(each, running_.set(upto, 0, next));
      append(each, {set(moves_.values, k, next.value), set(moves_.places, k, next.place)});
    } else {
      const int value = add_element(s_.tile, moves_.values, k);
      each.push_back(define(value));
      each.push_back(set(moves_.values, k, running_.both(each, all, {value}).value));
    }
    body.push_back(for_each(k.name(), kGroup, true, std::move(each)));
    return body;
  }

  ScanTile s_;
  Running running_;
  ScanMoves moves_;
  ScanExchange exchange_;
  StoodArray stands_, total_;
  std::optional<RunningGroups> groups_;
};

}  // namespace

bool has_scan(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cuda && !row_count(kernel).is_constant(0) &&
         scans_in_groups(program, kernel);
}

Tile lower_scan(const Program& program, const Kernel& kernel) {
  return ScanLowering(program, kernel).lower();
}

}  // namespace tiny_compile
