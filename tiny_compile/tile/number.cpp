// Which number has a scalar of a tile? The kernel's own keep theirs; those of the tile alone follow
// in the order in which a reader of the text meets them, so that text and value say the same:
//
//   $9 = sum0[1]; $7 = sum0[0]; $12 = add($7, $9)   =>   $2 = sum0[1]; $3 = sum0[0]; $4 = add($3, $2)
#include <algorithm>
#include <numeric>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {
namespace {

class Numbering {
 public:
  Numbering(std::vector<Scalar> given, size_t first)
      : given_(std::move(given)), numbers_(given_.size(), -1) {
    scalars.assign(given_.begin(), given_.begin() + static_cast<std::ptrdiff_t>(first));
    std::iota(numbers_.begin(), numbers_.begin() + static_cast<std::ptrdiff_t>(first), 0);
  }

  void number(Body& body) {
    for (Statement& s : body) {
      if (s.kind == StatementKind::Update && s.chosen >= 0) s.chosen = number(s.chosen);
      if (s.value >= 0) s.value = number(s.value);
      number(s.body);
    }
  }

  std::vector<Scalar> scalars;

 private:
  int number(int id) {
    if (numbers_[id] >= 0) return numbers_[id];
    Scalar scalar = given_[id];
    for (int& operand : scalar.operands) operand = number(operand);
    if (scalar.mask >= 0) scalar.mask = number(scalar.mask);
    const bool is_constant = scalar.kind == ScalarKind::Constant;
    const auto same =
        is_constant ? std::find(scalars.begin(), scalars.end(), scalar) : scalars.end();
    numbers_[id] = static_cast<int>(same - scalars.begin());
    if (same == scalars.end()) scalars.push_back(std::move(scalar));
    return numbers_[id];
  }

  std::vector<Scalar> given_;
  std::vector<int> numbers_;
};

}  // namespace

Tile numbered(Tile tile, size_t first) {
  Numbering numbering(std::move(tile.kernel.scalars), first);
  numbering.number(tile.body);
  tile.kernel.scalars = std::move(numbering.scalars);
  return tile;
}

int add_array(Tile& tile, Array array) {
  tile.arrays.push_back(std::move(array));
  return static_cast<int>(tile.arrays.size()) - 1;
}

int array_once(Tile& tile, Array array) {
  std::vector<Array>& all = tile.arrays;
  if (const auto same = std::find(all.begin(), all.end(), array); same != all.end())
    return static_cast<int>(same - all.begin());
  const bool is_taken = std::any_of(
      all.begin(), all.end(), [&](const Array& other) { return other.name == array.name; });
  if (is_taken) array.name += str("_", all.size());
  return add_array(tile, std::move(array));
}

static int add(Tile& tile, Scalar scalar) {
  tile.kernel.scalars.push_back(std::move(scalar));
  return static_cast<int>(tile.kernel.scalars.size()) - 1;
}

int add_element(Tile& tile, int array, const Expr& index, const Expr& lane_xor) {
  Scalar scalar;
  scalar.kind = ScalarKind::Element;
  scalar.dtype = tile.arrays[array].dtype;
  scalar.step = array;
  scalar.index = index;
  if (!lane_xor.is_constant(0)) scalar.limits = {lane_xor};
  return add(tile, std::move(scalar));
}

int add_votes(Tile& tile, int holds, bool below) {
  Scalar scalar;
  scalar.kind = ScalarKind::Votes;
  scalar.dtype = DType::i32;
  scalar.operands = {holds};
  scalar.step = below ? 1 : 0;
  return add(tile, std::move(scalar));
}

Expr lane_xor_of(const Scalar& element) {
  return element.limits.empty() ? Expr(0) : element.limits[0];
}

int add_apply(Tile& tile, Op op, DType dtype, std::vector<int> operands) {
  Scalar scalar;
  scalar.kind = ScalarKind::Apply;
  scalar.op = op;
  scalar.dtype = dtype;
  scalar.operands = std::move(operands);
  return add(tile, std::move(scalar));
}

int add_constant(Tile& tile, const Literal& value) {
  Scalar scalar;
  scalar.kind = ScalarKind::Constant;
  scalar.dtype = value.dtype;
  scalar.value = value;
  return add(tile, std::move(scalar));
}

}  // namespace tiny_compile
