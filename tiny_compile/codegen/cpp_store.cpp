// How is a block of results (tile/stores.h) written past the caches? An ordinary store first reads the line that it
// will overwrite, half of the traffic of a copy:
//
//   stream y[i0*300 + start] x next - start = block0
// =>
//   tc_stream(out_y + (i0 * 300 + start), block0, (next - start) * 4);
#include "tiny_compile/codegen/cpp_store.h"

#include <utility>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr const char* kStream = R"(
// Copies past the caches: whole vectors where `to` is aligned, the ends as usual.
static inline void tc_stream(void* to, const void* from, long long bytes) {
  char* target = (char*)to;
  const char* source = (const char*)from;
#if defined(__SSE2__)
  typedef float vector __attribute__((vector_size(BYTES), aligned(1), may_alias));
  const long long ahead = -(unsigned long long)target % BYTES;
  if (ahead < bytes) {
    __builtin_memcpy(target, source, ahead);
    target += ahead, source += ahead, bytes -= ahead;
    for (; bytes >= BYTES; target += BYTES, source += BYTES, bytes -= BYTES) {
#if defined(__clang__)
      typedef float whole __attribute__((vector_size(BYTES)));
      __builtin_nontemporal_store((whole)*(const vector*)source, (whole*)target);
#elif defined(HAS)
      STORE((float*)target, *(const vector*)source);
#else
      typedef float part __attribute__((vector_size(16), aligned(1), may_alias));
      for (int k = 0; k < BYTES; k += 16)
        __builtin_ia32_movntps((float*)(target + k), *(const part*)(source + k));
#endif
    }
  }
#endif
  __builtin_memcpy(target, source, bytes);
}

// Streamed lines are seen by other threads from here on.
static inline void tc_stream_done() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}
)";

}  // namespace

std::string store_helpers(const Calls& calls, int64_t vector) {
  if (!calls.has("tc_stream")) return "";
  const auto [has, width] = vector == 64   ? std::pair{"__AVX512F__", "512"}
                            : vector == 32 ? std::pair{"__AVX__", "256"}
                                           : std::pair{"__SSE2__", ""};
  std::string text = replace_all(kStream, "BYTES", str(vector));
  text = replace_all(std::move(text), "HAS", has);
  return replace_all(std::move(text), "STORE", str("__builtin_ia32_movntps", width));
}

}  // namespace tiny_compile
