// How is a kernel run without compiling it? Its scalars are evaluated over blocks of lanes
// (graph/lanes.h): for kernels of stores alone a lane is a point of rows x inner loops, for
// the others a point of a step's inner loops, row after row. Indices are compiled once into
// sums of products.
#include "tiny_compile/loops/interpreter.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/graph/sort.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/inputs.h"

namespace tiny_compile {
namespace {

// An index over axis values: constant + sum of coefficient * axis, or else
// the whole expression.
struct Index {
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> axes;
  Expr general;
  bool affine = true;
};

class KernelRun {
 public:
  KernelRun(const Kernel& kernel, std::vector<Memory>& memory, const BeforePoints& before)
      : kernel_(kernel), memory_(memory), before_(before), lanes_(kernel.scalars.size()) {
    for (const Scalar& scalar : kernel.scalars) scalar_index_.push_back(compile(scalar.index));
    for (const Step& step : kernel.steps) step_index_.push_back(compile(step.index));
    registers_.resize(kernel.steps.size());
    folded_.resize(kernel.steps.size());
  }

  void run() {
    const auto stores = [](const Step& step) { return step.kind == StepKind::Store; };
    const std::vector<int> rows = row_axes(kernel_);
    if (std::all_of(kernel_.steps.begin(), kernel_.steps.end(), stores)) {
      for (size_t s = 0; s < kernel_.steps.size(); s++) {
        std::vector<int> loops = rows;
        loops.insert(loops.end(), kernel_.steps[s].inner.begin(), kernel_.steps[s].inner.end());
        run_step(static_cast<int>(s), loops, {});
      }
      return;
    }
    std::vector<int64_t> at(kernel_.axes.size(), 0);
    const int64_t count = extent(rows);
    for (int64_t row = 0; row < count; row++) {
      unravel(rows, row, at);
      for (size_t s = 0; s < kernel_.steps.size(); s++)
        run_step(static_cast<int>(s), kernel_.steps[s].inner, at);
    }
  }

 private:
  int64_t extent(const std::vector<int>& axes) const {
    int64_t count = 1;
    for (int axis : axes) count *= kernel_.axes[axis].extent.constant();
    return count;
  }
  void unravel(const std::vector<int>& axes, int64_t flat, std::vector<int64_t>& at) const {
    for (size_t k = axes.size(); k-- > 0;) {
      const int64_t size = kernel_.axes[axes[k]].extent.constant();
      at[axes[k]] = flat % size;
      flat /= size;
    }
  }

  Index compile(const Expr& expr) const {
    Index index;
    index.general = expr;
    for (const Term& term : terms(expr)) {
      if (term.factor.is_constant()) {
        index.constant += term.coefficient * term.factor.constant();
        continue;
      }
      int axis = -1;
      for (size_t a = 0; a < kernel_.axes.size() && term.factor.kind() == ExprKind::Symbol;
           a++) {
        if (Symbol(kernel_.axes[a].name) == term.factor.symbol()) axis = static_cast<int>(a);
      }
      if (axis < 0) index.affine = false;
      index.axes.push_back({axis, term.coefficient});
    }
    return index;
  }

  // The value of an index in a lane; at0, at1, ... are the chosen places.
  int64_t value_of(const Index& index, int lane, const std::vector<int64_t>& chosen) const {
    if (index.affine) {
      int64_t value = index.constant;
      for (const auto& [axis, coefficient] : index.axes)
        value += coefficient * axis_values_[axis][lane];
      return value;
    }
    SymbolValues values;
    for (size_t a = 0; a < kernel_.axes.size(); a++)
      values.push_back({kernel_.axes[a].name, axis_values_[a][lane]});
    for (size_t k = 0; k < chosen.size(); k++) values.push_back({indirect(k), chosen[k]});
    return evaluate(index.general, values);
  }

