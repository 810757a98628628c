// Question: how is an index written, and read back?
//
//   ((i*4 + j)/2)*8 - 5
//
// C precedence; `/` is floor division and `%` its remainder; every composite operand of * / %
// is parenthesised, so that nobody has to remember how they associate. Invariant:
// parse_expr(e.str()) == e, for every e whose symbols `lookup` knows.
#include <cctype>
#include <cstdint>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/expr_parts.h"

namespace tiny_compile {

using namespace parts;

namespace {

void print(std::ostream& out, const Expr& expr);

void print_operand(std::ostream& out, const Expr& expr) {
  const ExprKind kind = expr.kind();
  const bool is_simple = kind == ExprKind::Symbol || kind == ExprKind::Min ||
                         kind == ExprKind::Max || (expr.is_constant() && expr.constant() >= 0);
  if (is_simple) return print(out, expr);
  out << '(';
  print(out, expr);
  out << ')';
}

void print_call(std::ostream& out, const char* name, const std::vector<Expr>& arguments) {
  out << name << '(' << join(arguments, ", ") << ')';
}

// A term but for its sign: `magnitude` * atoms.
void print_product(std::ostream& out, const Expr& term, int64_t magnitude) {
  const char* separator = "";
  for (const Expr& atom : atoms_of(term)) {
    out << separator;
    print_operand(out, atom);
    separator = "*";
  }
  if (term.is_constant() || magnitude != 1) out << separator << magnitude;
}

// The first term carries its sign, later ones follow " + " or " - ".
void print_term(std::ostream& out, const Expr& term, bool is_first) {
  const int64_t coefficient = coefficient_of(term);
  const bool is_negative = coefficient < 0 && coefficient != INT64_MIN;
  if (is_negative) out << (is_first ? "-" : " - ");
  if (!is_negative && !is_first) out << " + ";
  const bool is_atom = coefficient == 1 && term.kind() != ExprKind::Mul && !term.is_constant();
  if (is_atom) return print(out, term);
  print_product(out, term, is_negative ? -coefficient : coefficient);
}

void print_sum(std::ostream& out, const Expr& expr) {
  bool is_first = true;
  for (const Expr& term : summands(expr)) {
    print_term(out, term, is_first);
    is_first = false;
  }
}

void print(std::ostream& out, const Expr& expr) {
  switch (expr.kind()) {
    case ExprKind::Symbol: out << expr.name(); return;
    case ExprKind::Min: return print_call(out, "min", expr.operands());
    case ExprKind::Max: return print_call(out, "max", expr.operands());
    case ExprKind::FloorDiv:
    case ExprKind::Mod:
      print_operand(out, expr.operands()[0]);
      out << (expr.kind() == ExprKind::Mod ? '%' : '/');
      return print_operand(out, expr.operands()[1]);
    default: return print_sum(out, expr);
  }
}

// sum     := product (('+' | '-') product)*
// product := unary (('*' | '/' | '%') unary)*
// unary   := '-' unary | number | name | ('min' | 'max') '(' sum (',' sum)* ')' | '(' sum ')'
class Parser {
 public:
  using Lookup = std::function<Expr(std::string_view name, size_t position)>;
  Parser(std::string_view text, size_t at, const Lookup& lookup)
      : text_(text), at_(at), lookup_(lookup) {}

  size_t at() const { return at_; }

  Expr sum() {
    if (++depth_ > kMaxDepth + 1) error(at_, str("nested deeper than ", kMaxDepth, " levels"));
    Expr result = product();
    while (true) {
      if (accept('+')) {
        result = combined(result, product(), operator+);
      } else if (accept('-')) {
        result = combined(result, product(), operator-);
      } else {
        --depth_;
        return result;
      }
    }
  }

 private:
  // What overflows is told behind the operand that made it.
  Expr combined(const Expr& lhs, const Expr& rhs, Expr (*combine)(const Expr&, const Expr&)) {
    try {
      return combine(lhs, rhs);
    } catch (const Error& overflow) {
      error(at_, overflow.what());
    }
  }

  Expr product() {
    Expr result = unary();
    while (true) {
      if (accept('*')) {
        result = combined(result, unary(), operator*);
      } else if (accept('/')) {
        result = combined(result, divisor(), floor_div);
      } else if (accept('%')) {
        result = combined(result, divisor(), mod);
      } else {
        return result;
      }
    }
  }

  Expr divisor() {
    skip_spaces();
    const size_t start = at_;
    const Expr result = unary();
    if (result.bounds().high < 1) error(start, str("a divisor must be positive, not ", result));
    return result;
  }

  Expr unary() {
    int64_t sign = 1;
    while (accept('-')) {
      sign = -sign;
      if (is_digit()) return number(sign);
    }
    return sign < 0 ? primary() * -1 : primary();
  }

  Expr primary() {
    skip_spaces();
    if (is_digit()) return number(1);
    if (accept('(')) return close(sum());
    const size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) error(start, "expected a size or an index: a number, a name or '('");
    const bool is_call = (name == "min" || name == "max") && accept('(');
    if (!is_call) return lookup_(name, start);
    Expr result = sum();
    while (accept(',')) result = name == "min" ? min(result, sum()) : max(result, sum());
    return close(result);
  }

  Expr close(const Expr& inner) {
    if (!accept(')')) error(at_, "expected ')'");
    return inner;
  }

  Expr number(int64_t sign) {
    const size_t start = at_;
    int64_t value = 0;
    for (; is_digit(); ++at_) {
      const bool overflows = __builtin_mul_overflow(value, int64_t{10}, &value) ||
                             __builtin_add_overflow(value, sign * (text_[at_] - '0'), &value);
      if (overflows) error(start, "this number does not fit 64 bits");
    }
    return value;
  }

  bool is_digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  // Leaves at_ behind the last token that belongs to the expression.
  bool accept(char token) {
    const size_t start = at_;
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == token) {
      ++at_;
      return true;
    }
    at_ = start;
    return false;
  }

  [[noreturn]] void error(size_t position, const std::string& message) const {
    fail_in_text(text_, position, message);
  }

  std::string_view text_;
  size_t at_;
  const Lookup& lookup_;
  int depth_ = 0;
};

}  // namespace

std::string Expr::str() const {
  std::ostringstream out;
  print(out, *this);
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const Expr& expr) {
  print(out, expr);
  return out;
}

std::string sizes_text(const std::vector<Expr>& sizes) {
  std::vector<std::string> parts;
  for (const Expr& size : sizes) {
    const Interval bounds = size.bounds();
    parts.push_back(tiny_compile::str(size.name(), ": ", bounds.low, "..", bounds.high));
  }
  return parts.empty() ? "" : "[" + join(parts, ", ") + "]";
}

Expr parse_expr(std::string_view text, size_t& at, const Parser::Lookup& lookup) {
  Parser parser(text, at, lookup);
  const Expr result = parser.sum();
  at = parser.at();
  return result;
}

}  // namespace tiny_compile
