// Question: which symbolic sizes has a Program, and what is it with numbers for them?
//
//   program f[n: 1..4096] { input x: f32[n] ; kernel k rows(i0: n) { ... } }        n = 37
// =>
//   program f { input x: f32[37] ; kernel k rows(i0: 37) { ... } }
//
// A plan of memory holds numbers alone, so one is made once the sizes are known.
#include "tiny_compile/graph/sizes.h"

#include <algorithm>

#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

// So do those of places that data chooses, with their limits.
Substitution with_places(const std::vector<Expr>& limits, const Substitution& sizes) {
  Substitution result = sizes;
  for (size_t k = 0; k < limits.size(); k++)
    result.push_back({indirect(k), Expr::index(indirect(k), max(limits[k], 1))});
  return result;
}

// Scalars again, since two may be equal now, and an index may be a constant.
Kernel substitute(const Kernel& kernel, const Substitution& sizes) {
  Kernel result = kernel;
  result.scalars.clear();
  ScalarTable table(result);
  std::vector<int> numbers;
  const auto renumber = [&](int& id) {
    if (id >= 0) id = numbers[static_cast<size_t>(id)];
  };
  for (Scalar scalar : kernel.scalars) {
    scalar.limits = substitute(scalar.limits, sizes);
    scalar.index = substitute(scalar.index, with_places(scalar.limits, sizes));
    std::for_each(scalar.operands.begin(), scalar.operands.end(), renumber);
    renumber(scalar.mask);
    const bool is_index = scalar.kind == ScalarKind::Index && scalar.operands.empty();
    numbers.push_back(is_index && scalar.mask < 0 && scalar.dtype == DType::i64
                          ? table.index(scalar.index)
                          : table.add(std::move(scalar)));
  }
  for (Axis& axis : result.axes) axis.extent = substitute(axis.extent, sizes);
  for (Step& step : result.steps) {
    step.limit = substitute(step.limit, sizes);
    step.index = substitute(step.index, with_places({step.limit}, sizes));
    for (int* id : {&step.value, &step.other, &step.mask}) renumber(*id);
  }
  return result;
}

// An index's bounds are its axis's: symbols of axes change with their extents.
Substitution with_axes(const Kernel& kernel, const Substitution& sizes) {
  Substitution result = sizes;
  for (const Axis& axis : kernel.axes) {
    const Expr extent = substitute(axis.extent, sizes);
    if (extent != axis.extent)
      result.push_back({axis.symbol().symbol(), Expr::index(axis.name, extent)});
  }
  return result;
}

}  // namespace

std::vector<Expr> sizes(const Program& program) {
  std::vector<Expr> found;
  const auto add = [&](const Expr& expr) { collect_symbols(expr, found); };
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
  std::erase_if(found, [](const Expr& e) { return e.symbol().kind != SymbolKind::Size; });
  return found;
}

Program substitute(const Program& program, const Substitution& values) {
  if (values.empty()) return program;
  Program result = program;
  const bool was_symbolic = !sizes(program).empty();
  for (Buffer& buffer : result.buffers) {
    buffer.type.shape = substitute(buffer.type.shape, values);
    buffer.strides = substitute(buffer.strides, values);
    buffer.size = substitute(buffer.size, values);
    buffer.offset = substitute(buffer.offset, values);
  }
  for (Kernel& kernel : result.kernels) kernel = substitute(kernel, with_axes(kernel, values));
  return was_symbolic && program.arena_bytes > 0 ? plan_memory(result) : result;
}

}  // namespace tiny_compile
