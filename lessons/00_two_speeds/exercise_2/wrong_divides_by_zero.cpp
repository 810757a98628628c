// fails: what saves nothing is never paid
#include "exercise.h"

#include <algorithm>

namespace exercise {

std::optional<int64_t> calls_until_paid(int64_t compile_ns, int64_t eager_ns,
                                        int64_t compiled_ns) {
  const int64_t saved = eager_ns - compiled_ns;
  const int64_t calls = compile_ns / saved + (compile_ns % saved != 0);
  return std::max<int64_t>(calls, 1);
}

}  // namespace exercise
