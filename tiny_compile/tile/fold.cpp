// How are columns added up while a block goes over rows? Each warp puts what its row gives to them into
// shared memory, the block meets, and each thread adds some columns, first over the warps:
//
//   rows warp 4 · serial 4, of 16    turn 0   the rows 0, 4, 8, 12; their sum waits in held[0]
//                                    turn 1   2, 6, ...; + held[0]; waits in held[1]
//                                    turn 2   1, 5, ...; waits in held[0]
//                                    turn 3   3, 7, ...; + held[0]; + held[1]: the sum of 16
//
// Registers allow few such blocks at a time: all of them may compute at once, and the memory waits. So a
// lane says which bytes come next, and they are on their way to the L2 cache, without a register.
#include "tiny_compile/tile/fold.h"

#include <algorithm>
#include <functional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/elements.h"
#include "tiny_compile/tile/exchange.h"
#include "tiny_compile/tile/registers.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAccess = 16;  // bytes

class Folding {
 public:
  Folding(Lowering& l, const Step& step)
      : l_(l), step_(step), room_(room_for_columns(l.kernel, step)), vector_(vector_of()) {}

  Body run() {
    Body body = give();
    body.push_back(barrier());
    append(body, add_columns());
    body.push_back(barrier());  // before others give
    return body;
  }

 private:
  // What a thread adds and stores at once.
  VectorAxis vector_of() const {
    if (step_.inner.empty()) return {};
    const int axis = step_.inner.back();
    VectorAxis vector{axis, l_.kernel.axes[axis].name + "_v",
                      kAccess / static_cast<int64_t>(size_of(step_.dtype))};
    return is_wide(l_.program, l_.kernel, vector, step_.index, step_.buffer) ? vector
                                                                             : VectorAxis{};
  }

  Accumulator new_array(const char* what, int64_t size, Space space) const {
    return like(l_.tile, {Op::sum, step_.dtype}, what, size, space);
  }

  // One for all that the kernel folds.
  int meeting() {
    const auto [at, is_new] = l_.meeting.try_emplace(step_.dtype, -1);
    if (!is_new) return at->second;
    int64_t most = 0;
    for (const Step& other : l_.kernel.steps) {
      if (other.kind == StepKind::Fold && other.dtype == step_.dtype)
        most = std::max(most, room_for_columns(l_.kernel, other));
    }
    return at->second = new_array("given", most * l_.tile.warps, Space::Shared).values;
  }

  // Of a warp's row.
  Body give() {
    const Share k = share_over(l_, l_.inner);
    const Expr column = l_.inner.empty() ? Expr(0) : Expr::index("k", k.count) + k.v();
    const Body each = {set(meeting(), warp_of(l_.tile) * room_ + column, step_.value)};
    const std::vector<int> ids = evaluated_for_step();
    Body body = over_registers(l_, k, {{over_elements(l_, ids, l_.inner, k, each, {}, false)}});
    return by_owner(l_, {l_.kernel.schedule->rows, k.layout}, std::move(body));
  }

  std::vector<int> evaluated_for_step() const {
    return needed(l_, {static_cast<int>(&step_ - l_.kernel.steps.data())});
  }

  // The columns of a thread: all of the block share them.
  Share share_of_columns() const {
    const int64_t count = elements_of(l_.kernel, step_.inner), warps = l_.tile.warps;
    Layout layout;
    add_part(layout, Level::Register,
             power_of_two_from(ceil_divide(count, warps * 32 * vector_.width)));
    add_part(layout, Level::Warp, warps);
    add_part(layout, Level::Lane, 32);
    add_part(layout, Level::Vector, vector_.width);
    return share_of(l_.tile, "k", count, layout, 0);
  }

  Body add_columns() {
    const Share k = share_of_columns();
    const Expr column = Expr::index("k", k.count);
    const Accumulator sum = new_array("sum", k.vector, Space::Register);
    Body body = unpack(l_.kernel, step_.inner, column, vector_);
    append(body, each("v_k", k.vector,
                      [&](const Expr& v) { return over_warps(sum, v, column + v); }));
    append(body, over_turns(sum, column, k.vector, store(sum)));
    if (k.covers_more) body = {if_less(k.start(), k.count, std::move(body))};
    body.insert(body.begin(), let("k", k.count, k.start()));
    return {for_each("r_k", k.registers, true, std::move(body))};
  }

  Body over_warps(const Accumulator& sum, const Expr& at, const Expr& column) {
    const Accumulator given{Op::sum, step_.dtype, meeting()},
        theirs = new_array("u", l_.tile.warps, Space::Register);
    Body body = tiny_compile::each("w", l_.tile.warps, [&](const Expr& w) {
      return copy(l_.tile, theirs, w, given, w * room_ + column);
    });
    append(body, added_up(l_.tile, theirs, {l_.tile.warps}));
    append(body, copy(l_.tile, sum, at, theirs, 0));
    return body;
  }

