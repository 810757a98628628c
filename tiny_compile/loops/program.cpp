// The Program as a value: hash-consed scalars, normal form, and what a kernel consists of.
//
// normalize drops what no step reaches, so passes may leave rubbish behind:
//   $0 = load x[i] ; $1 = exp $0 ; $2 = neg $0 ; store y[i] = $1   =>   $2 is gone
// and gives equal kernels equal values whatever order a pass built them in.
#include "tiny_compile/loops/program.h"

#include "tiny_compile/graph/scan.h"

#include <algorithm>

namespace tiny_compile {
namespace {

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15ull + (seed >> 29);
}

size_t hash_of(const Scalar& s) {
  size_t h = mix(static_cast<size_t>(s.kind) * 64 + static_cast<size_t>(s.dtype),
                 static_cast<size_t>(s.op));
  for (int operand : s.operands) h = mix(h, static_cast<size_t>(operand));
  h = mix(mix(h, s.value.bits), s.index.hash());
  return mix(mix(h, static_cast<size_t>(s.buffer * 7 + s.mask)), static_cast<size_t>(s.step));
}

// Every scalar a step names directly.
std::vector<int> roots(const Step& step) {
  std::vector<int> result;
  for (int id : {step.value, step.other, step.mask}) {
    if (id >= 0) result.push_back(id);
  }
  return result;
}

std::vector<int> children(const Scalar& scalar) {
  std::vector<int> result = scalar.operands;
  if (scalar.mask >= 0) result.push_back(scalar.mask);
  return result;
}

// Scalars in the order in which a walk from `root` leaves them; `seen` is shared between walks.
void walk(const Kernel& kernel, int root, std::vector<bool>& seen, std::vector<int>& order) {
  std::vector<std::pair<int, size_t>> stack;  // scalar, next child
  if (seen[root]) return;
  seen[root] = true;
  stack.push_back({root, 0});
  while (!stack.empty()) {
    const auto [id, next] = stack.back();
    const std::vector<int> below = children(kernel.scalars[id]);
    if (next == below.size()) {
      order.push_back(id);
      stack.pop_back();
      continue;
    }
    stack.back().second++;
    if (seen[below[next]]) continue;
    seen[below[next]] = true;
    stack.push_back({below[next], 0});
  }
}

// Registers nobody reads go, with the steps that make them.
std::vector<bool> live_steps(const Kernel& kernel) {
  std::vector<bool> live(kernel.steps.size()), seen(kernel.scalars.size());
  for (size_t i = kernel.steps.size(); i-- > 0;) {
    if (makes_register(kernel.steps[i]) && !live[i]) continue;
    live[i] = true;
    std::vector<int> order;
    for (int root : roots(kernel.steps[i])) walk(kernel, root, seen, order);
    for (int id : order) {
      if (kernel.scalars[id].kind == ScalarKind::Register) live[kernel.scalars[id].step] = true;
    }
  }
  return live;
}

int renamed(const std::vector<int>& numbers, int old) { return old < 0 ? old : numbers[old]; }

void renumber_scalars(Kernel& kernel, const std::vector<int>& step_numbers) {
  std::vector<bool> seen(kernel.scalars.size());
  std::vector<int> order, numbers(kernel.scalars.size(), -1);
  for (const Step& step : kernel.steps) {
    for (int root : roots(step)) walk(kernel, root, seen, order);
  }
  std::vector<Scalar> scalars;
  scalars.reserve(order.size());
  for (int id : order) {
    numbers[id] = static_cast<int>(scalars.size());
    Scalar scalar = std::move(kernel.scalars[id]);
    for (int& operand : scalar.operands) operand = numbers[operand];
    scalar.mask = renamed(numbers, scalar.mask);
    scalar.step = renamed(step_numbers, scalar.step);
    scalars.push_back(std::move(scalar));
  }
  kernel.scalars = std::move(scalars);
  for (Step& step : kernel.steps) {
    step.value = renamed(numbers, step.value);
    step.other = renamed(numbers, step.other);
    step.mask = renamed(numbers, step.mask);
  }
}

void drop_dead_steps(Kernel& kernel) {
  const std::vector<bool> live = live_steps(kernel);
  std::vector<int> numbers(kernel.steps.size(), -1);
  std::vector<Step> steps;
  for (size_t i = 0; i < kernel.steps.size(); i++) {
    if (!live[i]) continue;
    numbers[i] = static_cast<int>(steps.size());
    steps.push_back(std::move(kernel.steps[i]));
  }
  kernel.steps = std::move(steps);
  renumber_scalars(kernel, numbers);
}

void rename_axes(Kernel& kernel) {
  std::vector<int> numbers(kernel.axes.size(), -1);
  std::vector<Axis> axes;
  Substitution names;
  auto keep = [&](int axis) {
    if (numbers[axis] >= 0) return;
    numbers[axis] = static_cast<int>(axes.size());
    const bool row = axis < kernel.rows;
    Axis renamed = kernel.axes[axis];
    renamed.name = (row ? "i" : "j") + std::to_string(numbers[axis] - (row ? 0 : kernel.rows));
    if (renamed.name != kernel.axes[axis].name)
      names.push_back({kernel.axes[axis].name, renamed.symbol()});
    axes.push_back(std::move(renamed));
  };
  for (int axis = 0; axis < kernel.rows; axis++) keep(axis);
  for (const Step& step : kernel.steps) {
    for (int axis : step.inner) keep(axis);
  }
  kernel.axes = std::move(axes);
  for (Step& step : kernel.steps) {
    for (int& axis : step.inner) axis = numbers[axis];
    if (!names.empty()) step.index = substitute(step.index, names);
  }
  if (names.empty()) return;
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, names);
}

}  // namespace

