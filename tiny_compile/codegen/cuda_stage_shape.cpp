// Which rows does a block copy into shared memory before its threads take their own? Where packs
// of a row are not what lies side by side:
//
//   x.t(), rows of 1024: neighbours are elements of neighbouring rows. A strip of 16 rows, so that
//     32-byte sectors are used whole, two at a time: 64 kB, and one block loads while one computes
//   x.t(), rows of 4096: four blocks of a cluster share 16 rows, each 1024 elements of each
//   rows of 7: 16 bytes belong to several rows. A block takes 256 of them, a thread a row, and
//     what is stored goes the same way back
//
// A row's place in a tile is an odd number of 32-bit words behind the row before it (of a strip: 4
// modulo 8, so that it starts with a pack), so that threads which read a column, and those that
// write a pack of one, meet few others in a bank.
#include "tiny_compile/codegen/cuda_stage_shape.h"

#include <algorithm>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPack = 16, kSector = 32;  // bytes
// Short rows.
constexpr int64_t kShortRow = 32;           // elements; below: a thread a row
constexpr int64_t kManyShort = 1 << 14;     // rows: as many threads keep a GPU busy
constexpr int64_t kLoaded = 24;             // bytes a thread asks for at least, in some rows
constexpr int64_t kMostTurns = 4;           // so many at most
constexpr int64_t kShortShared = 48 << 10;  // bytes
// Strips.
constexpr int64_t kMany = 256;            // rows: so many that strips of them keep it busy
constexpr int64_t kMostWarps = 16;        // of a row
constexpr int64_t kLittle = 20 << 10;     // bytes of a strip: there may be more of it
constexpr int64_t kBesides = 1 << 10;     // bytes of each block, unseen
constexpr int64_t kThreadRegisters = 64;  // of a thread, at least
constexpr int kBlock = 256, kStripBlock = 512, kLargeBlock = 1024;  // threads

// Bytes of a tile of which a multiprocessor holds three, or two, beside what else blocks share: of
// 227 kB 72 and 110.
int64_t third_of(const Machine& machine) { return machine.block_shared * 72 / 227; }
int64_t half_of(const Machine& machine) { return machine.block_shared * 110 / 227; }

int64_t round_up(int64_t count, int64_t unit) { return ceil_divide(count, unit) * unit; }

int last_row(const Kernel& kernel) { return kernel.rows - 1; }

// The one inner axis that an index depends on; -1: none or several.
int inner_axis(const Kernel& kernel, const Expr& index) {
  int found = -1;
  for (int a = kernel.rows; a < static_cast<int>(kernel.axes.size()); a++) {
    if (!depends_on(index, kernel.axes[a].name)) continue;
    if (found >= 0) return -1;
    found = a;
  }
  return found;
}

// Where an element stands if rows are counted through: (4*i0 + i1)*7 + j0.
Expr flat_index(const Kernel& kernel, int inner) {
  Expr row = 0;
  for (int a = 0; a < kernel.rows; a++)
    row = row * kernel.axes[a].extent + kernel.axes[a].symbol();
  return row * kernel.axes[inner].extent + kernel.axes[inner].symbol();
}

// What may be staged, with the way it runs.
enum class Run { Along, Across, Once, Other };

Run run_of(const Kernel& kernel, const Expr& index) {
  const int inner = inner_axis(kernel, index);
  if (!depends_on_rows(kernel, index)) return Run::Once;
  if (inner < 0) return Run::Other;
  if ((index - flat_index(kernel, inner)).is_constant()) return Run::Along;
  const bool along = distance(index, kernel.axes[inner].symbol()) == 1;
  const bool across = distance(index, kernel.axes[last_row(kernel)].symbol()) == 1;
  return across && !along ? Run::Across : Run::Other;
}

