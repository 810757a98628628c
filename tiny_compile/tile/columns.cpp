// How is a sum over the first axis fast? Neighbouring columns are lanes: every innermost loop goes over a
// strip of them, and memory is read along its grain. The contract's tree wants row r beside row r + 512
// first; over rows in bit-reversed order, a stack of partial strips does it:
//
//   rows 0, 512, 256, 768, ..    push 0; push 512, add: {0, 512};
//                                push 256; push 768, add, add: {0, 512, 256, 768}; ..
//
//   for turn < 4 {
//     number: 4 = turn%2*2 + turn/2                    the row
//     height: 3 = turn%2 + turn/2                      strips that the stack holds, one for each 1
//     for l: 64 = 0 .. -start + stop vector { i1: 64 = l + start ; .. stack_f32[height*64 + l] = $0 }
//     for merged: 2 = 0 .. (turn%2 + 1)/2 + (turn + 1)/4 { the two strips on top become one }
//   }
//
// A full chunk pushes eight rows at a time, added in registers.
#include "tiny_compile/tile/columns.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/chunk_tree.h"
#include "tiny_compile/loops/strips.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/row_exact.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/units.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int kInnerBits = 3;  // of the turns of an inner loop

int bits_of(int64_t count) {  // of numbers below it
  int bits = 0;
  while ((int64_t{1} << bits) < count) bits++;
  return bits;
}

// --- strips ----------------------------------------------------------------------------------------

// The least power of two that is not below `count`, of so many bits at most, or one turn of the inner
// loop: as much again for each power that is too small.
Expr power_from(const Expr& count, int bits) {
  if (count.is_constant()) return power_of_two_from(count.constant());
  const int least = bits > kInnerBits ? kInnerBits : 0;
  Expr size = int64_t{1} << least;
  for (int bit = least; bit < bits; bit++) {
    const int64_t power = int64_t{1} << bit;
    size = size + min(max(count - power, 0), 1) * power;
  }
  return size;
}

// What puts a strip on the stack at `place`, of what these elements of each lane come to.
using Leaf = std::function<Body(const std::vector<Expr>& numbers, const Expr& place)>;

struct StripTree {
  RowTile& rows;
  Op op;
  DType type;
  int stack;
  std::string tag = {};  // behind the names of its integers

  Expr index(const char* name, const Expr& extent) const {
    return rows.index(name + tag, extent);
  }
};

// The two strips on top of the stack become one, at `top`.
Body merge(const StripTree& t, const Expr& top) {
  RowTile& r = t.rows;
  Body each;
  const int lower = read_back(r, each, t.stack, own_place(r, top)),
            upper = read_back(r, each, t.stack, own_place(r, top + 1)),
            both = computed(r.tile, each, pairwise(t.op), t.type, {lower, upper});
  each.push_back(set(t.stack, own_place(r, top), both));
  return for_lanes(r, std::move(each));
}

// Of a number of so many bits, below `size`: these bits in the other order, their sum, and how many of them,
// from the lowest on, are 1.
struct Digits {
  Expr reversed = 0, ones = 0, trailing = 0;
};

Digits digits_of(const Expr& number, int bits, const Expr& size) {
  Digits d;
  for (int bit = 0; bit < bits; bit++) {
    const int64_t above = int64_t{2} << bit;
    const Expr digit = mod(floor_div(number, above / 2), 2);
    d.reversed = d.reversed + digit * floor_div(size, above);
    d.ones = d.ones + digit;
    d.trailing = d.trailing + floor_div(mod(number, above) + 1, above);
  }
  return d;
}

// Puts a strip on the stack: leaf(number, place).
using PutStrip = std::function<Body(const Expr& number, const Expr& place)>;

// A turn: one more strip, of these bits of its turn's number, and the merges that it asks for.
Body turn_of_strips(const StripTree& t, int bits, const Digits& d, const PutStrip& leaf) {
  const int64_t most = int64_t{1} << bits;
  const Expr number = t.index("number", most), height = t.index("height", bits + 1),
             merged = t.index("merged", bits), top = t.index("top", bits);
  Body body = {let(number.name(), most, d.reversed), let(height.name(), bits + 1, d.ones)};
  append(body, leaf(number, height));
  Body meet = {let(top.name(), bits, max(height - merged - 1, 0))};
  append(meet, merge(t, top));
  body.push_back(for_range(merged.name(), bits, 0, d.trailing, std::move(meet)));
  return body;
}

