// How does one long sum keep a whole machine busy without changing a bit? The contract adds
// chunks of 1024 and then their results by the same rule, so chunks may be rows of one kernel
// and their results the row of a second one.
#include "tiny_compile/loops/split.h"

#include <algorithm>

#include "tiny_compile/loops/splice.h"

namespace tiny_compile {
namespace {

constexpr int64_t kChunk = 1024;
constexpr int64_t kFewRows = 512;
constexpr int64_t kLongRow = 16 * kChunk;

bool has_register(const Kernel& kernel, const Step& step) {
  const std::vector<bool> wanted = reachable(kernel, step);
  for (size_t id = 0; id < wanted.size(); id++) {
    if (wanted[id] && kernel.scalars[id].kind == ScalarKind::Register) return true;
  }
  return false;
}

bool splits(Op op) { return op != Op::sum_exp && op != Op::argmax && op != Op::argmin; }

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

Expr flat_row(const Kernel& kernel) {
  Expr row = 0;
  for (int a = 0; a < kernel.rows; a++)
    row = row * kernel.axes[a].extent + kernel.axes[a].symbol();
  return row;
}

// The inner axes in terms of an element's number, scalars marked that steps with loops reach.
Substitution unflatten(const Kernel& kernel, const std::vector<int>& inner, Expr rest) {
  Substitution axes;
  for (size_t k = inner.size(); k-- > 0;) {
    const Axis& axis = kernel.axes[inner[k]];
    axes.push_back({axis.name, k == 0 ? rest : mod(rest, axis.extent)});
    rest = floor_div(rest, axis.extent);
  }
  return axes;
}

std::vector<bool> reached_in_loops(const Kernel& kernel) {
  std::vector<bool> wanted(kernel.scalars.size());
  for (const Step& step : kernel.steps) {
    if (step.inner.empty()) continue;
    const std::vector<bool> reached = reachable(kernel, step);
    for (size_t id = 0; id < wanted.size(); id++) wanted[id] = wanted[id] || reached[id];
  }
  return wanted;
}

// rows(rows of kernel, chunk) { steps with loops, each over one chunk ; stores of registers }
// Fills buffer_of[step] with the buffer of a step's partial results.
Kernel partial_kernel(Program& program, const Kernel& kernel, const std::vector<int>& inner,
                      int64_t count, std::vector<int>& buffer_of) {
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  Kernel partial = with_rows_of(kernel, kernel.name);
  partial.axes.push_back({"chunk", chunks});
  partial.axes.push_back({"element", kChunk});
  partial.rows++;
  ScalarTable table(partial);
  const Expr chunk = partial.axes[kernel.rows].symbol();
  const Expr flat = chunk * kChunk + partial.axes[kernel.rows + 1].symbol();
  Splice how;
  how.axes = unflatten(kernel, inner, flat);
  if (count % kChunk != 0)
    how.mask = table.apply(Op::lt, DType::boolean, {table.index(flat), table.index(count)});
  const std::vector<int> ids = splice(kernel, reached_in_loops(kernel), how, table);
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    Step step = kernel.steps[s];
    if (step.inner.empty()) continue;
    step.inner = {kernel.rows + 1};
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
    buffer_of[s] = static_cast<int>(program.buffers.size());
    const Expr size = row_count(kernel) * chunks;
    program.buffers.push_back({str("p", buffer_of[s], "_", kernel.name),
                               Role::Temporary,
                               {step.dtype, {size}},
                               size,
                               {},
                               0});
    Step store;
    store.buffer = buffer_of[s];
    store.index = flat_row(kernel) * chunks + chunk;
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
Kernel finishing_kernel(const Program& program, const Kernel& kernel, int64_t chunks,
                        const std::vector<int>& buffer_of) {
  Kernel finish = with_rows_of(kernel, kernel.name + "_finish");
  finish.axes.push_back({"chunk", chunks});
  ScalarTable table(finish);
  std::vector<int> registers(kernel.steps.size(), -1);
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    if (buffer_of[s] < 0) continue;
    Step step = kernel.steps[s];
    step.inner = {kernel.rows};
    step.dtype = partial_dtype(step);
    step.value = table.load(program, buffer_of[s],
                            flat_row(kernel) * chunks + finish.axes.back().symbol());
    finish.steps.push_back(step);
    registers[s] = add_register(table, finish, step.dtype);
    if (step.dtype != kernel.steps[s].dtype)
      registers[s] = table.apply(Op::cast, kernel.steps[s].dtype, {registers[s]});
  }
  for (Step store : kernel.steps) {
    if (!store.inner.empty()) continue;
    store.value = copy_outside(kernel, store, registers, table);
    finish.steps.push_back(std::move(store));
  }
  return finish;
}

}  // namespace

bool can_split(const Kernel& kernel) {
  const Step* first = nullptr;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Store && step.inner.empty()) continue;
    if (has_register(kernel, step)) return false;
    if (step.kind != StepKind::Reduce && step.kind != StepKind::Store) return false;
    if (step.kind == StepKind::Reduce && !splits(step.op)) return false;
    if (!first && step.kind == StepKind::Reduce) first = &step;
  }
  if (!first) return false;
  const int64_t count = inner_count(kernel, *first).bounds().high;
  for (const Step& step : kernel.steps) {
    const bool short_store = step.kind == StepKind::Store && step.inner.empty();
    if (!short_store && step.inner != first->inner) return false;
    if (!short_store && step.kind == StepKind::Store && count % kChunk != 0) return false;
  }
  return row_count(kernel).bounds().high < kFewRows && count >= kLongRow;
}

std::vector<Kernel> split_reduction(Program& program, const Kernel& kernel) {
  const auto is_reduce = [](const Step& step) { return step.kind == StepKind::Reduce; };
  const Step& first = *std::find_if(kernel.steps.begin(), kernel.steps.end(), is_reduce);
  const int64_t count = inner_count(kernel, first).constant();
  std::vector<int> buffer_of(kernel.steps.size(), -1);
  Kernel partial = partial_kernel(program, kernel, first.inner, count, buffer_of);
  Kernel finish = finishing_kernel(program, kernel, (count + kChunk - 1) / kChunk, buffer_of);
  return {normalize(std::move(partial)), normalize(std::move(finish))};
}

}  // namespace tiny_compile
