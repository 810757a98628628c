// Accuracy of the shared functions: the largest error of each, in units in the last place.
//   ulp [stride]   every stride-th f32 bit pattern (1: all 2^32), and as many random f64
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tiny_compile/base/math.h"

namespace {

using namespace tiny_compile::prelude;

// |value - exact| in units of the last place of `exact` rounded to T.
template <typename T>
long double ulps(T value, long double exact) {
  if (value != value && exact != exact) return 0;
  if (value == static_cast<T>(exact)) return 0;
  if (value - value != 0 || exact - exact != 0) {  // overflow at the very edge counts as one
    const long double largest = std::numeric_limits<T>::max();
    return std::fabs(exact) >= largest * 0.9999999L &&
                   std::fabs((long double)value) >= largest * 0.9999999L
               ? 1
               : 1e9L;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int lowest = std::numeric_limits<T>::min_exponent;
  const long double unit =
      std::ldexp(1.0L, std::max(exponent, lowest) - std::numeric_limits<T>::digits);
  return std::fabs(value - exact) / unit;
}

long double gelu(long double x) {
  return 0.5L * x * erfcl(-x * 0.70710678118654752440084436210485L);
}
long double sigmoid(long double x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
long double rsqrt(long double x) { return 1 / sqrtl(x); }

struct Worst {
  long double error = 0;
  double at = 0;
};

template <typename T, typename F, typename R>
void report(const char* name, F function, R reference, unsigned long long stride) {
  if (getenv("ONLY") && std::string(name).find(getenv("ONLY")) == std::string::npos) return;
  Worst worst;
#pragma omp parallel
  {
    Worst mine;
    std::mt19937_64 random(12345);
#pragma omp for schedule(static)
    for (unsigned long long i = 0; i < (1ull << 32) / stride; i++) {
      T x;
      if constexpr (sizeof(T) == 4) {
        x = tc_from_bits(static_cast<unsigned>(i * stride));
      } else {
        x = tc_from_bits((i * stride * 0x9e3779b97f4a7c15ull) ^ (i << 17));
        if (i % 2)
          x = (static_cast<T>(i * stride % 2000003) / 1000001 - 1) *
              static_cast<T>(1 << (i % 11));
      }
      const long double error = ulps<T>(function(x), reference(static_cast<long double>(x)));
      if (error > mine.error) mine = {error, static_cast<double>(x)};
    }
#pragma omp critical
    if (mine.error > worst.error) worst = mine;
  }
  std::printf("%-10s %s  %8.3Lf ulp at %.9g (%a)\n", name, sizeof(T) == 4 ? "f32" : "f64",
              worst.error, worst.at, worst.at);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long long stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4099;
#define BOTH(name, reference)                                          \
  report<float>(                                                       \
      #name, [](float x) { return tc_##name(x); }, reference, stride); \
  report<double>(                                                      \
      #name, [](double x) { return tc_##name(x); }, reference, stride * 16 | 1)
  BOTH(exp, expl);
  BOTH(expm1, expm1l);
  BOTH(log, logl);
  BOTH(log1p, log1pl);
  BOTH(sin, sinl);
  BOTH(cos, cosl);
  BOTH(tanh, tanhl);
  BOTH(sigmoid, sigmoid);
  BOTH(erf, erfl);
  BOTH(gelu, gelu);
  BOTH(rsqrt, rsqrt);
#define POW(y)                                                  \
  report<float>(                                                \
      "pow " #y, [](float x) { return tc_pow(x, (float)y); },   \
      [](long double x) { return powl(x, (float)y); }, stride); \
  report<double>(                                               \
      "pow " #y, [](double x) { return tc_pow(x, (double)y); }, \
      [](long double x) { return powl(x, (double)y); }, stride * 16 | 1)
  POW(0.3);
  POW(-2.5);
  POW(3);
  POW(37.7);
#undef POW
#undef BOTH
  return 0;
}
