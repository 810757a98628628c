// How is a place asked about that many elements have (tile/chosen_places.h)? Where it is chosen:
//
//   load x[at0*4096 + i1], at0 = $2    =>   const bool fits_2_50257 = ..;  where $2 is known
#include "tiny_compile/codegen/cuda_guard.h"

namespace tiny_compile {
namespace {

std::string answer(const ChosenPlace& place) {
  return str("fits_", place.chosen, "_", place.limit);
}

std::string question(const CudaTile& t, int chosen, const Expr& limit) {
  const std::string place = t.text.scalars.name(chosen);
  return t.notes_wrong ? str(t.text.calls("tc_is_place"), "(", place, ", ", limit, ", wrong)")
                       : str(t.text.calls("tc_in_range"), "(", place, ", ", c_text(limit), ")");
}

}  // namespace

std::string is_in_range(const CudaTile& t, int chosen, const Expr& limit) {
  const ChosenPlace place{chosen, limit.is_constant() ? limit.constant() : -1};
  return t.once.count(place) ? answer(place) : question(t, chosen, limit);
}

void write_questions(const CudaTile& t, int chosen) {
  for (const ChosenPlace& place : t.once) {
    if (place.chosen == chosen)
      t.out.line(
          str("const bool ", answer(place), " = ", question(t, chosen, place.limit), ";"));
  }
}

}  // namespace tiny_compile
