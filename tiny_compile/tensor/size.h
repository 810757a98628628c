// tc::Size: what x.size(0) is, a number or an expression over a trace's symbolic sizes.
//
//   Size n = x.size(0);            // 37; in a trace of f32[n,3]: n
//   x.reshape({n / 2, -1});        // stays symbolic
//   for (int64_t i = 0; i < n; i++)  // n > 0, n > 1, ..: each decided by the example, and guarded
//   int64_t k = n;                 // 37, and a guard: this trace is for n == 37
//
// A number converts freely. A symbolic size becomes one through the example that a trace was
// given; without an example that is a tc::Error at the line that asked for the size.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <ostream>
#include <source_location>
#include <string>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/expr.h"
#include "tiny_compile/tensor/sizes.h"

namespace tiny_compile {

using Here = std::source_location;  // of the user's call; a defaulted last argument

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

class Size {
 public:
  Size() = default;  // 0
  template <Integer T>
  Size(T number) : expr_(static_cast<int64_t>(number)) {}  // NOLINT: a number is a Size
  explicit Size(const Expr& expr, Here here = Here::current());

  const Expr& expr() const { return expr_; }
  bool is_number() const { return expr_.is_constant(); }
  bool is_number(int64_t number) const { return expr_.is_constant(number); }
  operator int64_t() const;  // NOLINT: specialises a symbolic one
  const Here& here() const { return here_; }
  Size& operator+=(const Size& other);
  Size& operator-=(const Size& other);
  Size& operator*=(const Size& other);
  Size& operator/=(const Size& other);

 private:
  Expr expr_;
  Here here_;
};

Size operator+(const Size& lhs, const Size& rhs);
Size operator-(const Size& lhs, const Size& rhs);
Size operator*(const Size& lhs, const Size& rhs);
Size operator/(const Size& lhs, const Size& rhs);  // rounds down, as Python's //; rhs > 0
Size operator%(const Size& lhs, const Size& rhs);  // in [0, rhs); rhs > 0
inline Size& Size::operator+=(const Size& other) { return *this = *this + other; }
inline Size& Size::operator-=(const Size& other) { return *this = *this - other; }
inline Size& Size::operator*=(const Size& other) { return *this = *this * other; }
inline Size& Size::operator/=(const Size& other) { return *this = *this / other; }
Size max(const Size& lhs, const Size& rhs);
Size min(const Size& lhs, const Size& rhs);

// What holds between two sizes. Decided by their bounds, else by the example, with a guard.
enum class Relation : uint8_t { Equal, Less, AtMost };
bool holds(const Size& lhs, Relation relation, const Size& rhs);
// The same; nothing where neither decides.
std::optional<bool> holds_if_known(const Size& lhs, Relation relation, const Size& rhs);

// Written alike, so equal whatever the values are. Asks nothing and guards nothing.
inline bool same_expression(const Size& lhs, const Size& rhs) {
  return lhs.expr() == rhs.expr();
}

inline bool operator==(const Size& a, const Size& b) { return holds(a, Relation::Equal, b); }
inline bool operator<(const Size& a, const Size& b) { return holds(a, Relation::Less, b); }
inline bool operator<=(const Size& a, const Size& b) { return holds(a, Relation::AtMost, b); }
inline bool operator>(const Size& a, const Size& b) { return holds(b, Relation::Less, a); }
inline bool operator>=(const Size& a, const Size& b) { return holds(b, Relation::AtMost, a); }

// With a C++ integer on one side; without these the conversion to int64_t would compete.
#define TC_SIZE_OPERATOR(op, Result)           \
  template <Integer T>                         \
  Result operator op(const Size& lhs, T rhs) { \
    return lhs op Size(rhs);                   \
  }                                            \
  template <Integer T>                         \
  Result operator op(T lhs, const Size& rhs) { \
    return Size(lhs) op rhs;                   \
  }
TC_SIZE_OPERATOR(+, Size)
TC_SIZE_OPERATOR(-, Size)
TC_SIZE_OPERATOR(*, Size)
TC_SIZE_OPERATOR(/, Size)
TC_SIZE_OPERATOR(%, Size)
TC_SIZE_OPERATOR(<, bool)
TC_SIZE_OPERATOR(<=, bool)
TC_SIZE_OPERATOR(>, bool)
TC_SIZE_OPERATOR(>=, bool)
#undef TC_SIZE_OPERATOR
template <Integer T>
bool operator==(const Size& lhs, T rhs) {
  return lhs == Size(rhs);
}

std::ostream& operator<<(std::ostream& out, const Size& size);

// A shape whose sizes may be symbolic: {x.size(0), 3, -1}.
class SizeList : public std::vector<Size> {
 public:
  using std::vector<Size>::vector;
  SizeList(const Sizes& numbers)
      : std::vector<Size>(numbers.begin(), numbers.end()) {}  // NOLINT
  explicit SizeList(const Shape& shape, Here here = Here::current());
  Shape exprs() const;
  friend bool operator==(const SizeList& lhs, const SizeList& rhs) {
    return lhs.exprs() == rhs.exprs();
  }
};

// What a trace assumed of its sizes: the compiled code is for calls where all of these hold.
struct SizeGuard {
  Expr lhs;
  Relation relation = Relation::Equal;
  Expr rhs;
  bool outcome = true;  // false: the relation does not hold
  std::string str() const;
  bool admits(const SymbolValues& sizes) const;
};

// Of the function that is traced on this thread: its symbolic sizes, what they are in the example,
// and what has been decided so far.
struct SizeTrace {
  std::optional<SymbolValues> example;
  std::vector<SizeGuard> guards;
  Substitution known;  // sizes that a guard says are a number, or another size
  std::function<Location(const Location&)> place;  // the user's line of one in a composite
};
class SizeTraceScope {  // from here to the brace
 public:
  explicit SizeTraceScope(SizeTrace* trace);
  ~SizeTraceScope();
  SizeTraceScope(const SizeTraceScope&) = delete;
  SizeTraceScope& operator=(const SizeTraceScope&) = delete;

 private:
  SizeTrace* outer_;
};

}  // namespace tiny_compile
