// How does one long sum keep a whole machine busy without changing a bit? The contract adds
// chunks of 1024 and then their results by the same rule, so chunks may be rows of one kernel
// and their results the row of a second one. What a chunk's sum of exponentials is against, its
// largest, is a second result of it, and so is the largest that an argmax has found a place of:
//
//   r0 = sum_exp(j) v   =>   m[c] = max(j) v ; s[c] = sum_exp(j) v
//                            r0 = max(c) m[c] ; r1 = sum(c) s[c] * exp(m[c] - r0)
//   r0 = argmax(j) v    =>   m[c] = max(j) v ; a[c] = argmax(j) v
//                            r0 = argmax(c) m[c] ; r1 = sum(c) c == r0 ? c*1024 + a[c] : 0
#include "tiny_compile/loops/split.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dead.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLongRow = 16 * kChunk, kLongColumn = 4 * kChunk;
constexpr int64_t kLongExponentialsDown = 2 * kChunk;
constexpr int64_t kLongExponentials = 48 * kChunk, kLongPlaces = 24 * kChunk;  // of rows
constexpr int64_t kMostResultChunks = 4, kLeastTogether = 16;                  // of Pieces

bool finds_place(Op op) { return op == Op::argmax || op == Op::argmin; }

// What each chunk has a second result of; the op itself, where it has none.
Op beside(Op op) {
  if (op == Op::argmin) return Op::min;
  return op == Op::argmax || op == Op::sum_exp ? Op::max : op;
}

// Whether neighbouring rows read neighbours; not of what a row has one number of.
bool are_columns(const Kernel& kernel) {
  const auto is_inner = [&](const Expr& index) {
    return std::any_of(kernel.axes.begin() + kernel.rows, kernel.axes.end(),
                       [&](const Axis& axis) { return depends_on(index, axis.name); });
  };
  return kernel.rows > 0 &&
         std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const Scalar& s) {
           const Axis& row = kernel.axes[kernel.rows - 1];
           return s.kind == ScalarKind::Load && coefficient(s.index, row.symbol()) == 1 &&
                  is_inner(s.index);
         });
}

// Rows that keep the machine busy. Of columns, which are neighbours in memory, a block of a GPU or a core takes 32.
int64_t many_rows(const Machine& machine, bool columns) {
  if (!columns) return rows_to_fill(machine);
  return target_of(machine) == Target::Cuda ? 32 * rows_to_fill(machine)
                                            : 32 * (machine.cores - 1) + 1;
}

bool has_reduction(const Kernel& kernel, Op op) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    return step.kind == StepKind::Reduce && step.op == op;
  });
}

bool stores_in_loops(const Step& step) {
  return step.kind == StepKind::Store && !step.inner.empty();
}

// Chunks write what is stored along with them where each is whole: of a last one that is not, each
// store would need a guard. Of rows of one loop each, threads share it as it is.
bool stores_apart(const Kernel& kernel, int64_t count) {
  return count % kChunk != 0 &&
         std::any_of(kernel.steps.begin(), kernel.steps.end(), stores_in_loops);
}

// rows(i0, j0) { store t[i0*5000 + j0] = ... }: what loops over j0 store, as rows.
Kernel stores_alone(Kernel kernel) {
  kernel = without_steps_where(std::move(kernel), std::not_fn(stores_in_loops));
  kernel.name += "_apart";
  return as_points(normalize(std::move(kernel)));
}

Kernel without_stores_in_loops(Kernel kernel) {
  return normalize(without_steps_where(std::move(kernel), stores_in_loops));
}

DType partial_dtype(const Step& step) { return compute_type(step.dtype); }

int add_register(ScalarTable& table, const Kernel& kernel, DType dtype) {
  Scalar result;
  result.kind = ScalarKind::Register;
  result.dtype = dtype;
  result.step = static_cast<int>(kernel.steps.size()) - 1;
  return table.add(std::move(result));
}

Kernel with_rows_of(const Kernel& kernel, const std::string& name) {
  Kernel result;
  result.name = name;
  result.where = kernel.where;
  result.axes.assign(kernel.axes.begin(), kernel.axes.begin() + kernel.rows);
  result.rows = kernel.rows;
  return result;
}

// An axis more, its number in `list`; none where it has one point.
Expr add_axis(Kernel& kernel, const char* name, int64_t extent, std::vector<int>& list) {
  if (extent == 1) return 0;
  list.push_back(static_cast<int>(kernel.axes.size()));
  kernel.axes.push_back({name, extent});
  return kernel.axes.back().symbol();
}

