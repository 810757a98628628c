// What is a tile for other sizes? Its statements are the same; each name is below another extent, and
// so is what names it:
//
//   row: n = min(block*8 + warp, n - 1)      n = 37   =>   row: 37 = min(block*8 + warp, 36)
#include "tiny_compile/tile/sized.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr size_t kMostNumbers = 16;

// The symbol `name` of this extent.
void name(Substitution& known, const std::string& name, const Expr& extent) {
  known.insert(known.begin(), {name, Expr::index(name, extent)});
}

Substitution with_places(Substitution known, const std::vector<Expr>& limits) {
  for (size_t k = 0; k < limits.size(); k++)
    known.push_back({indirect(k), Expr::index(indirect(k), max(limits[k], 1))});
  return known;
}

class Sizing {
 public:
  Sizing(Tile& tile, const Substitution& values) : tile_(tile), values_(values) {}

  void run() {
    for (Expr* all : {&tile_.grid, &tile_.units, &tile_.grain})
      *all = substitute(*all, values_);
    Substitution known = values_;
    for (Axis& axis : tile_.kernel.axes) {
      axis.extent = substitute(axis.extent, values_);
      name(known, axis.name, axis.extent);
    }
    for (Step& step : tile_.kernel.steps) {
      step.limit = substitute(step.limit, known);
      step.index = substitute(step.index, with_places(known, {step.limit}));
    }
    for (Array& array : tile_.arrays) array.size = substitute(array.size, values_);
    for (const Expr& one : given(tile_)) known.insert(known.begin(), {one.name(), one});
    named_ = known;
    size(tile_.body, known);
    for (Scalar& scalar : tile_.kernel.scalars) {
      const bool is_lane = scalar.kind == ScalarKind::Element;
      for (Expr& limit : scalar.limits) limit = substitute(limit, is_lane ? named_ : values_);
      scalar.index = substitute(scalar.index, with_places(named_, scalar.limits));
    }
  }

 private:
  void size(Body& body, Substitution known) {
    for (Statement& s : body) {
      const Expr before = s.place;
      s.place = substitute(s.place, known);
      s.from = substitute(s.from, known);
      s.left = substitute(s.left, known);
      s.index = substitute(s.index, with_places(known, limits_of(s)));
      const bool names = s.kind == StatementKind::Let || s.kind == StatementKind::For;
      if (names && !(s.place == before)) {
        name(known, s.name, s.place);
        name(named_, s.name, s.place);
      }
      size(s.body, known);
    }
  }

  // Of the places that data chooses in its index.
  std::vector<Expr> limits_of(const Statement& s) const {
    if (s.chosen >= 0) return {s.place};
    if (s.kind != StatementKind::Load || s.value < 0) return {};
    std::vector<Expr> limits = tile_.kernel.scalars[s.value].limits;
    for (Expr& limit : limits) limit = substitute(limit, values_);
    return limits;
  }

  Tile& tile_;
  const Substitution& values_;
  Substitution named_;  // what scalars may name
};

}  // namespace

Tile substitute(const Tile& tile, const Substitution& values) {
  Tile result = tile;
  if (!values.empty()) Sizing(result, values).run();
  return result;
}

bool has_empty_loop(const Kernel& kernel, const Substitution& numbers) {
  return std::any_of(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& axis) {
    return substitute(axis.extent, numbers).is_constant(0);
  });
}

std::vector<Substitution> some_numbers(const std::vector<Expr>& sizes) {
  std::vector<Substitution> all;
  const auto add = [&](const auto& number_of) {
    Substitution numbers;
    for (const Expr& size : sizes) numbers.push_back({size.symbol(), number_of(size)});
    if (all.size() < kMostNumbers && std::find(all.begin(), all.end(), numbers) == all.end())
      all.push_back(std::move(numbers));
  };
  const auto at = [](const Expr& size, int64_t part) {  // of 8
    const auto [low, high] = size.bounds();
    return low + (high - low) / 8 * part;
  };
  add([](const Expr& size) { return size.bounds().low; });
  add([](const Expr& size) { return size.bounds().high; });
  add([](const Expr& size) { return std::min(size.bounds().low + 1, size.bounds().high); });
  for (const Expr& own : sizes) {
    add([&](const Expr& s) { return s == own ? s.bounds().high : s.bounds().low; });
    add([&](const Expr& s) { return s == own ? s.bounds().low : s.bounds().high; });
  }
  for (int64_t part = 1; part < 8; part += 2)
    add([&](const Expr& size) { return at(size, part) + (part & 2); });
  return all;
}

}  // namespace tiny_compile
