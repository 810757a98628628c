// How is a kernel run without compiling it? Its scalars are evaluated over blocks of lanes
// (graph/lanes.h): for kernels of stores alone a lane is a point of rows x inner loops, for
// the others a point of a step's inner loops, row after row. Indices are compiled once into
// sums of products.
#include "tiny_compile/loops/run_kernel.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/graph/sort.h"
#include "tiny_compile/loops/sorted_words.h"

namespace tiny_compile {
namespace {

// --- indices ---

// An index over axis values: constant + sum of coefficient * axis, or else
// the whole expression.
struct Index {
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> axes;
  Expr general;
  bool affine = true;
};

int64_t extent(const Kernel& kernel, const std::vector<int>& axes) {
  int64_t count = 1;
  for (int axis : axes) count *= kernel.axes[axis].extent.constant();
  return count;
}

void unravel(const Kernel& kernel, const std::vector<int>& axes, int64_t flat,
             std::vector<int64_t>& at) {
  for (size_t k = axes.size(); k-- > 0;) {
    const int64_t size = kernel.axes[axes[k]].extent.constant();
    at[axes[k]] = flat % size;
    flat /= size;
  }
}

Index compile(const Kernel& kernel, const Expr& expr) {
  Index index;
  index.general = expr;
  for (const Term& term : terms(expr)) {
    if (term.factor.is_constant()) {
      index.constant += term.coefficient * term.factor.constant();
      continue;
    }
    int axis = -1;
    for (size_t a = 0; a < kernel.axes.size() && term.factor.kind() == ExprKind::Symbol; a++) {
      if (Symbol(kernel.axes[a].name) == term.factor.symbol()) axis = static_cast<int>(a);
    }
    if (axis < 0) index.affine = false;
    index.axes.push_back({axis, term.coefficient});
  }
  return index;
}

// A kernel while it runs.
struct KernelRun {
  KernelRun(const Kernel& k, std::vector<Memory>& m, const BeforePoints& b)
      : kernel(k), memory(m), before(b), lanes(k.scalars.size()) {
    for (const Scalar& scalar : k.scalars) scalar_index.push_back(compile(k, scalar.index));
    for (const Step& step : k.steps) step_index.push_back(compile(k, step.index));
    registers.resize(k.steps.size());
    folded.resize(k.steps.size());
  }

