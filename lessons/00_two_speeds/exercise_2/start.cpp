#include "exercise.h"

#include <algorithm>

namespace exercise {

std::optional<int64_t> calls_until_paid(int64_t compile_ns, int64_t eager_ns,
                                        int64_t compiled_ns) {
  // TODO: this is right for some numbers only.
  return compile_ns / (eager_ns - compiled_ns);
}

}  // namespace exercise