  void run_step(int number, const std::vector<int>& loops, std::vector<int64_t> at) {
    const Step& step = kernel_.steps[number];
    at.resize(kernel_.axes.size(), 0);
    const int64_t count = extent(loops);
    const std::vector<bool> needed = reachable(kernel_, step);
    std::vector<std::byte> values, others;
    for (int64_t start = 0; start < count; start += kLanes) {
      if (before_) before_(kernel_);
      const int n = static_cast<int>(std::min<int64_t>(kLanes, count - start));
      axis_values_.assign(kernel_.axes.size(), std::vector<int64_t>(static_cast<size_t>(n)));
      for (int lane = 0; lane < n; lane++) {
        unravel(loops, start + lane, at);
        for (size_t a = 0; a < at.size(); a++) axis_values_[a][lane] = at[a];
      }
      for (size_t id = 0; id < needed.size(); id++) {
        if (needed[id]) evaluate_scalar(static_cast<int>(id), n);
      }
      switch (step.kind) {
        case StepKind::Dot: append(others, lanes_[step.rhs], n); [[fallthrough]];
        case StepKind::Scan:
        case StepKind::Sort:
          if (step.mask >= 0) append(others, lanes_[step.mask], n);
          [[fallthrough]];
        case StepKind::Reduce: append(values, lanes_[step.value], n); break;
        case StepKind::Fold: append(folded_[number], lanes_[step.value], n); break;
        case StepKind::Store: write(step, number, n); break;
        case StepKind::Scatter: scatter(step, number, start, n); break;
      }
    }
    const DType dtype = kernel_.scalars[step.value].dtype;
    if (step.kind == StepKind::Fold) fold(step, number, count, at);
    if (step.kind == StepKind::Scatter) finish_scatter(step);
    if (step.kind == StepKind::Scan)
      write_row(step, number, loops, at, scanned(step, values, count), others, count);
    if (step.kind == StepKind::Sort)
      write_row(step, number, loops, at,
                argsort(step.op, dtype, values.data(), count, step.limit.constant()), others,
                count);
    if (step.kind == StepKind::Reduce)
      registers_[number] = has_running_results(step.op)
                               ? scan_total(step.op, dtype, values.data(), count)
                               : reduced(step, dtype, values.data(), count);
    if (step.kind == StepKind::Dot)
      registers_[number] = dot(keeps_width(step, dtype) ? step.dtype : dtype, values.data(),
                               others.data(), count);
  }

  // A half's reduction may keep what it accumulates in.
  static bool keeps_width(const Step& step, DType dtype) {
    return is_float(dtype) && step.dtype == compute_type(dtype);
  }

  static Literal reduced(const Step& step, DType dtype, const std::byte* values,
                         int64_t count) {
    const Literal value =
        reduce(step.op, keeps_width(step, dtype) ? step.dtype : dtype, values, count);
    return value.dtype == step.dtype ? value : Literal::of(step.dtype, value.as_double());
  }

  static void append(std::vector<std::byte>& to, const Lanes& lanes, int n) {
    to.insert(to.end(), lanes.data,
              lanes.data + static_cast<size_t>(n) * size_of(compute_type(lanes.dtype)));
  }

  void evaluate_scalar(int id, int n) {
    const Scalar& s = kernel_.scalars[id];
    Lanes& out = lanes_[id];
    switch (s.kind) {
      case ScalarKind::Constant: return fill(s.value, n, out);
      case ScalarKind::Register: return fill(registers_[s.step], n, out);
      case ScalarKind::Load:
      case ScalarKind::Index: return read(id, n);
      case ScalarKind::Philox:
        out.dtype = DType::u32;
        for (int lane = 0; lane < n; lane++)
          out.as<unsigned>()[lane] = prelude::tc_philox(
              static_cast<uint64_t>(lane_integer(lanes_[s.operands[0]], lane)),
              static_cast<uint64_t>(lane_integer(lanes_[s.operands[1]], lane) +
                                    s.value.as_integer()),
              static_cast<uint64_t>(value_of(scalar_index_[id], lane, {})));
        return;
      case ScalarKind::Element:
      case ScalarKind::Votes: CHECK(false, "a kernel has no arrays or lanes");
      case ScalarKind::Apply: break;
    }
    const Lanes* operands[3] = {nullptr, nullptr, nullptr};
    for (size_t k = 0; k < s.operands.size(); k++) operands[k] = &lanes_[s.operands[k]];
    apply(s.op, s.dtype, operands[0], operands[1], operands[2], n, out);
  }

  // Whether the places that data chose are in range; raises the error where not.
  bool choose(const std::vector<int>& operands, const std::vector<Expr>& limits, int lane,
              std::vector<int64_t>& chosen) const {
    chosen.clear();
    for (size_t k = 0; k < operands.size(); k++) {
      chosen.push_back(lane_integer(lanes_[operands[k]], lane));
      if (!index_fits(chosen[k], limits[k].constant())) return false;
    }
    return true;
  }