  const Kernel& kernel;
  std::vector<Memory>& memory;
  const BeforePoints& before;
  std::vector<Lanes> lanes;
  std::vector<Index> scalar_index, step_index;
  std::vector<Literal> registers;
  std::vector<std::byte> values, others;                 // of a step's points so far
  std::vector<std::vector<std::byte>> folded;            // a fold's values so far
  std::map<int64_t, std::pair<int64_t, Lanes>> pending;  // place -> chunk, its partial result
  std::vector<std::vector<int64_t>> axis_values;         // of each axis, a value a lane
};

// The lane stands for a point of the loops.
void set_lane(KernelRun& r, const std::vector<int>& loops, int64_t point, int lane,
              std::vector<int64_t>& at) {
  unravel(r.kernel, loops, point, at);
  for (size_t a = 0; a < at.size(); a++) r.axis_values[a][lane] = at[a];
}

// The value of an index in a lane; at0, at1, ... are the chosen places.
int64_t value_of(const KernelRun& r, const Index& index, int lane,
                 const std::vector<int64_t>& chosen) {
  if (index.affine) {
    int64_t value = index.constant;
    for (const auto& [axis, coefficient] : index.axes)
      value += coefficient * r.axis_values[axis][lane];
    return value;
  }
  SymbolValues values;
  for (size_t a = 0; a < r.kernel.axes.size(); a++)
    values.push_back({r.kernel.axes[a].name, r.axis_values[a][lane]});
  for (size_t k = 0; k < chosen.size(); k++) values.push_back({indirect(k), chosen[k]});
  return evaluate(index.general, values);
}

// Whether the places that data chose are in range; raises the error where not.
bool choose(const KernelRun& r, const std::vector<int>& operands,
            const std::vector<Expr>& limits, int lane, std::vector<int64_t>& chosen) {
  chosen.clear();
  for (size_t k = 0; k < operands.size(); k++) {
    chosen.push_back(lane_integer(r.lanes[operands[k]], lane));
    if (!index_fits(chosen[k], limits[k].constant())) return false;
  }
  return true;
}

// --- elements of buffers ---

void fetch(KernelRun& r, int buffer, int64_t index, Lanes& one) {
  Memory& memory = r.memory[buffer];
  if (index < 0 || index >= memory.size)
    fail("kernel ", r.kernel.name, " reads element ", index, " of ", memory.size);
  if (!memory.read.empty()) memory.read[index] = true;
  load(memory.dtype, memory.data, &index, 1, one);
}

void put(KernelRun& r, int buffer, int64_t index, Lanes& one) {
  Memory& memory = r.memory[buffer];
  if (index < 0 || index >= memory.size)
    fail("kernel ", r.kernel.name, " writes element ", index, " of ", memory.size);
  if (!memory.written.empty()) memory.written[index] = true;
  one.dtype = memory.dtype;
  store(one, memory.data, &index, 1);
}

void lane_of(const Lanes& lanes, int lane, Lanes& one) {
  const size_t width = size_of(compute_type(lanes.dtype));
  one.dtype = lanes.dtype;
  std::memcpy(one.data, lanes.data + static_cast<size_t>(lane) * width, width);
}

// --- scalars ---

void read(KernelRun& r, int id, int n) {
  const Scalar& s = r.kernel.scalars[id];
  Lanes one;
  std::vector<int64_t> chosen;
  Lanes& out = r.lanes[id];
  out.dtype = s.dtype;
  const size_t width = size_of(compute_type(s.dtype));
  for (int lane = 0; lane < n; lane++) {
    const bool wanted = s.mask < 0 || r.lanes[s.mask].as<bool>()[lane];
    if (!wanted) {
      fill(s.value, 1, one);
    } else if (!choose(r, s.operands, s.limits, lane, chosen)) {
      fill(Literal{s.dtype, 0}, 1, one);
    } else {
      const int64_t index = value_of(r, r.scalar_index[id], lane, chosen);
      if (s.kind == ScalarKind::Index)
        fill_iota(&index, 1, one);
      else
        fetch(r, s.buffer, index, one);
    }
    std::memcpy(out.data + static_cast<size_t>(lane) * width, one.data, width);
  }
}

void evaluate_scalar(KernelRun& r, int id, int n) {
  const Scalar& s = r.kernel.scalars[id];
  Lanes& out = r.lanes[id];
  switch (s.kind) {
    case ScalarKind::Constant: return fill(s.value, n, out);
    case ScalarKind::Register: return fill(r.registers[s.step], n, out);
    case ScalarKind::Load:
    case ScalarKind::Index: return read(r, id, n);
    case ScalarKind::Philox:
      out.dtype = DType::u32;
      for (int lane = 0; lane < n; lane++)
        out.as<unsigned>()[lane] = prelude::tc_philox(
            static_cast<uint64_t>(lane_integer(r.lanes[s.operands[0]], lane)),
            static_cast<uint64_t>(lane_integer(r.lanes[s.operands[1]], lane) +
                                  s.value.as_integer()),
            static_cast<uint64_t>(value_of(r, r.scalar_index[id], lane, {})));
      return;
    case ScalarKind::Element:
    case ScalarKind::Votes: CHECK(false, "a kernel has no arrays or lanes");
    case ScalarKind::Apply: break;
  }
  const Lanes* operands[3] = {nullptr, nullptr, nullptr};
  for (size_t k = 0; k < s.operands.size(); k++) operands[k] = &r.lanes[s.operands[k]];
  apply(s.op, s.dtype, operands[0], operands[1], operands[2], n, out);
}

// --- steps ---

// A half's reduction may keep what it accumulates in.
bool keeps_width(const Step& step, DType dtype) {
  return is_float(dtype) && step.dtype == compute_type(dtype);
}

Literal reduced(const Step& step, DType dtype, const std::byte* values, int64_t count) {
  const Literal value =
      reduce(step.op, keeps_width(step, dtype) ? step.dtype : dtype, values, count);
  return value.dtype == step.dtype ? value : Literal::of(step.dtype, value.as_double());
}

void append(std::vector<std::byte>& to, const Lanes& lanes, int n) {
  to.insert(to.end(), lanes.data,
            lanes.data + static_cast<size_t>(n) * size_of(compute_type(lanes.dtype)));
}

void write(KernelRun& r, const Step& step, int number, int n) {
  Lanes one;
  for (int lane = 0; lane < n; lane++) {
    lane_of(r.lanes[step.value], lane, one);
    put(r, step.buffer, value_of(r, r.step_index[number], lane, {}), one);
  }
}

std::vector<std::byte> scanned(const KernelRun& r, const Step& step, int64_t count) {
  const ScanStart start{step.exclusive, step.rhs < 0 ? nullptr : &r.lanes[step.rhs],
                        step.values};
  return scan(step.op, r.kernel.scalars[step.value].dtype, r.values.data(), count, start);
}

// The results of a row stay in the compute type; what is stored is rounded. `others` are the
// mask's values, if it has one.
void write_row(KernelRun& r, const Step& step, int number, const std::vector<int>& loops,
               std::vector<int64_t> at, const std::vector<std::byte>& results, int64_t count) {
  const size_t width = size_of(compute_type(step.dtype));
  Lanes one;
  for (int64_t i = 0; i < count; i++) {
    set_lane(r, loops, i, 0, at);
    if (!r.others.empty() && r.others[i] == std::byte{0}) continue;
    std::memcpy(one.data, results.data() + static_cast<size_t>(i) * width, width);
    put(r, step.buffer, value_of(r, r.step_index[number], 0, {}), one);
  }
}

// After the last of the rows: their values, row by row, point by point.
void fold(KernelRun& r, const Step& step, int number, int64_t points, std::vector<int64_t> at) {
  const int last = r.kernel.rows - 1;
  const int64_t rows = r.kernel.axes[last].extent.constant();
  if (at[last] + 1 < rows) return;
  const size_t width = size_of(step.dtype);
  std::vector<std::byte> column(static_cast<size_t>(rows) * width);
  for (int64_t point = 0; point < points; point++) {
    for (int64_t row = 0; row < rows; row++)
      std::memcpy(column.data() + static_cast<size_t>(row) * width,
                  r.folded[number].data() + static_cast<size_t>(row * points + point) * width,
                  width);
    Lanes one;
    fill(reduce(Op::sum, step.dtype, column.data(), rows), 1, one);
    set_lane(r, step.inner, point, 0, at);
    put(r, step.buffer, value_of(r, r.step_index[number], 0, {}), one);
  }
  r.folded[number].clear();
}

Lanes combined(const Step& step, const Lanes& old, const Lanes& value) {
  const std::optional<Op> combine = combiner(step.op);
  Lanes result = value;
  if (combine) apply(*combine, step.dtype, &old, &value, nullptr, 1, result);
  return result;
}

void update(KernelRun& r, const Step& step, int64_t index, const Lanes& value) {
  Lanes old;
  fetch(r, step.buffer, index, old);
  Lanes result = combined(step, old, value);
  put(r, step.buffer, index, result);
}

// Of the updates first, first + 1, ...: chunks after the first wait in pending (graph/scan.h).
void scatter(KernelRun& r, const Step& step, int number, int64_t first, int n) {
  const bool in_chunks = scatters_in_chunks(step.op, step.dtype);
  Lanes one;
  std::vector<int64_t> chosen;
  for (int lane = 0; lane < n; lane++) {
    if (step.mask >= 0 && !r.lanes[step.mask].as<bool>()[lane]) continue;
    if (!choose(r, {step.rhs}, {step.limit}, lane, chosen)) continue;
    const int64_t index = value_of(r, r.step_index[number], lane, chosen),
                  chunk = (first + lane) / kChunk;
    lane_of(r.lanes[step.value], lane, one);
    if (!in_chunks || chunk == 0) {
      update(r, step, index, one);
      continue;
    }
    const auto [known, is_new] = r.pending.insert({index, {chunk, one}});
    if (is_new) continue;
    auto& [last, part] = known->second;
    if (last != chunk) update(r, step, index, part);
    part = last == chunk ? combined(step, part, one) : one;
    last = chunk;
  }
}

void finish_scatter(KernelRun& r, const Step& step) {
  for (auto& [index, pending] : r.pending) update(r, step, index, pending.second);
  r.pending.clear();
}

// Takes what a step wants of the lanes, which hold its points start, start + 1, ...
void take_lanes(KernelRun& r, int number, int64_t start, int n) {
  const Step& step = r.kernel.steps[number];
  switch (step.kind) {
    case StepKind::Dot: append(r.others, r.lanes[step.rhs], n); [[fallthrough]];
    case StepKind::Scan:
    case StepKind::Sort:
      if (step.mask >= 0) append(r.others, r.lanes[step.mask], n);
      [[fallthrough]];
    case StepKind::Reduce: return append(r.values, r.lanes[step.value], n);
    case StepKind::Fold: return append(r.folded[number], r.lanes[step.value], n);
    case StepKind::Store: return write(r, step, number, n);
    case StepKind::Scatter: return scatter(r, step, number, start, n);
  }
}

// Places, or the words that a merge takes.
std::vector<std::byte> sorted(const KernelRun& r, const Step& step, int64_t count) {
  const std::byte* values = r.values.data();
  std::vector<std::byte> places = argsort(step.op, r.kernel.scalars[step.value].dtype, values,
                                          count, step.limit.constant());
  return step.dtype == DType::i64 ? places : words_of_places(r.kernel, step, values, places);
}

// After the last of its `count` points.
void finish_step(KernelRun& r, int number, const std::vector<int>& loops,
                 const std::vector<int64_t>& at, int64_t count) {
  const Step& step = r.kernel.steps[number];
  const DType dtype = r.kernel.scalars[step.value].dtype;
  const std::byte* values = r.values.data();
  switch (step.kind) {
    case StepKind::Store: return;
    case StepKind::Fold: return fold(r, step, number, count, at);
    case StepKind::Scatter: return finish_scatter(r, step);
    case StepKind::Scan:
      return write_row(r, step, number, loops, at, scanned(r, step, count), count);
    case StepKind::Sort:
      return write_row(r, step, number, loops, at, sorted(r, step, count), count);
    case StepKind::Reduce:
      r.registers[number] = has_running_results(step.op)
                                ? scan_total(step.op, dtype, values, count)
                                : reduced(step, dtype, values, count);
      return;
    case StepKind::Dot:
      r.registers[number] =
          dot(keeps_width(step, dtype) ? step.dtype : dtype, values, r.others.data(), count);
      return;
  }
}

void run_step(KernelRun& r, int number, const std::vector<int>& loops,
              std::vector<int64_t> at) {
  at.resize(r.kernel.axes.size(), 0);
  const int64_t count = extent(r.kernel, loops);
  const std::vector<bool> needed = reachable(r.kernel, r.kernel.steps[number]);
  r.values.clear(), r.others.clear();
  for (int64_t start = 0; start < count; start += kLanesAtOnce) {
    if (r.before) r.before(r.kernel);
    const int n = static_cast<int>(std::min<int64_t>(kLanesAtOnce, count - start));
    r.axis_values.assign(r.kernel.axes.size(), std::vector<int64_t>(static_cast<size_t>(n)));
    for (int lane = 0; lane < n; lane++) set_lane(r, loops, start + lane, lane, at);
    for (size_t id = 0; id < needed.size(); id++) {
      if (needed[id]) evaluate_scalar(r, static_cast<int>(id), n);
    }
    take_lanes(r, number, start, n);
  }
  finish_step(r, number, loops, at, count);
}

}  // namespace

void run_kernel(const Kernel& kernel, std::vector<Memory>& memory, const BeforePoints& before) {
  KernelRun r(kernel, memory, before);
  const auto stores = [](const Step& step) { return step.kind == StepKind::Store; };
  const std::vector<int> rows = row_axes(kernel);
  if (std::all_of(kernel.steps.begin(), kernel.steps.end(), stores)) {
    for (size_t s = 0; s < kernel.steps.size(); s++) {
      std::vector<int> loops = rows;
      loops.insert(loops.end(), kernel.steps[s].inner.begin(), kernel.steps[s].inner.end());
      run_step(r, static_cast<int>(s), loops, {});
    }
    return;
  }
  std::vector<int64_t> at(kernel.axes.size(), 0);
  const int64_t count = extent(kernel, rows);
  for (int64_t row = 0; row < count; row++) {
    unravel(kernel, rows, row, at);
    for (size_t s = 0; s < kernel.steps.size(); s++)
      run_step(r, static_cast<int>(s), kernel.steps[s].inner, at);
  }
}

}  // namespace tiny_compile
