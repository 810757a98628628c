// How fast can a product be? An element of it is one fma after the other, and each
// waits for the one before: so many elements must be under way at once. A tile of them shares what
// it loads: in C++, 8 + 32 numbers make 256 products, in vectors (the right operand is copied
// side by side); in CUDA, 64 + 64 in shared memory make 4096, 16 of them a thread's. Where there
// would be too few of these, CUDA's are 16 by 16.
//
//   %2 = matmul %0, %1   %3 = exp %2     =>  left(i0, k), right(k, i1), result(i0, i1, v2) {.. exp ..}
//
// Each element's order is the interpreter's, so are its bits. Left out: what a cache holds, tensor
// cores, copies that run ahead.
#pragma once

#include "lessons/small/14_guards.h"

namespace small {

constexpr const char* kCppTiles = R"(
template <class Left, class Right, class Result>
static void tiles(long long m, long long n, long long size, Left left, Right right, Result result) {
  const long long across = (n + 31) / 32, down = (m + 63) / 64;
#pragma omp parallel for if (m * n * size > 1 << 18)
  for (long long t = 0; t < across * down; t++) {
    const long long j = t / down * 32, top = t % down * 64, width = least(32, n - j);
    float* const packed = new float[size * 32 + 1];
    for (long long k = 0; k < size; k++)
      for (int c = 0; c < 32; c++) packed[k * 32 + c] = c < width ? right(k, j + c) : 0;
    for (long long i = top; i < least(top + 64, m); i += 8) {
      float sums[8][32] = {};
      for (long long k = 0; k < size; k++)
#pragma GCC unroll 8
        for (int r = 0; r < 8; r++) {
          const float one = left(least(i + r, m - 1), k);
          for (int c = 0; c < 32; c++) sums[r][c] = tc_fma(one, packed[k * 32 + c], sums[r][c]);
        }
      for (int r = 0; r < least(8, m - i); r++)
        for (int c = 0; c < width; c++) result(i + r, j + c, sums[r][c]);
    }
    delete[] packed;
  }
}
)";

constexpr const char* kCudaTiles = R"(
template <int T, class Left, class Right, class Result>
TC_FN void tiles(long long m, long long n, long long size, Left left, Right right, Result result) {
  constexpr int kOwn = T / 16;  // rows and columns of a thread
  __shared__ float of_left[16][T + 1], of_right[16][T + 1];
  const long long down = (m + T - 1) / T, i = blockIdx.x % down * T, j = blockIdx.x / down * T;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sums[kOwn][kOwn] = {};
  for (long long first = 0; first < size; first += 16) {
    for (int e = threadIdx.x; e < T * 16; e += 256) {
      const long long row = i + e / 16, column = j + e % T, k = first + e % 16, l = first + e / T;
      of_left[e % 16][e / 16] = row < m && k < size ? left(row, k) : 0;
      of_right[e / T][e % T] = column < n && l < size ? right(l, column) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k++)
#pragma unroll
      for (int e = 0; e < kOwn * kOwn; e++)
        sums[e / kOwn][e % kOwn] = tc_fma(of_left[k][y * kOwn + e / kOwn],
                                          of_right[k][x + e % kOwn * 16], sums[e / kOwn][e % kOwn]);
    __syncthreads();
  }
#pragma unroll
  for (int e = 0; e < kOwn * kOwn; e++) {
    const long long row = i + y * kOwn + e / kOwn, column = j + x + e % kOwn * 16;
    if (row < m && column < n) result(row, column, sums[e / kOwn][e % kOwn]);
  }
}
)";

inline std::string tiles_text(Formulas f, const std::string& tile) {
  f.inner = ~0u;  // left and right are called for each i0 and i1, too
  const auto& values = f.kernel.values;
  std::string text = values_of(f, -1), result, sizes;
  for (int64_t id = 0; id < std::ssize(values); id++) {
    if (inside_k(f.kernel, id) || values[id].loops == 0) continue;
    if (values[id].op != Op::Matmul) {
      result += f.line(id);
      continue;
    }
    text += function_of_k(f, "left", values[id].operands[0], id, "long long i0, long long k") +
            function_of_k(f, "right", values[id].operands[1], id, "long long k, long long i1");
    result = str("const auto result = [&](long long i0, long long i1, float sum) {\n", result,
                 "const float ", v(id), " = sum + 0.0f;\n");
  }
  for (const int64_t size : f.kernel.sizes) sizes += str(size_name(size), ", ");
  return str(text, result, stores(f, false), "};\ntiles", tile, "(", sizes,
             "left, right, result);\n");
}

inline Plan in_tiles(const Program& program, bool cuda) {
  const auto add = [cuda](Plan& plan, const Formulas& f) {
    if (!is_product(f.kernel))
      return cuda ? add_reduced(plan, f, schedule_k(f.kernel)) : add_cpp(plan, f);
    const auto blocks = [&](int64_t tile) {
      return (f.kernel.sizes[0] + tile - 1) / tile * ((f.kernel.sizes[1] + tile - 1) / tile);
    };
    const int64_t tile = blocks(64) < 128 ? 16 : 64;
    add_kernel(plan, {"", f.arrays, blocks(tile)},
               tiles_text(f, cuda ? str("<", tile, ">") : ""), cuda);
  };
  if (!cuda) return plan_of(program, add, kCppTiles);
  return plan_of(split(program), add, str(kHalves, kCudaTiles).c_str());
}

}  // namespace small
