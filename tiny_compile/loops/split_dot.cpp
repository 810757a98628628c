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
  bool live() const { return std::count(depth.begin(), depth.end(), -1) == 0; }
  bool operator==(const Phase&) const = default;
};

class DotSplitter {
 public:
  DotSplitter(Program& program, const Kernel& kernel, Dilated dot)
      : program_(program),
        own_(kernel),
        dot_(std::move(dot)),
        source_(dot_.view.kernel),
        rows_(dot_.view.lists[0]),
        depth_(dot_.view.lists[1]),
        dtype_(source_.steps[0].dtype) {
    for (int row : rows_) {
      if (uses(source_, dot_.full, row)) full_rows_.push_back(row);
    }
    in_memory_ = rows_;
    const Expr& index = source_.steps[1].index;
    const auto stride = [&](int axis) {
      return std::abs(coefficient(index, source_.axes[axis].symbol()));
    };
    std::stable_sort(in_memory_.begin(), in_memory_.end(),
                     [&](int a, int b) { return stride(a) > stride(b); });
  }

  std::vector<Kernel> run() {
    std::vector<Kernel> kernels;
    if (is_float(source_.scalars[dot_.full].dtype)) kernels.push_back(faults());
    for (int64_t number = 0; number < phases(dot_.cuts); number++) {
      phases_.push_back(phase(number));
      results_.push_back(-1);
      if (!phases_.back().live()) continue;
      results_.back() = add_buffer(dtype_, size(phases_.back()));
      kernels.push_back(product(phases_.back(), results_.back()));
    }
    kernels.push_back(together());
    return kernels;
  }

 private:
  Phase phase(int64_t number) const {
    Phase phase;
    for (const Cut& cut : dot_.cuts) {
      phase.row.push_back(number % cut.by);
      phase.depth.push_back(cut.needs[static_cast<size_t>(phase.row.back())]);
      number /= cut.by;
    }
    return phase;
  }

  int add_buffer(DType dtype, const Expr& size) {
    const int buffer = static_cast<int>(program_.buffers.size());
    program_.buffers.push_back(
        {str("p", buffer, "_", own_.name), Role::Temporary, {dtype, {size}}, size, {}, 0});
    return buffer;
  }

  Kernel begin(const std::string& what) const {
    Kernel kernel;
    kernel.name = own_.name + what;
    kernel.where = source_.where;
    return kernel;
  }

  // The axis as the phase sees it, and how it counts there.
  Axis axis_of(int axis, const Phase& phase, Substitution& there) const {
    const Axis& whole = source_.axes[axis];
    for (size_t c = 0; c < dot_.cuts.size(); c++) {
      const Cut& cut = dot_.cuts[c];
      if (cut.row != axis && cut.depth != axis) continue;
      const int64_t residue = cut.row == axis ? phase.row[c] : phase.depth[c];
      const Axis part{whole.name, extent_of(whole, cut.by, residue)};
      const bool one = part.extent.is_constant(1);
      there.push_back({whole.name, (one ? Expr(0) : part.symbol()) * cut.by + residue});
      return part;
    }
    return whole;
  }

  Expr size(const Phase& phase) const {
    Substitution ignored;
    Expr size = 1;
    for (int axis : rows_) size = size * axis_of(axis, phase, ignored).extent;
    return size;
  }

  // Where a result of the phase lies: in the order of the kernel's own results. `whole`: seen from
  // the rows of all phases.
  Expr place(const Phase& phase, bool whole) const {
    Substitution ignored;
    Expr place = 0;
    for (int axis : in_memory_) {
      const Axis part = axis_of(axis, phase, ignored);
      Expr at = part.extent.is_constant(1) ? Expr(0) : part.symbol();
      for (const Cut& cut : dot_.cuts) {
        if (whole && cut.row == axis)
          at = mod(floor_div(source_.axes[axis].symbol(), cut.by), part.extent);
      }
      place = place * part.extent + at;
    }
    return place;
  }

  // Of which residues of the depth the sum is; all axes of the other operand's rows.
  Expr place_of_fault(const std::vector<Expr>& residues) const {
    Expr place = 0;
    size_t next = 0;
    for (const Cut& cut : dot_.cuts) {
      if (cut.depth >= 0) place = place * residues_of(cut) + residues[next];
      next++;
    }
    for (int axis : full_rows_)
      place = place * source_.axes[axis].extent + source_.axes[axis].symbol();
    return place;
  }

  int64_t residues_of(const Cut& cut) const { return tiny_compile::residues_of(dot_, cut); }

  static int found(ScalarTable& table, DType dtype) {
    Scalar result;
    result.kind = ScalarKind::Register;
    result.dtype = dtype;
    result.step = 0;
    return table.add(result);
  }

