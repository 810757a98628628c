// fails: a part that is needed beside the largest formula moves too
#include <algorithm>

#include "exercise.h"

namespace exercise {
namespace {

struct Facts {
  std::vector<bool> axes;  // that the scalar knows
  bool dear = false;
};

std::vector<Facts> facts_of(const Kernel& kernel) {
  std::vector<Facts> facts;
  for (const Scalar& scalar : kernel.scalars) {
    Facts fact;
    for (const Axis& axis : kernel.axes)
      fact.axes.push_back(depends_on(scalar.index, axis.name));
    fact.dear = scalar.kind == ScalarKind::Apply && is_dear(scalar.op);
    std::vector<int> below = scalar.operands;
    if (scalar.mask >= 0) below.push_back(scalar.mask);
    for (int id : below) {
      for (size_t a = 0; a < fact.axes.size(); a++)
        fact.axes[a] = fact.axes[a] || facts[id].axes[a];
      fact.dear = fact.dear || facts[id].dear;
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

bool only_stores(const Kernel& kernel) {
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), [](const Step& step) {
    return step.kind == StepKind::Store && step.inner.empty();
  });
}

// The formulas that may move and that are in no other one that may.
std::vector<int> movable(const Kernel& kernel, const std::vector<Facts>& facts) {
  std::vector<bool> covered(facts.size());
  std::vector<int> result;
  for (size_t id = facts.size(); id-- > 0;) {
    const Scalar& scalar = kernel.scalars[id];
    bool may = false;
    for (size_t a = 0; a < kernel.axes.size(); a++)
      may = may || (!facts[id].axes[a] && !kernel.axes[a].extent.is_constant(1));
    may = may && scalar.kind == ScalarKind::Apply && facts[id].dear;
    if (may && !covered[id]) result.push_back(static_cast<int>(id));
    if (!may && !covered[id]) continue;
    for (int operand : scalar.operands) covered[operand] = true;
    if (scalar.mask >= 0) covered[scalar.mask] = true;
  }
  return result;
}

// A temporary for the scalar, and its index in terms of the kernel's axes.
struct Place {
  int buffer = -1;
  Expr index;
};

Place add_temporary(Program& program, const Kernel& kernel, int id,
                    const std::vector<bool>& known) {
  Shape shape, at;
  for (size_t a = 0; a < kernel.axes.size(); a++) {
    if (!known[a]) continue;
    shape.push_back(kernel.axes[a].extent);
    at.push_back(kernel.axes[a].symbol());
  }
  const Shape strides = row_major_strides(shape);
  Place place{static_cast<int>(program.buffers.size()), 0};
  for (size_t a = 0; a < at.size(); a++) place.index = place.index + at[a] * strides[a];
  Buffer buffer;
  buffer.name = str("h", place.buffer, "_", kernel.name);
  buffer.type = {kernel.scalars[id].dtype, shape};
  buffer.size = product(shape);
  program.buffers.push_back(std::move(buffer));
  return place;
}

Kernel kernel_of(const Kernel& kernel, int id, const std::vector<bool>& known,
                 const Place& place) {
  Kernel result;
  result.name = str("hoisted_", place.buffer);
  result.where = kernel.where;
  for (size_t a = 0; a < kernel.axes.size(); a++) {
    if (known[a]) result.axes.push_back(kernel.axes[a]);
  }
  result.rows = static_cast<int>(result.axes.size());
  result.scalars = kernel.scalars;
  Step store;
  store.buffer = place.buffer;
  store.index = place.index;
  store.value = id;
  store.dtype = kernel.scalars[id].dtype;
  result.steps = {store};
  return normalize(std::move(result));
}

Kernel with_load(const Program& program, Kernel kernel, int id, const Place& place) {
  Scalar load;
  load.kind = ScalarKind::Load;
  load.dtype = program.buffers[place.buffer].type.dtype;
  load.buffer = place.buffer;
  load.index = place.index;
  load.value = Literal{load.dtype, 0};
  kernel.scalars[id] = std::move(load);
  return kernel;
}

}  // namespace

Program hoist(const Program& program) {
  Program result = program;
  result.kernels.clear();
  result.launches.clear();
  auto add = [&](Kernel kernel) {
    result.launches.push_back({static_cast<int>(result.kernels.size())});
    result.kernels.push_back(std::move(kernel));
  };
  for (Kernel kernel : program.kernels) {
    const std::vector<Facts> facts = facts_of(kernel);
    for (int id : only_stores(kernel) ? movable(kernel, facts) : std::vector<int>()) {
      const Place place = add_temporary(result, kernel, id, facts[id].axes);
      add(kernel_of(kernel, id, facts[id].axes, place));
      kernel = with_load(result, std::move(kernel), id, place);
    }
    add(normalize(std::move(kernel)));
  }
  return result;
}

}  // namespace exercise
