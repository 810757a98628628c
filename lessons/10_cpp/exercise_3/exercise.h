// 10-3 ★★★ A back end: OpenCL C
//
// OpenCL runs a kernel once a *work item*. Work items stand in groups of one size; each asks for
// its number and does its part:
//   __kernel void gated(__global const float* in_x, __global const float* in_g,
//                       __global float* out_y) {
//     const int point = get_global_id(0);
//     if (point >= 257000) return;         // the last group may reach beyond the end
//     const int i0 = point / 257, i1 = point % 257;
//     const float load_0 = in_x[i0*257 + i1];
//     ...
//     out_y[i0*257 + i1] = mul_3;
//   }
//
// Write emit_opencl: a Source whose text has one such function a kernel, in order. Kernels are
// pointwise (every axis is a row, every step a store without inner loops, every buffer f32, no
// more than 2^30 points). Of an entry fill in
//   function  its name; two kernels may not share one (no two of a program have one kernel.name)
//   buffers   of each argument, in order, which of program.buffers it is: those the kernel loads
//             or stores, each once, no others
//   block     the size of a group: kGroup
//   grid      how many groups, not one more than needed
// Neighbouring work items take neighbouring points, the last axis fastest. The text is OpenCL C, not
// C++: `long long`, `extern`, `auto` and references are no words of it.
//
// ScalarWriter writes the scalars: definition(id), name(id), index(expr), is_trivial(id). It speaks
// C++: the i64 in a mask comes out as `long long` and `50ll`. Leave that; write none yourself.
// pointer_name(buffer) gives "in_x". Of what tc_ functions there are, assume all.
//
// Of the program you need: kernel.axes[a] with .name and .extent.constant(); kernel.scalars,
// operands before their users; kernel.steps, each with .buffer, .index and .value, the number of
// a scalar; row_count(kernel).constant(), the points; buffers_read and buffers_written, a bool for
// each of program.buffers.
//
// The check needs no OpenCL: it compiles your text as C++ in which __kernel, __global and
// get_global_id are macros and functions, and runs every work item in turn.
#pragma once

#include "tiny_compile/codegen/scalar.h"
#include "tiny_compile/codegen/source.h"
#include "tiny_compile/loops/program.h"

namespace exercise {

using namespace tiny_compile;

constexpr int kGroup = 64;

Source emit_opencl(const Program& program);

}  // namespace exercise