// Scalars that steps with loops reach.
std::vector<bool> reached_in_loops(const Kernel& kernel) {
  std::vector<bool> wanted(kernel.scalars.size());
  for (const Step& step : kernel.steps) {
    if (step.inner.empty()) continue;
    const std::vector<bool> reached = reachable(kernel, step);
    for (size_t id = 0; id < wanted.size(); id++) wanted[id] = wanted[id] || reached[id];
  }
  return wanted;
}

// Which chunks are one partial result: chunk s*1024 + q*groups + r is number q of result (s, r). The results are
// `result_chunks` chunks themselves. Where supers are several, the three others are powers of two, groups * together
// is 1024, and together * result_chunks is not less than supers.
struct Pieces {
  int64_t supers = 1;    // s: as many as the chunks fill by the thousand
  int64_t groups = 1;    // r
  int64_t together = 1;  // q
  int64_t result_chunks = 1;
  int64_t results() const { return supers * groups; }
};

// On a GPU, where a second kernel costs a launch and little should be left for it, more than 1024
// chunks are taken together until their results are one to four chunks: with fewer blocks the last
// wave of them leaves most multiprocessors idle. Not beside rows: neighbouring rows should read neighbouring
// places at the same time. A CPU reads on and on.
Pieces pieces_of(const Program& program, const Kernel& kernel, int64_t chunks) {
  const auto writes = [](const Step& s) { return !makes_register(s) && !s.inner.empty(); };
  const bool stores = std::any_of(kernel.steps.begin(), kernel.steps.end(), writes);
  const int64_t supers = ceil_divide(chunks, kChunk);
  const bool apart =
      program.target == Target::Cpp || kernel.rows > 0 || (stores && chunks % kChunk != 0);
  const bool alone = has_reduction(kernel, Op::sum_exp) || has_reduction(kernel, Op::argmax) ||
                     has_reduction(kernel, Op::argmin);
  if (supers == 1 || supers > kChunk || apart || alone) return {1, chunks, 1};
  const int64_t most = power_of_two_from(supers),
                results = std::clamp<int64_t>(most / kLeastTogether, 1, kMostResultChunks);
  return {supers, kChunk * results / most, most / results, results};
}

// A temporary for partial results, one for each row and piece.
int add_partial(Program& program, const Kernel& kernel, const Pieces& pieces, DType dtype) {
  const Expr size = row_count(kernel) * pieces.results();
  return add_temporary(program, "p", kernel.name, {dtype, {size}}, size);
}

// Buffers of a step's partial results, and of what stands beside them; -1: none.
struct Partial {
  int result = -1, beside = -1;
};

// rows(rows of kernel, s, r) { steps with loops, each over (q, element) ; stores of registers }
// Fills `partials` with the buffers of each step's.
Kernel partial_kernel(Program& program, const Kernel& kernel, const std::vector<int>& inner,
                      int64_t count, const Pieces& pieces, std::vector<Partial>& partials) {
  Kernel partial = with_rows_of(kernel, kernel.name);
  std::vector<int> rows, loops;
  const Expr s = add_axis(partial, "s", pieces.supers, rows),
             r = add_axis(partial, "r", pieces.groups, rows),
             q = add_axis(partial, "q", pieces.together, loops),
             element = add_axis(partial, "e", kChunk, loops);
  partial.rows += static_cast<int>(rows.size());
  ScalarTable table(partial);
  const Expr flat = (s * kChunk + q * pieces.groups + r) * kChunk + element;
  const int64_t covered = pieces.results() * pieces.together * kChunk;
  ScalarMapping how;
  how.axes = unflatten(kernel, inner, flat);
  if (count != covered)
    how.mask = table.apply(Op::lt, DType::boolean, {table.index(flat), table.index(count)});
  const std::vector<int> ids = clone_with_mapping(kernel, reached_in_loops(kernel), how, table);
  const Expr place = flat_row(kernel) * pieces.results() + s * pieces.groups + r;
  const auto reduce = [&](Step step) {  // stored in the buffer that is returned
    partial.steps.push_back(step);
    Step store;
    store.buffer = add_partial(program, kernel, pieces, step.dtype);
    store.index = place;
    store.dtype = step.dtype;
    store.value = add_register(table, partial, step.dtype);
    partial.steps.push_back(store);
    return store.buffer;
  };
  for (size_t number = 0; number < kernel.steps.size(); number++) {
    Step step = kernel.steps[number];
    if (step.inner.empty()) continue;
    step.inner = loops;
    step.value = ids[step.value];
    step.index = substitute(step.index, how.axes);
    if (step.kind != StepKind::Reduce) {
      partial.steps.push_back(step);
      continue;
    }
    if (is_half(partial.scalars[step.value].dtype))
      step.value = table.apply(Op::cast, DType::f32, {step.value});
    const DType operand = partial.scalars[step.value].dtype;
    if (how.mask >= 0)
      step.value = table.apply(
          Op::where, operand,
          {how.mask, step.value, table.constant(identity(beside(step.op), operand))});
    step.dtype = partial_dtype(step);
    if (beside(step.op) != step.op) {
      Step other = step;
      other.op = beside(step.op);
      other.dtype = operand;
      partials[number].beside = reduce(other);
    }
    partials[number].result = reduce(step);
  }
  return partial;
}

