// One load, one store, all axes rows.
#include "tiny_compile/loops/copy_kernel.h"

namespace tiny_compile {

Kernel copy_kernel(const Program& program, std::vector<Axis> axes, const Element& from,
                   const Element& to) {
  Kernel copy;
  copy.axes = std::move(axes);
  copy.rows = static_cast<int>(copy.axes.size());
  Step store;
  store.buffer = to.buffer;
  store.dtype = program.buffers[to.buffer].type.dtype;
  store.index = to.index;
  store.value = ScalarTable(copy).load(program, from.buffer, from.index);
  copy.steps.push_back(std::move(store));
  return normalize(std::move(copy));
}

}  // namespace tiny_compile
