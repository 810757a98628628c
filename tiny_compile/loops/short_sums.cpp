// Can a window's sum be computed where it is read? As a formula it can:
//
//   rows(i0: 8) { r0 = sum(j0: 3) load x[i0 + j0] ; store t[i0] = r0 }
// =>
//   rows(i0: 8) { store t[i0] = add(add(load x[i0], load x[i0 + 2]), load x[i0 + 1]) }
//
// The order is the contract's: the upper half of a chunk is added to its lower one, and what lies
// beyond the last term is -0.0, which changes nothing.
#include "tiny_compile/loops/short_sums.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/chunk_tree.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostTerms = 16;
constexpr int64_t kPack = 16;      // bytes
constexpr int64_t kLongRow = 128;  // packs: so that few of them go on into the next row

bool is_short(const Kernel& kernel, const Step& step) {
  const Expr terms = inner_count(kernel, step);
  return is_float(step.dtype) && kernel.scalars[step.value].dtype == step.dtype &&
         terms.is_constant() && terms.constant() >= 1 && terms.constant() <= kMostTerms &&
         !has_registers(kernel, reachable(kernel, step));
}

bool is_short_sum(const Kernel& kernel, const Step& step) {
  return step.kind == StepKind::Reduce && step.op == Op::sum && is_short(kernel, step);
}

// Of which no two results multiply with the same: each operand is read for its own results.
bool is_short_thin_dot(const Kernel& kernel, const Step& step) {
  if (step.kind != StepKind::Dot || !is_short(kernel, step)) return false;
  const DotAxes axes = dot_axes(kernel);
  return count_of(kernel, axes.rows).is_constant(1) ||
         count_of(kernel, axes.columns).is_constant(1);
}

// Where the loops of a step stand at the term: of (j0: 3, j1: 3), term 5 is j0 = 1, j1 = 2.
Substitution place_of(const Kernel& kernel, const Step& step, int64_t term) {
  Substitution place;
  for (size_t k = step.inner.size(); k-- > 0;) {
    const Axis& axis = kernel.axes[step.inner[k]];
    place.push_back({axis.name, Expr(term % axis.extent.constant())});
    term /= axis.extent.constant();
  }
  return place;
}

// A sum's or a product's result as a formula of its terms.
class Formula {
 public:
  Formula(const Kernel& kernel, const Step& step, ScalarTable& table)
      : kernel_(kernel),
        step_(step),
        table_(table),
        wide_(is_half(step.dtype) ? DType::f32 : step.dtype) {}

  int result() {
    const int64_t count = inner_count(kernel_, step_).constant();
    std::vector<int> terms;
    int product = table_.constant(Literal::of(wide_, 0));
    for (int64_t k = 0; k < count; k++) {
      ScalarMapping there;
      there.axes = place_of(kernel_, step_, k);
      const std::vector<int> ids =
          clone_with_mapping(kernel_, reachable(kernel_, step_), there, table_);
      if (step_.kind == StepKind::Dot)
        product = table_.apply(Op::fma, wide_,
                               {widened(ids[step_.value]), widened(ids[step_.rhs]), product});
      else
        terms.push_back(widened(ids[step_.value]));
    }
    const auto sum = [&](int a, int b) { return table_.apply(Op::add, wide_, {a, b}); };
    return as(step_.dtype, step_.kind == StepKind::Dot
                               ? sum(product, table_.constant(Literal::of(wide_, 0)))
                               : in_order(std::move(terms), sum));
  }

 private:
  int as(DType dtype, int id) {
    return step_.dtype == wide_ ? id : table_.apply(Op::cast, dtype, {id});
  }
  int widened(int id) { return as(wide_, id); }

  const Kernel& kernel_;
  const Step& step_;
  ScalarTable& table_;
  const DType wide_;
};

