// How can one kernel go over rows and add up columns, as the gradients of layer norm ask? A block
// takes 32 rows and adds what they give to each column; who reads its partial sums afterwards
// reads a 32nd of what it would have read.
//
// Which 32: the contract adds a column by chunks of 1024 rows, in each the upper half to the
// lower, so rows r, r + 32, r + 64, ... of a chunk are a subtree. What is left of a chunk is the
// tree over r, and then the one over chunks: the same rule twice, so together one sum whose
// elements are listed in that order.
#include "tiny_compile/loops/fold.h"

#include <algorithm>
#include <bit>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/split.h"

namespace tiny_compile {
namespace {

constexpr int64_t kFoldGroup = 32;        // rows of a block, and groups of a chunk
constexpr int64_t kFewRows = 4 * kChunk;  // below, the sums are cheap as they are
constexpr int64_t kShortRow = 128;        // a lane has a pack of it
constexpr int64_t kPack = 8;              // columns whose room is taken together

bool is_fold(const Step& step) { return step.kind == StepKind::Fold; }

// r = sum(j) value, then store y[..] = r, and again.
bool is_sums_alone(const Kernel& kernel) {
  for (size_t s = 0; s < kernel.steps.size(); s += 2) {
    if (s + 1 == kernel.steps.size()) return false;
    const Step &sum = kernel.steps[s], &store = kernel.steps[s + 1];
    if (sum.kind != StepKind::Reduce || sum.op != Op::sum || sum.inner.size() != 1)
      return false;
    if (has_registers(kernel, reachable(kernel, sum))) return false;
    if (store.kind != StepKind::Store || !store.inner.empty()) return false;
    const Scalar& stored = kernel.scalars[store.value];
    if (stored.kind != ScalarKind::Register || stored.step != static_cast<int>(s)) return false;
    if (!is_float(sum.dtype) || kernel.scalars[sum.value].dtype != sum.dtype) return false;
  }
  return kernel.rows == 1 && kernel.axes.size() == 2;
}

// rows(j: columns) { for each fold: r = sum(l, r, h) partial sums ; store }. `chunks` are cut into
// the lowest bits of their number, which are added last, and the others.
Kernel finishing_kernel(Program& program, const Kernel& rows, int64_t chunks,
                        std::vector<int>& partial) {
  Kernel finish;
  finish.where = rows.where;
  finish.name = rows.name + "_finish";
  const int64_t whole = power_of_two_from(chunks),
                low = std::max<int64_t>(1, kFoldGroup * whole / kChunk);
  const Step& first = *std::find_if(rows.steps.begin(), rows.steps.end(), is_fold);
  finish.rows = 1;
  finish.axes = {{"i0", rows.axes[first.inner[0]].extent}};
  std::vector<int> loops;
  auto add_loop = [&](const char* name, int64_t extent) {
    if (extent == 1) return Expr(0);
    loops.push_back(static_cast<int>(finish.axes.size()));
    finish.axes.push_back({name, extent});
    return finish.axes.back().symbol();
  };
  const Expr lowest = add_loop("l", low), group = add_loop("r", kFoldGroup),
             others = add_loop("h", whole / low);
  const Expr columns = finish.axes[0].extent, chunk = others * low + lowest;
  ScalarTable table(finish);
  for (const Step& fold : rows.steps) {
    if (!is_fold(fold)) continue;
    const Expr size = columns * (kFoldGroup * chunks);
    const int buffer = add_temporary(program, "p", rows.name, {fold.dtype, {size}}, size);
    partial.push_back(buffer);
    const int plain = table.load(
        program, buffer, (chunk * kFoldGroup + group) * columns + finish.axes[0].symbol());
    Scalar load = finish.scalars[plain];
    if (whole != chunks) {
      load.mask =
          table.apply(Op::lt, DType::boolean, {table.index(chunk), table.index(chunks)});
      load.value = identity(Op::sum, fold.dtype);
    }
    Step sum;
    sum.kind = StepKind::Reduce;
    sum.inner = loops;
    sum.value = table.add(load);
    sum.dtype = fold.dtype;
    Scalar result;
    result.kind = ScalarKind::Register;
    result.dtype = fold.dtype;
    result.step = static_cast<int>(finish.steps.size());
    finish.steps.push_back(sum);
    Step store = fold;
    store.kind = StepKind::Store;
    store.dtype = program.buffers[fold.buffer].type.dtype;
    store.index =
        substitute(fold.index, {{rows.axes[fold.inner[0]].name, finish.axes[0].symbol()}});
    store.inner = {};
    store.value = table.add(result);
    if (store.dtype != fold.dtype)
      store.value = table.apply(Op::cast, store.dtype, {store.value});
    finish.steps.push_back(store);
  }
  return finish;
}

}  // namespace

std::optional<Kernel> as_fold(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || !is_sums_alone(kernel)) return std::nullopt;
  const Expr &columns = kernel.axes[0].extent, &rows = kernel.axes[1].extent;
  if (!columns.is_constant() || !rows.is_constant()) return std::nullopt;
  const int64_t count = rows.constant(), width = columns.constant();
  if (count < kFewRows || count % kChunk != 0 || count > kChunk * kChunk) return std::nullopt;
  if (width < kShortRow || width > kChunk) return std::nullopt;
  Kernel transposed = kernel;
  std::swap(transposed.axes[0], transposed.axes[1]);
  transposed.steps.clear();
  ScalarTable table(transposed);
  for (size_t s = 0; s < kernel.steps.size(); s += 2) {
    Step fold = kernel.steps[s + 1];
    fold.kind = StepKind::Fold;
    fold.inner = {1};
    fold.value = kernel.steps[s].value;
    fold.dtype = compute_type(fold.dtype);  // halves are added as floats, and rounded once
    if (fold.dtype != kernel.steps[s].dtype)
      fold.value = table.apply(Op::cast, fold.dtype, {fold.value});
    transposed.steps.push_back(fold);
  }
  return normalize(std::move(transposed));
}

