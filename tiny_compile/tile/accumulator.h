// What a reduction has so far: arrays of a thread's results, and what can be done with them.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// What is reduced: an array of a thread's results, `rows` neighbours for each register of the
// share; of argmax and argmin also the places where they stand.
struct Accumulator {
  Op op = Op::sum;
  DType dtype = DType::f32;  // it adds up in
  int values = -1;           // arrays
  int places = -1;
};

// Whether its operation gives the same in any order.
bool is_exact(const Accumulator& all);

// body(p) for p = 0 .. count - 1, unrolled; of one, body(0).
Body each(const char* name, int64_t count, const std::function<Body(const Expr&)>& body);

// All of a kernel's, behind those that the tile has, but for some that it has already: the number of each.
std::vector<int> add_scalars(Tile& tile, const Kernel& kernel,
                             const std::vector<std::pair<int, int>>& given = {});

// A new scalar; the others are defined at the end of `body`.
int add_index(Tile& tile, const Expr& value);
int computed(Tile& tile, Body& body, Op op, DType dtype, std::vector<int> operands);
// An integer as data: what is no number is defined; an i64 where no other dtype is asked for.
int as_data(Tile& tile, Body& body, const Expr& value, DType dtype = DType::i64);
// The element that an array holds here, of this lane or another.
int read_element(Tile& tile, Body& body, int array, const Expr& index,
                 const Expr& lane_xor = 0);
// buffer[index], of which no data chooses anything.
int load_from(Tile& tile, Body& body, int buffer, DType dtype, const Expr& index);
// What a scatter's op makes of what stands there and an update.
int updated(Tile& tile, Body& body, Op op, DType dtype, int before, int update);
int clamped(Tile& tile, Body& body, int value, DType dtype);  // to what is finite

// Arrays like those of `all`, for something else.
Accumulator like(Tile& tile, const Accumulator& all, const char* what, int64_t size,
                 Space space);

// to[at] = from[place]
Body copy(Tile& tile, const Accumulator& to, const Expr& at, const Accumulator& from,
          const Expr& place);

// What stands at `at` and another result: array[place], of the lane that differs in `lane_xor`.
Body combine(Tile& tile, const Accumulator& all, const Expr& at, const Accumulator& other,
             const Expr& place, const Expr& lane_xor = 0);

// A register of an accumulator without elements.
Body set_identity(Tile& tile, const Accumulator& all, const Expr& at);
// Accumulates `value`, the element number `place`, into an accumulator of its own.
Body set_element(Tile& tile, const Accumulator& all, const Expr& at, int value,
                 const Expr& place);

// The value of a row's register, defined at the end of `body`: a zero maximum is +0, and a half is
// rounded once.
int finished(Tile& tile, Body& body, const Step& step, const Accumulator& all, const Expr& row);

}  // namespace tiny_compile