// The tree over `size` strips, a power of two of so many bits. The turn's low bits have a loop of their own,
// so that most of the counting is done once for eight.
Body tree_of_strips(const StripTree& t, const Expr& size, int bits, const PutStrip& leaf) {
  if (bits == 0) return leaf(0, 0);
  const int inner = std::min(bits, kInnerBits), outer = bits - inner;
  const int64_t turns = int64_t{1} << inner, rounds = int64_t{1} << outer;
  const Expr turn = t.index("turn", turns), round = t.index("round", rounds);
  Digits low = digits_of(turn, inner, size);
  if (outer == 0)
    return {for_range(turn.name(), turns, 0, size, turn_of_strips(t, bits, low, leaf))};
  const Expr before = t.index("before", rounds), held = t.index("held", outer + 1),
             carried = t.index("carried", outer + 1), all = floor_div(size, turns);
  const Digits high = digits_of(round, outer, all);
  low.reversed = low.reversed + before;
  low.ones = low.ones + held;
  low.trailing = low.trailing + floor_div(turn + 1, turns) * carried;
  Body body = {let(before.name(), rounds, high.reversed),
               let(held.name(), outer + 1, high.ones),
               let(carried.name(), outer + 1, high.trailing),
               for_range(turn.name(), turns, 0, turns, turn_of_strips(t, bits, low, leaf))};
  return {for_range(round.name(), rounds, 0, all, std::move(body))};
}

// The tree over elements 0 .. count - 1, one a strip, missing ones as the identity.
Body tree_of_single(const StripTree& t, const Expr& count, const Leaf& leaf) {
  RowTile& r = t.rows;
  const int bits = bits_of(count.bounds().high);
  Body body;
  Expr size = power_from(count, bits);
  if (!size.is_constant()) {
    const Expr symbol = t.index("size", (int64_t{1} << bits) + 1);
    body.push_back(let(symbol.name(), (int64_t{1} << bits) + 1, size));
    size = symbol;
  }
  const int nothing = add_constant(r.tile, identity(t.op, t.type));
  append(body, tree_of_strips(t, size, bits, [&](const Expr& number, const Expr& place) {
           Body strip = leaf({number}, place);
           if (count == size) return strip;
           return Body{if_less(number, count, std::move(strip)),
                       otherwise(for_lanes(r, {set(t.stack, own_place(r, place), nothing)}))};
         }));
  return body;
}

// The same of a number that is known, eight a strip: r, r + size/8, .. of the next power of two.
Body tree_of_eights(const StripTree& t, int64_t count, const Leaf& leaf) {
  const int64_t strips = strips_of(count), all = count / strips, rest = count % strips;
  return tree_of_strips(t, strips, bits_of(strips), [&](const Expr& number, const Expr& place) {
    const auto numbers = [&](int64_t parts) {
      std::vector<Expr> those;
      for (int64_t part = 0; part < parts; part++) those.push_back(number + strips * part);
      return those;
    };
    if (rest == 0) return leaf(numbers(all), place);
    return Body{if_less(number, rest, leaf(numbers(all + 1), place)),
                otherwise(leaf(numbers(all), place))};
  });
}

// --- elements --------------------------------------------------------------------------------------

// Elements of each lane, of these numbers, and what the lanes have in common of them.
struct Elements {
  std::vector<RowPlace> places;
  std::vector<RowElement> shared;
};

// What they have in common, at the end of `body`: with a condition in it, a loop over the lanes would be
// written once for each way that it can turn out.
Elements elements_at(RowReduction& x, Body& body, const std::vector<Expr>& numbers) {
  RowTile& r = x.rows;
  uint64_t axes = shared_scope(r);
  for (int axis : x.step.inner) axes |= uint64_t{1} << axis;
  Elements all;
  for (Expr flat : numbers) {
    if (r.is_alone() && !flat.is_constant()) {  // a number that is known to be below the count
      std::string name;                         // j0j1_0: of its own for each count
      for (int axis : x.step.inner) name += r.kernel.axes[axis].name;
      const Expr e = r.index(name + "_" + std::to_string(all.places.size()), x.count);
      body.push_back(let(e.name(), x.count, flat));
      flat = e;
    }
    all.places.push_back({flat, unflatten(r.kernel, x.step.inner, flat)});
    RowElement e = element_at(r, x.wanted, {{}, r.ids, r.defined}, all.places.back(), axes);
    append(body, std::move(e.body));
    all.shared.push_back(std::move(e));
  }
  return all;
}

