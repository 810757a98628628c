// Why multiply zeros? The gradient of a strided convolution's input is a product with another
// gradient whose elements the graph has drawn apart: of a stride of 2 three of four products are
// with zeros. Which, a residue of the row and one of the depth say:
//
//   rows(i0: 28, i1: 64) { r0 = dot(j0: 128, j1: 3) load g[j0*14 + (i0 + j1 - 1)/2]
//                                 if (i0 + j1 - 1)%2 < 1 else 0.0, load w[j0*192 + i1*3 + j1]
//                          store y[i1*28 + i0] = r0 }
// =>
//   rows(i0: 64, i1: 2)  { r0 = sum(j0: 128, j1: 2) (w - w of depth 2*j1 + i1) ; store z[..] = r0 }
//   rows(i0: 14, i1: 64) { r0 = dot(j0: 128) load g[j0*14 + i0], load w[.. 1]       # even rows
//                          store p[i1*14 + i0] = r0 - z[.. 0] }
//   rows(i0: 14, i1: 64) { r0 = dot(j0: 128, j1: 2) load g[.. i0 + j1], load w[.. 2*j1]    # odd
//                          store q[i1*14 + i0] = r0 - z[.. 1] }
//   rows(i0: 28, i1: 64) { store y[i1*28 + i0] = where(i0%2 = 0, p[.. i0/2], q[.. i0/2]) }
//
// A product with 0 changes no sum (a dot's zero is +0) unless the other factor is Inf or NaN; then
// w - w is NaN, and so is z, and all that is less z. What is less +0 is itself.
#include "tiny_compile/loops/split_dot.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dilated_dot.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

// The residues of rows and of depth that belong together.
struct Phase {
  std::vector<int64_t> row, depth;  // of each cut; depth -1: no product is needed
  int result = -1;                  // its buffer, if it has products
  bool live() const { return std::count(depth.begin(), depth.end(), -1) == 0; }
};

// A kernel whose dot is split, and what has been made of it so far.
struct DotSplit {
  DotSplit(Program& all, const Kernel& kernel, Dilated dilated)
      : program(all), own(kernel), dot(std::move(dilated)) {
    for (int row : rows) {
      if (uses(source, dot.full, row)) full_rows.push_back(row);
    }
    const Expr& index = source.steps[1].index;
    const auto stride = [&](int axis) {
      return std::abs(coefficient(index, source.axes[axis].symbol()));
    };
    std::stable_sort(in_memory.begin(), in_memory.end(),
                     [&](int a, int b) { return stride(a) > stride(b); });
  }
  DotSplit(const DotSplit&) = delete;

  Program& program;
  const Kernel& own;
  const Dilated dot;
  const Kernel& source = dot.view.kernel;
  const std::vector<int>&rows = dot.view.lists[0], &depth = dot.view.lists[1];
  const DType dtype = source.steps[0].dtype;
  std::vector<int> full_rows;         // rows of the other operand
  std::vector<int> in_memory = rows;  // rows as the first result lies
  int faults = -1;                    // a buffer
  std::vector<Phase> phases;
};

// --- phases and places ---

Phase phase_of(const DotSplit& d, int64_t number) {
  Phase phase;
  for (const Cut& cut : d.dot.cuts) {
    phase.row.push_back(number % cut.by);
    phase.depth.push_back(cut.needs[static_cast<size_t>(phase.row.back())]);
    number /= cut.by;
  }
  return phase;
}

// The axis as the phase sees it, and how it counts there.
Axis axis_of(const DotSplit& d, int axis, const Phase& phase, Substitution& there) {
  const Axis& whole = d.source.axes[axis];
  for (size_t c = 0; c < d.dot.cuts.size(); c++) {
    const Cut& cut = d.dot.cuts[c];
    if (cut.row != axis && cut.depth != axis) continue;
    const int64_t residue = cut.row == axis ? phase.row[c] : phase.depth[c];
    const Axis part{whole.name, extent_of(whole, cut.by, residue)};
    const bool one = part.extent.is_constant(1);
    there.push_back({whole.name, (one ? Expr(0) : part.symbol()) * cut.by + residue});
    return part;
  }
  return whole;
}

Expr result_count(const DotSplit& d, const Phase& phase) {
  Substitution ignored;
  Expr size = 1;
  for (int axis : d.rows) size = size * axis_of(d, axis, phase, ignored).extent;
  return size;
}

