// Accuracy of the shared functions: the largest error of each, in units in the last place, as rows of a
// Markdown table (tests/base/README.md keeps the last whole run); how far it is, on a terminal.
//   ulp [stride [name ...]]   every stride-th f32 bit pattern (1: all 2^32), and 2^32 / (64 stride)
//                             arguments in f64 and of two numbers
//
//   ulp 1 rsqrt  ->  | rsqrt | f32 | all | 1.490 | 0.0627872 (0x1.0129a8p-4) | 41 |
#include "tests/base/ulp.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace tiny_compile;

constexpr unsigned long long kAll = 1ull << 32;

std::string place(double x) {
  char text[80];
  std::snprintf(text, sizeof text, "%.9g (%a)", x, x);
  return text;
}

double seconds_now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// measure(begin, end, worst so far) over [0, count), in pieces on all threads.
template <typename F>
void report(const char* name, const char* dtype, F measure, unsigned long long count) {
  const double start = seconds_now();
  ulp::Worst worst;
  const unsigned long long piece = 1 << 20, pieces = (count + piece - 1) / piece;
  unsigned long long done = 0;
#pragma omp parallel for schedule(dynamic)
  for (unsigned long long p = 0; p < pieces; p++) {
    ulp::Worst mine;
#pragma omp critical
    mine = worst;
    mine = measure(p * piece, std::min(count, (p + 1) * piece), mine);
#pragma omp critical
    {
      worst.add(mine.error, mine.x, mine.y);
      done++;
      if (isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r%s %s %llu of %llu  ", name, dtype, done, pieces);
    }
  }
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r%40s\r", "");
  const std::string arguments = count == kAll ? "all" : std::to_string(count);
  const std::string second = worst.y != 0 ? ", " + place(worst.y) : "";
  std::printf("| %s | %s | %s | %.3f | %s%s | %.0f |\n", name, dtype, arguments.c_str(),
              worst.error, place(worst.x).c_str(), second.c_str(), seconds_now() - start);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long long stride =
      argc > 1 ? std::max(1ull, std::strtoull(argv[1], nullptr, 10)) : 4099;
  const unsigned long long all = kAll / stride, some = all / 64 + 1;
  const auto wanted = [&](std::string_view name) {
    return argc < 3 || std::find(argv + 2, argv + argc, name) != argv + argc;
  };
  const auto pattern = [&](unsigned long long i) {
    return prelude::tc_from_bits(static_cast<unsigned>(i * stride));
  };
  std::printf("| function | dtype | arguments | worst, ulp | at | seconds |\n");
  std::printf("|---|---|---|---|---|---|\n");
#define X(name, bound32, bound64)                                                              \
  if (wanted(#name)) {                                                                         \
    const auto f32 = [&](auto begin, auto end, ulp::Worst worst) {                             \
      const auto function = [](float x) { return prelude::tc_##name(x); };                     \
      return ulp::worst_of<float>(function, ulp::Reference<double>::name, pattern, begin, end, \
                                  "", worst);                                                  \
    };                                                                                         \
    const auto f64 = [&](auto begin, auto end, ulp::Worst worst) {                             \
      const auto function = [](double x) { return prelude::tc_##name(x); };                    \
      return ulp::worst_of<double>(function, ulp::Reference<long double>::name,                \
                                   ulp::argument<double>, begin, end, #name, worst);           \
    };                                                                                         \
    report(#name, "f32", f32, all);                                                            \
    report(#name, "f64", f64, some);                                                           \
  }
  TC_ULP_FUNCTIONS(X)
#undef X
#define X(name, bound32, bound64)                                                              \
  if (wanted(#name)) {                                                                         \
    const auto f32 = [&](auto begin, auto end, ulp::Worst worst) {                             \
      const auto function = [](float x, float y) { return prelude::tc_##name(x, y); };         \
      return ulp::worst_of_two<float>(function, ulp::Reference<double>::name,                  \
                                      ulp::name##_arguments<float>, begin, end, #name, worst); \
    };                                                                                         \
    const auto f64 = [&](auto begin, auto end, ulp::Worst worst) {                             \
      const auto function = [](double x, double y) { return prelude::tc_##name(x, y); };       \
      return ulp::worst_of_two<double>(function, ulp::Reference<long double>::name,            \
                                       ulp::name##_arguments<double>, begin, end, #name,       \
                                       worst);                                                 \
    };                                                                                         \
    report(#name, "f32", f32, some);                                                           \
    report(#name, "f64", f64, some);                                                           \
  }
  TC_ULP_FUNCTIONS_OF_TWO(X)
#undef X
  return 0;
}
