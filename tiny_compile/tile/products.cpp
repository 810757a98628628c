// How does a block multiply? It keeps a square of the result in registers, as many rows and columns a
// thread as the schedule says, and walks along k: a slice of each operand goes to shared memory,
// every thread reads its rows and columns of it.
//
//   for slice < 64 {
//     left[k*68 + at] = ..;  right[k*68 + at] = ..;  barrier
//     for k < 16 unrolled { row[i] = left[..]; column[j] = right[..]; sum[i*4 + j] = fma(row[i], column[j], sum[..]) }
//     barrier
//   }
//
// Each product is one fma, k ascending, as the contract asks; what is left of k is a slice of its own that ends
// where k does, because adding 0 * 0 would turn a -0 into +0. Beyond the matrix the last row, column or k is read
// again, for nobody: a question for each element parts the loads, which then wait one after the other (2048 x 2048
// x 2048 on an H100: .95 ms, so .47).
#include "tiny_compile/tile/products.h"

#include <algorithm>

#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int kThreads = kTileSide * kTileSide;

// --- what all parts know -----------------------------------------------------------------------------

// One operand: what is multiplied, along which of the result's axes it lies, and its slice.
struct Operand {
  int scalar = -1;
  int axis = -1;  // none: -1
  Expr extent = 1;
  Expr first;                 // of the block's square
  Expr own;                   // 0 .. 15: which of the threads
  int slice = -1, mine = -1;  // arrays
};

struct Product {
  const Program& program;
  const Kernel& kernel;
  const Schedule schedule;
  const Step& dot;
  const DType type;  // of what is added up
  const Expr depth;  // k
  const int side;    // of a block's square
  Tile tile{};
  Operand left{}, right{};
  int sum = -1, result = -1;  // arrays

  std::string name(const char* what) const { return unused(program, kernel, what); }
  Expr number(const char* what, const Expr& extent) const {
    return Expr::index(name(what), extent);
  }
  int zero() { return add_constant(tile, Literal::of(type, 0)); }
  int array(const char* what, DType dtype, int64_t size, Space space = Space::Register) {
    return add_array(tile, {str(what, tile.arrays.size()), dtype, size, space});
  }
  // Names an integer in front of all loops.
  Expr named(const char* what, const Expr& extent, const Expr& value) {
    tile.body.push_back(let(name(what), extent, value));
    return number(what, extent);
  }
  // A thread's row or column number i of the square: four next to each other are one access.
  Expr at(const Operand& o, const Expr& i) const {
    if (schedule.each < 4) return schedule.each * o.own + i;
    return 4 * kTileSide * floor_div(i, 4) + 4 * o.own + mod(i, 4);
  }
};

Operand operand(const Kernel& kernel, int scalar, int axis) {
  Operand result;
  result.scalar = scalar;
  result.axis = axis;
  if (axis >= 0) result.extent = kernel.axes[axis].extent;
  return result;
}

Product product_of(const Program& program, const Kernel& kernel) {
  const auto is_dot = [](const Step& step) { return step.kind == StepKind::Dot; };
  const Step& dot = *std::find_if(kernel.steps.begin(), kernel.steps.end(), is_dot);
  const Schedule schedule = schedule_of(kernel);
  Product p{program,
            kernel,
            schedule,
            dot,
            compute_type(kernel.scalars[dot.value].dtype),
            inner_count(kernel, dot),
            kTileSide * schedule.each};
  p.tile.kernel = kernel;
  p.tile.warps = kThreads / 32;
  p.left = operand(kernel, dot.value, kernel.rows - 2);
  p.right = operand(kernel, dot.rhs, kernel.rows - 1);
  return p;
}

