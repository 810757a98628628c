// Places that data chooses, and about which many elements would ask the same.
#pragma once

#include <compare>
#include <set>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// What a scalar chose, and what it is to be below.
struct ChosenPlace {
  int chosen = -1;
  int64_t limit = 0;
  auto operator<=>(const ChosenPlace&) const = default;
};

// Those of a row that loads of more elements than one have, where every such load happens: no mask leaves it
// out, and no update goes nowhere. They are asked about where they are chosen, once a row.
std::set<ChosenPlace> places_of_rows(const Kernel& kernel);

}  // namespace tiny_compile
