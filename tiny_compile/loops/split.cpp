// How does one long sum keep a whole machine busy without changing a bit? The contract adds
// chunks of 1024 and then their results by the same rule, so chunks may be rows of one kernel
// and their results the row of a second one.
#include "tiny_compile/loops/split.h"

#include <algorithm>
#include <functional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/group.h"
#include "tiny_compile/loops/splice.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLongRow = 16 * kChunk, kLongColumn = 4 * kChunk;
constexpr int64_t kMostResultChunks = 4, kLeastTogether = 16;  // of Pieces

bool splits(Op op) { return op != Op::sum_exp && op != Op::argmax && op != Op::argmin; }

bool are_columns(const Kernel& kernel) {
  return kernel.rows > 0 &&
         std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const Scalar& s) {
           const Axis& row = kernel.axes[kernel.rows - 1];
           return s.kind == ScalarKind::Load && coefficient(s.index, row.symbol()) == 1;
         });
}

// Rows that keep the machine busy. Of columns, which are neighbours in memory, a block of a GPU or a core takes 32.
int64_t many_rows(const Machine& machine, bool columns) {
  if (!columns) return rows_to_fill(machine);
  return target_of(machine) == Target::Cuda ? 32 * rows_to_fill(machine)
                                            : 32 * (machine.cores - 1) + 1;
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
Kernel stores_alone(Kernel kernel, const std::vector<int>& inner) {
  kernel = without_steps_where(std::move(kernel), std::not_fn(stores_in_loops));
  for (Step& step : kernel.steps) step.inner.clear();
  kernel.name += "_apart";
  Group group(std::move(kernel));
  group.rows.insert(group.rows.end(), inner.begin(), inner.end());
  return group.finish();
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
  if (supers == 1 || supers > kChunk || apart) return {1, chunks, 1};
  const int64_t most = power_of_two_from(supers),
                results = std::clamp<int64_t>(most / kLeastTogether, 1, kMostResultChunks);
  return {supers, kChunk * results / most, most / results, results};
}

// rows(rows of kernel, s, r) { steps with loops, each over (q, element) ; stores of registers }
// Fills buffer_of[step] with the buffer of a step's partial results.
Kernel partial_kernel(Program& program, const Kernel& kernel, const std::vector<int>& inner,
                      int64_t count, const Pieces& pieces, std::vector<int>& buffer_of) {
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
  Splice how;
  how.axes = unflatten(kernel, inner, flat);
  if (count != covered)
    how.mask = table.apply(Op::lt, DType::boolean, {table.index(flat), table.index(count)});
  const std::vector<int> ids = splice(kernel, reached_in_loops(kernel), how, table);
  for (size_t number = 0; number < kernel.steps.size(); number++) {
    Step step = kernel.steps[number];
    if (step.inner.empty()) continue;
    step.inner = loops;
    step.value = ids[step.value];
    step.index = substitute(step.index, how.axes);
    if (step.kind == StepKind::Reduce) {
      if (is_half(partial.scalars[step.value].dtype))
        step.value = table.apply(Op::cast, DType::f32, {step.value});
      const DType operand = partial.scalars[step.value].dtype;
      if (how.mask >= 0)
        step.value =
            table.apply(Op::where, operand,
                        {how.mask, step.value, table.constant(identity(step.op, operand))});
      step.dtype = partial_dtype(step);
    }
    partial.steps.push_back(step);
    if (step.kind != StepKind::Reduce) continue;
    const Expr size = row_count(kernel) * pieces.results();
    buffer_of[number] = add_temporary(program, "p", kernel.name, {step.dtype, {size}}, size);
    Step store;
    store.buffer = buffer_of[number];
    store.index = flat_row(kernel) * pieces.results() + s * pieces.groups + r;
    store.dtype = step.dtype;
    store.value = add_register(table, partial, step.dtype);
    partial.steps.push_back(store);
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

// rows(rows of kernel) { each register from its partial results; the steps without loops }
Kernel finishing_kernel(const Program& program, const Kernel& kernel, const Pieces& pieces,
                        const std::vector<int>& buffer_of) {
  Kernel finish = with_rows_of(kernel, kernel.name + "_finish");
  std::vector<int> loops;
  const Expr t = add_axis(finish, "t", pieces.result_chunks, loops),
             r = add_axis(finish, "r", pieces.groups, loops),
             s = add_axis(finish, "s", pieces.together, loops) * pieces.result_chunks + t;
  ScalarTable table(finish);
  std::vector<int> registers(kernel.steps.size(), -1);
  for (size_t number = 0; number < kernel.steps.size(); number++) {
    if (buffer_of[number] < 0) continue;
    Step step = kernel.steps[number];
    step.inner = loops;
    step.dtype = partial_dtype(step);
    const int plain = table.load(program, buffer_of[number],
                                 flat_row(kernel) * pieces.results() + s * pieces.groups + r);
    Scalar load = finish.scalars[plain];
    if (pieces.together * pieces.result_chunks != pieces.supers) {
      load.mask =
          table.apply(Op::lt, DType::boolean, {table.index(s), table.index(pieces.supers)});
      load.value = identity(step.op, step.dtype);
    }
    step.value = table.add(std::move(load));
    finish.steps.push_back(step);
    registers[number] = add_register(table, finish, step.dtype);
    if (step.dtype != kernel.steps[number].dtype)
      registers[number] =
          table.apply(Op::cast, kernel.steps[number].dtype, {registers[number]});
  }
  for (Step store : kernel.steps) {
    if (!store.inner.empty()) continue;
    store.value = copy_outside(kernel, store, registers, table);
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
    if (step.kind == StepKind::Reduce && !splits(step.op)) return false;
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
  return rows < many_rows(program.machine, columns) &&
         count >= (columns ? kLongColumn : kLongRow);
}

std::vector<Kernel> split_reduction(Program& program, const Kernel& kernel) {
  const auto is_reduce = [](const Step& step) { return step.kind == StepKind::Reduce; };
  const Step& first = *std::find_if(kernel.steps.begin(), kernel.steps.end(), is_reduce);
  const int64_t count = inner_count(kernel, first).constant();
  if (stores_apart(kernel, count)) {
    std::vector<Kernel> kernels = split_reduction(program, without_stores_in_loops(kernel));
    kernels.push_back(stores_alone(kernel, first.inner));
    return kernels;
  }
  const Pieces pieces = pieces_of(program, kernel, ceil_divide(count, kChunk));
  std::vector<int> buffer_of(kernel.steps.size(), -1);
  Kernel partial = partial_kernel(program, kernel, first.inner, count, pieces, buffer_of);
  Kernel finish = finishing_kernel(program, kernel, pieces, buffer_of);
  return {normalize(std::move(partial)), normalize(std::move(finish))};
}

}  // namespace tiny_compile
