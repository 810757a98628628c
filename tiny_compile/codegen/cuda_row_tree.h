// The tree over a row's elements as text: from a thread's values to the chunk's, and from the
// chunks' to the row's.
#pragma once

#include <string>

#include "tiny_compile/codegen/cuda_row_shape.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {

// Declares t_<number>, a thread's values of a chunk; those beyond the row are the identity.
void declare_elements(CudaText& text, const Spread& s, const Tree& tree);

// Text: the tree over a thread's array. Where any order gives the same bits, the thread's own
// values meet first, and lanes exchange one value, not one for each of a pack.
std::string tree_of(CudaText& text, const RowShape& shape, const Spread& s, Op op, DType type,
                    const std::string& array);

// t = exp(t - m), m the chunk's maximum, clamped. Beyond the row's end that is exp(-inf) = 0,
// which changes no sum of exponentials. Returns the text of their sum.
std::string write_exponentials(CudaText& text, const RowShape& shape, const Spread& s,
                               const Tree& tree);

// r<number> of part_<number>, the chunks' results.
void fold_chunks(CudaText& text, const Spread& s, const Tree& tree);

// What is done to a row's result: a zero maximum is +0, and a half is rounded once.
void finish_reduction(CudaText& text, const Step& step, const std::string& reg, DType type);

}  // namespace tiny_compile