// The kernel with these of its stores alone, whose registers are formulas; nullopt where one that
// they need has none.
std::optional<Kernel> written_out(const Kernel& kernel, std::vector<Step> stores,
                                  bool (*has_formula)(const Kernel&, const Step&)) {
  std::vector<bool> wanted(kernel.scalars.size());
  for (const Step& store : stores) {
    const std::vector<bool> more = reachable(kernel, store);
    for (size_t id = 0; id < wanted.size(); id++) wanted[id] = wanted[id] || more[id];
  }
  if (!has_registers(kernel, wanted)) return std::nullopt;
  Kernel written = without_steps(kernel);
  ScalarTable table(written);
  std::vector<int> ids(kernel.scalars.size(), -1);
  for (size_t id = 0; id < ids.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (!wanted[id]) continue;
    const bool is_result = scalar.kind == ScalarKind::Register;
    if (is_result && !has_formula(kernel, kernel.steps[scalar.step])) return std::nullopt;
    ids[id] = is_result ? Formula(kernel, kernel.steps[scalar.step], table).result()
                        : table.add(renumbered(
                              scalar, [&](int other) { return ids[other]; },
                              [](int step) { return step; }));
  }
  for (Step& store : stores) {
    for (int* root : store.roots()) *root = *root < 0 ? -1 : ids[*root];
  }
  written.steps = std::move(stores);
  return written;
}

// Whether a window steps along it: x[i0*64 + i1 + j0], i1 the last row.
bool is_window(const Kernel& kernel, const Scalar& load) {
  const auto steps_by_one = [&](size_t axis) {
    return coefficient(load.index, kernel.axes[axis].symbol()) == 1;
  };
  bool slides = false;
  for (size_t a = static_cast<size_t>(kernel.rows); a < kernel.axes.size(); a++)
    slides = slides || steps_by_one(a);
  return slides && steps_by_one(static_cast<size_t>(kernel.rows) - 1);
}

}  // namespace

std::optional<Group> with_sums_written_out(const Group& producer, int buffer) {
  const Kernel& kernel = producer.kernel;
  std::optional<Kernel> written =
      written_out(kernel, {kernel.steps[producer.store_to(buffer)]}, is_short_sum);
  if (!written) return std::nullopt;
  Group alone(std::move(*written));
  alone.rows = producer.rows;
  return alone;
}

Kernel with_thin_dots_written_out(Kernel kernel) {
  std::vector<Step> stores;
  bool are_points = kernel.rows > 0;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store) stores.push_back(step);
    are_points = are_points && (step.kind == StepKind::Dot ||
                                (step.kind == StepKind::Store && step.inner.empty()));
  }
  if (!are_points || stores.size() + 1 != kernel.steps.size()) return kernel;
  std::optional<Kernel> points = written_out(kernel, stores, is_short_thin_dot);
  if (!points) return kernel;
  points->name = kernel.name;
  return normalize(std::move(*points));
}

Kernel with_windows_written_out(const Program& program, Kernel kernel) {
  const auto loads = [](const Scalar& scalar) { return scalar.kind == ScalarKind::Load; };
  const auto slides = [&](const Scalar& scalar) {
    return loads(scalar) && is_window(kernel, scalar);
  };
  const auto all = [&](const auto& condition) {
    return std::all_of(kernel.scalars.begin(), kernel.scalars.end(), condition);
  };
  if (program.target != Target::Cuda || kernel.rows == 0 || kernel.steps.empty() ||
      std::none_of(kernel.scalars.begin(), kernel.scalars.end(), slides) ||
      !all([&](const Scalar& scalar) { return !loads(scalar) || is_plain(scalar); }))
    return kernel;
  const Step& store = kernel.steps.back();
  const auto stores = [](const Step& step) { return !makes_register(step); };
  const Expr& row = kernel.axes[kernel.rows - 1].extent;
  if (store.kind != StepKind::Store || !store.inner.empty() ||
      row.bounds().low < kLongRow * kPack / size_of(store.dtype) ||
      std::count_if(kernel.steps.begin(), kernel.steps.end(), stores) != 1)
    return kernel;
  const auto written = with_sums_written_out(Group(kernel), store.buffer);
  if (!written) return kernel;
  Kernel points = written->finish();
  points.name = kernel.name;
  return points;
}

}  // namespace tiny_compile
