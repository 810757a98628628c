// The text of one CUDA kernel under construction.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/codegen/cuda_signature.h"

namespace tiny_compile {

constexpr int64_t kMostInt = int64_t{1} << 30;  // indices below: ints, sums of two as well

// A KernelText of a kernel that a GPU starts, or of a part of one (cuda_group.h).
class CudaText : public KernelText {
 public:
  CudaText(const Program& program, const Kernel& kernel, Starts starts = Starts::Kernel);

  // extern "C" __global__ void f(const float* __restrict__ in_x, ..., const int size_n) {
  // or, of a group's, where blockIdx and the number of points are parameters,
  // static __device__ void block_of_f(const tc_block blockIdx, const int points, ...) {
  // Blocks stand in clusters of `cluster`, which is more than 1 for sm_90 and later only.
  // `resident` blocks at least fit a multiprocessor: the compiler may use all registers up to
  // that for loads in flight; 0 leaves it to the compiler.
  KernelEntry begin(const std::string& function, const Expr& grid, int block, int cluster = 1,
                    int resident = 0);

  bool lets_next = false;  // what is started behind it may be so while it runs
  std::string attributes;  // of the kernel that begin() began: "__launch_bounds__(256) "
  std::string pointer_type(int buffer);  // "const float*"
  bool is_counted() const { return starts_ == Starts::Counted; }

 private:
  Starts starts_;
};

}  // namespace tiny_compile
