// The tiles of a CPU's product: what its parts know, and how one block of panels is gone over.
#pragma once

#include <optional>
#include <string>

#include "tiny_compile/loops/dot_operands.h"
#include "tiny_compile/loops/panel_shape.h"
#include "tiny_compile/tile/panels.h"

namespace tiny_compile {

// What is packed next: lanes and steps from here on, of a batch.
struct NextPanels {
  Strided lies;
  Expr first_lane, first_step;
  Substitution batch;
};

struct PanelProduct {
  const Program& program;
  const Kernel& kernel;
  const Schedule schedule;
  const PanelShape shape;
  const DotView rows_view, columns_view;
  Packing rows, columns;  // arrays: -1 where nothing is packed
  Tile tile{};
  int tags = -1, sums = -1;  // arrays
  // Integers of the unit and the block of depth at hand.
  Expr columns_of_unit{}, rows_of_unit{};
  Expr first_column{}, stop_column{}, first_row{}, stop_row{};
  Steps steps{};
  Expr left{}, right{};  // where its panels lie
  std::optional<NextPanels> next{};

  Expr number(const std::string& what, const Expr& extent) const;
  // Names an integer at the end of the body.
  Expr named(Body& body, const std::string& what, const Expr& extent, const Expr& value) const;
  int64_t tile_size() const { return int64_t{schedule.down} * schedule.across; }
  bool multiplies() const { return !shape.depth.is_constant(0); }
};

// A tile for each panel of rows and of columns: its sums, from nothing or from where the last block of depth left
// them, and behind the last one its results.
Body over_panels(PanelProduct& p);

}  // namespace tiny_compile