// Blocks go over the columns fastest, then the rows, then the batches.
void place_block(Product& p) {
  const Expr down = ceil_div(p.left.extent, p.side), across = ceil_div(p.right.extent, p.side);
  std::vector<int> batches;
  for (int a = 0; a < p.left.axis; a++) batches.push_back(a);
  p.tile.grid = down * across;
  for (int a : batches) p.tile.grid = p.tile.grid * p.kernel.axes[a].extent;
  const Expr thread = thread_of(p.tile), block = block_of(p.tile);
  p.right.own = p.named("x", kTileSide, mod(thread, kTileSide));
  p.left.own = p.named("y", kTileSide, floor_div(thread, kTileSide));
  p.right.first = p.named("first_column", across * p.side, mod(block, across) * p.side);
  p.left.first =
      p.named("first_row", down * p.side, mod(floor_div(block, across), down) * p.side);
  append(p.tile.body, unpack(p.kernel, batches, floor_div(block, down * across), {}));
}

void add_arrays(Product& p) {
  const int64_t each = p.schedule.each, count = p.schedule.slice * slice_stride(p.schedule);
  for (Operand* o : {&p.left, &p.right}) {
    o->slice = p.array(o == &p.left ? "left" : "right", p.type, count, Space::Shared);
    o->mine = p.array(o == &p.left ? "row" : "column", p.type, each);
  }
  p.sum = p.array("sum", p.type, each * each);
  p.result = p.array("result", p.dot.dtype, 1);
  const Expr c = p.number("c", each * each);
  p.tile.body.push_back(for_each(c.name(), each * each, true, {set(p.sum, c, p.zero())}));
}

// What these are made of, by way of the result.
Body defined(const Product& p, const std::vector<int>& roots) {
  Body body;
  for (int id : evaluated_for(p.kernel, roots, [](int) { return false; })) {
    const ScalarKind kind = p.kernel.scalars[id].kind;
    if (kind == ScalarKind::Constant) continue;
    body.push_back(kind == ScalarKind::Register ? define_from(id, p.result, 0) : define(id));
  }
  return body;
}

// --- along k -----------------------------------------------------------------------------------------

class SliceWalk {
 public:
  explicit SliceWalk(Product& p) : p_(p) {}

  // Where k is a number, whole slices and what is left; else each step asks, if any can be left.
  Body walk() {
    const int slice = p_.schedule.slice;
    const bool is_known = p_.depth.is_constant();
    const Expr slices = is_known ? floor_div(p_.depth, slice) : ceil_div(p_.depth, slice),
               left = mod(p_.depth, slice);
    Body body;
    if (!slices.is_constant(0)) {
      const Expr number = p_.number("slice", slices);
      body.push_back(
          for_range(number.name(), slices, 0, slices,
                    over_slice(number * slice, slice, !is_known && !left.is_constant(0))));
    }
    if (is_known && !left.is_constant(0))
      append(body, over_slice(slices * slice, left.constant(), false));
    return body;
  }

 private:
  // `count` steps from `first` on.
  Body over_slice(const Expr& first, int64_t count, bool asks) {
    Body body = {stage(p_.left, first), stage(p_.right, first), barrier()};
    const Expr k = p_.number("k", count);
    Body each = multiply(k);
    if (asks) each = {if_less(first + k, p_.depth, std::move(each))};
    body.push_back(for_each(k.name(), count, true, std::move(each)));
    body.push_back(barrier());
    return body;
  }

  // Whether neighbouring k are neighbours in memory: then neighbouring threads take them.
  bool runs_along_k(int scalar) const {
    const Scalar& load = p_.kernel.scalars[scalar];
    if (load.kind != ScalarKind::Load || p_.dot.inner.empty()) return false;
    return coefficient(load.index, p_.kernel.axes[p_.dot.inner.back()].symbol()) == 1;
  }

  Statement stage(const Operand& o, const Expr& first) {
    const int slice = p_.schedule.slice;
    const int64_t turns = int64_t{p_.side} * slice / kThreads;
    const bool along_k = runs_along_k(o.scalar);
    const Expr c = p_.number("c", turns), place = p_.number("place", turns * kThreads),
               across = along_k ? slice : p_.side, fast = mod(place, across),
               slow = floor_div(place, across), k = along_k ? fast : slow,
               along = along_k ? slow : fast;
    Body body = {let(place.name(), turns * kThreads, c * kThreads + thread_of(p_.tile))};
    if (o.axis >= 0) {
      const Axis& axis = p_.kernel.axes[o.axis];
      body.push_back(let(axis.name, axis.extent, within(o.first + along, o.extent, p_.side)));
    }
    append(body, unpack(p_.kernel, p_.dot.inner, within(first + k, p_.depth, slice), {}));
    append(body, defined(p_, {o.scalar}));
    body.push_back(set(o.slice, k * slice_stride(p_.schedule) + along, o.scalar));
    return for_each(c.name(), turns, true, std::move(body));
  }

