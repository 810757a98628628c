// How does one long scan keep a whole machine busy without changing a bit? The contract scans groups
// of 16 by what stands before each (graph/scan.cpp). So pieces of 256 or 4096 elements, groups of
// groups, may be rows of their own, once it is known what stands before each piece; and that is a
// scan of the pieces' totals:
//
//   scan y[j0] for (j0: 1048576) = cumsum load x[j0]
// =>
//   rows(i0: 4096) { r0 = cumsum(j1: 256) load x[i0*256 + j1];  store p[i0] = r0 }
//   scan q[j0] for (j0: 4096) = cumsum before load p[j0]
//   rows(i0: 4096) { scan y[i0*256 + j1] for (j1: 256) = cumsum load x[i0*256 + j1] from load q[i0] }
//
// cummax and cummin are two such scans: the greatest value so far, and the last place that has it:
//
//   scan y[j0] for (j0: 1048576) = cummax load x[j0]
// =>
//   scan m[j0] for (j0: 1048576) = cummax values load x[j0]
//   scan y[j0] for (j0: 1048576) = maximum where(eq(load x[j0], load m[j0]), j0, 0)
//
// The middle one is split again where it is long itself, as the two scans of places are. Where the pieces do not divide the row, the
// last one scans identities behind it, and a mask keeps them from memory; nobody needs its total.
// Stores for the same points, which have no mask, are a kernel of their own then.
#include "tiny_compile/loops/split_scan.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/split.h"

namespace tiny_compile {
namespace {

// What is worth two reads of a row: as long as a piece, so few rows and so many pieces.
struct Limits {
  int64_t piece, rows, pieces;
};

// A block of a GPU scans 4096 elements of a row at once, or 256 of several columns; a core of a CPU
// goes on and on.
Limits limits_of(const Program& program, const Kernel& kernel) {
  const int64_t small = kGroup * kGroup, large = small * kGroup;
  if (program.target != Target::Cuda) return {large, program.machine.cores, 64};
  const Step& step = kernel.steps[0];
  const int64_t apart = coefficient(step.index, kernel.axes[step.inner[0]].symbol());
  const bool along = apart == 1 || apart == -1;
  const bool places = std::any_of(kernel.steps.begin(), kernel.steps.end(), gives_places);
  const int64_t rows = program.machine.multiprocessors / (places ? 4 : 1);  // more kernels
  return along ? Limits{large, rows / 2, 8} : Limits{small, 8 * rows, 16};
}

struct Pieces {
  int64_t length, count;  // of elements in a piece; of pieces in a row
  bool ragged;            // the last one ends before its length
  Pieces whole() const { return {length, count - (ragged ? 1 : 0), false}; }
};

// The kernel's rows, a row a piece and a loop over its elements. clone_with_mapping() fills in the scalars.
class PieceKernel {
 public:
  PieceKernel(const Kernel& kernel, const Pieces& pieces, const std::string& name)
      : source_(kernel), table(result) {
    result.name = name;
    result.where = kernel.where;
    result.axes.assign(kernel.axes.begin(), kernel.axes.begin() + kernel.rows);
    result.axes.push_back({"piece", pieces.count});
    result.rows = kernel.rows + 1;
    result.axes.push_back({"e", pieces.length});
    const Expr piece = result.axes[kernel.rows].symbol();
    const Axis& loop = kernel.axes[kernel.steps[0].inner[0]];
    const Expr element = piece * pieces.length + result.axes[kernel.rows + 1].symbol();
    place = row_of(kernel) * pieces.count + piece;
    how.axes = {{loop.name, element}};
    if (pieces.ragged)
      how.mask =
          table.apply(Op::lt, DType::boolean, {table.index(element), table.index(loop.extent)});
    std::vector<bool> wanted(kernel.scalars.size());
    for (const Step& step : kernel.steps) {
      const std::vector<bool> reached = reachable(kernel, step);
      for (size_t id = 0; id < wanted.size(); id++) wanted[id] = wanted[id] || reached[id];
    }
    ids = clone_with_mapping(kernel, wanted, how, table);
  }

  static Expr row_of(const Kernel& kernel) {
    Expr row = 0;
    for (int a = 0; a < kernel.rows; a++)
      row = row * kernel.axes[a].extent + kernel.axes[a].symbol();
    return row;
  }

  Step moved(const Step& step) const {
    Step result = step;
    result.inner = {source_.rows + 1};
    result.value = ids[step.value];
    result.index = substitute(step.index, how.axes);
    return result;
  }

 private:
  const Kernel& source_;

