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

// One operand: what is multiplied, along which of the result's axes it lies, and its slice.
struct Operand {
  int scalar = -1;
  int axis = -1;  // none: -1
  Expr extent = 1;
  Expr first;                 // of the block's square
  Expr own;                   // 0 .. 15: which of the threads
  int slice = -1, mine = -1;  // arrays
};

class ProductLowering {
 public:
  ProductLowering(const Program& program, const Kernel& kernel)
      : program_(program), kernel_(kernel), schedule_(schedule_of(kernel)) {
    const auto is_dot = [](const Step& step) { return step.kind == StepKind::Dot; };
    dot_ = static_cast<int>(std::find_if(kernel.steps.begin(), kernel.steps.end(), is_dot) -
                            kernel.steps.begin());
    type_ = compute_type(kernel.scalars[dot().value].dtype);
    depth_ = inner_count(kernel, dot());
    side_ = kTileSide * schedule_.each;
    tile_.kernel = kernel;
    tile_.warps = kThreads / 32;
    left_ = operand(dot().value, kernel.rows - 2);
    right_ = operand(dot().other, kernel.rows - 1);
  }

  Tile lower() {
    place_block();
    add_arrays();
    const int results = schedule_.each * schedule_.each, zero = add_zero();
    add(for_each(name("c"), results, true, {set(sum_, number("c", results), zero)}));
    walk_along_k();
    add(over_results());
    return numbered(std::move(tile_), kernel_.scalars.size());
  }

 private:
  const Step& dot() const { return kernel_.steps[dot_]; }
  void add(Statement statement) { tile_.body.push_back(std::move(statement)); }
  std::string name(const char* what) const { return unused(program_, what); }
  Expr number(const char* what, const Expr& extent) const {
    return Expr::index(name(what), extent);
  }
  int add_zero() { return add_constant(tile_, Literal::of(type_, 0)); }

  Operand operand(int scalar, int axis) const {
    Operand result;
    result.scalar = scalar;
    result.axis = axis;
    if (axis >= 0) result.extent = kernel_.axes[axis].extent;
    return result;
  }

  // Names an integer in front of all loops.
  Expr named(const char* what, const Expr& extent, const Expr& value) {
    add(let(name(what), extent, value));
    return number(what, extent);
  }

  // Blocks go over the columns fastest, then the rows, then the batches.
  void place_block() {
    const Expr down = ceil_div(left_.extent, side_), across = ceil_div(right_.extent, side_);
    std::vector<int> batches;
    for (int a = 0; a < left_.axis; a++) batches.push_back(a);
    tile_.grid = down * across;
    for (int a : batches) tile_.grid = tile_.grid * kernel_.axes[a].extent;
    const Expr thread = thread_of(tile_), block = block_of(tile_);
    right_.own = named("x", kTileSide, mod(thread, kTileSide));
    left_.own = named("y", kTileSide, floor_div(thread, kTileSide));
    right_.first = named("first_column", across * side_, mod(block, across) * side_);
    left_.first = named("first_row", down * side_, mod(floor_div(block, across), down) * side_);
    append(tile_.body, unpack(kernel_, batches, floor_div(block, down * across), {}));
  }

  int array(const char* what, DType dtype, int64_t size, Space space = Space::Register) {
    return add_array(tile_, {str(what, tile_.arrays.size()), dtype, size, space});
  }

  void add_arrays() {
    const int64_t each = schedule_.each, count = schedule_.slice * slice_stride(schedule_);
    for (Operand* o : {&left_, &right_}) {
      o->slice = array(o == &left_ ? "left" : "right", type_, count, Space::Shared);
      o->mine = array(o == &left_ ? "row" : "column", type_, each);
    }
    sum_ = array("sum", type_, each * each);
    result_ = array("result", dot().dtype, 1);
  }

  // A thread's row or column number i of the square: four next to each other are one access.
  Expr at(const Operand& o, const Expr& i) const {
    if (schedule_.each < 4) return schedule_.each * o.own + i;
    return 4 * kTileSide * floor_div(i, 4) + 4 * o.own + mod(i, 4);
  }

  // Where k is a number, whole slices and what is left; else each step asks.
  void walk_along_k() {
    const int slice = schedule_.slice;
    const bool is_known = depth_.is_constant();
    const Expr slices = is_known ? floor_div(depth_, slice) : ceil_div(depth_, slice);
    if (!slices.is_constant(0)) {
      const Expr first = number("slice", slices) * slice;
      add(for_range(name("slice"), slices, 0, slices, over_slice(first, slice, !is_known)));
    }
    const Expr left = mod(depth_, slice);
    if (is_known && !left.is_constant(0))
      append(tile_.body, over_slice(slices * slice, left.constant(), false));
  }

  // `count` steps from `first` on.
  Body over_slice(const Expr& first, int64_t count, bool asks) {
    Body body = {stage(left_, first), stage(right_, first), barrier()};
    const Expr k = number("k", count);
    Body each = multiply(k);
    if (asks) each = {if_less(first + k, depth_, std::move(each))};
    body.push_back(for_each(name("k"), count, true, std::move(each)));
    body.push_back(barrier());
    return body;
  }

