// How is a place asked about that many elements have (tile/chosen_places.h)? Where it is chosen:
//
//   load x[at0*4096 + i1], at0 = $2    =>   const bool fits_2_50257 = ..;  where $2 is known
#include "tiny_compile/codegen/cuda_guard.h"

#include "tiny_compile/tile/chosen_places.h"

namespace tiny_compile {

void check_places_once(CudaText& text) {
  const std::set<ChosenPlace> once = places_of_rows(text.kernel);
  const auto check = [&text, at_once = text.scalars.in_range](int chosen, const Expr& limit) {
    return text.wrong.empty() ? at_once(chosen, limit)
                              : str(text.calls("tc_is_place"), "(", text.scalars.name(chosen),
                                    ", ", limit, ", ", text.wrong, ")");
  };
  const auto name = [](const ChosenPlace& place) {
    return str("fits_", place.chosen, "_", place.limit);
  };
  text.scalars.in_range = [=](int chosen, const Expr& limit) {
    const ChosenPlace place{chosen, limit.is_constant() ? limit.constant() : -1};
    return once.count(place) ? name(place) : check(chosen, limit);
  };
  text.behind_definition = [=, &text](int id) {
    for (const ChosenPlace& place : once) {
      if (place.chosen == id)
        text.out.line(str("const bool ", name(place), " = ", check(id, place.limit), ";"));
    }
  };
}

}  // namespace tiny_compile
