// What it takes to compute a value, and how often kernels that become one would do it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

inline constexpr int kCheapOps = 4;  // worth computing again rather than storing

// Of each scalar: whether it is made of indices alone, as a pad's mask is.
std::vector<bool> made_of_indices(const Kernel& kernel);

// Work to compute a value once: transcendental functions count for many, `free` ones for nothing.
int cost(const Kernel& kernel, const std::vector<bool>& wanted,
         const std::vector<bool>& free = {});

// Whether a value is worth storing rather than computing again, however often it is read.
bool is_costly(const Kernel& kernel, const Step& store);
bool reads_costly_values(const Group& producer, const Group& consumer);

// Whether a stored value comes from one of more than kMostChoices places: loads under a condition, or
// values that the loops choose, of a concat or a pad. A row's steps would each choose anew.
bool chooses(const Kernel& kernel, const Step& store);
inline constexpr int kMostChoices = 3;

// As a part of an array's elements: so many more may be asked for than it has, by a pad.
inline constexpr int64_t kBorder = 16;

// How often the consumer asks for an element of the buffer, all elements together. Points do work
// under a mask only where the mask is true (loops/branches.h, tile/pieces.h).
int64_t times_asked(const Group& consumer, int buffer);

// Whether more than `cheap` work, which the producer's outer loops do for all that its last one stores,
// would be done for each of these, `asked` times.
bool repeats_outer_work(const Group& producer, const Step& store,
                        const std::vector<bool>& wanted, int64_t asked, int cheap);

// Scalars that C++ would write for a kernel that does what both do: each reduction's for itself, and each
// store's to a buffer that stays. 0 where nothing is written twice.
size_t written_out(const Group& writes, const Group& reads,
                   const std::function<bool(int buffer)>& stays);

// Limits that keep the work of fusing, and a kernel's text, linear in the program.
std::string why_too_long(const Group& first, const Group& second);

}  // namespace tiny_compile
