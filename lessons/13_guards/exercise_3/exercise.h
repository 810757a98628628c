// 13-3 ★★ Any batch
//
// A shape is part of the guard: a hundred batch sizes are a hundred compilations. Where row i of
// the result depends on row i of the input alone (a layer, a softmax over the last axis), a few
// will do: add rows up to the next power of two, call, and cut the result. Batches 1 to 100 then
// meet 1, 2, 4, ... 128 rows only.
//
// And the bits? The contract says that they do not depend on the batch. (Lesson 14.)
//
// Write call_padded(). A batch that is a power of two is called as it is, and so is one of no rows.
// The rows that you add are copies of a row of x: a row of zeros may do what no row of the user's
// does (divide an integer by zero, and that is an error).
//
// What helps: x.size(0), x.slice(0, start, stop), concat({a, b}), and x.expand(shape) with -1
// for sizes that stay.
#pragma once

#include <functional>

#include "tiny_compile/tiny_compile.h"

namespace exercise {

using namespace tiny_compile;

using RowFunction = std::function<Tensor(Tensor)>;  // rows in, as many rows out

Tensor call_padded(const RowFunction& f, const Tensor& x);

}  // namespace exercise
