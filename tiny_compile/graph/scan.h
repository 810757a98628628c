// Running results along a row (cumsum, cumprod, ...) and updates of chosen places (scatter_add,
// ...) in the order of the numeric contract, shared by both interpreters.
#pragma once

#include <optional>

#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {

// What a Scan step may run: a scan, or the running maximum or minimum of which long rows' cummax
// and cummin are made (loops/split_scan.h).
inline bool has_running_results(Op op) {
  return is_scan(op) || op == Op::maximum || op == Op::minimum;
}

// What stands before a row that is scanned: nothing, or the total of what came before it.
struct ScanStart {
  bool exclusive = false;  // each result is what stands before its element, not up to it
  const Lanes* before = nullptr;
  bool values = false;  // of cummax and cummin: what stands at the places, which has a start
};

// The running results of `count` values in lane layout (graph/lanes.h), a value an element of the
// compute type of scan_result(op, dtype), or of dtype for values. Places have no start.
std::vector<std::byte> scan(Op op, DType dtype, const std::byte* values, int64_t count,
                            const ScanStart& start = {});

// The last of the running results, not rounded: in the compute type of `dtype`; of nothing the
// identity. Of cummax and cummin the value.
Literal scan_total(Op op, DType dtype, const std::byte* values, int64_t count);

// Whether the order of a scatter's updates shows: then they go in chunks (kChunk). The first goes on
// from the data; the partial results of a later one, from the identity, are combined with what is
// there when the chunk is over. Integers, max, min and the last update need no such rule.
bool scatters_in_chunks(Op op, DType dtype);

// to[i] = combine(to[i], from[j]), rounded to the dtype; without an operation, from[j].
void update(std::optional<Op> combine, DType dtype, std::byte* to, int64_t i,
            const std::byte* from, int64_t j);

// What changes no value that it is combined with: -0.0 of cumsum, 1 of cumprod, -inf of
// logcumsumexp, and likewise of scatter_add and scatter_prod.
Literal scan_identity(Op op, DType dtype);

}  // namespace tiny_compile