// Where a result of the phase lies: in the order of the kernel's own results. `whole`: seen from
// the rows of all phases.
Expr place_of_result(const DotSplit& d, const Phase& phase, bool whole) {
  Substitution ignored;
  Expr place = 0;
  for (int axis : d.in_memory) {
    const Axis part = axis_of(d, axis, phase, ignored);
    Expr at = part.extent.is_constant(1) ? Expr(0) : part.symbol();
    for (const Cut& cut : d.dot.cuts) {
      if (whole && cut.row == axis)
        at = mod(floor_div(d.source.axes[axis].symbol(), cut.by), part.extent);
    }
    place = place * part.extent + at;
  }
  return place;
}

// Of which residues of the depth the sum is; all axes of the other operand's rows.
Expr place_of_fault(const DotSplit& d, const std::vector<Expr>& residues) {
  Expr place = 0;
  size_t next = 0;
  for (const Cut& cut : d.dot.cuts) {
    if (cut.depth >= 0) place = place * residues_of(d.dot, cut) + residues[next];
    next++;
  }
  for (int axis : d.full_rows)
    place = place * d.source.axes[axis].extent + d.source.axes[axis].symbol();
  return place;
}

// --- kernels in general ---

int add_buffer(DotSplit& d, DType dtype, const Expr& size) {
  const int buffer = static_cast<int>(d.program.buffers.size());
  d.program.buffers.push_back(
      {str("p", buffer, "_", d.own.name), Role::Temporary, {dtype, {size}}, size, {}, 0});
  return buffer;
}

Kernel begin_kernel(const DotSplit& d, const std::string& what) {
  Kernel kernel;
  kernel.name = d.own.name + what;
  kernel.where = d.source.where;
  return kernel;
}

int the_register(ScalarTable& table, DType dtype) {
  Scalar result;
  result.kind = ScalarKind::Register;
  result.dtype = dtype;
  result.step = 0;
  return table.add(result);
}

// --- what is not finite ---

// The axis goes over one residue of itself, which is shorter for some.
void count_by(Axis& axis, int64_t by, const Expr& residue, ScalarMapping& how,
              ScalarTable& table) {
  const Axis whole = axis;
  axis.extent = ceil_div(whole.extent, by);
  const Expr at = axis.symbol() * by + residue;
  how.axes.push_back({whole.name, at});
  if (at.bounds().high < whole.extent.constant()) return;
  const int inside =
      table.apply(Op::lt, DType::boolean, {table.index(at), table.index(whole.extent)});
  how.mask =
      how.mask < 0 ? inside : table.apply(Op::bitwise_and, DType::boolean, {how.mask, inside});
}

// +0 where the other operand is finite, else NaN.
int factor_less_itself(const DotSplit& d, const ScalarMapping& how, ScalarTable& table) {
  const DType dtype = d.source.scalars[d.dot.full].dtype;
  const int factor =
      clone_with_mapping(d.source, below(d.source, d.dot.full), how, table)[d.dot.full];
  const int difference = table.apply(Op::sub, dtype, {factor, factor});
  if (how.mask < 0) return difference;
  return table.apply(Op::where, dtype,
                     {how.mask, difference, table.constant(Literal::of(dtype, 0))});
}

// +0 for each residue of the depth whose factors are finite, else NaN.
Kernel find_faults(DotSplit& d) {
  Kernel kernel = begin_kernel(d, "_faults");
  ScalarTable table(kernel);
  std::vector<Expr> residues;
  Step sum;
  sum.kind = StepKind::Reduce;
  ScalarMapping how;
  for (const Cut& cut : d.dot.cuts) {
    const Axis axis{str("u", residues.size()), residues_of(d.dot, cut)};
    residues.push_back(axis.symbol());
    if (cut.depth >= 0) kernel.axes.push_back(axis);
  }
  for (int axis : d.full_rows) kernel.axes.push_back(d.source.axes[axis]);
  kernel.rows = static_cast<int>(kernel.axes.size());
  for (int axis : d.depth) {
    sum.inner.push_back(static_cast<int>(kernel.axes.size()));
    kernel.axes.push_back(d.source.axes[axis]);
    for (size_t c = 0; c < d.dot.cuts.size(); c++) {
      if (d.dot.cuts[c].depth == axis)
        count_by(kernel.axes.back(), d.dot.cuts[c].by, residues[c], how, table);
    }
  }
  const DType dtype = d.source.scalars[d.dot.full].dtype;
  sum.value = factor_less_itself(d, how, table), sum.dtype = dtype;
  kernel.steps.push_back(sum);
  d.faults = add_buffer(d, dtype, row_count(kernel));
  Step store;
  store.value = the_register(table, dtype), store.buffer = d.faults, store.dtype = dtype;
  store.index = place_of_fault(d, residues);
  kernel.steps.push_back(store);
  return collapse_axes(normalize(std::move(kernel)));
}

