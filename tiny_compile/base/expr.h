// Integer expressions: every size, stride, index and loop bound in the compiler.
//
//   Expr i = Expr::symbol("i", 0, 4095), j = Expr::symbol("j", 0, 1023);
//   Expr index = i * 1024 + j;
//   floor_div(index, 1024)   // i: j < 1024 is known from its bounds
//   mod(index, 1024)         // j
//
// An Expr is an immutable value. Building one simplifies it to a canonical sum of products, so
// that equal sums built in different ways compare equal; constants take no allocation. Throws
// tc::Error where a constant leaves 64 bits, a divisor is not positive, or the tree grows
// beyond 200 levels or 2^20 nodes (reshapes that do not nest double an index: see size()).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/base/interval.h"

namespace tiny_compile {

enum class ExprKind : uint8_t { Constant, Symbol, Add, Mul, FloorDiv, Mod, Min, Max };

// What a symbol stands for. Two symbols of one name but two kinds differ, and no substitution
// takes one for the other: a size that a user calls i0 is not the row i0.
//   Axis      a row or a loop of a kernel: i0, j0
//   Size      of a graph or program, declared in its header: n
//   Indirect  an index that data chooses: at0
//   View      an axis of a view, while lowering follows a chain of views: v0
//   Tile      a tile, block or lane of generated code
enum class SymbolKind : uint8_t { Axis, Size, Indirect, View, Tile };

// What tells symbols apart. A bare name is an axis's.
struct Symbol {
  Symbol(const char* name) : name(name) {}             // NOLINT
  Symbol(std::string name) : name(std::move(name)) {}  // NOLINT
  Symbol(std::string_view name) : name(name) {}        // NOLINT
  Symbol(std::string name, SymbolKind kind) : name(std::move(name)), kind(kind) {}
  std::string name;
  SymbolKind kind = SymbolKind::Axis;
  bool operator==(const Symbol&) const = default;
};

struct ExprNode;

class Expr {
 public:
  Expr() = default;                       // 0
  Expr(int64_t value) : value_(value) {}  // NOLINT: a constant is an Expr
  Expr(int value) : value_(value) {}      // NOLINT
  static Expr symbol(Symbol symbol, int64_t low, int64_t high);
  static Expr index(Symbol symbol, const Expr& extent);  // in [0, extent), symbolic or not

  ExprKind kind() const;
  bool is_constant() const { return !node_; }
  bool is_constant(int64_t value) const { return !node_ && value_ == value; }
  int64_t constant() const;                   // CHECKs is_constant()
  const Symbol& symbol() const;               // of a Symbol: its name and kind
  const std::string& name() const;            // of a Symbol
  const std::vector<Expr>& operands() const;  // of the other kinds; an index: symbolic extent
  Interval bounds() const;
  size_t hash() const;
  int64_t size() const;                      // nodes, as printed: what it costs to compute
  bool has_sizes() const;                    // some symbol in it is a Size
  bool operator==(const Expr& other) const;  // structural, pointers first
  const ExprNode* node() const { return node_.get(); }  // for memo tables; null: a constant
  std::string str() const;  // "i*1024 + j", C precedence; min(a, b), max(a, b)

 private:
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  friend Expr make_node(ExprKind kind, std::vector<Expr> operands);
  int64_t value_ = 0;
  std::shared_ptr<const ExprNode> node_;  // null for a constant
};

Expr operator+(const Expr& lhs, const Expr& rhs);
Expr operator-(const Expr& lhs, const Expr& rhs);
Expr operator*(const Expr& lhs, const Expr& rhs);
Expr floor_div(const Expr& lhs, const Expr& rhs);  // rounds towards -infinity; rhs > 0
Expr mod(const Expr& lhs, const Expr& rhs);        // in [0, rhs); rhs > 0
Expr min(const Expr& lhs, const Expr& rhs);
Expr max(const Expr& lhs, const Expr& rhs);
Expr ceil_div(const Expr& lhs, const Expr& rhs);  // floor_div(lhs + rhs - 1, rhs)

// A term of the canonical sum: coefficient * product of non-constant factors.
struct Term {
  int64_t coefficient = 0;
  Expr factor = 1;  // 1 for the constant term
};
std::vector<Term> terms(const Expr& expr);                  // of 3*i + j + 5: {3,i} {1,j} {5,1}
int64_t coefficient(const Expr& expr, const Expr& symbol);  // of i there: 3; of k: 0

// Replaces symbols by name and kind, all at once, and simplifies again.
using Substitution = std::vector<std::pair<Symbol, Expr>>;
Expr substitute(const Expr& expr, const Substitution& substitution);
bool depends_on(const Expr& expr, const Symbol& symbol);
std::vector<Symbol> symbols(const Expr& expr);  // distinct, in order of appearance

// Adds the symbols in `expr` that are not in `found`, in order of appearance.
void collect_symbols(const Expr& expr, std::vector<Expr>& found);
std::string sizes_text(const std::vector<Expr>& sizes);  // "[n: 2..4096, m: 0..16]" or ""

// The value under the given symbol values (CHECKs that each symbol is given).
using SymbolValues = std::vector<std::pair<Symbol, int64_t>>;
int64_t evaluate(const Expr& expr, const SymbolValues& values);

// `text` as printed by str(), from position `at`, which moves past it; `lookup` gives a name's
// Expr. Throws through fail_in_text.
Expr parse_expr(std::string_view text, size_t& at,
                const std::function<Expr(std::string_view name, size_t position)>& lookup);

std::ostream& operator<<(std::ostream& out, const Expr& expr);

using Shape = std::vector<Expr>;
Expr product(const Shape& shape);             // number of elements
Shape row_major_strides(const Shape& shape);  // [6,4,2] -> [8,2,1]

}  // namespace tiny_compile