  // The last place for those beyond it, if there are any.
  static Expr within(const Expr& place, const Expr& extent, int64_t at_once) {
    return mod(extent, at_once).is_constant(0) ? place : min(place, extent - 1);
  }

  Statement take(const Operand& o, const Expr& k) {
    const Expr i = p_.number("i", p_.schedule.each);
    const int value =
        add_element(p_.tile, o.slice, k * slice_stride(p_.schedule) + p_.at(o, i));
    return for_each(i.name(), p_.schedule.each, true, {define(value), set(o.mine, i, value)});
  }

  Body multiply(const Expr& k) {
    const int each = p_.schedule.each;
    const Expr i = p_.number("i", each), j = p_.number("j", each), place = i * each + j;
    Body body = {take(p_.left, k), take(p_.right, k)}, inner;
    const int row = add_element(p_.tile, p_.left.mine, i),
              column = add_element(p_.tile, p_.right.mine, j),
              sum = add_element(p_.tile, p_.sum, place);
    for (int id : {row, column, sum}) inner.push_back(define(id));
    const int more = computed(p_.tile, inner, Op::fma, p_.type, {row, column, sum});
    inner.push_back(set(p_.sum, place, more));
    body.push_back(
        for_each(i.name(), each, true, {for_each(j.name(), each, true, std::move(inner))}));
    return body;
  }

  Product& p_;
};

// --- the results -------------------------------------------------------------------------------------

// A -0 becomes +0; halves are rounded once.
Body finished_sum(Product& p, const Expr& at) {
  const int sum = add_element(p.tile, p.sum, at);
  Body body = {define(sum)};
  int value = computed(p.tile, body, Op::add, p.type, {sum, p.zero()});
  if (p.dot.dtype != p.type) value = computed(p.tile, body, Op::cast, p.dot.dtype, {value});
  body.push_back(set(p.result, 0, value));
  return body;
}

// Of a row or column that there is.
Body in_square(const Product& p, const Operand& o, const Expr& number, Body body) {
  const Expr place = o.first + p.at(o, number);
  if (o.axis >= 0) {
    const Axis& axis = p.kernel.axes[o.axis];
    body.insert(body.begin(), let(axis.name, axis.extent, place));
  }
  if (mod(o.extent, p.side).is_constant(0)) return body;
  return {if_less(place, o.extent, std::move(body))};
}

Statement over_results(Product& p) {
  const int each = p.schedule.each;
  const Expr i = p.number("i", each), j = p.number("j", each);
  std::vector<int> roots;
  for (const Step& step : p.kernel.steps)
    if (step.kind == StepKind::Store) roots.push_back(step.value);
  Body body = finished_sum(p, i * each + j);
  append(body, defined(p, roots));
  for (const Step& step : p.kernel.steps)
    if (step.kind == StepKind::Store)
      body.push_back(store(step.buffer, step.index, step.value));
  body = in_square(p, p.right, j, std::move(body));
  body = in_square(p, p.left, i, {for_each(j.name(), each, true, std::move(body))});
  return for_each(i.name(), each, true, std::move(body));
}

}  // namespace

bool has_product(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cuda && !row_count(kernel).is_constant(0) &&
         schedule_of(kernel).strategy == Strategy::Tiles;
}

Tile lower_product(const Program& program, const Kernel& kernel) {
  Product p = product_of(program, kernel);
  place_block(p);
  add_arrays(p);
  append(p.tile.body, SliceWalk(p).walk());
  p.tile.body.push_back(over_results(p));
  return numbered(std::move(p.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
