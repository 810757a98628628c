// Is a place that data chose one that there is? Elements of a row that share it ask once:
//
//   store y[i0*4096 + i1] = load x[at0*4096 + i1], at0 = $2 = load index[i0] < 50257    =>   {$2, 50257}
#include "tiny_compile/tile/chosen_places.h"

#include "tiny_compile/tile/row_elements.h"

namespace tiny_compile {
namespace {

// The scalars that steps evaluate, and the operands of these.
std::vector<bool> evaluated(const Kernel& kernel) {
  std::vector<bool> wanted(kernel.scalars.size());
  for (const Step& step : kernel.steps) {
    for (int root : step.roots())
      if (root >= 0) wanted[root] = true;
  }
  for (size_t id = wanted.size(); id-- > 0;) {
    const Scalar& scalar = kernel.scalars[id];
    if (!wanted[id]) continue;
    for (int operand : scalar.operands) wanted[operand] = true;
    if (scalar.mask >= 0) wanted[scalar.mask] = true;
  }
  return wanted;
}

bool has_variable(const Scalar& scalar) {
  return scalar.kind != ScalarKind::Constant && scalar.kind != ScalarKind::Register;
}

}  // namespace

std::set<ChosenPlace> places_of_rows(const Kernel& kernel) {
  for (const Step& step : kernel.steps)
    if (step.kind != StepKind::Store && !makes_register(step)) return {};
  const std::vector<bool> is_evaluated = evaluated(kernel);
  const std::vector<uint64_t> needs = needs_of(kernel);
  std::set<ChosenPlace> places;
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& load = kernel.scalars[id];
    if (!is_evaluated[id] || load.mask >= 0) continue;
    for (size_t k = 0; k < load.limits.size(); k++) {
      const int chosen = load.operands[k];
      const uint64_t axes = needs[chosen] & ~kRegisters;
      const bool is_shared = (needs[id] & ~kRegisters & ~axes) != 0;
      if (is_shared && (axes >> kernel.rows) == 0 && load.limits[k].is_constant() &&
          has_variable(kernel.scalars[chosen]))
        places.insert({chosen, load.limits[k].constant()});
    }
  }
  return places;
}

}  // namespace tiny_compile