 public:
  Kernel result;
  ScalarTable table;
  ScalarMapping how;
  std::vector<int> ids;
  Expr place;  // of a piece's total among those of all rows
};

int add_buffer(Program& program, const Kernel& kernel, const char* what, DType dtype,
               int64_t pieces) {
  const Expr size = row_count(kernel) * pieces;
  return add_temporary(program, what, kernel.name, {dtype, {size}}, size);
}

DType state_of(const Kernel& kernel, const Step& step) {
  return compute_type(kernel.scalars[step.value].dtype);
}

Kernel totals(const Program& program, const Kernel& kernel, const Pieces& pieces,
              const std::vector<int>& buffer_of) {
  PieceKernel made(kernel, pieces.whole(), kernel.name + "_totals");
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (buffer_of[s] < 0) continue;
    Step step = made.moved(kernel.steps[s]);
    step.kind = StepKind::Reduce;
    step.exclusive = step.values = false;
    step.buffer = -1;
    step.index = 0;
    step.dtype = program.buffers[buffer_of[s]].type.dtype;
    made.result.steps.push_back(step);
    Scalar total;
    total.kind = ScalarKind::Register;
    total.dtype = step.dtype;
    total.step = static_cast<int>(made.result.steps.size()) - 1;
    Step store;
    store.buffer = buffer_of[s];
    store.index = made.place;
    store.dtype = step.dtype;
    store.value = made.table.add(total);
    made.result.steps.push_back(store);
  }
  return normalize(std::move(made.result));
}

// What stands before each piece, of step `number`.
Kernel starts(const Program& program, const Kernel& kernel, size_t number, const Pieces& pieces,
              int from, int to) {
  Kernel result;
  result.name = str(kernel.name, "_starts", number > 0 ? str("_", number) : "");
  result.where = kernel.where;
  result.axes.assign(kernel.axes.begin(), kernel.axes.begin() + kernel.rows);
  result.rows = kernel.rows;
  result.axes.push_back({"piece", pieces.count});
  ScalarTable table(result);
  Step step;
  step.kind = StepKind::Scan;
  step.op = kernel.steps[number].op;
  step.values = kernel.steps[number].values;
  step.exclusive = true;
  step.inner = {kernel.rows};
  step.buffer = to;
  step.dtype = program.buffers[to].type.dtype;
  const Expr row = PieceKernel::row_of(kernel), piece = result.axes[kernel.rows].symbol();
  const int64_t whole = pieces.whole().count;
  step.index = row * pieces.count + piece;
  step.value = table.load(program, from, row * whole + piece);
  if (pieces.ragged) {
    Scalar load = result.scalars[step.value];
    load.mask = table.apply(Op::lt, DType::boolean, {table.index(piece), table.index(whole)});
    load.value = identity(step.op, load.dtype);
    step.value = table.add(std::move(load));
  }
  result.steps.push_back(step);
  return normalize(std::move(result));
}

Kernel pieces_scanned(const Program& program, const Kernel& kernel, const Pieces& pieces,
                      const std::vector<int>& start_of) {
  PieceKernel made(kernel, pieces, kernel.name);
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    Step step = made.moved(kernel.steps[s]);
    if (start_of[s] >= 0) {
      step.rhs = made.table.load(program, start_of[s], made.place);
      step.mask = made.how.mask;
    }
    made.result.steps.push_back(step);
  }
  return normalize(std::move(made.result));
}

// Of each step that gives places, one that gives the running values: the one beside it, or one
// that stores them in a buffer of its own.
std::vector<Step> values_of_steps(Program& program, const Kernel& kernel) {
  const Axis& loop = kernel.axes[kernel.steps[0].inner[0]];
  std::vector<Step> result = kernel.steps;
  for (Step& step : result) {
    if (!gives_places(step)) continue;
    if (const Step* beside = values_beside(kernel, step)) {
      step = *beside;
      continue;
    }
    step.values = true;
    step.dtype = kernel.scalars[step.value].dtype;
    step.buffer = add_buffer(program, kernel, "m", step.dtype, loop.extent.constant());
    step.index = PieceKernel::row_of(kernel) * loop.extent + loop.symbol();
  }
  return result;
}

// The kernel with these steps, each once.
Kernel with_steps(Kernel kernel, const std::vector<Step>& steps) {
  kernel.steps.clear();
  for (const Step& step : steps) {
    if (std::find(kernel.steps.begin(), kernel.steps.end(), step) == kernel.steps.end())
      kernel.steps.push_back(step);
  }
  return normalize(std::move(kernel));
}

