// What is an element made of? Of its operands' numbers, or of their names: then it is a formula. One
// function of either (03) is the meaning of a graph, and the text of a kernel that computes it.
//
//   w.x(place(i, ..)) + w.y(i)     Numbers, i = 5 =>  1.5f
//                                  Names, i = "i" =>  "(b0[(i % 4)] + b1[i])"
//
// A sum's order is part of its meaning: by halves in chunks of 1024, then over the chunks' results
// by the same rule; of a product of matrices, one fma after the other. + 0 makes -0 a 0 where
// its sign would depend on how it is made: in an empty sum, a maximum, a product.
#pragma once

#include <bit>
#include <cmath>
#include <functional>

#include "lessons/small/00_arrays.h"
#include "tiny_compile/base/math.h"

namespace small {

namespace prelude = tiny_compile::prelude;

// An element is made of numbers ...
struct Numbers {
  using Index = int64_t;
  using Value = float;
  using At = std::function<float(int64_t)>;
  const Array &first, &second;  // operands

  float x(int64_t i) const { return first[i]; }
  float y(int64_t i) const { return second[i]; }
  float constant(float value) const { return value; }
  float unary(const char*, float (*of)(float), float x) const { return of(x); }
  // The sum or maximum of at(0), .. at(count - 1).
  float halves(bool is_max, int64_t count, const At& at) const {
    if (count > 1024)
      return halves(is_max, (count + 1023) / 1024, [&](int64_t chunk) {
        return halves(is_max, std::min<int64_t>(count - chunk * 1024, 1024),
                      [&](int64_t k) { return at(chunk * 1024 + k); });
      });
    Array left(1024, is_max ? -INFINITY : -0.0f);
    for (int64_t k = 0; k < count; k++) left[k] = at(k);
    for (size_t half = 512; half > 0; half /= 2)
      for (size_t k = 0; k < half; k++)
        left[k] =
            is_max ? prelude::tc_maximum(left[k], left[k + half]) : left[k] + left[k + half];
    return is_max || count == 0 ? left[0] + 0.0f : left[0];
  }
  float product(int64_t count, const At& a, const At& b) const {
    float sum = 0;
    for (int64_t k = 0; k < count; k++) sum = std::fma(a(k), b(k), sum);
    return sum + 0.0f;
  }
};

// A formula, as text.
struct Text {
  std::string s;
  Text(std::string text) : s(std::move(text)) {}
  Text(int64_t number) : s(std::to_string(number)) {}
};
// A number that changes nothing is not written.
inline Text join(const Text& a, const char* sign, const Text& b, const char* neutral = "") {
  return b.s == neutral ? a : Text("(" + a.s + sign + b.s + ")");
}
inline Text operator+(const Text& a, const Text& b) {
  return a.s == "0" ? b : join(a, " + ", b, "0");
}
inline Text operator-(const Text& a, const Text& b) { return join(a, " - ", b); }
inline Text operator*(const Text& a, const Text& b) { return join(a, " * ", b, "1"); }
inline Text operator/(const Text& a, const Text& b) { return join(a, " / ", b, "1"); }
inline Text operator%(const Text& a, const Text& b) { return join(a, " % ", b); }
inline std::ostream& operator<<(std::ostream& to, const Text& text) { return to << text.s; }
inline Text operator-(const Text& a) { return "(-" + a.s + ")"; }

// ... or of text.
struct Names {
  using Index = Text;
  using Value = Text;
  using At = std::function<Text(Text)>;
  std::string first, second;

  Text x(const Text& i) const { return first + "[" + i.s + "]"; }
  Text y(const Text& i) const { return second + "[" + i.s + "]"; }
  Text constant(float value) const {
    return str("tc_from_bits(", std::bit_cast<unsigned>(value), "u)");
  }
  Text unary(const char* name, float (*)(float), const Text& x) const {
    return str("tc_", name, "(", x, ")");
  }
  Text halves(bool is_max, const Text& count, const At& at) const {
    return str("halves<", is_max, ">(", count, ", [&](long long k) { return ", at(Text("k")),
               "; })");
  }
  Text product(const Text& count, const At& a, const At& b) const {
    const std::string of_k = "[&](long long k) { return ";
    return str("product(", count, ", ", of_k, a(Text("k")), "; }, ", of_k, b(Text("k")),
               "; })");
  }
};
constexpr const char* kLoops = R"(
TC_FN long long least(long long a, long long b) { return a < b ? a : b; }
template <bool IsMax, int Depth = 3, class At> TC_FN float halves(long long count, At at) {
  if constexpr (Depth > 0)
    if (count > 1024)
      return halves<IsMax, Depth - 1>((count + 1023) / 1024, [&](long long chunk) {
        return halves<IsMax, 0>(least(count - chunk * 1024, 1024),
                                [&](long long k) { return at(chunk * 1024 + k); });
      });
  float left[1024];
  int half = 1;
  while (half < count) half *= 2;
  for (int k = 0; k < count; k++) left[k] = at(k);
  for (int k = count; k < half; k++) left[k] = IsMax ? tc_from_bits(0xff800000u) : -0.0f;
  for (half /= 2; half > 0; half /= 2)
#pragma GCC ivdep
    for (int k = 0; k < half; k++)
      left[k] = IsMax ? tc_maximum(left[k], left[k + half]) : left[k] + left[k + half];
  return IsMax || count == 0 ? left[0] + 0.0f : left[0];
}
template <class A, class B> TC_FN float product(long long count, A a, B b) {
  float sum = 0;
  for (long long k = 0; k < count; k++) sum = tc_fma(a(k), b(k), sum);
  return sum + 0.0f;
}
)";

}  // namespace small