  // At the turns whose lower bits are all 1: bit b is 0, and the sum waits; or it is 1, and what has
  // waited is added. `last`: done with the sum of all.
  Body over_turns(const Accumulator& sum, const Expr& column, int64_t vector, Body last) {
    const Expr turn = l_.rows.turn();
    if (l_.rows.turns == 1) return last;
    Body body;
    const int levels = std::countr_zero(static_cast<uint64_t>(l_.rows.turns));
    const Accumulator held = new_array("held", levels * room_, Space::Shared);
    for (int b = 0; b < levels; b++) {
      const int64_t bit = int64_t{1} << b;
      const Expr value = mod(floor_div(turn, bit), 2), place = column + b * room_;
      const auto all = [&](const std::function<Body(const Expr&)>& one) {
        return tiny_compile::each("v", vector, one);
      };
      Body both = {if_less(value, 1, all([&](const Expr& v) {
                             return copy(l_.tile, held, place + v, sum, v);
                           })),
                   if_less(0, value, all([&](const Expr& v) {
                             return combine(l_.tile, sum, v, held, place + v);
                           }))};
      if (b > 0) both = {if_less(bit - 2, mod(turn, bit), std::move(both))};
      append(body, std::move(both));
    }
    body.push_back(if_less(l_.rows.turns - 2, turn, std::move(last)));
    return body;
  }

  Body store(const Accumulator& sum) {
    if (vector_.width > 1)
      return {store_vector(step_.buffer, at_start(l_.kernel, vector_, step_.index), sum.values,
                           0, static_cast<int>(vector_.width))};
    const int value = add_element(l_.tile, sum.values, 0);
    return {define(value), tiny_compile::store(step_.buffer, step_.index, value)};
  }

  Lowering& l_;
  const Step& step_;
  const int64_t room_;
  const VectorAxis vector_;
};

}  // namespace

void fold_pass(Lowering& l, int number) {
  define_for_rows(l, {number}, l.inner);
  append(l.tile.body, Folding(l, l.kernel.steps[number]).run());
}

// --- rows in turns ------------------------------------------------------------------------------

std::vector<std::vector<int>> kept_by(const Lowering& l,
                                      const std::vector<std::vector<int>>& passes) {
  const Kernel& kernel = l.kernel;
  std::vector<std::vector<int>> kept = kept_values(kernel, passes, [&](const auto& inner) {
    return kernel.schedule->keep && extent_of(layout_over(kernel, inner), Level::Serial) == 1;
  });
  const uint64_t of_rows = (uint64_t{1} << kernel.rows) - 1;
  for (std::vector<int>& values : kept) {
    std::erase_if(values, [&](int id) {
      return l.rows.turns > 1 && kernel.scalars[id].kind == ScalarKind::Load &&
             (l.axes[id] & of_rows) == 0;
    });
  }
  return kept;
}

void repeat_rows(Body& body, size_t first, const Share& rows) {
  const auto from = body.begin() + static_cast<int64_t>(first);
  Body turn(from, body.end());
  body.erase(from, body.end());
  body.push_back(for_each(rows.turn_name(), rows.turns, false, std::move(turn)));
}

// --- what is asked for --------------------------------------------------------------------------

namespace {

// All elements of a row whose axes have these places.
Body ask_for_row(const Lowering& l, const AskedOfRow& asked, Substitution places) {
  Body body;
  if (asked.loads.empty()) return body;
  const Axis& element = l.kernel.axes[asked.axis];
  places.push_back({element.symbol().symbol(), 0});
  for (int id : asked.loads) {
    const Scalar& load = l.kernel.scalars[id];
    body.push_back(
        ahead_of(load.buffer, substitute(load.index, places), element.extent.constant()));
  }
  return body;
}

}  // namespace

Body ask_for_later_passes(const Lowering& l, const std::vector<AskedOfRow>& passes) {
  Body body;
  for (size_t p = 1; p < passes.size(); p++) append(body, ask_for_row(l, passes[p], {}));
  return body.empty() ? Body{} : Body{if_less(lane_of_warp(), 1, std::move(body))};
}

Body ask_for_next_turn(const Lowering& l, const AskedOfRow& first) {
  if (l.rows.turns == 1 || first.loads.empty()) return {};
  const Expr turn = l.rows.turn(), later = Expr::index("later", l.rows.turns),
             row = substitute(l.rows.start(), {{turn.symbol(), later}});
  Body body = ask_for_row(l, first, unflatten(l.kernel, axes_laid_out(l.kernel), row));
  body.insert(body.begin(), let("later", l.rows.turns, turn + 1));
  body = {if_less(turn, l.rows.turns - 1, std::move(body))};
  return {if_less(lane_of_warp(), 1, std::move(body))};
}

}  // namespace tiny_compile