// The last place so far of an element that is the running value, which `values` stores, or NaN. The
// first of a row is one.
Kernel with_places(const Program& program, Kernel kernel, size_t number, const Step& values) {
  Step step = kernel.steps[number];
  const Axis loop = kernel.axes[step.inner[0]];
  ScalarTable table(kernel);
  const int most = table.load(program, values.buffer, values.index);
  int is_it = table.apply(Op::eq, DType::boolean, {step.value, most});
  if (is_float(kernel.scalars[step.value].dtype)) {
    const int is_nan = table.apply(Op::ne, DType::boolean, {step.value, step.value});
    is_it = table.apply(Op::bitwise_or, DType::boolean, {is_it, is_nan});
  }
  const int none = table.constant(Literal::of_integer(DType::i64, 0));
  step.op = Op::maximum;
  step.value = table.apply(Op::where, DType::i64, {is_it, table.index(loop.symbol()), none});
  kernel.steps = {step};
  kernel.name += str("_places", number > 0 ? str("_", number) : "");
  return normalize(std::move(kernel));
}

std::vector<Kernel> split_if_long(Program& program, const Kernel& kernel) {
  return can_split_scan(program, kernel) ? split_scan(program, kernel) : std::vector{kernel};
}

std::vector<Kernel> split_places(Program& program, const Kernel& kernel) {
  const std::vector<Step> values = values_of_steps(program, kernel);
  std::vector<Kernel> kernels = split_if_long(program, with_steps(kernel, values));
  for (size_t s = 0; s < values.size(); s++) {
    if (!gives_places(kernel.steps[s])) continue;
    const Kernel places = with_places(program, kernel, s, values[s]);
    for (Kernel& part : split_if_long(program, places)) kernels.push_back(std::move(part));
  }
  return kernels;
}

// The kernel's stores, or what is beside them.
Kernel only(Kernel kernel, bool stores) {
  std::erase_if(kernel.steps,
                [&](const Step& step) { return (step.kind == StepKind::Store) != stores; });
  if (stores) kernel.name += "_stores";
  return normalize(std::move(kernel));
}

bool has_stores(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Store; });
}

}  // namespace

bool can_split_scan(const Program& program, const Kernel& kernel) {
  const std::vector<int>& inner = kernel.steps[0].inner;
  if (inner.size() != 1 || !kernel.axes[inner[0]].extent.is_constant() ||
      !row_count(kernel).is_constant())
    return false;
  const int64_t length = kernel.axes[inner[0]].extent.constant(),
                rows = row_count(kernel).constant();
  const Limits limits = limits_of(program, kernel);
  bool scans = false;
  for (const Step& step : kernel.steps) {
    const bool scan = step.kind == StepKind::Scan && step.rhs < 0 && step.mask < 0;
    const bool store = step.kind == StepKind::Store;
    if (!(scan || store) || step.inner != inner ||
        has_registers(kernel, reachable(kernel, step)))
      return false;
    scans = scans || scan;
  }
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < read.size(); b++) {
    if (read[b] && written[b]) return false;
  }
  return scans && rows < limits.rows && length >= limits.pieces * limits.piece;
}

std::vector<Kernel> split_scan(Program& program, const Kernel& kernel) {
  if (std::any_of(kernel.steps.begin(), kernel.steps.end(), gives_places))
    return split_places(program, kernel);
  const int64_t length = kernel.axes[kernel.steps[0].inner[0]].extent.constant(),
                piece = limits_of(program, kernel).piece;
  const Pieces pieces = {piece, ceil_divide(length, piece), length % piece != 0};
  if (pieces.ragged && has_stores(kernel)) {
    std::vector<Kernel> kernels = split_scan(program, only(kernel, false));
    kernels.push_back(only(kernel, true));
    return kernels;
  }
  std::vector<int> total_of(kernel.steps.size(), -1), start_of = total_of;
  std::vector<Kernel> middle;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (kernel.steps[s].kind != StepKind::Scan) continue;
    const DType state = state_of(kernel, kernel.steps[s]);
    total_of[s] = add_buffer(program, kernel, "p", state, pieces.whole().count);
    start_of[s] = add_buffer(program, kernel, "q", state, pieces.count);
    const Kernel scan = starts(program, kernel, s, pieces, total_of[s], start_of[s]);
    for (Kernel& part : split_if_long(program, scan)) middle.push_back(std::move(part));
  }
  std::vector<Kernel> kernels = {totals(program, kernel, pieces, total_of)};
  for (Kernel& part : middle) kernels.push_back(std::move(part));
  kernels.push_back(pieces_scanned(program, kernel, pieces, start_of));
  return kernels;
}

}  // namespace tiny_compile
