// Which values are computed once for two loops over the same axes? The costly ones:
//
//   r1 = sum(j0) exp(..) ; store .. for (j0) = div(exp(..), r1)   =>   exp(..), over j0
//
// From the last scalar to the first, users are handed on to the operands; a value that is kept is
// computed by its first user alone and read by the others.
#include "tiny_compile/loops/costly_values.h"

#include <algorithm>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

// What is computed for nothing must not read a place that is not there, nor raise an error.
bool may_go_wrong(const Kernel& kernel, const Scalar& scalar) {
  const bool divides = scalar.op == Op::floor_divide || scalar.op == Op::remainder;
  return scalar.kind == ScalarKind::Load || scalar.kind == ScalarKind::Index ||
         (scalar.kind == ScalarKind::Apply && divides &&
          !is_float(kernel.scalars[scalar.operands[0]].dtype));
}

// A value that does not depend on all the loops is cheaper outside them.
bool varies_over(uint64_t axes, const std::vector<int>& inner) {
  return !inner.empty() &&
         std::all_of(inner.begin(), inner.end(), [&](int axis) { return axes >> axis & 1; });
}

struct Users {
  int first = -1, last = -1;  // steps
  bool same_loops = true;
};

void add(const Kernel& kernel, Users& all, const Users& more) {
  const auto& steps = kernel.steps;
  if (more.first < 0) return;
  all.same_loops = more.same_loops && all.same_loops &&
                   (all.first < 0 || steps[all.first].inner == steps[more.first].inner);
  all.first = all.first < 0 ? more.first : std::min(all.first, more.first);
  all.last = std::max(all.last, more.last);
}

std::vector<Users> users_of_roots(const Kernel& kernel) {
  std::vector<Users> users(kernel.scalars.size());
  for (int s = 0; s < static_cast<int>(kernel.steps.size()); s++) {
    for (int root : kernel.steps[s].roots()) {
      if (root >= 0) add(kernel, users[root], {s, s, true});
    }
  }
  return users;
}

}  // namespace

std::vector<uint64_t> loops_that_may_not_turn(const Kernel& kernel) {
  const auto may_not_turn = [&](int axis) { return kernel.axes[axis].extent.bounds().low < 1; };
  std::vector<uint64_t> loops(kernel.scalars.size(), 0);
  std::vector<bool> is_used(kernel.scalars.size());
  for (const Step& step : kernel.steps) {
    uint64_t around = 0;
    for (int axis : step.inner) around |= uint64_t{may_not_turn(axis)} << axis;
    const std::vector<bool> used = reachable(kernel, step);
    for (size_t id = 0; id < used.size(); id++) {
      if (!used[id]) continue;
      loops[id] = is_used[id] ? loops[id] & around : around;
      is_used[id] = true;
    }
  }
  for (size_t id = 0; id < loops.size(); id++)
    if (!may_go_wrong(kernel, kernel.scalars[id])) loops[id] = 0;
  return loops;
}

std::vector<uint64_t> needs_of(const Kernel& kernel) {
  CHECK(kernel.axes.size() < 64, "a kernel of ", kernel.axes.size(), " axes");
  const std::vector<uint64_t> loops = loops_that_may_not_turn(kernel);
  std::vector<uint64_t> all;
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    uint64_t needs = loops[id] | (scalar.kind == ScalarKind::Register ? kRegisters : 0);
    for (size_t a = 0; a < kernel.axes.size(); a++)
      needs |= uint64_t{depends_on(scalar.index, kernel.axes[a].name)} << a;
    for (int operand : scalar.operands) needs |= all[operand];
    if (scalar.mask >= 0) needs |= all[scalar.mask];
    all.push_back(needs);
  }
  return all;
}

// A CPU converts to and from f16 by a dozen instructions.
bool is_costly_again(const Scalar& scalar) {
  const bool converts = scalar.dtype == DType::f16 &&
                        (scalar.kind == ScalarKind::Load ||
                         (scalar.kind == ScalarKind::Apply && !stays_in_dtype(scalar.op)));
  return is_costly(scalar) || converts;
}

std::map<int, std::vector<int>> costly_values(const Kernel& kernel,
                                              const std::vector<uint64_t>& axes,
                                              int64_t most_of_all) {
  std::map<int, std::vector<int>> planned;
  if (!schedule_of(kernel).keep || kernel.steps.size() < 2) return planned;
  std::vector<Users> users = users_of_roots(kernel);
  for (size_t id = kernel.scalars.size(); id-- > 0;) {
    const Scalar& scalar = kernel.scalars[id];
    Users mine = users[id];
    if (is_costly_again(scalar) && mine.first >= 0 && mine.last > mine.first &&
        mine.same_loops && varies_over(axes[id], kernel.steps[mine.first].inner)) {
      const Step& first = kernel.steps[mine.first];
      const int64_t bytes =
          std::min(inner_count(kernel, first).bounds().high, kMostKeptBytes + 1) *
          size_of(compute_type(scalar.dtype));
      if (bytes <= kMostKeptBytes && bytes <= most_of_all) {
        planned[static_cast<int>(id)] = first.inner;
        most_of_all -= bytes;
        mine.last = mine.first;
      }
    }
    for (int operand : scalar.operands) add(kernel, users[operand], mine);
    if (scalar.mask >= 0) add(kernel, users[scalar.mask], mine);
  }
  return planned;
}

}  // namespace tiny_compile
