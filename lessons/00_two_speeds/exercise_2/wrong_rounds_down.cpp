// fails: one nanosecond more takes one call more
#include "exercise.h"

#include <algorithm>

namespace exercise {

std::optional<int64_t> calls_until_paid(int64_t compile_ns, int64_t eager_ns,
                                        int64_t compiled_ns) {
  const int64_t saved = eager_ns - compiled_ns;
  if (saved == 0 && compile_ns == 0) return 1;
  if (saved <= 0) return std::nullopt;
  return std::max<int64_t>(compile_ns / saved, 1);
}

}  // namespace exercise