// NaN if a factor of a product that the phase leaves out is not finite; -1 if there is none.
int fault(const DotSplit& d, const Phase& phase, ScalarTable& table) {
  int64_t count = 1;
  for (const Cut& cut : d.dot.cuts) count *= residues_of(d.dot, cut);
  int sum = -1;
  for (int64_t number = 0; number < count && d.faults >= 0; number++) {
    std::vector<Expr> residues;
    bool left_out = !phase.live();
    int64_t rest = number;
    for (size_t c = 0; c < d.dot.cuts.size(); c++) {
      const int64_t residue = rest % residues_of(d.dot, d.dot.cuts[c]);
      rest /= residues_of(d.dot, d.dot.cuts[c]);
      residues.push_back(residue);
      left_out = left_out || residue != phase.depth[c];
    }
    if (!left_out) continue;
    const int part = table.load(d.program, d.faults, place_of_fault(d, residues));
    const DType dtype = d.program.buffers[d.faults].type.dtype;
    sum = sum < 0 ? part : table.apply(Op::add, dtype, {sum, part});
  }
  const bool same = sum < 0 || table.kernel().scalars[sum].dtype == d.dtype;
  return same ? sum : table.apply(Op::cast, d.dtype, {sum});
}

// --- products ---

// What the phase says of the masks of a load is left out of them.
int with_mask(Scalar load, ScalarTable& table) {
  int mask = -1;
  if (load.mask >= 0) {
    for (int id : conjuncts(table.kernel(), load.mask)) {
      const Scalar& part = table.kernel().scalars[id];
      if (part.kind == ScalarKind::Apply && part.op == Op::bitwise_and) continue;
      const auto condition = comparison(table.kernel(), part);
      if (condition && condition->always()) continue;
      mask = mask < 0 ? id : table.apply(Op::bitwise_and, DType::boolean, {mask, id});
    }
  }
  load.mask = mask;
  if (mask < 0) load.value = Literal{load.dtype, 0};
  return table.add(std::move(load));
}

// What is left of the axis, unless that is a single place.
void add_axis(const DotSplit& d, int axis, const Phase& phase, Kernel& kernel,
              ScalarMapping& how) {
  const Axis part = axis_of(d, axis, phase, how.axes);
  if (!part.extent.is_constant(1)) kernel.axes.push_back(part);
}

Kernel product_of(const DotSplit& d, const Phase& phase) {
  Kernel kernel = begin_kernel(d, str("_phase_", d.phases.size() - 1));
  ScalarTable table(kernel);
  ScalarMapping how;
  for (int axis : d.rows) add_axis(d, axis, phase, kernel, how);
  kernel.rows = static_cast<int>(kernel.axes.size());
  for (int axis : d.depth) add_axis(d, axis, phase, kernel, how);
  Step dot = d.source.steps[0], store;
  dot.inner.resize(kernel.axes.size() - static_cast<size_t>(kernel.rows));
  std::iota(dot.inner.begin(), dot.inner.end(), kernel.rows);
  how.replace = [&](const Scalar& load) { return with_mask(load, table); };
  const std::vector<int> ids =
      clone_with_mapping(d.source, reachable(d.source, dot), how, table);
  dot.value = ids[dot.value], dot.rhs = ids[dot.rhs];
  store.value = the_register(table, d.dtype), store.buffer = phase.result,
  store.dtype = d.dtype;
  store.index = place_of_result(d, phase, false);
  const int wrong = fault(d, phase, table);
  if (wrong >= 0) store.value = table.apply(Op::sub, d.dtype, {store.value, wrong});
  kernel.steps = {dot, store};
  return collapse_axes(normalize(std::move(kernel)));
}

// --- the results together ---

