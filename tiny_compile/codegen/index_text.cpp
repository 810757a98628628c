// How does an index become C?
//
//   i0*n + j0   reads as it stands    (-i0 + 3)%4  =>  ((-i0 + 3) + 540)%4    min(i0, 3)  =>  (i0 < 3 ? i0 : 3)
#include "tiny_compile/codegen/index_text.h"

#include <algorithm>

#include "tiny_compile/codegen/scalar.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostBeyond = 8;  // of a pack of points that begins in a row

// Whether an integer with a name is divided by what it has once or not at all: a comparison does it.
//   step/1023 with step < 1027  =>  (step >= 1023)
bool is_once(const Expr& expr) {
  const bool divides = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod;
  if (!divides || expr.operands()[0].kind() != ExprKind::Symbol ||
      !expr.operands()[1].is_constant())
    return false;
  const Interval bounds = expr.operands()[0].bounds();
  const int64_t by = expr.operands()[1].constant();
  const bool is_cheap = by <= kMostBeyond || (by & (by - 1)) == 0;
  return !is_cheap && bounds.low >= 0 && bounds.high >= by && bounds.high < by + kMostBeyond;
}

// Whether its own text means the same in C.
bool reads_as_c(const Expr& expr) {
  if (is_once(expr)) return false;
  if (expr.is_constant() || expr.kind() == ExprKind::Symbol) return true;
  if (expr.kind() == ExprKind::Min || expr.kind() == ExprKind::Max) return false;
  const bool divides = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::Mod;
  const std::vector<Expr>& operands = expr.operands();
  return !(divides && (operands[0].bounds().low < 0 || operands[1].bounds().low < 1)) &&
         std::all_of(operands.begin(), operands.end(), reads_as_c);
}

// Of a, b, c that by < or >: (a < b ? a : b), then that and c.
std::string chosen(const std::vector<std::string>& parts, const char* by) {
  std::string best = parts[0];
  for (size_t k = 1; k < parts.size(); k++)
    best = str("(", best, by, parts[k], " ? ", best, " : ", parts[k], ")");
  return best;
}

// C rounds quotients towards zero, an Expr downwards: where the dividend may be negative, a
// multiple of the divisor is added first. (-i0 + 3)%4 with i0 <= 543  =>  ((-i0 + 3) + 540)%4
// Of a divisor that is there once at most: step%1023  =>  (step < 1023 ? step : step - 1023)
// Of a symbolic divisor: (-i0 + 3)%n  =>  ((-i0 + 3)%n + n)%n
std::string divided(const Expr& expr, const std::vector<std::string>& parts) {
  const Expr divisor = expr.operands()[1];
  const bool modulo = expr.kind() == ExprKind::Mod;
  const int64_t low = expr.operands()[0].bounds().low;
  if (is_once(expr))
    return modulo ? str("(", parts[0], " < ", parts[1], " ? ", parts[0], " : ", parts[0], " - ",
                        parts[1], ")")
                  : str("(", parts[0], " >= ", parts[1], ")");
  if (low >= 0) return parts[0] + (modulo ? "%" : "/") + parts[1];
  if (!divisor.is_constant()) {
    const std::string rest = str("(", parts[0], "%", parts[1], " + ", parts[1], ")%", parts[1]);
    return modulo ? rest : str("(", parts[0], " - ", rest, ")/", parts[1]);
  }
  const int64_t by = divisor.constant(), times = (by - 1 - low) / by;
  const std::string shifted = str("(", parts[0], " + ", times * by, ")");
  return modulo ? str(shifted, "%", by) : str(shifted, "/", by, " - ", times);
}

}  // namespace

// C has no min of integers: min(i0, 3)  =>  (i0 < 3 ? i0 : 3). What divides may be a size of 0 where
// no loop turns, and its quotient be written before the loop: i0%n  =>  i0%(n > 1 ? n : 1)
std::string c_text(const Expr& expr) {
  if (reads_as_c(expr)) return expr.str();
  std::vector<std::string> parts;
  for (const Expr& operand : expr.operands())
    parts.push_back(operand.is_constant() || operand.kind() == ExprKind::Symbol
                        ? c_text(operand)
                        : "(" + c_text(operand) + ")");
  if (expr.kind() == ExprKind::Add) return join(parts, " + ");
  if (expr.kind() == ExprKind::Mul) return join(parts, "*");
  if (expr.kind() == ExprKind::Min) return chosen(parts, " < ");
  if (expr.kind() == ExprKind::Max) return chosen(parts, " > ");
  if (expr.operands()[1].bounds().low < 1) parts[1] = chosen({parts[1], "1"}, " > ");
  return divided(expr, parts);
}

std::string c_operand(const Expr& expr) {
  const bool alone = expr.is_constant() || expr.kind() == ExprKind::Symbol;
  return alone ? expr.str() : "(" + c_text(expr) + ")";
}

SizeNames size_names(const std::vector<Expr>& sizes) {
  SizeNames names;
  for (const Expr& size : sizes) {
    const Symbol name = {c_name("size", size.name()), SymbolKind::Size};
    names.there.push_back(
        {size.symbol(), Expr::symbol(name, size.bounds().low, size.bounds().high)});
    names.back.push_back({name, size});
  }
  return names;
}

}  // namespace tiny_compile
