// Accuracy of the shared functions: the largest error of each, in units in the last place.
//   ulp [stride [name]]   every stride-th f32 bit pattern (1: all 2^32), and 2^32 / (64 stride)
//                         arguments in f64 and for pow
//
// ulp 1, every f32 and 67 million f64 (or pairs): the worst found of exp, expm1, log, log1p,
// sin, cos, tanh, sigmoid, erf, gelu, silu, rsqrt, pow
//   f32  1.011 1.465 .840 1.437 .555 .555 1.732 1.493 1.909 1.968 1.771 1.490 .500
//   f64  1.122 1.782 .821 1.438 .850 .825 2.424 1.581 2.032 2.975 2.340 1.499 1.583
// ulp 257 of exp2, log2, log10, tan, asin, acos, atan, erfinv, lgamma, digamma, atan2, zeta; every f32 from
// 2^-12 to where the function ends, or turns constant, of exp2, asin, acos, atan and erfinv:
//   f32  1.023 .500 .500 .553 1.124 1.109 1.231 1.676 .500 .500 1.465 .500
//   f64  1.021 1.445 1.608 1.981 1.784 1.002 1.492 2.354 3.203 3.308 2.118 3.044
#include "tests/base/ulp.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace tiny_compile;

// measure(begin, end) over [0, count), in pieces on all threads.
template <typename F>
void report(const char* name, const char* dtype, F measure, unsigned long long count) {
  ulp::Worst worst;
  const unsigned long long piece = 1 << 16, pieces = (count + piece - 1) / piece;
#pragma omp parallel for schedule(dynamic)
  for (unsigned long long p = 0; p < pieces; p++) {
    const ulp::Worst mine = measure(p * piece, std::min(count, (p + 1) * piece));
#pragma omp critical
    worst.add(mine.error, mine.x, mine.y);
  }
  std::printf("%-8s %s %8.3f ulp at %.9g (%a)", name, dtype, worst.error, worst.x, worst.x);
  if (worst.y != 0) std::printf(", %.9g (%a)", worst.y, worst.y);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long long stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4099;
  const std::string_view only = argc > 2 ? argv[2] : "";
  const unsigned long long all = (1ull << 32) / stride, some = all / 64 + 1;
  const auto wanted = [&](std::string_view name) { return only.empty() || only == name; };
  const auto pattern = [&](unsigned long long i) {
    return prelude::tc_from_bits(static_cast<unsigned>(i * stride));
  };
#define X(name, bound32, bound64)                                                         \
  if (wanted(#name)) {                                                                    \
    const auto f32 = [&](unsigned long long begin, unsigned long long end) {              \
      const auto function = [](float x) { return prelude::tc_##name(x); };                \
      return ulp::worst_of<float>(function, ulp::Reference<double>::name, pattern, begin, \
                                  end);                                                   \
    };                                                                                    \
    const auto f64 = [&](unsigned long long begin, unsigned long long end) {              \
      const auto function = [](double x) { return prelude::tc_##name(x); };               \
      return ulp::worst_of<double>(function, ulp::Reference<long double>::name,           \
                                   ulp::argument<double>, begin, end, #name);             \
    };                                                                                    \
    report(#name, "f32", f32, all);                                                       \
    report(#name, "f64", f64, some);                                                      \
  }
  TC_ULP_FUNCTIONS(X)
#undef X
#define X(name, bound32, bound64)                                                         \
  if (wanted(#name)) {                                                                    \
    const auto f32 = [&](unsigned long long begin, unsigned long long end) {              \
      const auto function = [](float x, float y) { return prelude::tc_##name(x, y); };    \
      return ulp::worst_of_two<float>(function, ulp::Reference<double>::name,             \
                                      ulp::name##_arguments<float>, begin, end, #name);   \
    };                                                                                    \
    const auto f64 = [&](unsigned long long begin, unsigned long long end) {              \
      const auto function = [](double x, double y) { return prelude::tc_##name(x, y); };  \
      return ulp::worst_of_two<double>(function, ulp::Reference<long double>::name,       \
                                       ulp::name##_arguments<double>, begin, end, #name); \
    };                                                                                    \
    report(#name, "f32", f32, some);                                                      \
    report(#name, "f64", f64, some);                                                      \
  }
  TC_ULP_FUNCTIONS_OF_TWO(X)
#undef X
  return 0;
}