  void read(int id, int n) {
    const Scalar& s = kernel_.scalars[id];
    Lanes one;
    std::vector<int64_t> chosen;
    Lanes& out = lanes_[id];
    out.dtype = s.dtype;
    const size_t width = size_of(compute_type(s.dtype));
    for (int lane = 0; lane < n; lane++) {
      const bool wanted = s.mask < 0 || lanes_[s.mask].as<bool>()[lane];
      if (!wanted) {
        fill(s.value, 1, one);
      } else if (!choose(s.operands, s.limits, lane, chosen)) {
        fill(Literal{s.dtype, 0}, 1, one);
      } else {
        const int64_t index = value_of(scalar_index_[id], lane, chosen);
        if (s.kind == ScalarKind::Index)
          fill_iota(&index, 1, one);
        else
          fetch(s.buffer, index, one);
      }
      std::memcpy(out.data + static_cast<size_t>(lane) * width, one.data, width);
    }
  }

  void fetch(int buffer, int64_t index, Lanes& one) {
    Memory& memory = memory_[buffer];
    if (index < 0 || index >= memory.size)
      fail("kernel ", kernel_.name, " reads element ", index, " of ", memory.size);
    if (!memory.read.empty()) memory.read[index] = true;
    load(memory.dtype, memory.data, &index, 1, one);
  }

  void put(int buffer, int64_t index, Lanes& one) {
    Memory& memory = memory_[buffer];
    if (index < 0 || index >= memory.size)
      fail("kernel ", kernel_.name, " writes element ", index, " of ", memory.size);
    if (!memory.written.empty()) memory.written[index] = true;
    one.dtype = memory.dtype;
    store(one, memory.data, &index, 1);
  }

  void lane_of(const Lanes& lanes, int lane, Lanes& one) const {
    const size_t width = size_of(compute_type(lanes.dtype));
    one.dtype = lanes.dtype;
    std::memcpy(one.data, lanes.data + static_cast<size_t>(lane) * width, width);
  }

  void write(const Step& step, int number, int n) {
    Lanes one;
    for (int lane = 0; lane < n; lane++) {
      lane_of(lanes_[step.value], lane, one);
      put(step.buffer, value_of(step_index_[number], lane, {}), one);
    }
  }

  std::vector<std::byte> scanned(const Step& step, const std::vector<std::byte>& values,
                                 int64_t count) const {
    const ScanStart start{step.exclusive, step.rhs < 0 ? nullptr : &lanes_[step.rhs],
                          step.values};
    return scan(step.op, kernel_.scalars[step.value].dtype, values.data(), count, start);
  }

  // The results of a row stay in the compute type; what is stored is rounded. `stored`: the mask's
  // values, if it has one.
  void write_row(const Step& step, int number, const std::vector<int>& loops,
                 std::vector<int64_t> at, const std::vector<std::byte>& results,
                 const std::vector<std::byte>& stored, int64_t count) {
    const size_t width = size_of(compute_type(step.dtype));
    Lanes one;
    for (int64_t i = 0; i < count; i++) {
      unravel(loops, i, at);
      for (size_t a = 0; a < at.size(); a++) axis_values_[a][0] = at[a];
      if (!stored.empty() && stored[i] == std::byte{0}) continue;
      std::memcpy(one.data, results.data() + static_cast<size_t>(i) * width, width);
      put(step.buffer, value_of(step_index_[number], 0, {}), one);
    }
  }

  // After the last of the rows: their values, row by row, point by point.
  void fold(const Step& step, int number, int64_t points, std::vector<int64_t> at) {
    const int last = kernel_.rows - 1;
    const int64_t rows = kernel_.axes[last].extent.constant();
    if (at[last] + 1 < rows) return;
    const size_t width = size_of(step.dtype);
    std::vector<std::byte> column(static_cast<size_t>(rows) * width);
    for (int64_t point = 0; point < points; point++) {
      for (int64_t row = 0; row < rows; row++)
        std::memcpy(column.data() + static_cast<size_t>(row) * width,
                    folded_[number].data() + static_cast<size_t>(row * points + point) * width,
                    width);
      Lanes one;
      fill(reduce(Op::sum, step.dtype, column.data(), rows), 1, one);
      unravel(step.inner, point, at);
      for (size_t a = 0; a < at.size(); a++) axis_values_[a][0] = at[a];
      put(step.buffer, value_of(step_index_[number], 0, {}), one);
    }
    folded_[number].clear();
  }

  // Of the updates first, first + 1, ...: chunks after the first wait in pending_ (graph/scan.h).
  void scatter(const Step& step, int number, int64_t first, int n) {
    const bool in_chunks = scatters_in_chunks(step.op, step.dtype);
    Lanes one;
    std::vector<int64_t> chosen;
    for (int lane = 0; lane < n; lane++) {
      if (step.mask >= 0 && !lanes_[step.mask].as<bool>()[lane]) continue;
      if (!choose({step.rhs}, {step.limit}, lane, chosen)) continue;
      const int64_t index = value_of(step_index_[number], lane, chosen),
                    chunk = (first + lane) / kChunk;
      lane_of(lanes_[step.value], lane, one);
      if (!in_chunks || chunk == 0) {
        update(step, index, one);
        continue;
      }
      const auto [known, is_new] = pending_.insert({index, {chunk, one}});
      if (is_new) continue;
      auto& [last, part] = known->second;
      if (last != chunk) update(step, index, part);
      part = last == chunk ? combined(step, part, one) : one;
      last = chunk;
    }
  }

