// The Program as a value: hash-consed scalars, and what a kernel consists of.
//
//   mul($0, $0), asked for twice   =>   one scalar
#include "tiny_compile/loops/program.h"

#include "tiny_compile/graph/scan.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

bool operator==(const Kernel& lhs, const Kernel& rhs) {
  return lhs.name == rhs.name && lhs.axes == rhs.axes && lhs.rows == rhs.rows &&
         lhs.scalars == rhs.scalars && lhs.steps == rhs.steps && lhs.schedule == rhs.schedule &&
         lhs.sized == rhs.sized && lhs.again == rhs.again;
}

bool operator==(const Program& lhs, const Program& rhs) {
  return lhs.name == rhs.name && lhs.target == rhs.target && lhs.machine == rhs.machine &&
         lhs.matmul == rhs.matmul && lhs.buffers == rhs.buffers && lhs.kernels == rhs.kernels &&
         lhs.launches == rhs.launches && lhs.outputs == rhs.outputs &&
         lhs.arena_bytes == rhs.arena_bytes;
}

Program for_machine(Program program, const Machine& machine) {
  program.machine = machine;
  program.target = target_of(machine);
  return program;
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

bool is_costly(const Scalar& scalar) {
  if (scalar.kind == ScalarKind::Philox) return true;
  return scalar.kind == ScalarKind::Apply && is_float(scalar.dtype) && is_costly(scalar.op);
}

Substitution unflatten(const Kernel& kernel, const std::vector<int>& axes, Expr flat) {
  Substitution places;
  for (size_t k = axes.size(); k-- > 0;) {
    const Axis& axis = kernel.axes[axes[k]];
    places.push_back({axis.name, k == 0 ? flat : mod(flat, axis.extent)});
    flat = floor_div(flat, axis.extent);
  }
  return places;
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

Literal identity(Op op, DType dtype) {
  if (is_reduction(op) && reduction_info(op).result != ReducedTo::Place) {
    const double nothing = reduction_info(op).identity;
    return is_float(dtype) || std::isinf(nothing)
               ? Literal::of(dtype, nothing)
               : Literal::of_integer(dtype, static_cast<int64_t>(nothing));  // -1: all ones
  }
  switch (op) {
    case Op::cummax: return identity(Op::max, dtype);
    case Op::cummin: return identity(Op::min, dtype);
    default:
      return is_scan(op) || is_scatter(op) ? scan_identity(op, dtype) : Literal::of(dtype, 0);
  }
}

}  // namespace tiny_compile
