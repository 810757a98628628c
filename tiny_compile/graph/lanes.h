// Arithmetic on blocks of lanes: what one scalar op does, shared by both interpreters.
//
// A lane holds a value in the compute type of its dtype: float for f16 and bf16 (always a
// value that the dtype can represent), the storage type otherwise. Every op rounds once,
// at its result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/literal.h"
#include "tiny_compile/graph/op.h"

namespace tiny_compile {

constexpr int kLanesAtOnce = 256;

// Up to kLanesAtOnce values of one dtype, in its compute type.
struct Lanes {
  DType dtype = DType::f32;
  alignas(64) std::byte data[kLanesAtOnce * 8];

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
};

// out[i] = op(a[i], b[i], c[i]) for i < n. `result` is the op's result dtype (of cast:
// the target). Unused operands may be null. Integer division by zero sets the thread's
// error word (below).
void apply(Op op, DType result, const Lanes* a, const Lanes* b, const Lanes* c, int n,
           Lanes& out);

// Between memory (elements of `dtype`) and lanes. `offsets` are in elements.
void load(DType dtype, const std::byte* base, const int64_t* offsets, int n, Lanes& out);
void store(const Lanes& values, std::byte* base, const int64_t* offsets, int n);
void fill(const Literal& value, int n, Lanes& out);
void fill_iota(const int64_t* values, int n, Lanes& out);  // i64 lanes
int64_t lane_integer(const Lanes& lanes, int i);           // of an integer or bool lane

// Reductions over one row of values in lane layout (count values of the compute type of
// `dtype`), in the order of the numeric contract: chunks of 1024, upper half added to lower.
// The result is a Literal of reduction_result(op, dtype), rounded once. max, min, argmax,
// argmin of nothing: CHECK.
Literal reduce(Op op, DType dtype, const std::byte* values, int64_t count);

// acc = fma(a[k], b[k], acc) from +0, k ascending, and acc + 0: a zero is +0; integers wrap in
// their own type's arithmetic (i32 for the narrow ones); rounded once to `dtype`.
Literal dot(DType dtype, const std::byte* a, const std::byte* b, int64_t count);

// What went wrong on this thread since the last take_errors(): bit 0 an index out of range, bit
// 1 an integer division by zero. The value there is 0 (a store is dropped).
unsigned take_errors();
void raise_error(unsigned bits);
bool index_fits(int64_t index, int64_t size);  // raises that error where not

// `suspects`: what a bad index may have come from, told where its value is not known.
[[noreturn]] void throw_errors(unsigned bits, const std::string& where,
                               const std::string& suspects = "");

class IndexError : public Error {  // thrown for bit 0
 public:
  using Error::Error;
};

}  // namespace tiny_compile