// Scalars outside loops, with registers replaced.
int copy_outside(const Kernel& kernel, const Step& step, const std::vector<int>& registers,
                 ScalarTable& table) {
  const std::vector<bool> needed = reachable(kernel, step);
  std::vector<int> copies(kernel.scalars.size(), -1);
  for (size_t id = 0; id < needed.size(); id++) {
    if (!needed[id]) continue;
    Scalar scalar = kernel.scalars[id];
    if (scalar.kind == ScalarKind::Register) {
      copies[id] = registers[scalar.step];
      continue;
    }
    for (int& operand : scalar.operands) operand = copies[operand];
    if (scalar.mask >= 0) scalar.mask = copies[scalar.mask];
    copies[id] = table.add(std::move(scalar));
  }
  return copies[step.value];
}

// A kernel that grows from the partial results of another.
struct Finish {
  Kernel& kernel;
  std::vector<int> loops;  // over the partial results of a row
  Expr place;              // of one of them
  ScalarTable table{kernel};

  int reduce(Op op, DType dtype, int value) {
    Step step;
    step.kind = StepKind::Reduce;
    step.op = op;
    step.dtype = dtype;
    step.inner = loops;
    step.value = value;
    kernel.steps.push_back(std::move(step));
    return add_register(table, kernel, dtype);
  }
  int apply(Op op, DType dtype, std::vector<int> operands) {
    return table.apply(op, dtype, std::move(operands));
  }
};

// r0 = max(c) m ; sum(c) s * exp(m - r0), with each chunk's largest clamped to finite.
int sum_of_exponentials(Finish& f, const Program& program, const Partial& from, DType t) {
  const double limit =
      t == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const auto number = [&](double value) { return f.table.constant(Literal::of(t, value)); };
  const int above =
      f.apply(Op::maximum, t, {f.table.load(program, from.beside, f.place), number(-limit)});
  const int largest = f.apply(Op::minimum, t, {above, number(limit)});
  const int most = f.reduce(Op::max, t, largest);
  const int scale = f.apply(Op::exp, t, {f.apply(Op::sub, t, {largest, most})});
  return f.reduce(Op::sum, t,
                  f.apply(Op::mul, t, {f.table.load(program, from.result, f.place), scale}));
}

// r0 = argmax(c) m ; sum(c) c == r0 ? c*1024 + a : 0, of one chunk alone.
int place_of_largest(Finish& f, const Program& program, const Partial& from, const Step& step,
                     const Expr& chunk) {
  const DType t = DType::i64;
  const int which = f.reduce(step.op, t, f.table.load(program, from.beside, f.place)),
            number = f.table.index(chunk), start = f.table.index(chunk * kChunk),
            own = f.apply(Op::add, t, {start, f.table.load(program, from.result, f.place)});
  return f.reduce(Op::sum, t,
                  f.apply(Op::where, t,
                          {f.apply(Op::eq, DType::boolean, {number, which}), own,
                           f.table.constant(Literal::of_integer(t, 0))}));
}

