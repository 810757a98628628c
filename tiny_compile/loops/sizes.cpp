// Question: which symbolic sizes has a Program, and what is it with numbers for them?
//
//   program f[n: 1..4096] { input x: f32[n] ; kernel k rows(i0: n) { ... } }        n = 37
// =>
//   program f { input x: f32[37] ; kernel k rows(i0: 37) { ... } }
//
// What a size of 0 leaves empty goes (empty.h), and so does a schedule that is for other numbers: the
// defaults run then.
// A plan of memory holds numbers alone, so one is made once the sizes are known.
#include "tiny_compile/graph/sizes.h"

#include <algorithm>

#include "tiny_compile/loops/empty.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/loops/sized_schedules.h"

namespace tiny_compile {
namespace {

// So do those of places that data chooses, with their limits.
Substitution with_places(const std::vector<Expr>& limits, const Substitution& sizes) {
  Substitution result = sizes;
  for (size_t k = 0; k < limits.size(); k++)
    result.push_back({indirect(k), Expr::index(indirect(k), max(limits[k], 1))});
  return result;
}

bool is_empty(const Buffer& buffer) { return product(buffer.type.shape).is_constant(0); }

// What has no elements is row-major.
Buffer substitute(Buffer buffer, const Substitution& sizes) {
  buffer.type.shape = substitute(buffer.type.shape, sizes);
  buffer.strides = substitute(buffer.strides, sizes);
  buffer.size = substitute(buffer.size, sizes);
  buffer.offset = substitute(buffer.offset, sizes);
  if (!buffer.strides.empty() && is_empty(buffer))
    buffer.strides.clear(), buffer.size = 0, buffer.offset = 0;
  return buffer;
}

// An index's bounds are its axis's: symbols of axes change with their extents.
Substitution with_axes(const Kernel& kernel, const Substitution& sizes) {
  Substitution result = sizes;
  for (const Axis& axis : kernel.axes)
    result.push_back({axis.symbol().symbol(), Expr::index(axis.name, axis.extent)});
  return result;
}

// Loops that do not turn go first, for their indices divide by their extents; so do those of what
// has no elements, which no load's mask lets it read. Then scalars again, since two may be equal
// now, and an index may be a constant.
Kernel substitute(Kernel kernel, const std::vector<Buffer>& buffers,
                  const Substitution& values) {
  for (Axis& axis : kernel.axes) axis.extent = substitute(axis.extent, values);
  const Kernel turning = without_empty_loops(with_schedule_for(std::move(kernel), values));
  const Substitution sizes = with_axes(turning, values);
  Kernel result = turning;
  result.scalars.clear();
  ScalarTable table(result);
  std::vector<int> numbers;
  const auto renumber = [&](int& id) {
    if (id >= 0) id = numbers[static_cast<size_t>(id)];
  };
  for (Scalar scalar : turning.scalars) {
    scalar.limits = substitute(scalar.limits, sizes);
    const bool reads_nothing =
        scalar.kind == ScalarKind::Load && is_empty(buffers[scalar.buffer]);
    scalar.index =
        reads_nothing ? 0 : substitute(scalar.index, with_places(scalar.limits, sizes));
    std::for_each(scalar.operands.begin(), scalar.operands.end(), renumber);
    renumber(scalar.mask);
    const bool is_index = scalar.kind == ScalarKind::Index && scalar.operands.empty();
    numbers.push_back(is_index && scalar.mask < 0 && scalar.dtype == DType::i64
                          ? table.index(scalar.index)
                          : table.add(std::move(scalar)));
  }
  for (Step& step : result.steps) {
    step.limit = substitute(step.limit, sizes);
    step.index = substitute(step.index, with_places({step.limit}, sizes));
    for (int* id : step.roots()) renumber(*id);
  }
  return result;
}

// Calls see(size) for each place where one stands.
template <typename See>
void see_sizes(const Expr& expr, const See& see) {
  if (!expr.has_sizes()) return;
  if (expr.kind() == ExprKind::Symbol) return see(expr);
  for (const Expr& operand : expr.operands()) see_sizes(operand, see);
}

}  // namespace

std::vector<Expr> sizes(const Program& program) {
  std::vector<Expr> found;
  const auto see = [&](const Expr& size) {
    if (std::find(found.begin(), found.end(), size) == found.end()) found.push_back(size);
  };
  const auto add = [&](const Expr& expr) { see_sizes(expr, see); };
  for (const Buffer& buffer : program.buffers) {
    std::for_each(buffer.type.shape.begin(), buffer.type.shape.end(), add);
    std::for_each(buffer.strides.begin(), buffer.strides.end(), add);
    add(buffer.size), add(buffer.offset);
  }
  for (const Kernel& kernel : program.kernels) {
    for (const Axis& axis : kernel.axes) add(axis.extent);
    for (const Scalar& scalar : kernel.scalars) {
      add(scalar.index);
      std::for_each(scalar.limits.begin(), scalar.limits.end(), add);
    }
    for (const Step& step : kernel.steps) add(step.index), add(step.limit);
  }
  return found;
}

Program substitute(const Program& program, const Substitution& values) {
  if (values.empty()) return program;
  Program result = program;
  const bool was_symbolic = !sizes(program).empty();
  for (Buffer& buffer : result.buffers) buffer = substitute(std::move(buffer), values);
  for (Kernel& kernel : result.kernels)
    kernel = substitute(std::move(kernel), result.buffers, values);
  result = without_empty_kernels(std::move(result));
  for (Kernel& kernel : result.kernels)
    if (was_symbolic && !why_illegal(result, kernel).empty()) kernel.schedule.reset();
  return was_symbolic && program.arena_bytes > 0 ? plan_memory(result) : result;
}

Program substitute_in_buffers(Program program, const Substitution& values) {
  for (Buffer& buffer : program.buffers) buffer = substitute(std::move(buffer), values);
  return program;
}

}  // namespace tiny_compile