StagedTile tile_of(const Kernel& kernel, const Expr& index, DType type, int buffer) {
  StagedTile tile;
  tile.type = type;
  tile.index = index;
  tile.buffer = buffer;
  tile.axis = inner_axis(kernel, index);
  tile.count = kernel.axes[tile.axis].extent.constant();
  tile.across = run_of(kernel, index) == Run::Across;
  if (!tile.across) tile.first = (index - flat_index(kernel, tile.axis)).constant();
  return tile;
}

// Tiles lie one behind the other.
void place_tiles(StagedRows& staged) {
  staged.bytes = 0;
  for (StagedTile& tile : staged.tiles) {
    tile.offset = staged.bytes;
    staged.bytes += round_up(staged.lines * tile.pitch * size_of(tile.type), kPack);
  }
}

// Rows enough, and in all loops over a row `e` is the place.
bool may_stage(const Kernel& kernel) {
  const auto usual = [](const Step& s) {
    const bool known = s.kind == StepKind::Reduce || s.kind == StepKind::Store;
    return known && s.inner.size() <= 1;
  };
  return kernel.rows > 0 && row_count(kernel).constant() >= kMany &&
         schedule_of(kernel).warps_per_row == 0 &&
         std::all_of(kernel.steps.begin(), kernel.steps.end(), usual);
}

// --- short rows: a thread each ---

// Rows in steps of an odd number of words.
int64_t short_pitch(int64_t count, DType type) {
  const int64_t size = size_of(type);
  if (size == 2) return count % 4 == 0 ? count + 2 : count;
  return size >= 4 ? count | 1 : count;
}

bool is_short(const Kernel& kernel) {
  int64_t longest = 1;
  for (const Step& step : kernel.steps) {
    longest = std::max(longest, inner_count(kernel, step).constant());
  }
  return longest > 1 && longest < kShortRow && row_count(kernel).constant() >= kManyShort;
}

// Empty where packs reach whole rows as it is, or a thread a row would read what none of its
// neighbours do.
std::vector<StagedTile> short_tiles(const Kernel& kernel) {
  std::vector<StagedTile> tiles;
  bool needed = false;
  auto add = [&](StagedTile tile) {
    tile.pitch = short_pitch(tile.count, tile.type);
    needed = needed || tile.count * size_of(tile.type) % kPack != 0;
    tiles.push_back(tile);
  };
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind != ScalarKind::Load) continue;
    const Run run = run_of(kernel, load.index);
    if (load.mask >= 0 || !load.operands.empty()) return {};
    if (run == Run::Other && inner_axis(kernel, load.index) >= 0) return {};
    needed = needed || run == Run::Across;
    if (run != Run::Along) continue;
    add(tile_of(kernel, load.index, load.dtype, load.buffer));
    tiles.back().load = id;
  }
  for (int s = 0; s < static_cast<int>(kernel.steps.size()); s++) {
    const Step& step = kernel.steps[s];
    if (step.kind != StepKind::Store || step.inner.empty()) continue;
    const Run run = run_of(kernel, step.index);
    if (run == Run::Across) continue;
    if (run != Run::Along || step.other >= 0) return {};
    add(tile_of(kernel, step.index, step.dtype, step.buffer));
    tiles.back().step = s;
  }
  return needed ? tiles : std::vector<StagedTile>{};
}

StagedRows stage_short_rows(const CudaText& text, RowShape& shape) {
  StagedRows staged;
  staged.tiles = short_tiles(text.kernel);
  if (staged.tiles.empty()) return {};
  int64_t loaded = 0;  // bytes a row
  for (const StagedTile& tile : staged.tiles)
    loaded += tile.load >= 0 ? tile.count * size_of(tile.type) : 0;
  int64_t turns = 1;
  while (turns < kMostTurns && turns * loaded < kLoaded && loaded > 0) turns *= 2;
  int block = kBlock;
  for (; block >= 64; block /= 2) {
    staged.lines = block * turns;
    place_tiles(staged);
    if (staged.bytes <= kShortShared) break;
  }
  if (block < 64) return {};
  shape.lanes = shape.most_vector = 1;
  shape.block = block;
  shape.rows_a_block = block;
  shape.turns = turns;
  spread_rows(text, shape);
  return staged;
}

