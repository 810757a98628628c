// How are results written? A large output that nobody reads soon goes past the caches: an
// ordinary store first reads the line it will overwrite, half of the traffic of a copy. The
// loop stays plain, so that the compiler vectorises it; it fills a block in L1, and tc_stream
// sends that out in whole lines.
//
//   for (i0 ..) out_y[i0] = tc_exp(in_x[i0]);
// =>
//   for (here ..; here = next) {
//     next = the next multiple of 128;
//     for (i0 = here; i0 < next; i0++) block_2[i0 - here] = tc_exp(in_x[i0]);
//     tc_stream(out_y + here, block_2, ..);
//   }
#include "tiny_compile/codegen/cpp_store.h"

#include <cstdint>
#include <utility>

#include "tiny_compile/codegen/cpp_vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kBlock =
    128;  // elements: reads and writes take turns often (1024: AdamW 1.3 times slower)

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

std::string stored_value(KernelText& text, const Step& step) {
  const auto storage = text.scalars.rounds(step.value) ? exact_storage : to_storage;
  return storage(text.calls, step.dtype, text.scalars.name(step.value));
}

std::string block_name(const Step& step) { return str("block_", step.buffer); }

void write_blocks(KernelText& text, int axis, const std::string& from, const std::string& to,
                  const std::vector<const Step*>& steps, const std::function<void()>& define) {
  const std::string& i = text.kernel.axes[axis].name;
  for (const Step* step : steps)
    text.out.line(
        str("alignas(64) ", c_type(step->dtype), " ", block_name(*step), "[", kBlock, "];"));
  text.out.open(str("for (long long here = ", from, ", next; here < ", to, "; here = next)"));
  text.out.line(str("next = here / ", kBlock, " * ", kBlock, " + ", kBlock, ";"));
  text.out.line(str("if (next > ", to, ") next = ", to, ";"));
  text.out.line("#pragma GCC ivdep");
  text.out.open(str("for (long long ", i, " = here; ", i, " < next; ", i, "++)"));
  define();
  for (const Step* step : steps)
    text.out.line(
        str(block_name(*step), "[", i, " - here] = ", stored_value(text, *step), ";"));
  text.out.close();
  for (const Step* step : steps)
    text.out.line(str(
        text.calls("tc_stream"), "(", pointer_name(text.program.buffers[step->buffer]), " + ",
        c_text(substitute(step->index, {{i, Expr::symbol(tile_symbol("here"), 0, INT64_MAX)}})),
        ", ", block_name(*step), ", (next - here) * ", size_of(step->dtype), ");"));
  text.out.close();
}

}  // namespace

std::string place_of(const KernelText& text, const Step& step) {
  return str(pointer_name(text.program.buffers[step.buffer]), "[",
             text.scalars.index(step.index, step.other < 0 ? std::vector<int>{}
                                                           : std::vector<int>{step.other}),
             "]");
}

void write_store(KernelText& text, const Step& step) {
  text.out.line(str(place_of(text, step), " = ", stored_value(text, step), ";"));
}

bool streams(const KernelText& text, int axis, const std::vector<const Step*>& steps) {
  if (!schedule_of(text.kernel).stream) return false;
  const Axis& along = text.kernel.axes[axis];
  for (const Step* step : steps) {
    const Expr rest = step->index - along.symbol();
    if (coefficient(step->index, along.symbol()) != 1 || depends_on(rest, along.name))
      return false;
    if (step->other >= 0 || buffers_read(text.program, text.kernel)[step->buffer]) return false;
  }
  return true;
}

void write_store_loop(KernelText& text, int axis, const std::string& from,
                      const std::string& to, const std::vector<const Step*>& steps,
                      const std::function<void()>& define) {
  if (streams(text, axis, steps)) return write_blocks(text, axis, from, to, steps, define);
  const Axis& along = text.kernel.axes[axis];
  const auto body = [&] {
    define();
    for (const Step* step : steps) write_store(text, *step);
  };
  if (from == "0" && along.extent.is_constant() && to == along.extent.str())
    return write_in_vectors(text, along.name, along.extent.constant(), body);
  text.out.line("#pragma GCC ivdep");
  text.out.open(str("for (long long ", along.name, " = ", from, "; ", along.name, " < ", to,
                    "; ", along.name, "++)"));
  body();
  text.out.close();
}

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
