// Each rule by hand, then random expressions against a naive evaluator.
#include "tiny_compile/base/expr.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>

#include "tests/catch.h"
#include "tiny_compile/base/error.h"

using namespace tiny_compile;

namespace {

const Expr i = Expr::symbol("i", 0, 4095), j = Expr::symbol("j", 0, 1023);
const Expr x = Expr::symbol("x", -1000, 1000), y = Expr::symbol("y", -kUnbounded, kUnbounded);
const Expr n = Expr::symbol("n", 1, kUnbounded), m = Expr::symbol("m", 1, 64);
const Expr a = Expr::symbol("a", 0, 3), b = Expr::symbol("b", -5, 6);

Expr parse(std::string_view text) {
  const std::map<std::string, Expr, std::less<>> known = {
      {"i", i}, {"j", j}, {"x", x}, {"y", y}, {"n", n}, {"m", m}, {"a", a}, {"b", b}};
  size_t at = 0;
  const Expr result = parse_expr(text, at, [&](std::string_view name, size_t position) {
    const auto found = known.find(name);
    if (found == known.end()) fail_in_text(text, position, str("unknown symbol '", name, "'"));
    return found->second;
  });
  if (at != text.size()) fail_in_text(text, at, "left over");
  return result;
}

std::string error_of(std::string_view text) {
  try {
    return str("no error: ", parse(text));
  } catch (const Error& error) {
    return error.what();
  }
}

std::string simplified(std::string_view text) { return parse(text).str(); }

}  // namespace

TEST_CASE("sums are canonical") {
  CHECK((i + 1) * 4 == 4 + 4 * i);
  CHECK((i + j) * (i - j) == i * i - j * j);
  CHECK(i + j + 3 - j - 3 == i);
  CHECK((i - i).is_constant(0));
  CHECK((n + 1) * (n + 1) - n * n - 2 * n == Expr(1));
  CHECK((x + y) * (n + m) == m * y + n * x + y * n + x * m);
  CHECK(i + j != i - j);
  CHECK(Expr::symbol("i", 0, 3) != i);
  CHECK((i + j * 2).hash() == (j + i + j).hash());
}

TEST_CASE("expressions print with C precedence") {
  CHECK((i * 1024 + j).str() == "i*1024 + j");
  CHECK((j - i - 5).str() == "-i + j - 5");
  CHECK((i - 5).str() == "i - 5");
  CHECK((x * -3 * n).str() == "-n*x*3");
  CHECK(floor_div(x * 3 + 1, 7).str() == "(x*3 + 1)/7");
  CHECK((floor_div(x, 7) * 3 * n).str() == "n*(x/7)*3");
  CHECK((-7 + Expr(0)).str() == "-7");
  CHECK(min(x, max(y, n)).str() == "min(x, max(n, y))");
  CHECK(mod(floor_div(x, n), m).str() == "(x/n)%m");
  CHECK(floor_div(x, n * 2).str() == "x/(n*2)");
}

TEST_CASE("division by a constant takes out what the bounds prove") {
  CHECK(simplified("(i*1024 + j)/1024") == "i");
  CHECK(simplified("(i*1024 + j)%1024") == "j");
  CHECK(simplified("(x*1024 + j)/1024") == "x");
  CHECK(simplified("(x*1024 - j - 1)/1024") == "x - 1");
  CHECK(simplified("(x*1024 - j - 1)%1024") == "-j + 1023");
  CHECK(simplified("(i*1024 + j)/2048") == "i/2");
  CHECK(simplified("(i*1024 + j)%2048") == "j + (i%2)*1024");
  CHECK(simplified("(x*8 + i*12 + a)/16") == "(i*3 + x*2)/4");
  CHECK(simplified("(x + 9)/4") == "(x + 1)/4 + 2");
  CHECK(simplified("(x - 1)/4") == "(x + 3)/4 - 1");
  CHECK(simplified("i/4096") == "0");
  CHECK(simplified("(i - 4096)/4096") == "-1");
  CHECK(simplified("(i + 4096)%8192 - 4096") == "i");
  CHECK(simplified("x/1") == "x");
  CHECK(simplified("x%1") == "0");
  CHECK(simplified("-7/2") == "-4");
  CHECK(simplified("-7%4") == "1");
}

