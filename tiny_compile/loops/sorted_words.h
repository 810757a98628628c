// What does a sort in runs leave for the merge behind it? Words that are compared as they are, where a key and its
// place are one: a merge then asks memory once for each element, not for its place and then, there, for its key.
#pragma once

#include <cstddef>
#include <vector>

#include "tiny_compile/loops/sort_rules.h"

namespace tiny_compile {

// u32 or u64, the words of this sort, which it stores where its buffer is of that dtype; i64, its places, where a key
// has its place beside it.
DType dtype_of_words(const Kernel& kernel, const Step& sort);

// The words of places of a row, i64, whose keys are `values`: the key's bits in the order of the values, all transposed
// for a sort that begins with the greatest, then the place (tile/sort_words.h).
std::vector<std::byte> words_of_places(const Kernel& kernel, const Step& sort,
                                       const std::byte* values,
                                       const std::vector<std::byte>& places);

}  // namespace tiny_compile
