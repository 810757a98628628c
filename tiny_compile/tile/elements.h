// What a thread does for the elements of one register: places, scalars, loads and stores.
#pragma once

#include <vector>

#include "tiny_compile/tile/lowering.h"

namespace tiny_compile {

// Whether vectors of what the pass keeps are read to where it keeps them, halves as they lie.
bool is_read_packed(const Lowering& l, int scalar, const Share& k);

// Of a pass, by a thread, at a time, and which of them the element at hand is.
int64_t elements_held(const Lowering& l, const Share& k);
Expr place_of(const Lowering& l, const Share& k);

// What the elements of a pass are divided by, where they all have the same.
std::vector<int> divisors_of(const Lowering& l, const std::vector<int>& ids,
                             const std::vector<int>& inner);

// What no loop of the pass of `steps` changes is computed once for each row, in front of it.
void define_for_rows(Lowering& l, const std::vector<int>& steps, const std::vector<int>& inner);

// What a warp's only row reads, and no reduction decides, in front of the first pass: it comes while
// elements do. (Lanes that have rows of their own would hold it as well as their elements.)
void define_row_loads(Lowering& l);

// What the steps evaluate, in order, but for what only known values are made of.
std::vector<int> needed(const Lowering& l, const std::vector<int>& steps);

// Stores an element of each step, or puts it into a vector that `after` stores.
Body store_elements(Lowering& l, const std::vector<int>& steps, const Share& k, Body& after);

// A pass, for one register: what a thread has of the loops there, all its rows in each.
Body over_elements(Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner,
                   const Share& k, const Body& each, const Body& after, bool stores);

}  // namespace tiny_compile
