// Which loops multiply panels? Those along the depth, each turn of which adds a product to every sum of a tile:
//
//   for k: 512 = 0 .. stop_k - first_k multiplied {
//     for i < 12 unrolled {
//       $3 = left[k*12 + i]
//       for l < 32 vector {
//         $4 = right[k*32 + l]
//         $5 = sums[i*32 + l]
//         $6 = fma($3, $4, $5)
//         sums[i*32 + l] = $6
//       }
//     }
//   }
// =>
//   sums in 12 x 2 registers of 16 floats; a register of the right operand serves 12 rows
#include "tiny_compile/tile/multiplied.h"

#include <algorithm>
#include <array>

#include "tiny_compile/loops/axes.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostVectors = 8, kMostRows = 16;

// Where something lies from turn to turn of the loops around it.
struct Walk {
  Expr start;
  int64_t k = 0, i = 0, l = 0;
};

class Reader {
 public:
  Reader(const Tile& tile, const Statement& loop)
      : tile_(tile), loop_(loop), scalars_(tile.kernel.scalars) {}

  std::optional<Multiplied> read() {
    if (loop_.body.empty() || !loop_.from.is_constant(0)) return std::nullopt;
    const Statement& rows = loop_.body.back();
    result_.asks.assign(loop_.body.begin(), loop_.body.end() - 1);
    if (!only_asks(result_.asks) || !is_whole_loop(rows) || rows.body.size() != 2)
      return std::nullopt;
    rows_ = &rows, columns_ = &rows.body[1];
    if (!is_whole_loop(*columns_) || !columns_->vector) return std::nullopt;
    result_.rows = rows.index.constant(), result_.columns = columns_->index.constant();
    result_.depth = loop_.index;
    if (!reads_left(rows.body[0]) || !adds_up(columns_->body)) return std::nullopt;
    return result_;
  }

 private:
  static bool only_asks(const Body& body) {
    return std::all_of(body.begin(), body.end(), [](const Statement& s) {
      return s.kind == StatementKind::Prefetch ||
             (s.kind == StatementKind::If && s.value < 0 && only_asks(s.body));
    });
  }

  static bool is_whole_loop(const Statement& s) {
    return s.kind == StatementKind::For && s.from.is_constant(0) && s.index.is_constant() &&
           s.index == s.place && !s.transposed && !s.multiplied;
  }

  // By constant steps.
  std::optional<Walk> walk(const Expr& index) const {
    Walk walk{index};
    for (const auto& [loop, step] : {std::pair{&loop_, &walk.k}, std::pair{rows_, &walk.i},
                                     std::pair{columns_, &walk.l}}) {
      const Expr symbol = Expr::index(loop->name, loop->place);
      *step = coefficient(walk.start, symbol);
      walk.start = walk.start - symbol * *step;
      if (depends_on(walk.start, loop->name)) return std::nullopt;
    }
    return walk;
  }

  const Scalar* defined(const Statement& s) const {
    const bool is_there = s.kind == StatementKind::Define && s.array < 0 && s.value >= 0 &&
                          s.value < static_cast<int>(scalars_.size());
    return is_there ? &scalars_[s.value] : nullptr;
  }

  // An element that is read where the steps are these; its array.
  std::optional<Walk> element(const Statement& s) const {
    const Scalar* scalar = defined(s);
    if (!scalar || scalar->kind != ScalarKind::Element || !scalar->limits.empty())
      return std::nullopt;
    return walk(scalar->index);
  }

  bool reads_left(const Statement& s) {
    const Scalar* left = defined(s);
    if (!left || (left->kind != ScalarKind::Element && !is_plain(*left))) return false;
    const bool is_array = left->kind == ScalarKind::Element;
    const auto found = is_array ? element(s) : walk(left->index);
    if (!found || found->l != 0) return false;
    (is_array ? result_.left : result_.left_buffer) = is_array ? left->step : left->buffer;
    result_.left_place = found->start;
    result_.lane = found->i, result_.step = found->k;
    left_ = s.value;
    return true;
  }

  bool adds_up(const Body& body) {
    if (body.size() < 4) return false;
    const auto right = element(body[0]), sum = element(body[1]);
    if (!right || !sum || right->i != 0 || right->l != 1 || right->k != result_.columns ||
        sum->k != 0 || sum->l != 1 || sum->i != result_.columns)
      return false;
    result_.right = defined(body[0])->step, result_.right_place = right->start;
    result_.sums = defined(body[1])->step, result_.sums_place = sum->start;
    const Statement& put = body.back();
    if (put.kind != StatementKind::Set || put.array != result_.sums ||
        !(put.index == scalars_[body[1].value].index) ||
        put.value != body[body.size() - 2].value)
      return false;
    return has_one_type() && multiplies(body);
  }

  // $6 = fma($3, $4, $5), or of integers $6 = mul($3, $4), $7 = add($5, $6).
  bool multiplies(const Body& body) const {
    const auto is = [&](const Statement& s, Op op, std::vector<int> operands) {
      const Scalar* scalar = defined(s);
      return scalar && scalar->kind == ScalarKind::Apply && scalar->op == op &&
             scalar->dtype == dtype() && scalar->operands == operands;
    };
    const int right = body[0].value, sum = body[1].value;
    if (body.size() == 4) return is(body[2], Op::fma, {left_, right, sum});
    return body.size() == 5 && is_integer(dtype()) && is(body[2], Op::mul, {left_, right}) &&
           is(body[3], Op::add, {sum, body[2].value});
  }

  DType dtype() const { return tile_.arrays[result_.sums].dtype; }

  // All are words or floats of the sums' type, and the sums are nobody's operand.
  bool has_one_type() const {
    const auto is_it = [&](int array) {
      return array < 0 || (tile_.arrays[array].dtype == dtype() && array != result_.sums);
    };
    return size_of(dtype()) >= 4 && !is_half(dtype()) && dtype() != DType::boolean &&
           is_it(result_.right) && is_it(result_.left) && scalars_[left_].dtype == dtype();
  }

  const Tile& tile_;
  const Statement& loop_;
  const std::vector<Scalar>& scalars_;
  const Statement *rows_ = nullptr, *columns_ = nullptr;
  int left_ = -1;
  Multiplied result_;
};

}  // namespace

std::optional<Multiplied> multiplied_of(const Tile& tile, const Statement& loop) {
  return Reader(tile, loop).read();
}

std::string why_no_registers(const Tile& tile, const Multiplied& product, int64_t vector) {
  const int64_t lanes = vector / size_of(tile.arrays[product.sums].dtype);
  if (product.rows > kMostRows) return str(product.rows, " rows, at most ", kMostRows);
  if (product.columns % lanes != 0 || product.columns / lanes > kMostVectors)
    return str(product.columns, " columns, not 1 to ", kMostVectors, " vectors of ", lanes);
  return "";
}

}  // namespace tiny_compile