TEST_CASE("common factors cancel") {
  CHECK(simplified("(4*x + 8*y)/4") == "x + y*2");
  CHECK(simplified("(6*x)/4") == "(x*3)/2");
  CHECK(simplified("(3*x) % (3*16)") == "(x%16)*3");
  CHECK(simplified("(6*x + 5)/9") == "(x*2 + 1)/3");
  CHECK(simplified("(6*x + 5)%9") == "((x*2 + 1)%3)*3 + 2");
}

TEST_CASE("nested divisions collapse") {
  CHECK(simplified("(x/3)/5") == "x/15");
  CHECK(simplified("(x%12)%4") == "x%4");
  CHECK(simplified("(x%12 + j)%4") == "(j + x)%4");
  CHECK(simplified("((x%6)*2 + j)%4") == "(j + x*2)%4");
  CHECK(simplified("(x%12)/4") == "(x/4)%3");
  CHECK(simplified("(y/4611686018427387904)/4") == "(y/4611686018427387904)/4");
}

TEST_CASE("quotient and remainder recombine") {
  CHECK(simplified("(x/4)*4 + x%4") == "x");
  CHECK(simplified("(x/4)*12 + (x%4)*3") == "x*3");
  CHECK(simplified("n*(x/4)*4 + j + (x%4)*n") == "j + n*x");
  CHECK(simplified("(x/n)*n + x%n") == "x");
  CHECK(simplified("((x/4)%3)*4 + x%4") == "x%12");
  CHECK(simplified("(x/24)*24 + ((x/4)%6)*4 + x%4") == "x");
  CHECK(simplified("x%4 + ((x/4)%6)*4 + (x/24)*24") == "x");
  CHECK(simplified("((y + j/4)%8)*4 + j%4") == "(j + y*4)%32");
  CHECK(simplified("((x*8 + j)/4)*4 + (x*8 + j)%4") == "j + x*8");
  CHECK(simplified("(x/4)*4 - x%4") == "(x/4)*4 - (x%4)");
}

TEST_CASE("what is left of a whole without its quotient is its remainder") {
  CHECK(simplified("x - (x/4)*4") == "x%4");
  CHECK(simplified("j + x*3 - (x/4)*12 + 1") == "j + (x%4)*3 + 1");
  CHECK(simplified("x - (x/4)*8") == "x - (x/4)*8");
  CHECK(simplified("min(x, (x/4)*4)") == "(x/4)*4");
}

TEST_CASE("symbolic divisors") {
  CHECK(simplified("(i*n)/n") == "i");
  CHECK(simplified("(i*n + j*n*2)%n") == "0");
  CHECK(simplified("n/n") == "1");
  CHECK(simplified("(x*m*4)/(m*2)") == "x*2");
  CHECK(simplified("(x*m)/(m*n)") == "x/n");
  CHECK(simplified("(x*m)%(m*n)") == "m*(x%n)");
  CHECK(simplified("(x*(n + 1))/(n + 1)") == "x");
  CHECK(simplified("(x*(n + j) + n + j + 7)/(n + j)") == "x + 7/(j + n) + 1");
  CHECK(simplified("(x*n + n - 1)/n") == "x");
  CHECK(simplified("(x/n)/m") == "x/(m*n)");
  CHECK(simplified("(x%(n*m))/m") == "(x/m)%n");
  CHECK(simplified("(x%(n*m))%m") == "x%m");
  CHECK(simplified("a/(a + n)") == "0");
  CHECK(simplified("a%(a + n)") == "a");
  CHECK(simplified("j/n") == "j/n");
}

TEST_CASE("an index is less than its symbolic extent") {
  const Expr p = Expr::symbol("p", 0, kUnbounded), q = Expr::symbol("q", 0, kUnbounded);
  const Expr row = Expr::index("row", p), column = Expr::index("column", q);
  CHECK(floor_div(row * q + column, q) == row);
  CHECK(mod(row * q + column, q) == column);
  CHECK(floor_div(x * p * q + row * q + column, p * q) == x);
  CHECK(mod(x * p * q + row * q + column, p * q) == row * q + column);
  CHECK(floor_div((x * p + row) * 1024 + j, p * 1024) == x);
  CHECK(mod((x * p + row) * 1024 + j, p * 1024) == row * 1024 + j);
  CHECK(mod(x * q + mod(y, q), q) == mod(y, q));
  CHECK(min(row, p - 1) == row);
  CHECK(floor_div(row + 1, p).str() == "(row + 1)/p");
  CHECK(floor_div(row * q + column, p).kind() == ExprKind::FloorDiv);
  CHECK(Expr::index("row", 8) == Expr::symbol("row", 0, 7));
  CHECK(row != Expr::index("row", q));
  const Expr sign = Expr::symbol("sign", -1, 1);
  CHECK(min(row * sign, p * sign - sign).kind() == ExprKind::Min);
  CHECK(symbols(row * q) == std::vector<Symbol>{"q", "row"});
}

