// Who adds what: a reduction over the bits of an index, whoever owns them.
#pragma once

#include <vector>

#include "tiny_compile/tile/share.h"

namespace tiny_compile {

// What is reduced: an array of a thread's results, `rows` neighbours for each register of the
// share; of argmax and argmin also the places where they stand.
struct Accumulator {
  Op op = Op::sum;
  DType dtype = DType::f32;  // it adds up in
  int values = -1;           // arrays
  int places = -1;
};

// What is done before the loop of turns, at the end of each, and behind it. Then element
// number `row` of the arrays is that row's result, in each thread that shares the row.
struct Reduced {
  Body before, in_turn, after;
};

// The order in which bits are taken: the contract's, or that of least work where any is exact.
std::vector<Bit> order_of(const Accumulator& all, std::vector<Bit> bits);

// A register of an accumulator without elements.
Body set_identity(Tile& tile, const Accumulator& all, const Expr& at);
// Accumulates `value`, the element number `place`, into an accumulator of its own.
Body set_element(Tile& tile, const Accumulator& all, const Expr& at, int value,
                 const Expr& place);

Reduced reduce(Tile& tile, const Share& share, const Accumulator& all, int64_t rows);

// The value of a row's register, defined at the end of `body`: a zero maximum is +0, and a half is
// rounded once.
int finished(Tile& tile, Body& body, const Step& step, const Accumulator& all, const Expr& row);

}  // namespace tiny_compile
