// How C++ kernels say that an index is out of range or an integer was divided by 0: bits of the thread
// that runs them (source.h).
#pragma once

namespace tiny_compile {

// Errors are a thread's own, so that calls side by side keep theirs; tc_fail stays a call
// because the address of such a word, computed in a gather's loop, doubles the loop's time.
inline constexpr const char* kErrors =
    R"(static __thread unsigned tc_error_word = 0;
static void tc_fail(unsigned) __attribute__((noinline, cold, unused));
static void tc_fail(unsigned code) { tc_error_word |= code; }
extern "C" unsigned tc_take_errors() {
  const unsigned bits = tc_error_word;
  tc_error_word = 0;
  return bits;
}
)";

// The same for units that are compiled side by side: the first has the word.
inline constexpr const char* kErrorsOfUnits =
    R"(__attribute__((cold, visibility("hidden"))) void tc_fail(unsigned);
#if !defined(TC_UNIT) || TC_UNIT == 0
static __thread unsigned tc_error_word = 0;
__attribute__((noinline)) void tc_fail(unsigned code) { tc_error_word |= code; }
extern "C" unsigned tc_take_errors() {
  const unsigned bits = tc_error_word;
  tc_error_word = 0;
  return bits;
}
#endif
)";

inline constexpr const char* kInRange = R"(
static inline bool tc_in_range(long long index, long long limit) {
  if ((unsigned long long)index < (unsigned long long)limit) return true;
  TC_FAIL(1u);
  return false;
}
)";

}  // namespace tiny_compile
