// Rows side by side on a CPU: which ones, and how they are reduced together.
#pragma once

#include "tiny_compile/tile/row_chunks.h"

namespace tiny_compile {

// Has strips of so many lanes, of which a unit of work is a part.
void plan_strips(RowTile& r, int64_t lanes);

// What `steps` does for the lanes of each strip that the thread has units of.
Body over_strips(RowTile& r, const std::function<Body()>& steps);

// Whether it takes eight elements of a lane at a time.
bool takes_eights(const RowReduction& x);

// An array for tree_of_column and tree_of_parts.
int stack_for(RowReduction& x);

// stack[own_place(0)] = what elements `base` .. base + count - 1, at most 1024, come to; of sum_exp their
// exponentials, each less the lane's own element of the array `most`.
Body tree_of_column(RowReduction& x, int stack, int most, const Expr& base, const Expr& count);

// The same of what an array has.
Body tree_of_parts(RowReduction& x, int stack, int parts, const Expr& count);

// The tree over `count` pieces of a row, at most 1024: piece(number, place) puts one on the stack. `level`
// tells pieces of pieces apart.
Body tree_of_pieces(RowReduction& x, int level, int stack, const Expr& count,
                    const std::function<Body(const Expr&, const Expr&)>& piece);

// Few elements, whose number is known, are registers of a lane: each(body, result) is what it does with their
// result, of argmax and argmin their place.
bool has_few_elements(const RowReduction& x);
Body reduce_few(RowReduction& x, const std::function<void(Body&, int)>& each);

// Asks memory for what the lanes read of the element after number e. Neighbours of a column lie in different
// pages, across which no CPU guesses.
Body ask_prefetch(const RowReduction& x, const Expr& e);

// Element number e, whose axes get names unless e is one: its scalars, and what `each` adds behind them, in each
// lane; `shared` before it, once for all lanes.
using AddToBody = std::function<void(Body&)>;
Body at_element(const RowReduction& x, const Expr& e, const AddToBody& each,
                const AddToBody& shared = nullptr);

}  // namespace tiny_compile
