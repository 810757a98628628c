// How do integers make a histogram? Their sum is the same in any order, so the threads of a block add to one
// table in shared memory as they come:
//
//   rows() { store y[j0] for (j0: 64) = load x[j0]
//            scatter y[at0; at0 = load k[j1] < 64] for (j1: 1048576) = scatter_add load d[j1] }
// =>
//   sums[e] = load x[e]                                            each thread some targets;  barrier
//   for q < 1024 { for p < 4 unrolled { wanted[p] = load k[e] ; values[p] = load d[e] }
//                  for p < 4 unrolled { update scatter_add wanted[p] < 64: shared sums[at0] = values[p] } }   barrier
//   store y[e] = sums[e]
//
// A word wraps as the dtype does when it is stored: the lowest bits of a sum are those of the parts.
#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/scatters.h"
#include "tiny_compile/tile/shared_rows.h"

namespace tiny_compile {
namespace {

class Table {
 public:
  Table(const Program& program, const Kernel& kernel)
      : s_(program, kernel, kThreadsOfTable, 1, false),
        base_(s_.r.kernel.steps[0]),
        scatter_(s_.r.kernel.steps[1]),
        word_(size_of(scatter_.dtype) == 8 ? DType::i64 : DType::i32),
        targets_(scatter_.limit.constant()),
        updates_(inner_count(kernel, scatter_).constant()),
        each_(schedule_of(kernel).each),
        sums_(add("sums", word_, targets_, Space::Shared)) {}

  Tile lower() {
    Body& body = s_.r.tile.body;
    body = s_.begin();
    append(body, s_.over(targets_, [&](const Expr& e) { return begin_sum(e); }));
    body.push_back(barrier());
    body.push_back(add_up());
    body.push_back(barrier());
    append(body, s_.over(targets_, [&](const Expr& e) { return store_sum(e); }));
    return numbered(std::move(s_.r.tile), s_.r.kernel.scalars.size());
  }

 private:
  int add(const char* name, DType dtype, int64_t size, Space space = Space::Register) {
    return add_array(s_.r.tile, {name, dtype, size, space});
  }
  int cast(Body& body, DType dtype, int value) {
    if (s_.r.tile.kernel.scalars[value].dtype == dtype) return value;
    return computed(s_.r.tile, body, Op::cast, dtype, {value});
  }

  SharedRows::Element begin_sum(const Expr& e) {
    SharedRows::Element element;
    const int value = s_.scalars_at(element.body, base_, e)[base_.value];
    const int word = cast(element.body, word_, value);
    element.stores = {set(sums_, e, word)};
    return element;
  }

  SharedRows::Element store_sum(const Expr& e) {
    SharedRows::Element element;
    const int sum = read_element(s_.r.tile, element.body, sums_, e),
              value = cast(element.body, scatter_.dtype, sum);
    element.stores = {
        store(scatter_.buffer, substitute(scatter_.index, {{indirect(0), e}}), value)};
    return element;
  }

  // Some updates of a thread are asked for before the first of them is added.
  Statement add_up() {
    const int64_t turns = ceil_divide(updates_, int64_t{each_} * s_.threads);
    const Expr q = s_.r.index("q", turns), p = s_.r.index("p", each_),
               at = (q * each_ + p) * s_.threads + s_.thread, e = s_.r.index("e", updates_);
    const int wanted = add("wanted", DType::i64, each_), values = add("values", word_, each_),
              counts = scatter_.mask < 0 ? -1 : add("counts", DType::boolean, each_);
    const bool is_whole = turns * each_ * s_.threads == updates_;
    Body ask = {let(e.name(), updates_, is_whole ? at : min(at, updates_ - 1))};
    const std::vector<int> ids = s_.scalars_at(ask, scatter_, e);
    ask.push_back(set(wanted, p, ids[scatter_.rhs]));
    ask.push_back(set(values, p, cast(ask, word_, ids[scatter_.value])));
    if (counts >= 0) ask.push_back(set(counts, p, ids[scatter_.mask]));
    Body sum;
    const int target = read_element(s_.r.tile, sum, wanted, p),
              value = read_element(s_.r.tile, sum, values, p);
    const Expr place = Expr::index(indirect(0), scatter_.limit);
    sum.push_back(add_to(sums_, place, scatter_.limit, target, value));
    if (counts >= 0) {
      Body some;
      const int is_counted = read_element(s_.r.tile, some, counts, p);
      some.push_back(if_true(is_counted, std::move(sum)));
      sum = std::move(some);
    }
    if (!is_whole) sum = {if_less(at, updates_, std::move(sum))};
    return for_each(q.name(), turns, false,
                    {for_each(p.name(), each_, true, std::move(ask)),
                     for_each(p.name(), each_, true, std::move(sum))});
  }

  SharedRows s_;
  const Step &base_, &scatter_;
  const DType word_;
  const int64_t targets_, updates_;
  const int each_;  // updates of a thread that are asked for at once
  const int sums_;
};

}  // namespace

Tile lower_tables(const Program& program, const Kernel& kernel) {
  return Table(program, kernel).lower();
}

}  // namespace tiny_compile
