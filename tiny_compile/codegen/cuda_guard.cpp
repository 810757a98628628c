// Do all elements of a pack have the same guard?
//
//   load x[i0*64 + i1] if lt(i1, 64), four at a time   =>   if (e < 64) pack_3 = ...
//   load x[at0*4096 + i1], at0 = $2                    =>   if (fits_2_50257) pack_3 = ..
//
// A pack starts at a multiple of its width. A comparison with a multiple of it therefore says the
// same of all its elements, and so does what does not step along them.
#include "tiny_compile/codegen/cuda_guard.h"

#include <cstdlib>
#include <set>
#include <utility>

#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/narrow.h"

namespace tiny_compile {
namespace {

constexpr int kMostConditions = 8;

class Guard {
 public:
  Guard(KernelText& text, int axis, int vector, const std::vector<bool>& defined)
      : text_(text), kernel_(text.kernel), axis_(axis), vector_(vector), defined_(defined) {}

  // A bool, as the start of the pack has it; "" where others may have another.
  std::string condition(int id) {
    if (!varies(id)) return is_known(id) ? text_.scalars.name(id) : "";
    const Scalar& scalar = kernel_.scalars[id];
    if (scalar.kind != ScalarKind::Apply || ++conditions_ > kMostConditions) return "";
    if (scalar.op != Op::bitwise_and) return comparison(scalar);
    const std::string a = condition(scalar.operands[0]), b = condition(scalar.operands[1]);
    return a.empty() || b.empty() ? "" : a + " && " + b;
  }

  bool varies(int id) const { return text_.needs(id).axes >> axis_ & 1; }
  bool is_known(int id) const { return defined_[id] || text_.scalars.is_trivial(id); }

 private:
  std::string comparison(const Scalar& scalar) const {
    if (scalar.op != Op::lt && scalar.op != Op::ge) return "";
    const auto lhs = integer_of(kernel_, scalar.operands[0]),
               rhs = integer_of(kernel_, scalar.operands[1]);
    if (!lhs || !rhs || !rhs->is_constant() || std::abs(rhs->bounds().low) == kUnbounded)
      return "";
    const Axis& axis = kernel_.axes[axis_];
    if (!is_contiguous(*lhs - *rhs, axis.symbol(), vector_)) return "";
    const Expr start =
        substitute(*lhs, {{axis.name, Expr::index(tile_symbol("e"), axis.extent)}});
    return str(text_.scalars.index(start), scalar.op == Op::lt ? " < " : " >= ", *rhs);
  }

  KernelText& text_;
  const Kernel& kernel_;
  const int axis_, vector_;
  const std::vector<bool>& defined_;
  int conditions_ = 0;
};

using Place =
    std::pair<int, int64_t>;  // the scalar that data chose, and what it is to be below

// Places of a row that loads of more elements than one have, where every such load happens: no mask leaves it
// out, and no update goes nowhere.
std::set<Place> shared_places(const KernelText& text) {
  const Kernel& kernel = text.kernel;
  std::vector<const Step*> steps;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Store && !makes_register(step)) return {};
    steps.push_back(&step);
  }
  std::set<Place> shared;
  for (int id : text.needed(steps)) {
    const Scalar& load = kernel.scalars[id];
    for (size_t k = 0; k < load.limits.size() && load.mask < 0; k++) {
      const int chosen = load.operands[k];
      const uint64_t axes = text.needs(chosen).axes;
      const bool is_shared = (text.needs(id).axes & ~axes) != 0;
      if (is_shared && (axes & ~row_mask(kernel)) == 0 && load.limits[k].is_constant() &&
          !text.scalars.is_trivial(chosen))
        shared.insert({chosen, load.limits[k].constant()});
    }
  }
  return shared;
}

}  // namespace

void check_places_once(CudaText& text) {
  const std::set<Place> shared = shared_places(text);
  const auto check = [&text, at_once = text.scalars.in_range](int chosen, const Expr& limit) {
    return text.wrong.empty() ? at_once(chosen, limit)
                              : str(text.calls("tc_is_place"), "(", text.scalars.name(chosen),
                                    ", ", limit, ", ", text.wrong, ")");
  };
  const auto name = [](const Place& place) {
    return str("fits_", place.first, "_", place.second);
  };
  text.scalars.in_range = [=](int chosen, const Expr& limit) {
    const Place place{chosen, limit.is_constant() ? limit.constant() : -1};
    return shared.count(place) ? name(place) : check(chosen, limit);
  };
  text.behind_definition = [=, &text](int id) {
    for (const Place& place : shared) {
      if (place.first == id)
        text.out.line(str("const bool ", name(place), " = ", check(id, place.second), ";"));
    }
  };
}

std::optional<std::string> guard_of_pack(KernelText& text, int id, int axis, int vector,
                                         const std::vector<bool>& defined) {
  const Scalar& load = text.kernel.scalars[id];
  Guard guard(text, axis, vector, defined);
  std::vector<std::string> all;
  if (load.mask >= 0) all.push_back(guard.condition(load.mask));
  for (size_t k = 0; k < load.operands.size(); k++) {
    const int chosen = load.operands[k];
    if (guard.varies(chosen) || !guard.is_known(chosen)) return {};
    all.push_back(text.scalars.in_range(chosen, load.limits[k]));
  }
  for (const std::string& condition : all) {
    if (condition.empty()) return {};
  }
  return join(all, " && ");
}

}  // namespace tiny_compile