  // Whether neighbouring k are neighbours in memory: then neighbouring threads take them.
  bool runs_along_k(int scalar) const {
    const Scalar& load = kernel_.scalars[scalar];
    if (load.kind != ScalarKind::Load || dot().inner.empty()) return false;
    return coefficient(load.index, kernel_.axes[dot().inner.back()].symbol()) == 1;
  }

  Statement stage(const Operand& o, const Expr& first) {
    const int64_t turns = int64_t{side_} * schedule_.slice / kThreads;
    const bool along_k = runs_along_k(o.scalar);
    const Expr place = number("place", turns * kThreads),
               across = along_k ? schedule_.slice : side_, fast = mod(place, across),
               slow = floor_div(place, across), k = along_k ? fast : slow,
               along = along_k ? slow : fast;
    Body body = {
        let(name("place"), turns * kThreads, number("c", turns) * kThreads + thread_of(tile_))};
    if (o.axis >= 0) {
      const Axis& axis = kernel_.axes[o.axis];
      body.push_back(let(axis.name, axis.extent, within(o.first + along, o.extent, side_)));
    }
    append(body, unpack(kernel_, dot().inner, within(first + k, depth_, schedule_.slice), {}));
    append(body, defined({o.scalar}));
    body.push_back(set(o.slice, k * slice_stride(schedule_) + along, o.scalar));
    return for_each(name("c"), turns, true, std::move(body));
  }

  // The last place for those beyond it, if there are any.
  static Expr within(const Expr& place, const Expr& extent, int64_t at_once) {
    return mod(extent, at_once).is_constant(0) ? place : min(place, extent - 1);
  }

  Statement take(const Operand& o, const Expr& k) {
    const Expr i = number("i", schedule_.each);
    const int value = add_element(tile_, o.slice, k * slice_stride(schedule_) + at(o, i));
    return for_each(name("i"), schedule_.each, true, {define(value), set(o.mine, i, value)});
  }

  Body multiply(const Expr& k) {
    const int each = schedule_.each;
    const Expr i = number("i", each), j = number("j", each);
    Body body = {take(left_, k), take(right_, k)}, inner;
    const int row = add_element(tile_, left_.mine, i),
              column = add_element(tile_, right_.mine, j),
              sum = add_element(tile_, sum_, i * each + j);
    for (int id : {row, column, sum}) inner.push_back(define(id));
    const int more = computed(tile_, inner, Op::fma, type_, {row, column, sum});
    inner.push_back(set(sum_, i * each + j, more));
    body.push_back(
        for_each(name("i"), each, true, {for_each(name("j"), each, true, std::move(inner))}));
    return body;
  }

  // A -0 becomes +0; halves are rounded once.
  Body finished_sum(const Expr& at) {
    const int sum = add_element(tile_, sum_, at);
    Body body = {define(sum)};
    int value = computed(tile_, body, Op::add, type_, {sum, add_zero()});
    if (dot().dtype != type_) value = computed(tile_, body, Op::cast, dot().dtype, {value});
    body.push_back(set(result_, 0, value));
    return body;
  }

  // What these are made of, by way of the result.
  Body defined(const std::vector<int>& roots) const {
    Body body;
    for (int id : evaluated_for(kernel_, roots, [](int) { return false; })) {
      const Scalar& scalar = kernel_.scalars[id];
      if (scalar.kind == ScalarKind::Constant) continue;
      body.push_back(scalar.kind == ScalarKind::Register ? define_from(id, result_, 0)
                                                         : define(id));
    }
    return body;
  }

  Statement over_results() {
    const int each = schedule_.each;
    const Expr i = number("i", each), j = number("j", each);
    std::vector<int> roots;
    for (const Step& step : kernel_.steps)
      if (step.kind == StepKind::Store) roots.push_back(step.value);
    Body body = finished_sum(i * each + j);
    append(body, defined(roots));
    for (const Step& step : kernel_.steps)
      if (step.kind == StepKind::Store)
        body.push_back(store(step.buffer, step.index, step.value));
    body = in_square(right_, j, std::move(body));
    body = in_square(left_, i, {for_each(name("j"), each, true, std::move(body))});
    return for_each(name("i"), each, true, std::move(body));
  }

  // Of a row or column that there is.
  Body in_square(const Operand& o, const Expr& number, Body body) const {
    const Expr place = o.first + at(o, number);
    if (o.axis >= 0) {
      const Axis& axis = kernel_.axes[o.axis];
      body.insert(body.begin(), let(axis.name, axis.extent, place));
    }
    if (mod(o.extent, side_).is_constant(0)) return body;
    return {if_less(place, o.extent, std::move(body))};
  }

  const Program& program_;
  const Kernel& kernel_;
  const Schedule schedule_;
  Tile tile_;
  Operand left_, right_;
  Expr depth_ = 0;
  DType type_ = DType::f32;
  int dot_ = 0, side_ = 0, sum_ = -1, result_ = -1;
};

}  // namespace

bool has_product(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cuda && !row_count(kernel).is_constant(0) &&
         schedule_of(kernel).strategy == Strategy::Tiles;
}

Tile lower_product(const Program& program, const Kernel& kernel) {
  return ProductLowering(program, kernel).lower();
}

}  // namespace tiny_compile
