// Which accesses does a thread make as vectors? Those along an axis whose elements lie side by side:
//
//   load x[i0*256 + j0] of four j0 from j0_v on   =>   load x[i0*256 + j0_v] x4
//   load x[at0*256 + j0], at0 = $0                =>   the same: a row that data chose is one row
#include "tiny_compile/tile/vectors.h"

#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {

Body unpack(const Kernel& kernel, const std::vector<int>& axes, Expr flat,
            const VectorAxis& vector) {
  Body body;
  for (size_t k = axes.size(); k-- > 0;) {
    const Axis& axis = kernel.axes[axes[k]];
    body.push_back(let(axes[k] == vector.axis ? vector.start : axis.name, axis.extent,
                       k == 0 ? flat : mod(flat, axis.extent)));
    flat = floor_div(flat, axis.extent);
  }
  return body;
}

Statement element_axis(const Kernel& kernel, const VectorAxis& vector, const Expr& element) {
  const Axis& axis = kernel.axes[vector.axis];
  return let(axis.name, axis.extent, Expr::index(vector.start, axis.extent) + element);
}

bool is_wide(const Program& program, const Kernel& kernel, const VectorAxis& vector,
             const Expr& index, int buffer) {
  return vector.width > 1 && program.buffers[buffer].align >= 16 &&
         is_pack(index, kernel.axes[vector.axis].symbol(), static_cast<int>(vector.width));
}

Expr at_start(const Kernel& kernel, const VectorAxis& vector, const Expr& index) {
  const Axis& axis = kernel.axes[vector.axis];
  return substitute(index, {{axis.name, Expr::index(vector.start, axis.extent)}});
}

std::optional<Within> mask_of_vector(const Kernel& kernel, const VectorAxis& vector, int mask) {
  const std::vector<Scalar>& scalars = kernel.scalars;
  const Scalar& less = scalars[mask];
  if (less.kind != ScalarKind::Apply || less.op != Op::lt) return std::nullopt;
  const Scalar &index = scalars[less.operands[0]], &bound = scalars[less.operands[1]];
  if (index.kind != ScalarKind::Index || bound.kind != ScalarKind::Constant)
    return std::nullopt;
  const int64_t most = bound.value.as_integer();
  const Axis& axis = kernel.axes[vector.axis];
  const bool is_aligned =
      most % vector.width == 0 &&
      is_contiguous(index.index, axis.symbol(), static_cast<int>(vector.width));
  if (depends_on(index.index, axis.name) && !is_aligned) return std::nullopt;
  return Within{at_start(kernel, vector, index.index), most};
}

}  // namespace tiny_compile
