// Which kernels are tile programs, and how do a program and its tiles read?
//
//   program softmax on cuda { ... kernel k ... schedule layouts rows grid · lane 32 ... }
//
//   tile k grid 32 block 16 warps { ... }
#include "tiny_compile/tile/tiles.h"

#include <algorithm>
#include <functional>

#include "tiny_compile/loops/counted.h"
#include "tiny_compile/loops/group_launches.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/lower.h"
#include "tiny_compile/tile/packs.h"
#include "tiny_compile/tile/panel_products.h"
#include "tiny_compile/tile/parse.h"
#include "tiny_compile/tile/points.h"
#include "tiny_compile/tile/products.h"
#include "tiny_compile/tile/rows.h"
#include "tiny_compile/tile/scans.h"
#include "tiny_compile/tile/scatters.h"
#include "tiny_compile/tile/sorts.h"
#include "tiny_compile/tile/verify.h"

namespace tiny_compile {
namespace {

constexpr std::string_view kTile = "tile ";

bool has_sized(const Program& program) {
  return std::any_of(program.kernels.begin(), program.kernels.end(),
                     [](const Kernel& kernel) { return !kernel.sized.empty(); });
}

// Where the first tile begins; the text's end where there is none. No line of a program starts so.
size_t first_tile(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (text.substr(at).starts_with(kTile)) return at;
    at = std::min(text.find('\n', at), text.size());
  }
  return text.size();
}

int lone_buffer(const Program& program, const LoneKernel& lone, const Tile& tile, int buffer) {
  const auto at =
      std::find(lone.buffers.begin(), lone.buffers.end(), storage_of(program, buffer));
  if (at == lone.buffers.end())
    fail("tile ", tile.kernel.name, " uses ", program.buffers[buffer].name,
         ", which its kernel does not");
  return static_cast<int>(at - lone.buffers.begin());
}

void renumber(Body& body, const std::function<int(int)>& number) {
  for (Statement& s : body) {
    if (s.buffer >= 0) s.buffer = number(s.buffer);
    renumber(s.body, number);
  }
}

// `is_shared`: its function is others' as well.
std::optional<Tile> lowered(const Program& program, const Kernel& kernel, bool is_shared) {
  if (!becomes_tile(program, kernel)) return std::nullopt;
  if (has_points(program, kernel)) return lower_points(program, kernel);
  if (has_packs(program, kernel))
    return lower_packs(program, kernel, is_shared && is_counted(kernel));
  if (has_product(program, kernel)) return lower_product(program, kernel);
  if (has_panels(program, kernel)) return lower_panels(program, kernel);
  if (has_scan(program, kernel)) return lower_scan(program, kernel);
  if (is_sorted_together(program, kernel)) return lower_sort(program, kernel);
  if (has_scatter(program, kernel)) return lower_scatter(program, kernel);
  if (has_rows(program, kernel)) return lower_rows(program, kernel);
  return lower_to_tile(program, kernel);
}

}  // namespace

Tiles lower_to_tiles(const Program& program) {
  Tiles tiles{with_schedules(program), {}};
  const std::vector<int> rooms = rooms_of(program);
  for (size_t k = 0; k < program.kernels.size(); k++)
    tiles.of_kernel.push_back(lowered(program, tiles.program.kernels[k], rooms[k] > 0));
  if (!has_sized(program)) return tiles;
  for (const Kernel& kernel : program.kernels) {
    std::vector<std::optional<Tile>>& all = tiles.of_sizes.emplace_back();
    for (size_t n = 0; n < kernel.sized.size(); n++) {
      const Program own = for_sizes(program, kernel, n);
      all.push_back(lowered(own, own.kernels[0], false));
    }
  }
  return tiles;
}

std::vector<Tiles> lower_all_to_tiles(const std::vector<Program>& programs) {
  std::vector<Tiles> all;
  for (const Program& program : programs) all.push_back(lower_to_tiles(program));
  return all;
}

Scheduled scheduled(const Tiles& tiles, size_t kernel, int sized) {
  if (sized < 0) return {tiles.program, static_cast<int>(kernel), tiles.of_kernel[kernel]};
  const auto n = static_cast<size_t>(sized);
  return {for_sizes(tiles.program, tiles.program.kernels[kernel], n), 0,
          tiles.of_sizes.at(kernel).at(n)};
}

bool becomes_tile(const Program& program, const Kernel& kernel) {
  return has_points(program, kernel) || has_rows(program, kernel) ||
         has_packs(program, kernel) || has_product(program, kernel) ||
         has_panels(program, kernel) || has_scan(program, kernel) ||
         is_sorted_together(program, kernel) || has_scatter(program, kernel) ||
         schedule_of(kernel).strategy == Strategy::Layouts;
}

bool has_tile(const Tiles& tiles) {
  const auto any = [](const std::vector<std::optional<Tile>>& all) {
    return std::any_of(all.begin(), all.end(),
                       [](const std::optional<Tile>& tile) { return tile.has_value(); });
  };
  return any(tiles.of_kernel) || std::any_of(tiles.of_sizes.begin(), tiles.of_sizes.end(), any);
}

std::string print(const Tiles& tiles) {
  std::string text = print(tiles.program);
  for (size_t k = 0; k < tiles.of_kernel.size(); k++) {
    if (tiles.of_kernel[k]) text += "\n" + print(tiles.program, *tiles.of_kernel[k]);
    const std::vector<SizedSchedule>& sized = tiles.program.kernels[k].sized;
    for (size_t n = 0; n < sized.size() && !tiles.of_sizes.empty(); n++) {
      if (const std::optional<Tile>& tile = tiles.of_sizes[k][n])
        text += "\n" + print(tiles.program, *tile, sized[n].when);
    }
  }
  return text;
}

bool holds_tile(std::string_view text) { return first_tile(text) < text.size(); }

Tiles parse_tiles(std::string_view text) {
  size_t at = first_tile(text);
  Tiles tiles{parse_program(text.substr(0, at)), {}};
  tiles.of_kernel.resize(tiles.program.kernels.size());
  if (has_sized(tiles.program)) {
    for (const Kernel& kernel : tiles.program.kernels)
      tiles.of_sizes.emplace_back(kernel.sized.size());
  }
  while (at < text.size()) {
    ParsedTile parsed = parse_tile_at(tiles.program, text, at);
    std::optional<Tile>& tile = parsed.sized < 0 ? tiles.of_kernel[parsed.kernel]
                                                 : tiles.of_sizes[parsed.kernel][parsed.sized];
    if (tile) fail_in_text(text, at, str("a second tile of ", tile->kernel.name));
    const Scheduled own = scheduled(tiles, parsed.kernel, parsed.sized);
    const TileFault fault = fault_of(own.program, own.kernel, parsed.tile);
    if (!fault.why.empty())
      fail_in_text(text, fault.statement < 0 ? at : parsed.lines[fault.statement], fault.why);
    tile = std::move(parsed.tile);
    at = parsed.end;
  }
  verify(tiles);
  return tiles;
}

Tile lone_tile(const Program& program, const Tile& tile, const LoneKernel& lone) {
  const auto number = [&](int buffer) { return lone_buffer(program, lone, tile, buffer); };
  Tile result = tile;
  result.kernel = lone.kernel();
  result.kernel.scalars = tile.kernel.scalars;
  for (Scalar& scalar : result.kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) scalar.buffer = number(scalar.buffer);
  }
  renumber(result.body, number);
  return result;
}

}  // namespace tiny_compile