int64_t room_for_columns(const Kernel& kernel, const Step& fold) {
  return ceil_divide(inner_count(kernel, fold).bounds().high, kPack) * kPack;
}

std::string why_no_folds(const Kernel& rows, const Kernel& fold) {
  int64_t bytes = 0;
  auto take = [&](const Kernel& kernel, const Step& step) {
    const int64_t row = room_for_columns(kernel, step) * size_of(step.dtype);
    const int64_t waiting = std::countr_zero(static_cast<uint64_t>(kFoldGroup / kFoldWarps));
    if (is_fold(step)) bytes += row * (bytes == 0 ? kFoldWarps + waiting : waiting);
  };
  for (const Step& step : rows.steps) {
    if (step.kind != StepKind::Reduce && step.kind != StepKind::Store && !is_fold(step))
      return "its rows are not reduced and stored alone";
    if (inner_count(rows, step).bounds().high > kChunk)
      return "its rows are longer than what a warp holds";
    take(rows, step);
  }
  for (const Step& step : fold.steps) take(fold, step);
  for (const Step& step : rows.steps) {
    if (is_fold(step) && !(rows.axes[step.inner[0]].extent == fold.axes[1].extent))
      return "its columns are others than those that are added there already";
  }
  if (rows.rows != 1) return "its rows have several axes";
  return bytes > kDeclaredShared ? "the sums of a block's rows do not fit it" : "";
}

// Loops that memory does not walk in one line were not collapsed.
std::string why_not_cut(const Kernel& merged) {
  const bool one_loop =
      std::all_of(merged.steps.begin(), merged.steps.end(),
                  [](const Step& step) { return !is_fold(step) || step.inner.size() == 1; });
  return one_loop && merged.rows == 1 ? "" : "its columns are several loops there";
}

CutFolds cut_folds(Program& program, const Kernel& kernel) {
  CutFolds cut;
  const int64_t chunks = kernel.axes[0].extent.constant() / kChunk;
  std::vector<int> partial;
  cut.finish = normalize(finishing_kernel(program, kernel, chunks, partial));
  Kernel rows = kernel;
  rows.axes.insert(rows.axes.begin(), {{"c", chunks}, {"r", kFoldGroup}});
  rows.axes[2] = {"e", kFoldGroup};
  rows.rows = 3;
  const Expr chunk = rows.axes[0].symbol(), group = rows.axes[1].symbol();
  const Substitution row = {
      {kernel.axes[0].name, chunk * kChunk + rows.axes[2].symbol() * kFoldGroup + group}};
  for (Scalar& scalar : rows.scalars) scalar.index = substitute(scalar.index, row);
  size_t number = 0;
  for (Step& step : rows.steps) {
    for (int& axis : step.inner) axis += 2;
    step.index = substitute(step.index, row);
    if (!is_fold(step)) continue;
    const Axis& column = rows.axes[step.inner[0]];
    step.buffer = partial[number++];
    step.index = (chunk * kFoldGroup + group) * column.extent + column.symbol();
  }
  cut.rows = normalize(std::move(rows));
  return cut;
}

}  // namespace tiny_compile