// rows(rows of kernel) { each register from its partial results; the steps without loops }
Kernel finishing_kernel(const Program& program, const Kernel& kernel, const Pieces& pieces,
                        const std::vector<Partial>& partials) {
  Kernel finish = with_rows_of(kernel, kernel.name + "_finish");
  std::vector<int> loops;
  const Expr t = add_axis(finish, "t", pieces.result_chunks, loops),
             r = add_axis(finish, "r", pieces.groups, loops),
             s = add_axis(finish, "s", pieces.together, loops) * pieces.result_chunks + t;
  Finish f{finish, loops, flat_row(kernel) * pieces.results() + s * pieces.groups + r};
  std::vector<int> registers(kernel.steps.size(), -1);
  for (size_t number = 0; number < kernel.steps.size(); number++) {
    const Partial& from = partials[number];
    if (from.result < 0) continue;
    const Step& step = kernel.steps[number];
    const DType dtype = partial_dtype(step);
    if (step.op == Op::sum_exp) {
      registers[number] = sum_of_exponentials(f, program, from, dtype);
    } else if (finds_place(step.op)) {
      registers[number] = place_of_largest(f, program, from, step, r);
    } else {
      const int plain = f.table.load(program, from.result, f.place);
      Scalar load = finish.scalars[plain];
      if (pieces.together * pieces.result_chunks != pieces.supers) {
        load.mask =
            f.apply(Op::lt, DType::boolean, {f.table.index(s), f.table.index(pieces.supers)});
        load.value = identity(step.op, dtype);
      }
      registers[number] = f.reduce(step.op, dtype, f.table.add(std::move(load)));
    }
    if (dtype != step.dtype)
      registers[number] = f.apply(Op::cast, step.dtype, {registers[number]});
  }
  for (Step store : kernel.steps) {
    if (!store.inner.empty()) continue;
    store.value = copy_outside(kernel, store, registers, f.table);
    finish.steps.push_back(std::move(store));
  }
  return finish;
}

}  // namespace

Expr flat_row(const Kernel& kernel) {
  Expr row = 0;
  for (int a = 0; a < kernel.rows; a++)
    row = row * kernel.axes[a].extent + kernel.axes[a].symbol();
  return row;
}

int add_temporary(Program& program, const std::string& prefix, const std::string& use,
                  const Type& type, const Expr& size) {
  const int buffer = static_cast<int>(program.buffers.size());
  program.buffers.push_back(
      {str(prefix, buffer, "_", use), Role::Temporary, type, size, {}, 0});
  return buffer;
}

bool can_split(const Program& program, const Kernel& kernel) {
  const Step* first = nullptr;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store && step.inner.empty()) continue;
    if (has_registers(kernel, reachable(kernel, step))) return false;
    if (step.kind != StepKind::Reduce && step.kind != StepKind::Store) return false;
    if (!first && step.kind == StepKind::Reduce) first = &step;
  }
  if (!first) return false;
  if (!inner_count(kernel, *first).is_constant() || !row_count(kernel).is_constant())
    return false;  // how many partial results there are is a number
  const int64_t count = inner_count(kernel, *first).constant();
  for (const Step& step : kernel.steps) {
    const bool short_store = step.kind == StepKind::Store && step.inner.empty();
    if (!short_store && step.inner != first->inner) return false;
  }
  if (stores_apart(kernel, count) && kernel.rows > 0 && first->inner.size() == 1) return false;
  const int64_t rows = row_count(kernel).constant();
  // A CPU would ask of each element of a part of a chunk whether it is there.
  const bool columns =
      are_columns(kernel) && (program.target == Target::Cuda || count % kChunk == 0);
  // What has two results is read once either way, and held by the blocks of a cluster: of rows better,
  // unless they are few and long, of columns worse.
  const bool gpu = program.target == Target::Cuda,
             sums = gpu && has_reduction(kernel, Op::sum_exp),
             places = gpu &&
                      (has_reduction(kernel, Op::argmax) || has_reduction(kernel, Op::argmin));
  if (columns && sums) return count >= kLongExponentialsDown;
  if (columns) return rows < many_rows(program.machine, true) && count >= kLongColumn;
  return rows < (sums ? blocks_to_fill(program.machine) : many_rows(program.machine, false)) &&
         count >= (sums     ? kLongExponentials
                   : places ? kLongPlaces
                            : kLongRow);
}

std::vector<Kernel> split_reduction(Program& program, const Kernel& kernel) {
  const auto is_reduce = [](const Step& step) { return step.kind == StepKind::Reduce; };
  const Step& first = *std::find_if(kernel.steps.begin(), kernel.steps.end(), is_reduce);
  const int64_t count = inner_count(kernel, first).constant();
  if (stores_apart(kernel, count)) {
    std::vector<Kernel> kernels = split_reduction(program, without_stores_in_loops(kernel));
    kernels.push_back(stores_alone(kernel));
    return kernels;
  }
  const Pieces pieces = pieces_of(program, kernel, ceil_divide(count, kChunk));
  std::vector<Partial> partials(kernel.steps.size());
  Kernel partial = partial_kernel(program, kernel, first.inner, count, pieces, partials);
  Kernel finish = finishing_kernel(program, kernel, pieces, partials);
  // A sum_exp's largest of a chunk may be a result too.
  return {without_repeats(normalize(std::move(partial))), normalize(std::move(finish))};
}

}  // namespace tiny_compile
