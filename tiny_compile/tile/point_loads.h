// What a pack of points reads ahead of its points.
#pragma once

#include "tiny_compile/tile/point_values.h"

namespace tiny_compile {

// Whether a pack's elements lie side by side there.
bool is_wide(const Points& p, const Expr& index, int buffer);
// The index of its first.
Expr at_start(const Points& p, const Expr& index, const At& at);

// Each gives what is read or computed there a place in `scope`.
//
// Loads of whole packs.
Body load_packs(Points& p, PointScope& scope, const std::vector<int>& ids, const At& at);
// Where branches, or what takes long, would part the loads of a pack's elements, one after the other: all of
// them, before the first, in a loop of their own.
Body load_ahead(Points& p, PointScope& scope, const At& at);
// What neighbouring points share (loops/slides.h).
Body slide_ahead(Points& p, PointScope& scope, const At& at);

}  // namespace tiny_compile
