#include "exercise.h"

namespace exercise {

int64_t best_place(int64_t bytes, const std::vector<Range>& taken) {
  // TODO: this is the lowest gap; return the smallest that fits.
  int64_t end = 0;  // of all ranges so far
  for (const Range& range : taken) {
    if (range.start - end >= bytes) break;
    end = std::max(end, range.end);
  }
  return end;
}

}  // namespace exercise
