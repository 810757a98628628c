// Rows side by side on a CPU: what each lane has in the arrays of its strip.
#pragma once

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// Room for a tree over so many elements.
int64_t room_for_tree(int64_t count);

// Strips of eight elements at most.
int64_t strips_of(int64_t count);

// Whether lanes of this step take eight elements at a time.
bool takes_eights(const Kernel& kernel, const Step& step);

// Few elements, whose number is known, are registers of a lane.
bool has_few_elements(const Kernel& kernel, const Step& step);

// The chunks of a row of so many elements, at most; none where a single one may be short.
int64_t most_chunks(const Expr& count);

// Partial results of a lane that its stack holds (tile/columns.h).
int64_t stack_of_lane(const Kernel& kernel, const Step& step);

// Bytes of the arrays that all steps of such rows share.
struct StripBytes {
  int64_t of_lane = 0, besides = 0;
  int64_t of(int64_t lanes) const { return lanes * of_lane + besides; }
};
StripBytes strip_bytes(const Kernel& kernel);

inline constexpr int64_t kLeastLanes = 16, kMostLanes = 1024;  // of a strip

}  // namespace tiny_compile
