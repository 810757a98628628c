// How does one thread scatter? One update after the other. Where their order shows, thousands go chunk by
// chunk (graph/scan.h): a later chunk's updates of a place are added up before they are added to it:
//
//   scatter y[at0; at0 = load k[j0] < 50257] for (j0: 8192) = scatter_add load d[j0]
// =>
//   for l < 1024 { .. update scatter_add $0 < 50257: y[at0] = $1 }
//   for c: 8 = 1 .. 8 {
//     for l: 1024 = 0 .. left { .. chosen[l] = $0 ; values[l] = $1 }
//     update scatter_add chosen x left < 50257: y[at0] = values x1 of 1
//   }
//
// Rows side by side that share their places are lanes of a chunk's values.
#include "tiny_compile/tile/row_updates.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/row_chunks.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

bool has_chunks(const Kernel& kernel, const Step& step) {
  return scatters_in_chunks(step.op, step.dtype) &&
         inner_count(kernel, step).bounds().high > kChunk;
}

class RowUpdates {
 public:
  RowUpdates(RowTile& r, int number)
      : r_(r), step_(r.kernel.steps[number]), wanted_(wanted_by(r, {&step_})) {}

  Body lower() {
    Body body = define_within(r_, wanted_, shared_scope(r_), r_.defined);
    const Expr count = inner_count(r_.kernel, step_);
    if (has_chunks(r_.kernel, step_)) {
      append(body, in_chunks(count));
    } else {
      const Expr e = r_.index("e", count);
      body.push_back(for_range(e.name(), count, 0, count, element(e, [&] { return one(); })));
    }
    mark_kept(r_, wanted_);
    return body;
  }

 private:
  // What `shared` does for all lanes, before what `each` does in one.
  Body element(const Expr& e, const std::function<Body()>& each,
               const std::function<Body()>& shared = nullptr) {
    Body body = unpack(r_.kernel, step_.inner, e, {});
    const std::vector<bool> defined = r_.defined;
    uint64_t scope = shared_scope(r_);
    for (int axis : step_.inner) scope |= uint64_t{1} << axis;
    if (r_.lanes) append(body, define_within(r_, wanted_, scope, r_.defined));
    Body in_lane = in_lanes(r_, wanted_, [&](Body& own) {
      append(own, element_at(r_, wanted_, {{}, r_.ids, r_.defined}, {e}).body);
      if (!r_.lanes && shared) append(own, shared());
      append(own, each());
    });
    if (r_.lanes && shared) append(body, shared());
    append(body, std::move(in_lane));
    r_.defined = defined;
    return body;
  }

  Body one() const {
    Body body = {update(step_.op, step_.buffer, step_.index, step_.limit, r_.ids[step_.other],
                        r_.ids[step_.value])};
    if (step_.mask < 0) return body;
    return {if_true(r_.ids[step_.mask], std::move(body))};
  }

  Body in_chunks(const Expr& count) {
    const Expr first = min(count, kChunk), l = r_.index("l", kChunk);
    const Expr chunks = ceil_div(count, kChunk), c = r_.index("c", chunks);
    Body body = {for_range(l.name(), kChunk, 0, first, element(l, [&] { return one(); }))};
    body.push_back(for_range(c.name(), chunks, 1, chunks, chunk(count, c)));
    return body;
  }

  Body chunk(const Expr& count, const Expr& c) {
    const DType dtype = r_.program.buffers[step_.buffer].type.dtype;
    const int64_t width = r_.lanes ? r_.lanes->most : 1;
    const int chosen = add_array(r_.tile, {str("chosen", r_.tile.arrays.size()), DType::i64,
                                           kChunk, Space::L1}),
              values = add_array(r_.tile, {str("values", r_.tile.arrays.size()), dtype,
                                           kChunk * width, Space::L1});
    const Expr left = r_.index("left", kChunk + 1), l = r_.index("l", kChunk);
    const auto put = [&] { return Body{set(values, own_place(r_, l), r_.ids[step_.value])}; };
    const auto choose = [&] { return chosen_of(chosen, l); };
    Statement all = update(step_.op, step_.buffer, step_.index, step_.limit, chosen, -1);
    all.kind = StatementKind::UpdateAll;
    all.array = values;
    all.left = left;
    all.width = static_cast<int>(width);
    all.from = 1;
    if (r_.lanes) {
      all.from = r_.lanes->stop - r_.lanes->start;
      all.index = substitute(all.index, {{r_.lanes->axis.name, r_.lanes->start}});
    }
    return {let(left.name(), kChunk + 1, min(max(count - c * kChunk, 0), kChunk)),
            for_range(l.name(), kChunk, 0, left, element(c * kChunk + l, put, choose)), all};
  }

  // chosen[l] = the place; where the mask is false -1; the first that is none for all below 0.
  Body chosen_of(int array, const Expr& l) {
    const auto number = [&](const Expr& value) {
      if (value.is_constant())
        return add_constant(r_.tile, Literal::of_integer(DType::i64, value.constant()));
      return add_index(r_.tile, value);
    };
    Body body;
    const int beyond = number(step_.limit);
    if (!step_.limit.is_constant()) body.push_back(define(beyond));
    int place = r_.ids[step_.other];
    const int below = computed(r_.tile, body, Op::lt, DType::boolean, {place, number(0)});
    place = computed(r_.tile, body, Op::where, DType::i64, {below, beyond, place});
    if (step_.mask >= 0)
      place = computed(r_.tile, body, Op::where, DType::i64,
                       {r_.ids[step_.mask], place, number(-1)});
    body.push_back(set(array, l, place));
    return body;
  }

  RowTile& r_;
  const Step& step_;
  const std::vector<int> wanted_;
};

}  // namespace

bool shares_places(const Kernel& kernel) {
  const int lane = kernel.rows - 1;
  const Expr row = kernel.axes[static_cast<size_t>(lane)].symbol();
  const std::vector<uint64_t> needs = needs_of(kernel);
  const uint64_t own = kRegisters | uint64_t{1} << lane;
  return std::none_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    if (step.kind != StepKind::Scatter || !has_chunks(kernel, step)) return false;
    const bool chooses = (needs[step.other] & own) != 0 ||
                         (step.mask >= 0 && (needs[step.mask] & own) != 0);
    return chooses || coefficient(step.index, row) != 1;
  });
}

Body update_row(RowTile& r, int number) { return RowUpdates(r, number).lower(); }

}  // namespace tiny_compile
