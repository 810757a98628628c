// A Program whose kernels of points, of a GPU's products and scans, and under layouts, are tile programs: what the
// stage `tile` makes, and `emit` writes. Kernels of other schedules go through as they are, and are still written by
// families of their own in codegen/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

struct Tiles {
  Program program;
  std::vector<std::optional<Tile>> of_kernel;  // of each of the program's kernels
  // Of each kernel's schedules for some sizes; nothing where no kernel has any.
  std::vector<std::vector<std::optional<Tile>>> of_sizes{};
  bool operator==(const Tiles&) const = default;
};

Tiles lower_to_tiles(const Program& program);
std::vector<Tiles> lower_all_to_tiles(const std::vector<Program>& programs);

// A kernel's schedule number `sized`, or its own: what it is a schedule of, and the tile, if it has one.
struct Scheduled {
  Program program;
  int kernel = 0;  // of `program`
  std::optional<Tile> tile;
};
Scheduled scheduled(const Tiles& tiles, size_t kernel, int sized = -1);

// Whether its schedule has layouts, or it is of points (tile/points.h on a CPU, tile/packs.h), of rows or
// columns on a CPU (tile/rows.h), or a product or a scan on a GPU (tile/products.h, tile/scans.h).
bool becomes_tile(const Program& program, const Kernel& kernel);

bool has_tile(const Tiles& tiles);

// The program's text, behind it that of each tile.
std::string print(const Tiles& tiles);
Tiles parse_tiles(std::string_view text);  // throws tc::Error with line and column; verified
bool holds_tile(std::string_view text);    // of a Program, or of Tiles

// The same over the buffers of the kernel when it stands alone, for equal kernels to be equal.
Tile lone_tile(const Program& program, const Tile& tile, const LoneKernel& lone);

}  // namespace tiny_compile
