// 10-1 ★ Hoist what does not change
//
// nested_loops() below writes a kernel as one loop inside the other, an axis each, and asks for
// every scalar how many of those loops must stand around it. The answer in start.cpp is "all of
// them". It is never wrong, and it evaluates the sigmoid of the lesson 257 times a row:
//   for (i0) {
//     for (j0) {
//       const float load_0 = in_x[i0*257 + j0];
//       const float load_1 = in_g[i0];              <- needs i0 alone: one loop
//       const float sigmoid_2 = tc_sigmoid(load_1); <- the same
//       const float mul_3 = load_0 * sigmoid_2;     <- needs i0 and j0: two loops
//
// Answer with the smallest number that is right: 0 before all loops, 1 inside the first, ...
// A value needs the axes in its own index, all that its operands need, and all that its mask
// needs. Loops are nested in the order of kernel.axes, whatever a value needs of them.
#pragma once

#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/codegen/scalar.h"
#include "tiny_compile/loops/program.h"

namespace exercise {

using namespace tiny_compile;

// What you have: kernel.scalars[scalar] has .index, .operands (numbers of other scalars) and .mask
// (one more, or -1); kernel.axes[a] has .name; depends_on(index, name) tells whether an axis is in
// an index.
int loops_around(const Kernel& kernel, int scalar);

// The first kernel of a program as text:  void run(void* const* buffers)
inline std::string nested_loops(const Program& program) {
  const Kernel& kernel = program.kernels[0];
  Calls calls;
  const ScalarWriter scalars(program, kernel, calls);
  std::string text = "extern \"C\" void run(void* const* buffers) {\n", indent = "  ";
  for (size_t b = 0; b < program.buffers.size(); b++) {
    const std::string type = str(c_type(program.buffers[b].type.dtype), "*");
    text += str("  ", type, " ", pointer_name(program.buffers[b]), " = (", type, ")buffers[", b,
                "];\n");
  }
  for (int depth = 0;; depth++) {
    for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
      if (!scalars.is_trivial(id) && loops_around(kernel, id) == depth)
        text += indent + scalars.definition(id) + "\n";
    }
    if (depth == static_cast<int>(kernel.axes.size())) break;
    const Axis& axis = kernel.axes[static_cast<size_t>(depth)];
    text += str(indent, "for (long long ", axis.name, " = 0; ", axis.name, " < ", axis.extent,
                "; ", axis.name, "++) {\n");
    indent += "  ";
  }
  for (const Step& step : kernel.steps)
    text += str(indent, pointer_name(program.buffers[static_cast<size_t>(step.buffer)]), "[",
                scalars.index(step.index), "] = ", scalars.name(step.value), ";\n");
  for (; !indent.empty(); indent.resize(indent.size() - 2)) text += indent.substr(2) + "}\n";
  return str("#define TC_FN static inline\n#define TC_FAIL(code)\n", prelude_for(calls, false),
             text);
}

}  // namespace exercise
