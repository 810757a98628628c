#include "tiny_compile/loops/row_results.h"

namespace tiny_compile {

Scalar load_of_row(const Program& program, int buffer, const Expr& row) {
  Scalar load;
  load.kind = ScalarKind::Load;
  load.dtype = program.buffers[buffer].type.dtype;
  load.buffer = buffer;
  load.value = Literal{load.dtype, 0};
  load.index = row;
  return load;
}

Step store_of_row(ScalarTable& table, int step, DType dtype, int buffer, const Expr& row) {
  Scalar result;
  result.kind = ScalarKind::Register;
  result.dtype = dtype;
  result.step = step;
  Step store;
  store.buffer = buffer;
  store.index = row;
  store.dtype = dtype;
  store.value = table.add(std::move(result));
  return store;
}

}  // namespace tiny_compile
