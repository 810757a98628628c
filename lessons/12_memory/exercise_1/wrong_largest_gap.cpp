// fails: the smallest gap that fits is taken
#include "exercise.h"

namespace exercise {

int64_t best_place(int64_t bytes, const std::vector<Range>& taken) {
  int64_t end = 0, best = -1, best_size = 0;  // end: of all ranges so far
  for (const Range& range : taken) {
    const int64_t size = range.start - end;
    if (size >= bytes && (best < 0 || size > best_size)) {
      best = end;
      best_size = size;
    }
    end = std::max(end, range.end);
  }
  return best < 0 ? end : best;
}

}  // namespace exercise
