// Is a place that data chose one that there is? Elements of a row that share it ask once:
//
//   load x[at0*4096 + i1], at0 = $2    =>   const bool fits_2_50257 = ..;  where $2 is known
#include "tiny_compile/codegen/cuda_guard.h"

#include <set>
#include <utility>

namespace tiny_compile {
namespace {

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
      const uint64_t axes = text.axes_of(chosen);
      const bool is_shared = (text.axes_of(id) & ~axes) != 0;
      if (is_shared && (axes >> kernel.rows) == 0 && load.limits[k].is_constant() &&
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

}  // namespace tiny_compile