TEST_CASE("splitting a flat index, permuting and back gives the flat index") {
  const Expr p = Expr::symbol("p", 1, kUnbounded);
  const std::vector<Shape> shapes = {{2, 3, 4, 5}, {7, 1, 8, 2}, {3, p, 4, 8}, {p, m, 3, 2}};
  const std::vector<std::vector<size_t>> orders = {{1, 0, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
  for (const Shape& shape : shapes) {
    for (const std::vector<size_t>& order : orders) {
      const Expr flat = Expr::index("flat", product(shape));
      Shape permuted;
      for (const size_t axis : order) permuted.push_back(shape[axis]);
      const Shape to = row_major_strides(permuted), from = row_major_strides(shape);
      Expr moved = 0, back = 0;
      for (size_t k = 0; k < 4; ++k) {
        moved = moved + mod(floor_div(flat, from[order[k]]), permuted[k]) * to[k];
      }
      for (size_t k = 0; k < 4; ++k) {
        back = back + mod(floor_div(moved, to[k]), permuted[k]) * from[order[k]];
      }
      CHECK(back.str() == "flat");
    }
  }
}

TEST_CASE("an expression knows what it costs, and cannot grow without end") {
  CHECK(Expr(7).size() == 1);
  CHECK((i * 4 + j).size() == 5);
  const auto grow = [] {
    Expr result = y;
    for (int k = 0; k < 100; ++k) result = floor_div(result, n) + mod(result, n) * 3;
    return result;
  };
  CHECK_THROWS_AS(grow(), Error);
}

TEST_CASE("a factor that may be negative does not cancel") {
  const Expr p = Expr::symbol("p", -4, -1), q = Expr::symbol("q", -3, -1);
  CHECK(evaluate(floor_div(x * p, p * q), {{"x", 5}, {"p", -2}, {"q", -3}}) == -2);
  CHECK(evaluate(mod(x * p, p * q), {{"x", 5}, {"p", -2}, {"q", -3}}) == 2);
}

TEST_CASE("min and max are resolved from bounds") {
  CHECK(simplified("min(j, 1023)") == "j");
  CHECK(simplified("min(j, 0)") == "0");
  CHECK(simplified("min(j, 5)") == "min(j, 5)");
  CHECK(simplified("min(y, y + 1, y + j)") == "y");
  CHECK(simplified("max(y - 1, y + j)") == "j + y");
  CHECK(simplified("min(min(x, y), min(y, x))") == "min(x, y)");
  CHECK(simplified("min(9223372036854775807, x)") == "x");
  CHECK(simplified("max(n, 1)") == "n");
}

TEST_CASE("bounds saturate") {
  CHECK((i * 1024 + j).bounds() == (Interval{0, 4194303}));
  CHECK((x * x).bounds() == (Interval{-1000000, 1000000}));
  CHECK((y + 1).bounds() == (Interval{-kUnbounded, kUnbounded}));
  CHECK((n * n).bounds() == (Interval{1, kUnbounded}));
  CHECK((n * n * n * -1 + 5).bounds() == (Interval{-kUnbounded, 4}));
  CHECK((y * 0).bounds() == (Interval{0, 0}));
  CHECK((y * 2 + i).bounds() == (Interval{-kUnbounded, kUnbounded}));
  CHECK((y + kUnbounded / 2).bounds() == (Interval{-kUnbounded, kUnbounded}));
  CHECK(Expr(INT64_MIN).bounds() == (Interval{-kUnbounded, -kUnbounded}));
  CHECK(floor_div(y, n).bounds() == (Interval{-kUnbounded, kUnbounded}));
  CHECK(floor_div(x, n).bounds() == (Interval{-1000, 1000}));
  CHECK(mod(y, m).bounds() == (Interval{0, 63}));
  CHECK(mod(j, n).bounds() == (Interval{0, 1023}));
  CHECK(Expr::symbol("empty", 0, -1).bounds() == (Interval{0, 0}));
}

TEST_CASE("terms, symbols and substitution") {
  const std::vector<Term> parts = terms(3 * i + j + 5);
  REQUIRE(parts.size() == 3);
  CHECK((parts[0].coefficient == 3 && parts[0].factor == i));
  CHECK((parts[1].coefficient == 1 && parts[1].factor == j));
  CHECK((parts[2].coefficient == 5 && parts[2].factor == Expr(1)));
  CHECK(terms(0).empty());
  CHECK(substitute(i * 2 + j, {{"i", j}, {"j", i}}) == j * 2 + i);
  CHECK(substitute(floor_div(x, 4) + x, {{"x", j * 4 + 1}}) == j * 5 + 1);
  CHECK(symbols(floor_div(j * i, n) + j).size() == 3);
  CHECK(depends_on(mod(x, n), "n"));
  CHECK_FALSE(depends_on(mod(x, n), "m"));
  CHECK(product({i, 4, j}) == i * j * 4);
  CHECK(row_major_strides({6, 4, 2}) == (Shape{8, 2, 1}));
  CHECK(row_major_strides({6, n, m}) == (Shape{n * m, m, 1}));
  CHECK(ceil_div(n * 4, 4) == n);
}

TEST_CASE("text that is no expression is an error with a position") {
  CHECK_THROWS_AS(parse("i +"), Error);
  CHECK_THROWS_AS(parse("(i"), Error);
  CHECK_THROWS_AS(parse("min(i"), Error);
  CHECK_THROWS_AS(parse("i/0"), Error);
  CHECK_THROWS_AS(parse("i%-3"), Error);
  CHECK_THROWS_AS(parse("9223372036854775808"), Error);
  CHECK(parse("-9223372036854775808") == Expr(INT64_MIN));
  CHECK(parse("x - 1 + -9223372036854775807") == x + INT64_MIN);
  CHECK(parse((x + INT64_MIN).str()) == x + INT64_MIN);
  CHECK(error_of("x*9223372036854775807*2").find("overflow") != std::string::npos);
  CHECK(error_of("i + k").find("unknown symbol 'k'") != std::string::npos);
  CHECK(error_of(std::string(100000, '(') + "i").find("nested deeper") != std::string::npos);
  CHECK(parse(std::string(150, '(') + "i" + std::string(150, ')')) == i);
  CHECK(parse(std::string(100000, '-') + "i") == i);
  std::string chain = "y";
  for (int k = 0; k < 10000; ++k) chain += "*n/m";
  CHECK(error_of(chain).find("nested deeper") != std::string::npos);
}

TEST_CASE("parsing stops behind the expression") {
  size_t at = 1;
  CHECK(parse_expr("[4*2 + 1 ]", at, nullptr) == Expr(9));
  CHECK(at == 8);
}

namespace {

struct Sample {
  Expr expr;
  std::vector<int64_t> values;  // by assignment, computed without simplification
};

int64_t floor_of(int64_t lhs, int64_t rhs) { return (lhs - ((lhs % rhs) + rhs) % rhs) / rhs; }

class Fuzz {
 public:
  Fuzz() : leaves_{a, b, Expr::symbol("c", -9, -2), Expr::symbol("d", 1, 7)} {
    leaves_.push_back(Expr::index("k", leaves_[3]));
    for (int k = 0; k < 24; ++k) {
      SymbolValues one;
      for (const Expr& leaf : leaves_) {
        const bool is_index = !leaf.operands().empty();
        const int64_t high = is_index ? one[3].second - 1 : leaf.bounds().high;
        one.emplace_back(leaf.name(), pick(leaf.bounds().low, high));
      }
      assignments_.push_back(one);
    }
  }

  Sample sample(int depth) {
    const int64_t choice = depth == 0 ? pick(0, 1) : pick(0, 11);
    if (choice == 0) return leaf(pick(0, 4));
    if (choice == 1) return constant(pick(-12, 12));
    const Sample lhs = sample(depth - 1);
    if (choice <= 4) return zip(lhs, sample(depth - 1), lhs_plus, std::plus<int64_t>());
    if (choice == 5) return zip(lhs, sample(depth - 1), lhs_minus, std::minus<int64_t>());
    if (choice == 6)
      return zip(lhs, constant(pick(-6, 12)), lhs_times, std::multiplies<int64_t>());
    if (choice == 7) return zip(lhs, sample(depth / 2), lhs_times, std::multiplies<int64_t>());
    if (choice == 8) {
      const auto least = [](int64_t p, int64_t q) { return std::min(p, q); };
      const auto most = [](int64_t p, int64_t q) { return std::max(p, q); };
      return pick(0, 1) ? zip(lhs, sample(depth - 1), tiny_compile::min, least)
                        : zip(lhs, sample(depth - 1), tiny_compile::max, most);
    }
    const Sample by = divisor();
    if (choice == 9) return zip(lhs, by, floor_div, floor_of);
    const auto rest = [](int64_t p, int64_t q) { return p - floor_of(p, q) * q; };
    if (choice == 10) return zip(lhs, by, mod, rest);
    const Sample high =
        zip(zip(lhs, by, floor_div, floor_of), by, lhs_times, std::multiplies<int64_t>());
    return zip(high, zip(lhs, by, mod, rest), lhs_plus, std::plus<int64_t>());
  }

  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  const auto& assignments() const { return assignments_; }
  const Expr& leaf_expr(size_t k) const { return leaves_[k]; }

 private:
  static Expr lhs_plus(const Expr& p, const Expr& q) { return p + q; }
  static Expr lhs_minus(const Expr& p, const Expr& q) { return p - q; }
  static Expr lhs_times(const Expr& p, const Expr& q) { return p * q; }

  template <typename Build, typename Compute>
  Sample zip(const Sample& lhs, const Sample& rhs, Build build, Compute compute) {
    Sample result{build(lhs.expr, rhs.expr), {}};
    for (size_t k = 0; k < lhs.values.size(); ++k) {
      result.values.push_back(compute(lhs.values[k], rhs.values[k]));
    }
    return result;
  }

  Sample leaf(int64_t which) {
    Sample result{leaves_[which], {}};
    for (const auto& assignment : assignments_)
      result.values.push_back(assignment[which].second);
    return result;
  }

  Sample constant(int64_t value) {
    return {value, std::vector<int64_t>(assignments_.size(), value)};
  }

  Sample divisor() {
    const int64_t choice = pick(0, 9);
    if (choice < 6) return constant(int64_t{1} << pick(0, 4));
    if (choice < 8) return constant(pick(1, 12));
    if (choice == 8) return leaf(3);
    return zip(leaf(3), constant(pick(1, 4)), lhs_times, std::multiplies<int64_t>());
  }

  std::mt19937_64 random_{20240607};
  std::vector<Expr> leaves_;
  std::vector<SymbolValues> assignments_;
};

}  // namespace

TEST_CASE("simplification keeps every value, within the bounds, and prints what parses back") {
  Fuzz fuzz;
  const auto lookup = [&](std::string_view name, size_t) {
    for (size_t k = 0;; ++k) {
      if (fuzz.leaf_expr(k).name() == name) return fuzz.leaf_expr(k);
    }
  };
  for (int round = 0; round < 20000; ++round) {
    const Sample sample = fuzz.sample(static_cast<int>(fuzz.pick(1, 6)));
    const Interval bounds = sample.expr.bounds();
    const std::string text = sample.expr.str();
    INFO("round " << round << ": " << text);
    bool same = true, inside = true;
    for (size_t k = 0; k < sample.values.size(); ++k) {
      same = same && evaluate(sample.expr, fuzz.assignments()[k]) == sample.values[k];
      inside = inside && bounds.low <= sample.values[k] && sample.values[k] <= bounds.high;
    }
    size_t at = 0;
    const bool parses_back = parse_expr(text, at, lookup) == sample.expr && at == text.size();
    const bool rebuilds = substitute(sample.expr, {{"a", fuzz.leaf_expr(0)}}) == sample.expr;
    if (same && inside && parses_back && rebuilds) continue;
    CAPTURE(same, inside, parses_back, rebuilds);
    FAIL("unsound");
  }
}
