// What a back end makes of a Program: one text, and how each kernel in it is started.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/codegen/calls.h"
#include "tiny_compile/loops/library_matmul.h"

namespace tiny_compile {

// C++: extern "C" void function(void* const* buffers, long long begin, long long end).
// buffers[k] is the address of the Program's buffer `KernelEntry::buffers[k]` (of its lowest
// element); units begin..end-1 of 0..units-1 are done by one call; calls for disjoint ranges may run
// at the same time. Behind the kernel's buffers is the address of `own_bytes` of the thread's own,
// at a multiple of 64, that stay from call to call of one run of the kernel; the first `zeroed` are zeros
// when it begins. Between the two, where there are `sizes`, is the address of their numbers, each a
// long long; `units`, `grain` and `own_bytes` are for these numbers.
//
// CUDA: a grid of `grid` blocks of `block` threads, whose arguments are the addresses of
// `buffers` (of their lowest elements), in this order, and behind them the numbers of `sizes`; `grid`
// is for these numbers, and where it is 0 there is nothing to start.
struct KernelEntry {
  std::string function;      // equal kernels have the same
  std::vector<int> buffers;  // of the Program, as the function counts them
  Expr units;                // C++
  Expr grain = 1;            // C++: units worth handing to a thread
  int64_t at_once = 1;       // C++: units that a call does together where it has so many
  Expr own_bytes;            // C++: of memory that each thread gets
  int64_t zeroed = 0;        // C++: of them the first, which are 0 where a call begins
  std::vector<Expr> sizes;   // of the Program, that the function is given
  Expr grid = 1;
  int block = 1;
  int64_t shared = 0;  // CUDA: bytes of shared memory, beyond what the text declares
  bool early = false;  // CUDA: may be started while others run, and waits for them itself
  std::optional<LibraryMatmul> library{};  // CUDA: this call is made instead, the grid is 0
  int room = 0;  // CUDA: kernels that one start of the function may do (cuda_group.h), by a
                 // table that is its one argument; 0: it does one, as above
  int64_t points = 0;              // CUDA: what that table says of it
  std::vector<SizeRange> when;     // CUDA: of sizes, for which alone it is
  std::vector<KernelEntry> sized;  // CUDA: of these one is started instead, where it is for the
                                   // sizes
  int sums = -1;  // the kernel whose sums that call makes as well, where the library can
};

// Indices out of range and integer divisions by zero are bits as in graph/lanes.h:
//   C++   the text exports `unsigned tc_take_errors()`: those that kernels set on the calling
//         thread since it was last asked
//   CUDA  `__device__ tc_found tc_errors`: the bits, and of the first index out of range its value
//         and the size that it is to be below (runtime/cuda_errors.h); the kernel
//         `tc_hand_over(places, count)`, where any can fail, copies them to the next of the host's `count`
//         places, from 0 on and in turn, and clears them; it waits itself for what was started before
//         it, as an early kernel does
//
// With TC_UNIT defined as u, the text is the part number u of `units`; without it, all of them. Parts
// are linked together in C++; in CUDA each is a module, and kernels that can fail are all in the first.
struct Source {
  std::string text;
  std::vector<KernelEntry> kernels;  // of each Program kernel, in order
  int units = 1;
  Calls calls{};  // what the kernels and their helpers call
};

}  // namespace tiny_compile