// --- strips: neighbouring rows that lie side by side ---

// Rows of whole packs, 4 words modulo 8.
int64_t strip_pitch(int64_t count, DType type) {
  return (round_up(count * size_of(type), 32) + 16) / size_of(type);
}

std::vector<StagedTile> strip_tiles(const Kernel& kernel) {
  std::vector<StagedTile> tiles;
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    const Scalar& load = kernel.scalars[id];
    if (!is_plain(load)) continue;
    if (run_of(kernel, load.index) != Run::Across) continue;
    tiles.push_back(tile_of(kernel, load.index, load.dtype, load.buffer));
    tiles.back().load = id;
  }
  for (int s = 0; s < static_cast<int>(kernel.steps.size()); s++) {
    const Step& step = kernel.steps[s];
    if (step.kind != StepKind::Store || step.inner.empty() || step.other >= 0) continue;
    if (run_of(kernel, step.index) != Run::Across) continue;
    tiles.push_back(tile_of(kernel, step.index, step.dtype, step.buffer));
    tiles.back().step = s;
  }
  for (StagedTile& tile : tiles) tile.pitch = strip_pitch(tile.count, tile.type);
  return tiles;
}

int64_t rows_in_a_sector(const StagedRows& staged) {
  int64_t smallest = 8;
  for (const StagedTile& tile : staged.tiles) smallest = std::min(smallest, size_of(tile.type));
  return kSector / smallest;
}

// So many rows, in at most so many bytes, and in what the schedule lets a block share.
bool fits(const Kernel& kernel, StagedRows& staged, int64_t lines, int64_t most) {
  staged.lines = lines;
  place_tiles(staged);
  return staged.bytes <= std::min(most, int64_t{schedule_of(kernel).shared} << 10);
}

// As many rows as fit comfortably.
bool fits_well(const CudaText& text, StagedRows& staged) {
  const Kernel& kernel = text.kernel;
  const int64_t sector = rows_in_a_sector(staged);
  return fits(kernel, staged, 4 * sector, kLittle) ||
         fits(kernel, staged, 2 * sector, third_of(text.program.machine));
}

// Halves of sectors where a second block then fits beside, or what fits at all.
bool fits_somehow(const CudaText& text, StagedRows& staged) {
  const Kernel& kernel = text.kernel;
  const Machine& machine = text.program.machine;
  const int64_t sector = rows_in_a_sector(staged);
  return fits(kernel, staged, sector / 2, third_of(machine)) ||
         fits(kernel, staged, sector, machine.block_shared) ||
         fits(kernel, staged, sector / 2, machine.block_shared);
}

// A row's chunks on the warps of one block, or of each of a cluster's.
void share_rows(const CudaText& text, RowShape& shape, int cluster) {
  int64_t chunks = 1;
  for (const Spread& spread : shape.spreads) chunks = std::max(chunks, spread.chunks);
  shape.cluster = cluster;
  shape.warps = static_cast<int>(std::min(ceil_divide(chunks, cluster), kMostWarps));
  shape.resident = 0;
  spread_rows(text, shape);
}

// The least cluster whose blocks hold their part of as many rows, and a thread has one of them.
bool fits_cluster(const CudaText& text, RowShape& shape, StagedRows& staged, int64_t lines) {
  const int64_t chunks = shape.over(text.kernel.steps[0].inner).chunks;
  for (int cluster = 2; cluster <= schedule_of(text.kernel).cluster; cluster *= 2) {
    const int64_t warps = ceil_divide(chunks, cluster);
    if (chunks < cluster || lines * warps * 32 > kStripBlock) continue;
    StagedRows parts = staged;
    parts.shared = true;
    for (StagedTile& tile : parts.tiles) {
      tile.count = warps * kChunk;
      tile.pitch = strip_pitch(tile.count, tile.type);
    }
    if (!fits(text.kernel, parts, lines, third_of(text.program.machine))) continue;
    staged = parts;
    share_rows(text, shape, cluster);
    return true;
  }
  return false;
}