bool operator==(const Kernel& lhs, const Kernel& rhs) {
  return lhs.name == rhs.name && lhs.axes == rhs.axes && lhs.rows == rhs.rows &&
         lhs.scalars == rhs.scalars && lhs.steps == rhs.steps && lhs.schedule == rhs.schedule;
}

bool operator==(const Program& lhs, const Program& rhs) {
  return lhs.name == rhs.name && lhs.target == rhs.target && lhs.matmul == rhs.matmul &&
         lhs.buffers == rhs.buffers && lhs.kernels == rhs.kernels &&
         lhs.launches == rhs.launches && lhs.outputs == rhs.outputs &&
         lhs.arena_bytes == rhs.arena_bytes;
}

ScalarTable::ScalarTable(Kernel& kernel) : kernel_(kernel) {
  for (size_t id = 0; id < kernel.scalars.size(); id++)
    by_hash_.insert({hash_of(kernel.scalars[id]), static_cast<int>(id)});
}

int ScalarTable::add(Scalar scalar) {
  const size_t hash = hash_of(scalar);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (kernel_.scalars[it->second] == scalar) return it->second;
  }
  const int id = static_cast<int>(kernel_.scalars.size());
  kernel_.scalars.push_back(std::move(scalar));
  by_hash_.insert({hash, id});
  return id;
}

int ScalarTable::constant(const Literal& value) {
  Scalar scalar;
  scalar.kind = ScalarKind::Constant;
  scalar.dtype = value.dtype;
  scalar.value = value;
  return add(std::move(scalar));
}

int ScalarTable::index(const Expr& value) {
  if (value.is_constant()) return constant(Literal::of_integer(DType::i64, value.constant()));
  Scalar scalar;
  scalar.kind = ScalarKind::Index;
  scalar.dtype = DType::i64;
  scalar.index = value;
  return add(std::move(scalar));
}

int ScalarTable::apply(Op op, DType result, std::vector<int> operands) {
  Scalar scalar;
  scalar.kind = ScalarKind::Apply;
  scalar.op = op;
  scalar.dtype = result;
  scalar.operands = std::move(operands);
  return add(std::move(scalar));
}

int ScalarTable::load(const Program& program, int buffer, const Expr& index) {
  Scalar scalar;
  scalar.kind = ScalarKind::Load;
  scalar.dtype = program.buffers[buffer].type.dtype;
  scalar.buffer = buffer;
  scalar.index = index;
  scalar.value = Literal{scalar.dtype, 0};
  return add(std::move(scalar));
}

Kernel normalize(Kernel kernel) {
  drop_dead_steps(kernel);
  rename_axes(kernel);
  return kernel;
}

std::vector<int> row_axes(const Kernel& kernel) {
  std::vector<int> result(static_cast<size_t>(kernel.rows));
  for (int i = 0; i < kernel.rows; i++) result[i] = i;
  return result;
}

Expr row_count(const Kernel& kernel) {
  Expr count = 1;
  for (int axis = 0; axis < kernel.rows; axis++) count = count * kernel.axes[axis].extent;
  return count;
}

Expr inner_count(const Kernel& kernel, const Step& step) {
  Expr count = 1;
  for (int axis : step.inner) count = count * kernel.axes[axis].extent;
  return count;
}

std::vector<bool> buffers_read(const Program& program, const Kernel& kernel) {
  std::vector<bool> read(program.buffers.size());
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) read[scalar.buffer] = true;
  }
  return read;
}

std::vector<bool> buffers_written(const Program& program, const Kernel& kernel) {
  std::vector<bool> written(program.buffers.size());
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) written[step.buffer] = true;
  }
  return written;
}

std::vector<bool> reachable(const Kernel& kernel, const Step& step) {
  std::vector<bool> seen(kernel.scalars.size());
  std::vector<int> order;
  for (int root : roots(step)) walk(kernel, root, seen, order);
  return seen;
}

Literal identity(Op reduction, DType dtype) {
  if (is_scan(reduction) || is_scatter(reduction)) return scan_identity(reduction, dtype);
  const bool floating = is_float(dtype);
  const bool is_unsigned = category(dtype) == Category::Unsigned;
  const int bits = static_cast<int>(8 * size_of(dtype));
  switch (reduction) {
    case Op::sum:
    case Op::sum_exp: return Literal::of(dtype, -0.0);
    case Op::prod:
    case Op::all: return Literal::of(dtype, 1);
    case Op::max:
    case Op::maximum:
      if (floating) return Literal::of(dtype, -__builtin_inf());
      return Literal::of_integer(dtype, is_unsigned ? 0 : -(int64_t{1} << (bits - 2)) * 2);
    case Op::min:
    case Op::minimum:
      if (floating) return Literal::of(dtype, __builtin_inf());
      if (is_unsigned) return Literal::of_unsigned(dtype, ~uint64_t{0} >> (64 - bits));
      return Literal::of_integer(dtype, static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1));
    default: return Literal::of(dtype, 0);
  }
}

}  // namespace tiny_compile
