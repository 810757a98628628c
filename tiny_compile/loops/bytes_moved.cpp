// How many bytes must a kernel move at least? Each place that its loops reach, once: what is read
// again is in a cache by then.
//
//   rows(i: 8, j: 4) { store y[i*4 + j] = add(load x[i*4 + j], load b[j]) }
// =>
//   x: 32 elements (steps 1:4 4:8), b: 4 (1:4), y: 32 (1:4 4:8); of f32 272 bytes
//
// Indices with the same constant, steps and extents reach the same places, which count once.
#include "tiny_compile/loops/bytes_moved.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tiny_compile {
namespace {

// Distinct values of a sum of terms c*a, a in [0, e): counted exactly while the terms nest.
struct Reach {
  int64_t count = 1, span = 0;  // distinct values; largest minus smallest
};

Reach widen(Reach reach, int64_t coefficient, int64_t extent) {
  coefficient = std::abs(coefficient);
  const int64_t span = reach.span + coefficient * (extent - 1);
  if (coefficient > reach.span) return {reach.count * extent, span};
  return {std::min(reach.count * extent, span + 1), span};
}

struct Access {
  std::string shape;  // what the index covers, without the names of its axes
  int64_t count = 0;
};

Access access_of(const Kernel& kernel, const Expr& index, int64_t points, int64_t size) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // coefficient, extent
  int64_t constant = 0;
  std::string chosen;  // the index, where data chooses some of it: at most one element a point
  for (const Term& term : terms(index)) {
    if (term.factor.is_constant()) {
      constant = term.coefficient;
      continue;
    }
    auto is_axis = [&](const Axis& axis) { return term.factor == axis.symbol(); };
    const auto axis = std::find_if(kernel.axes.begin(), kernel.axes.end(), is_axis);
    const Interval bounds = index.bounds(), own = term.factor.bounds();
    if (axis != kernel.axes.end()) {
      steps.push_back({std::abs(term.coefficient), axis->extent.bounds().high});
    } else if (term.factor.kind() == ExprKind::Symbol) {
      steps.push_back({std::abs(term.coefficient), own.high - own.low + 1});
      chosen = index.str();
    } else {  // divided, ..: likewise
      return {index.str(),
              std::min({points, size, std::max<int64_t>(0, bounds.high - bounds.low + 1)})};
    }
  }
  std::sort(steps.begin(), steps.end());
  Reach reach;
  std::string shape = std::to_string(constant);
  for (const auto& [coefficient, extent] : steps) {
    reach = widen(reach, coefficient, extent);
    shape += tiny_compile::str(" ", coefficient, ":", extent);
  }
  if (!chosen.empty()) return {chosen, std::min({reach.count, points, size})};
  return {shape, std::min(reach.count, size)};
}

// Distinct elements that accesses reach.
class Reached {
 public:
  Reached(const Program& program, const Kernel& kernel) : program_(program), kernel_(kernel) {
    for (const Axis& axis : kernel.axes)
      points_ *= std::max<int64_t>(axis.extent.bounds().high, 0);
  }

  void note(int buffer, bool written, const Expr& index) {
    const Access access =
        access_of(kernel_, index, points_, program_.buffers[buffer].size.bounds().high);
    accesses_[{buffer, written}][access.shape] = access.count;
  }

  // `once`: of each array what the access reaches that reaches most of it.
  int64_t bytes(bool once = false) const {
    int64_t bytes = 0;
    for (const auto& [key, shapes] : accesses_) {
      const Buffer& buffer = program_.buffers[key.first];
      int64_t elements = 0;
      for (const auto& [shape, count] : shapes)
        elements = once ? std::max(elements, count) : elements + count;
      elements = std::min(elements, buffer.size.bounds().high);
      bytes += elements * size_of(buffer.type.dtype);
    }
    return points_ == 0 ? 0 : bytes;
  }

 private:
  const Program& program_;
  const Kernel& kernel_;
  int64_t points_ = 1;
  std::map<std::pair<int, bool>, std::map<std::string, int64_t>> accesses_;  // buffer, written
};

}  // namespace

namespace {

Reached reached_by(const Program& program, const Kernel& kernel) {
  Reached reached(program, kernel);
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) reached.note(scalar.buffer, false, scalar.index);
  }
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) reached.note(step.buffer, true, step.index);
  }
  return reached;
}

}  // namespace

int64_t bytes_moved(const Program& program, const Kernel& kernel) {
  return reached_by(program, kernel).bytes();
}

int64_t bytes_moved_at_least(const Program& program, const Kernel& kernel) {
  return reached_by(program, kernel).bytes(true);
}

int64_t bytes_read(const Program& program, const Kernel& kernel,
                   const std::vector<bool>& wanted) {
  Reached reached(program, kernel);
  for (size_t id = 0; id < wanted.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (wanted[id] && scalar.kind == ScalarKind::Load)
      reached.note(scalar.buffer, false, scalar.index);
  }
  return reached.bytes();
}

int64_t bytes_moved(const Program& program) {
  int64_t bytes = 0;
  for (const auto& launch : program.launches) {
    for (int kernel : launch) bytes += bytes_moved(program, program.kernels[kernel]);
  }
  return bytes;
}

}  // namespace tiny_compile
