// How does one thread scan a row in the contract's order? Elements of a group of 16 are combined one after
// the other; what stands before the group is combined last, so that groups wait for each other only there:
//
//   scan y[i0*40 + j0] for (j0: 40) = cumsum load x[i0*40 + j0]
// =>
//   for group < 2 {
//     within[0] = -0
//     for k < 16 unrolled { e = group*16 + k ; .. within[0] = add(within[0], $0) ; store y[..] = add(stands[0], ..) }
//     stands[0] = ..                                 before the next group (tile/running.h)
//   }
//   the same for the last 8
//
// Rows side by side are lanes: their groups end together.
#include "tiny_compile/tile/row_scans.h"

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/tile/columns.h"
#include "tiny_compile/tile/row_reductions.h"
#include "tiny_compile/tile/running.h"

namespace tiny_compile {
namespace {

class RowScan {
 public:
  RowScan(RowTile& r, int number)
      : r_(r),
        step_(r.kernel.steps[number]),
        number_(number),
        count_(inner_count(r.kernel, step_)),
        wanted_(wanted_by(r, {&step_})),
        running_(r.tile, step_, r.kernel.scalars[step_.value].dtype, count_.bounds().high),
        within_(running_.array("within", rows())),
        stands_(running_.array("stands", rows())),
        groups_(running_, scan_levels(count_.bounds().high), rows(), own_) {}

  Body lower() {
    Body body = define_within(r_, wanted_, shared_scope(r_), r_.defined);
    append(body, in_lanes(r_, wanted_, [&](Body& each) { append(each, begin()); }));
    const Expr whole = floor_div(count_, kGroup), rest = mod(count_, kGroup);
    if (const int64_t most = whole.bounds().high; most > 0) {
      const Expr group = r_.index("group", most);
      body.push_back(for_range(group.name(), most, 0, whole, one_group(group)));
    }
    if (!rest.is_constant(0)) {
      const Expr k = r_.index("k", kGroup);
      body.push_back(for_range(k.name(), kGroup, 0, rest, element(whole * kGroup + k)));
    }
    if (makes_register(step_)) append(body, finish());
    mark_kept(r_, wanted_);
    return body;
  }

 private:
  int64_t rows() const { return r_.lanes ? r_.lanes->most : 1; }

  Body begin() {
    const bool starts = step_.kind == StepKind::Scan && step_.rhs >= 0;
    Body body = running_.set(within_, own_, running_.identity());
    append(body, running_.set(stands_, own_,
                              starts ? Stood{r_.ids[step_.rhs]} : running_.identity()));
    append(body, groups_.begin(stands_));
    return body;
  }

  // Costly elements are written once: logaddexp of f64 in sixteen copies takes a compiler 17 seconds.
  Body one_group(const Expr& group) {
    const Expr k = r_.index("k", kGroup);
    const bool unrolled = !running_.is_costly();
    Body body = {for_each(k.name(), kGroup, unrolled, element(group * kGroup + k))}, over;
    const Stood total = running_.read(over, within_, own_);
    append(over, groups_.next(group, total, stands_));
    append(over, running_.set(within_, own_, running_.identity()));
    append(body, for_lanes(r_, std::move(over)));
    return body;
  }

  Body element(const Expr& e) {
    return at_element({r_, step_, running_.type(), count_, wanted_}, e,
                      [&](Body& each) { append(each, scanned(e)); });
  }

  Body scanned(const Expr& e) {
    Body body;
    const int value = as_added(r_, body, running_.type(), r_.ids[step_.value]);
    const Stood so_far = running_.read(body, within_, own_),
                here = running_.element(body, value, e, count_, false),
                upto = running_.both(body, so_far, here);
    if (step_.kind == StepKind::Scan) {
      const Stood before = running_.read(body, stands_, own_);
      append(body, put(running_.both(body, before, step_.exclusive ? so_far : upto)));
    }
    append(body, running_.set(within_, own_, upto));
    return body;
  }

  Body put(const Stood& result) {
    Body body;
    const int value = as_added(r_, body, r_.program.buffers[step_.buffer].type.dtype,
                               running_.has_places() ? result.place : result.value);
    body.push_back(store(step_.buffer, step_.index, value));
    if (step_.mask < 0) return body;
    return {if_true(r_.ids[step_.mask], std::move(body))};
  }

  // The total of the row, whose last group's so far is `within`.
  Body finish() {
    Body body;
    const Stood total = groups_.total(body, running_.read(body, within_, own_));
    append(body, running_.set(within_, own_, total));
    body = for_lanes(r_, std::move(body));
    RowReduction x{r_, step_, running_.type()};
    append(body, make_register(x, number_, within_.values));
    return body;
  }

  RowTile& r_;
  const Step& step_;
  const int number_;
  const Expr count_, own_ = own_place(r_, 0);
  const std::vector<int> wanted_;
  Running running_;
  const StoodArray within_, stands_;
  RunningGroups groups_;
};

}  // namespace

Body scan_row(RowTile& r, int number) { return RowScan(r, number).lower(); }

}  // namespace tiny_compile
