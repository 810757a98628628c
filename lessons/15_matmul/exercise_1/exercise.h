// 15-1 ★★ A tile in 32 registers
//
// Below is a processor with 32 registers of one number each. It can load an element of a or b into
// a register, multiply-add registers, and store one into c. Nothing else holds a number.
//
// start.cpp multiplies matrices with it as kernel 0 of the lesson does: one sum at a time, and for
// each fma it loads both factors. That is 2 loads an fma. Make it half a load: keep a tile of
// sums in registers, and use each number that you load for a whole row or column of the tile.
//
// Each c[i][j] is the sum over k, ascending, from +0, with one rounding a step: the bits of the
// contract. It is stored once. rows and columns need not be multiples of anything, depth may
// be 0.
#pragma once

#include <cmath>

#include "tiny_compile/base/error.h"

namespace exercise {

class Processor {
 public:
  static constexpr int kRegisters = 32;

  Processor(long rows_, long depth_, long columns_, const float* a, const float* b, float* c)
      : rows(rows_), depth(depth_), columns(columns_), a_(a), b_(b), c_(c) {}

  void clear(int r) { at(r) = 0; }
  void load_a(int r, long i, long k) {
    inside("a", i, rows, k, depth);
    at(r) = a_[i * depth + k];
    loads++;
  }
  void load_b(int r, long k, long j) {
    inside("b", k, depth, j, columns);
    at(r) = b_[k * columns + j];
    loads++;
  }
  void fma(int sum, int x, int y) {
    at(sum) = std::fma(at(x), at(y), at(sum));
    fmas++;
  }
  void store(int r, long i, long j) {
    inside("c", i, rows, j, columns);
    c_[i * columns + j] = at(r);
    stores++;
  }

  const long rows, depth, columns;
  long loads = 0, fmas = 0, stores = 0;

 private:
  float& at(int r) {
    if (r < 0 || r >= kRegisters) tiny_compile::fail("there is no register ", r);
    return registers_[r];
  }
  static void inside(const char* name, long i, long rows, long j, long columns) {
    if (i < 0 || i >= rows || j < 0 || j >= columns)
      tiny_compile::fail(name, "[", i, "][", j, "] is outside: ", name, " is ", rows, " x ",
                         columns);
  }

  const float* a_;
  const float* b_;
  float* c_;
  float registers_[kRegisters] = {};
};

// c = a b
void multiply(Processor& processor);

}  // namespace exercise