  // +0 for each residue of the depth whose factors are finite, else NaN.
  Kernel faults() {
    Kernel kernel = begin("_faults");
    ScalarTable table(kernel);
    std::vector<Expr> residues;
    Step sum;
    sum.kind = StepKind::Reduce;
    ScalarMapping how;
    for (const Cut& cut : dot_.cuts) {
      const Axis axis{str("u", residues.size()), residues_of(cut)};
      residues.push_back(axis.symbol());
      if (cut.depth >= 0) kernel.axes.push_back(axis);
    }
    for (int axis : full_rows_) kernel.axes.push_back(source_.axes[axis]);
    kernel.rows = static_cast<int>(kernel.axes.size());
    for (int axis : depth_) {
      sum.inner.push_back(static_cast<int>(kernel.axes.size()));
      kernel.axes.push_back(source_.axes[axis]);
      for (size_t c = 0; c < dot_.cuts.size(); c++) {
        if (dot_.cuts[c].depth == axis)
          count_by(kernel.axes.back(), dot_.cuts[c].by, residues[c], how, table);
      }
    }
    const int factor =
        clone_with_mapping(source_, below(source_, dot_.full), how, table)[dot_.full];
    const DType dtype = source_.scalars[dot_.full].dtype;
    int difference = table.apply(Op::sub, dtype, {factor, factor});
    if (how.mask >= 0)
      difference = table.apply(Op::where, dtype,
                               {how.mask, difference, table.constant(Literal::of(dtype, 0))});
    sum.value = difference, sum.dtype = dtype;
    kernel.steps.push_back(sum);
    faults_ = add_buffer(dtype, row_count(kernel));
    Step store;
    store.value = found(table, dtype), store.buffer = faults_, store.dtype = dtype;
    store.index = place_of_fault(residues);
    kernel.steps.push_back(store);
    return collapse_axes(normalize(std::move(kernel)));
  }

  // The axis goes over one residue of itself, which is shorter for some.
  static void count_by(Axis& axis, int64_t by, const Expr& residue, ScalarMapping& how,
                       ScalarTable& table) {
    const Axis whole = axis;
    axis.extent = ceil_div(whole.extent, by);
    const Expr at = axis.symbol() * by + residue;
    how.axes.push_back({whole.name, at});
    if (at.bounds().high < whole.extent.constant()) return;
    const int inside =
        table.apply(Op::lt, DType::boolean, {table.index(at), table.index(whole.extent)});
    how.mask = how.mask < 0 ? inside
                            : table.apply(Op::bitwise_and, DType::boolean, {how.mask, inside});
  }

  // NaN if a factor of a product that the phase leaves out is not finite; -1 if there is none.
  int fault(const Phase& phase, ScalarTable& table) const {
    int64_t count = 1;
    for (const Cut& cut : dot_.cuts) count *= residues_of(cut);
    int sum = -1;
    for (int64_t number = 0; number < count && faults_ >= 0; number++) {
      std::vector<Expr> residues;
      bool left_out = !phase.live();
      int64_t rest = number;
      for (size_t c = 0; c < dot_.cuts.size(); c++) {
        const int64_t residue = rest % residues_of(dot_.cuts[c]);
        rest /= residues_of(dot_.cuts[c]);
        residues.push_back(residue);
        left_out = left_out || residue != phase.depth[c];
      }
      if (!left_out) continue;
      const int part = table.load(program_, faults_, place_of_fault(residues));
      const DType dtype = program_.buffers[faults_].type.dtype;
      sum = sum < 0 ? part : table.apply(Op::add, dtype, {sum, part});
    }
    const bool same = sum < 0 || table.kernel().scalars[sum].dtype == dtype_;
    return same ? sum : table.apply(Op::cast, dtype_, {sum});
  }

