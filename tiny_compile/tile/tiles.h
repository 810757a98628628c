// A Program and its kernels as tile programs: what the stage `tile` makes, and `emit` writes line by line. Two kinds
// of kernels have none: calls of a vendor's library, and those without rows, which nothing has to run.
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

// Whether it has rows and is no call of a vendor's library. Which module lowers it: points (of a CPU), packs (of
// a GPU), rows, columns, products, panel_products, scans, sorts, scatters, or lower (layouts).
bool becomes_tile(const Program& program, const Kernel& kernel);

bool has_tile(const Tiles& tiles);

// The program's text, behind it that of each tile.
std::string print(const Tiles& tiles);
Tiles parse_tiles(std::string_view text);  // throws tc::Error with line and column; verified
bool holds_tile(std::string_view text);    // of a Program, or of Tiles

// The same over the buffers of the kernel when it stands alone, for equal kernels to be equal.
Tile lone_tile(const Program& program, const Tile& tile, const LoneKernel& lone);

}  // namespace tiny_compile