int belongs_to(const DotSplit& d, const Phase& phase, ScalarTable& table) {
  int all = -1;
  for (size_t c = 0; c < d.dot.cuts.size(); c++) {
    const Expr residue = mod(d.source.axes[d.dot.cuts[c].row].symbol(), d.dot.cuts[c].by);
    const int here =
        table.apply(Op::eq, DType::boolean, {table.index(residue), table.index(phase.row[c])});
    all = all < 0 ? here : table.apply(Op::bitwise_and, DType::boolean, {all, here});
  }
  return all;
}

// The dot's result at a row of all phases. Rows without a product all have the same.
int result_at_row(const DotSplit& d, ScalarTable& table) {
  int value = -1;
  for (const bool live : {false, true}) {
    for (const Phase& phase : d.phases) {
      if (phase.live() != live) continue;
      int there = live ? table.load(d.program, phase.result, place_of_result(d, phase, true))
                       : fault(d, phase, table);
      if (there < 0) there = table.constant(Literal::of(d.dtype, 0));
      if (value >= 0 && value != there)
        there = table.apply(Op::where, d.dtype, {belongs_to(d, phase, table), there, value});
      value = there;
    }
  }
  return value;
}

// A kernel over the view's rows as one over the rows of the kernel that is split: flat numbers
// count the same points.
Kernel in_own_axes(const DotSplit& d, Kernel kernel) {
  Expr flat = 0, place = 1;
  for (int a = 0; a < d.own.rows; a++)
    flat = flat * d.own.axes[a].extent + d.own.axes[a].symbol();
  Substitution own;
  for (size_t r = d.rows.size(); r-- > 0;) {
    const Axis& axis = d.source.axes[d.rows[r]];
    own.push_back({axis.name, mod(floor_div(flat, place), axis.extent)});
    place = place * axis.extent;
  }
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, own);
  for (Step& step : kernel.steps) step.index = substitute(step.index, own);
  kernel.axes.assign(d.own.axes.begin(), d.own.axes.begin() + d.own.rows);
  kernel.rows = d.own.rows;
  return kernel;
}

// The kernel itself, with what the phases have found for its dot.
Kernel together(const DotSplit& d) {
  Kernel kernel = begin_kernel(d, "");
  ScalarTable table(kernel);
  for (int axis : d.rows) kernel.axes.push_back(d.source.axes[axis]);
  kernel.rows = static_cast<int>(kernel.axes.size());
  const int found = result_at_row(d, table);
  std::vector<bool> wanted(d.source.scalars.size());
  for (size_t s = 1; s < d.source.steps.size(); s++) {
    const std::vector<bool> needed = reachable(d.source, d.source.steps[s]);
    for (size_t id = 0; id < needed.size(); id++) wanted[id] = wanted[id] || needed[id];
  }
  std::vector<int> ids(d.source.scalars.size(), -1);
  for (size_t id = 0; id < wanted.size(); id++) {
    if (!wanted[id]) continue;
    Scalar scalar = d.source.scalars[id];
    for (int& operand : scalar.operands) operand = ids[operand];
    if (scalar.mask >= 0) scalar.mask = ids[scalar.mask];
    ids[id] = scalar.kind == ScalarKind::Register ? found : table.add(std::move(scalar));
  }
  for (size_t s = 1; s < d.source.steps.size(); s++) {
    Step store = d.source.steps[s];
    store.value = ids[store.value];
    kernel.steps.push_back(store);
  }
  return collapse_axes(normalize(in_own_axes(d, std::move(kernel))));
}

}  // namespace

bool can_split_dot(const Program& program, const Kernel& kernel) {
  return dilated(program, kernel).has_value();
}

std::vector<Kernel> split_dot(Program& program, const Kernel& kernel) {
  DotSplit d(program, kernel, *dilated(program, kernel));
  std::vector<Kernel> kernels;
  if (is_float(d.source.scalars[d.dot.full].dtype)) kernels.push_back(find_faults(d));
  for (int64_t number = 0; number < phases(d.dot.cuts); number++) {
    Phase& phase = d.phases.emplace_back(phase_of(d, number));
    if (!phase.live()) continue;
    phase.result = add_buffer(d, d.dtype, result_count(d, phase));
    kernels.push_back(product_of(d, phase));
  }
  kernels.push_back(together(d));
  return kernels;
}

}  // namespace tiny_compile