  // What the phase says of the masks of a load is left out of them.
  static int with_mask(Scalar load, ScalarTable& table) {
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
  void add_axis(int axis, const Phase& phase, Kernel& kernel, ScalarMapping& how) const {
    const Axis part = axis_of(axis, phase, how.axes);
    if (!part.extent.is_constant(1)) kernel.axes.push_back(part);
  }

  Kernel product(const Phase& phase, int buffer) {
    Kernel kernel = begin(str("_phase_", phases_.size() - 1));
    ScalarTable table(kernel);
    ScalarMapping how;
    for (int axis : rows_) add_axis(axis, phase, kernel, how);
    kernel.rows = static_cast<int>(kernel.axes.size());
    for (int axis : depth_) add_axis(axis, phase, kernel, how);
    Step dot = source_.steps[0], store;
    dot.inner.resize(kernel.axes.size() - static_cast<size_t>(kernel.rows));
    std::iota(dot.inner.begin(), dot.inner.end(), kernel.rows);
    how.replace = [&](const Scalar& load) { return with_mask(load, table); };
    const std::vector<int> ids =
        clone_with_mapping(source_, reachable(source_, dot), how, table);
    dot.value = ids[dot.value], dot.rhs = ids[dot.rhs];
    store.value = found(table, dtype_), store.buffer = buffer, store.dtype = dtype_;
    store.index = place(phase, false);
    const int wrong = fault(phase, table);
    if (wrong >= 0) store.value = table.apply(Op::sub, dtype_, {store.value, wrong});
    kernel.steps = {dot, store};
    return collapse_axes(normalize(std::move(kernel)));
  }

  int belongs_to(const Phase& phase, ScalarTable& table) const {
    int all = -1;
    for (size_t c = 0; c < dot_.cuts.size(); c++) {
      const Expr residue = mod(source_.axes[dot_.cuts[c].row].symbol(), dot_.cuts[c].by);
      const int here = table.apply(Op::eq, DType::boolean,
                                   {table.index(residue), table.index(phase.row[c])});
      all = all < 0 ? here : table.apply(Op::bitwise_and, DType::boolean, {all, here});
    }
    return all;
  }

  // The dot's result at a row of all phases. Rows without a product all have the same.
  int result(ScalarTable& table) const {
    int value = -1;
    for (const bool live : {false, true}) {
      for (size_t p = 0; p < phases_.size(); p++) {
        const Phase& phase = phases_[p];
        if (phase.live() != live) continue;
        int there =
            live ? table.load(program_, results_[p], place(phase, true)) : fault(phase, table);
        if (there < 0) there = table.constant(Literal::of(dtype_, 0));
        if (value >= 0 && value != there)
          there = table.apply(Op::where, dtype_, {belongs_to(phase, table), there, value});
        value = there;
      }
    }
    return value;
  }

  // The kernel itself, with what the phases have found for its dot.
  Kernel together() const {
    Kernel kernel = begin("");
    ScalarTable table(kernel);
    for (int axis : rows_) kernel.axes.push_back(source_.axes[axis]);
    kernel.rows = static_cast<int>(kernel.axes.size());
    const int found = result(table);
    std::vector<bool> wanted(source_.scalars.size());
    for (size_t s = 1; s < source_.steps.size(); s++) {
      const std::vector<bool> needed = reachable(source_, source_.steps[s]);
      for (size_t id = 0; id < needed.size(); id++) wanted[id] = wanted[id] || needed[id];
    }
    std::vector<int> ids(source_.scalars.size(), -1);
    for (size_t id = 0; id < wanted.size(); id++) {
      if (!wanted[id]) continue;
      Scalar scalar = source_.scalars[id];
      for (int& operand : scalar.operands) operand = ids[operand];
      if (scalar.mask >= 0) scalar.mask = ids[scalar.mask];
      ids[id] = scalar.kind == ScalarKind::Register ? found : table.add(std::move(scalar));
    }
    for (size_t s = 1; s < source_.steps.size(); s++) {
      Step store = source_.steps[s];
      store.value = ids[store.value];
      kernel.steps.push_back(store);
    }
    return collapse_axes(normalize(in_own_axes(std::move(kernel))));
  }

  // A kernel over the view's rows as one over the rows of the kernel that is split: flat numbers
  // count the same points.
  Kernel in_own_axes(Kernel kernel) const {
    Expr flat = 0, place = 1;
    for (int a = 0; a < own_.rows; a++)
      flat = flat * own_.axes[a].extent + own_.axes[a].symbol();
    Substitution own;
    for (size_t r = rows_.size(); r-- > 0;) {
      const Axis& axis = source_.axes[rows_[r]];
      own.push_back({axis.name, mod(floor_div(flat, place), axis.extent)});
      place = place * axis.extent;
    }
    for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, own);
    for (Step& step : kernel.steps) step.index = substitute(step.index, own);
    kernel.axes.assign(own_.axes.begin(), own_.axes.begin() + own_.rows);
    kernel.rows = own_.rows;
    return kernel;
  }

  Program& program_;
  const Kernel& own_;
  const Dilated dot_;
  const Kernel& source_;
  const std::vector<int> rows_, depth_;
  const DType dtype_;
  std::vector<int> full_rows_;  // rows of the other operand
  std::vector<int> in_memory_;  // rows as the first result lies
  int faults_ = -1;             // a buffer
  std::vector<Phase> phases_;
  std::vector<int> results_;  // buffers, -1 where no product is needed
};

}  // namespace

bool can_split_dot(const Program& program, const Kernel& kernel) {
  return dilated(program, kernel).has_value();
}

std::vector<Kernel> split_dot(Program& program, const Kernel& kernel) {
  return DotSplitter(program, kernel, *dilated(program, kernel)).run();
}

}  // namespace tiny_compile