// Every loop over a row is over all of it, and there are reductions whose results can be sent.
bool may_share(const Kernel& kernel) {
  const std::vector<int>& inner = kernel.steps[0].inner;
  return !inner.empty() && exchanges_words(kernel) &&
         std::any_of(kernel.steps.begin(), kernel.steps.end(), makes_register) &&
         std::all_of(kernel.steps.begin(), kernel.steps.end(),
                     [&](const Step& s) { return s.inner.empty() || s.inner == inner; });
}

// Some of what is read and written runs across rows, some along them.
bool is_mixed(const Kernel& kernel) {
  const auto along = [&](const Expr& index) {
    const int inner = inner_axis(kernel, index);
    return inner >= 0 && depends_on_rows(kernel, index) &&
           distance(index, kernel.axes[inner].symbol()) == 1 &&
           distance(index, kernel.axes[last_row(kernel)].symbol()) != 1;
  };
  return !strip_tiles(kernel).empty() &&
         (std::any_of(kernel.steps.begin(), kernel.steps.end(),
                      [&](const Step& step) {
                        return step.kind == StepKind::Store && along(step.index);
                      }) ||
          std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const Scalar& scalar) {
            return scalar.kind == ScalarKind::Load && along(scalar.index);
          }));
}

StagedRows stage_strips(const CudaText& text, RowShape& shape) {
  StagedRows staged;
  staged.tiles = strip_tiles(text.kernel);
  if (staged.tiles.empty()) return {};
  const int64_t sector = rows_in_a_sector(staged);
  const bool all_fit =
      fits_well(text, staged) ||
      (may_share(text.kernel) && (fits_cluster(text, shape, staged, 2 * sector) ||
                                  fits_cluster(text, shape, staged, sector))) ||
      fits_somehow(text, staged);
  if (!all_fit) return {};
  if (!staged.shared && shape.cluster > 1) share_rows(text, shape, 1);
  const Machine& machine = text.program.machine;
  const int64_t row = shape.lanes * shape.warps;  // threads
  const int64_t block = staged.bytes > half_of(machine) ? kLargeBlock : kStripBlock;
  int64_t rows = staged.lines;
  while (rows > 1 && rows * row > block) rows /= 2;
  if (rows * row < 32) return {};
  shape.block = static_cast<int>(rows * row);
  shape.rows_a_block = rows;
  shape.turns = staged.lines / rows;
  staged.resident =
      static_cast<int>(std::min(machine.block_shared / (staged.bytes + kBesides),
                                machine.registers / (kThreadRegisters * shape.block)));
  return staged;
}

}  // namespace

std::string StagedTile::name() const {
  return load >= 0 ? str("tile_", load) : str("result_", step);
}

bool StagedRows::holds(int load) const {
  return std::any_of(tiles.begin(), tiles.end(),
                     [&](const StagedTile& tile) { return tile.load == load; });
}

const StagedTile* StagedRows::stored(int step) const {
  for (const StagedTile& tile : tiles) {
    if (step >= 0 && tile.step == step) return &tile;
  }
  return nullptr;
}

StagedRows stage_rows(const CudaText& text, RowShape& shape) {
  const Kernel& kernel = text.kernel;
  if (!may_stage(kernel)) return {};
  return is_short(kernel) ? stage_short_rows(text, shape) : stage_strips(text, shape);
}

bool goes_in_strips(const CudaText& text) {
  const Kernel& kernel = text.kernel;
  if (!may_stage(kernel) || !is_mixed(kernel)) return false;
  if (is_short(kernel)) return !short_tiles(kernel).empty();
  StagedRows staged;
  staged.tiles = strip_tiles(kernel);
  return fits_well(text, staged) || fits_somehow(text, staged);
}

}  // namespace tiny_compile