  void finish_scatter(const Step& step) {
    for (auto& [index, pending] : pending_) update(step, index, pending.second);
    pending_.clear();
  }

  Lanes combined(const Step& step, const Lanes& old, const Lanes& value) const {
    const std::optional<Op> combine = combiner(step.op);
    Lanes result = value;
    if (combine) apply(*combine, step.dtype, &old, &value, nullptr, 1, result);
    return result;
  }

  void update(const Step& step, int64_t index, const Lanes& value) {
    Lanes old;
    fetch(step.buffer, index, old);
    Lanes result = combined(step, old, value);
    put(step.buffer, index, result);
  }

  const Kernel& kernel_;
  std::vector<Memory>& memory_;
  const BeforePoints& before_;
  std::vector<Lanes> lanes_;
  std::vector<Index> scalar_index_, step_index_;
  std::vector<Literal> registers_;
  std::vector<std::vector<std::byte>> folded_;            // a fold's values so far
  std::map<int64_t, std::pair<int64_t, Lanes>> pending_;  // place -> chunk, its partial result
  std::vector<std::vector<int64_t>> axis_values_;         // of each axis, a value a lane
};

std::vector<Tensor> run(const Program& given, std::span<const Tensor> inputs,
                        const BeforePoints& before, const RunKernel& other,
                        std::vector<int64_t>* touched) {
  const Program program = with_numbers(given, inputs);
  std::vector<Tensor> values;
  std::vector<Memory> memory;
  Tensor arena = filled_tensor(Literal{DType::u8, 0xff}, {program.arena_bytes});
  size_t next = 0;
  for (const Buffer& buffer : program.buffers) {
    Sizes shape;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    if (buffer.role == Role::Input && next == inputs.size())
      fail("program ", program.name, " has more inputs than the ", inputs.size(), " given");
    Tensor value = buffer.role == Role::Input ? laid_out(buffer, inputs[next++])
                                              : empty_tensor(buffer.type.dtype, shape);
    if (buffer.role != Role::Input)
      std::memset(value.bytes(), 0xff,
                  static_cast<size_t>(value.numel()) * size_of(value.dtype()));
    memory.push_back({buffer.place >= 0 ? arena.bytes() + buffer.place : value.bytes(),
                      buffer.size.constant(),
                      buffer.type.dtype,
                      {},
                      {}});
    values.push_back(std::move(value));
  }
  for (int b = 0; b < static_cast<int>(values.size()); b++) {
    const int at = storage_of(program, b);
    if (at != b) values[b] = with_layout(values[at], values[b].shape(), values[b].strides(), 0);
    memory[b].data = memory[at].data;
  }
  take_errors();
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      for (Memory& m : memory) {
        m.read.assign(touched ? static_cast<size_t>(m.size) : 0, false);
        m.written = m.read;
      }
      if (!other || !other(program, program.kernels[id], memory))
        KernelRun(program.kernels[id], memory, before).run();
      int64_t bytes = 0;
      for (const Memory& m : memory)
        bytes += (std::count(m.read.begin(), m.read.end(), true) +
                  std::count(m.written.begin(), m.written.end(), true)) *
                 size_of(m.dtype);
      if (touched) touched->push_back(bytes);
    }
  }
  if (const unsigned errors = take_errors()) throw_errors(errors, program.name);
  std::vector<Tensor> outputs;
  size_t input = 0;
  std::vector<size_t> slot(program.buffers.size());
  for (size_t b = 0; b < slot.size(); b++)
    slot[b] = program.buffers[b].role == Role::Input ? input++ : 0;
  for (int b : program.outputs)
    outputs.push_back(program.buffers[b].role == Role::Input ? inputs[slot[b]] : values[b]);
  return outputs;
}

}  // namespace

std::vector<Tensor> interpret(const Program& program, std::span<const Tensor> inputs,
                              const BeforePoints& before, const RunKernel& other) {
  return run(program, inputs, before, other, nullptr);
}

std::vector<int64_t> bytes_touched(const Program& program, std::span<const Tensor> inputs) {
  std::vector<int64_t> touched;
  run(program, inputs, {}, {}, &touched);
  return touched;
}

}  // namespace tiny_compile