// In a lane as they are added up.
std::vector<int> values_of(RowReduction& x, Body& body, const Elements& all, int most = -1) {
  RowTile& r = x.rows;
  const int less = most < 0 ? -1 : read_back(r, body, most, own_place(r, 0));
  std::vector<int> values;
  for (size_t k = 0; k < all.places.size(); k++) {
    RowElement known{{}, all.shared[k].ids, all.shared[k].defined};
    for (int id : x.wanted) known.defined[id] = known.defined[id] || r.defined[id];
    RowElement e = element_at(r, x.wanted, std::move(known), all.places[k]);
    append(body, std::move(e.body));
    int value = as_added(r, body, x.type, e.ids[x.step.value]);
    if (most >= 0) {
      value = computed(r.tile, body, Op::sub, x.type, {value, less});
      value = computed(r.tile, body, Op::exp, x.type, {value});
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace

void plan_strips(RowTile& r, int64_t lanes) {
  const int64_t unit = columns_unit(schedule_of(r.kernel));
  const int last = r.kernel.rows - 1;
  r.lanes = {r.kernel.axes[static_cast<size_t>(last)], lanes, unit};
  r.tile.units = ceil_div(r.lanes->axis.extent, unit);
  for (int axis = 0; axis < last; axis++)
    r.tile.units = r.tile.units * r.kernel.axes[static_cast<size_t>(axis)].extent;
  r.tile.together = static_cast<int>(lanes / unit);
}

Body over_strips(RowTile& r, const std::function<Body()>& steps) {
  Strip& lanes = *r.lanes;
  const int64_t unit = lanes.unit, most = lanes.most, together = r.tile.together;
  const Expr &extent = lanes.axis.extent, units = ceil_div(extent, unit),
             strips = ceil_div(extent, most), strip = r.index("strip", strips);
  lanes.start = r.index("start", units * unit + 1);
  lanes.stop = r.index("stop", extent + 1);
  lanes.lane = r.index("l", most);
  const auto over = [&](const Expr& first, const Expr& last) {
    const Expr end = min(last * unit, strip * most + most);
    Body body = {let(lanes.start.name(), units * unit + 1, max(first * unit, strip * most)),
                 let(lanes.stop.name(), extent + 1, min(end, extent)),
                 if_less(lanes.start, lanes.stop, steps())};
    return Body{for_range(strip.name(), strips, floor_div(first, together),
                          min(ceil_div(last, together), strips), std::move(body))};
  };
  return over_rows(r.program, r.kernel, r.tile, units, over);
}

bool takes_eights(const RowReduction& x) { return takes_eights(x.rows.kernel, x.step); }

int stack_for(RowReduction& x) {
  return scratch(x.rows, str("stack_", x.type), x.type, stack_of_lane(x.rows.kernel, x.step));
}

Body tree_of_column(RowReduction& x, int stack, int most, const Expr& base, const Expr& count) {
  RowTile& r = x.rows;
  const Op op = x.step.op == Op::sum_exp ? Op::sum : x.step.op;
  const auto leaf = [&](std::vector<Expr> numbers, const Expr& place) {
    for (Expr& number : numbers) number = base + number;
    Body body;
    const Elements all = elements_at(x, body, numbers);
    append(body, in_lanes(r, x.wanted, [&](Body& each) {
             const int value = combined(r, each, op, x.type, values_of(x, each, all, most));
             each.push_back(set(stack, own_place(r, place), value));
           }));
    return body;
  };
  const StripTree tree{r, op, x.type, stack};
  return count.is_constant() && (takes_eights(x) || count.is_constant(kChunk))
             ? tree_of_eights(tree, count.constant(), leaf)
             : tree_of_single(tree, count, leaf);
}

Body tree_of_parts(RowReduction& x, int stack, int parts, const Expr& count) {
  RowTile& r = x.rows;
  const Op op = x.step.op == Op::sum_exp ? Op::sum : x.step.op;
  const auto leaf = [&](const std::vector<Expr>& numbers, const Expr& place) {
    Body each;
    std::vector<int> values;
    for (const Expr& number : numbers)
      values.push_back(read_back(r, each, parts, own_place(r, number)));
    const int value = combined(r, each, op, x.type, std::move(values));
    each.push_back(set(stack, own_place(r, place), value));
    return for_lanes(r, std::move(each));
  };
  const StripTree tree{r, op, x.type, stack};
  return count.is_constant() ? tree_of_eights(tree, count.constant(), leaf)
                             : tree_of_single(tree, count, leaf);
}

Body tree_of_pieces(RowReduction& x, int level, int stack, const Expr& count,
                    const std::function<Body(const Expr&, const Expr&)>& piece) {
  const Op op = x.step.op == Op::sum_exp ? Op::sum : x.step.op;
  const StripTree tree{x.rows, op, x.type, stack, "_" + std::to_string(level)};
  return tree_of_single(tree, count, [&](const std::vector<Expr>& numbers, const Expr& place) {
    return piece(numbers[0], place);
  });
}

bool has_few_elements(const RowReduction& x) {
  return (x.rows.lanes || x.rows.is_alone()) && has_few_elements(x.rows.kernel, x.step);
}

Body reduce_few(RowReduction& x, const std::function<void(Body&, int)>& each) {
  std::vector<Expr> numbers;
  for (int64_t e = 0; e < x.count.constant(); e++) numbers.push_back(e);
  Body body;
  const Elements all = elements_at(x, body, numbers);
  append(body, in_lanes(x.rows, x.wanted, [&](Body& own) {
           const std::vector<int> values = values_of(x, own, all);
           each(own, is_arg(x.step) ? first_of(x, own, values)
                                    : combined(x.rows, own, x.step.op, x.type, values));
         }));
  return body;
}

Body ask_prefetch(const RowReduction& x, const Expr& e) {
  const RowTile& r = x.rows;
  const Kernel& kernel = r.kernel;
  if (!r.lanes || x.count.bounds().high < 2) return {};
  const Strip& lanes = *r.lanes;
  const Expr next = r.index("next", x.count);
  Substitution there = unflatten(kernel, x.step.inner, next);
  there.push_back({lanes.axis.name, lanes.start});
  Body body = {let(next.name(), x.count, min(e + 1, x.count - 1))};
  for (int id : x.wanted) {
    const Scalar& load = kernel.scalars[id];
    const auto turns = [&](int axis) { return depends_on(load.index, kernel.axes[axis].name); };
    if (!is_plain(load) || coefficient(load.index, lanes.axis.symbol()) != 1 ||
        std::none_of(x.step.inner.begin(), x.step.inner.end(), turns))
      continue;
    Statement ask = ahead_of(load.buffer, substitute(load.index, there), lanes.most);
    ask.left = lanes.stop - lanes.start;
    body.push_back(std::move(ask));
  }
  return body.size() > 1 ? body : Body();
}

Body at_element(const RowReduction& x, const Expr& e, const AddToBody& each,
                const AddToBody& shared) {
  RowTile& r = x.rows;
  const std::vector<int>& inner = x.step.inner;
  Body body = ask_prefetch(x, e);
  const bool is_axis = inner.size() == 1 && e == r.kernel.axes[inner[0]].symbol();
  if (!is_axis) append(body, unpack(r.kernel, inner, e, {}));
  const std::vector<bool> defined = r.defined;
  uint64_t axes = shared_scope(r);
  for (int axis : inner) axes |= uint64_t{1} << axis;
  if (r.lanes) append(body, define_within(r, x.wanted, axes, r.defined));
  if (r.lanes && shared) shared(body);
  append(body, in_lanes(r, x.wanted, [&](Body& own) {
           append(own, element_at(r, x.wanted, {{}, r.ids, r.defined}, {e}).body);
           if (!r.lanes && shared) shared(own);
           each(own);
         }));
  r.defined = defined;
  return body;
}

}  // namespace tiny_compile
