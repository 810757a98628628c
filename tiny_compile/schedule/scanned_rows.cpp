// A scan's rows share a block until every multiprocessor has one:
//
//   x [4096,192] along 1     21 rows a block, 12 threads a row: a row is one tile
//   x [771,28996] along 1    a row a block, 256 threads: 8 tiles of 4096 elements
//   y.t() [5120,2048] of x [5120,2048] along 0: 16 rows a block, 16 threads each, so that what is
//                            stored side by side is more than an element of a row
//   x [28996,771] along 0    32 columns a block, 16 threads each: 114 tiles of 256 elements
#include "tiny_compile/schedule/scanned_rows.h"

#include <algorithm>

#include "tiny_compile/loops/scan_shape.h"
#include "tiny_compile/schedule/occupancy.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

constexpr int64_t kThreads = 256, kMostThreads = 512;  // of a block; where 16 scan a column
constexpr int64_t kThreadsOfTiles = 96;  // where a row of more than 256 is one tile
constexpr int64_t kFewestThreads = 64;
constexpr int64_t kSector = 32;                           // bytes: memory gives no less
constexpr int64_t kRegisters = 64, kWideRegisters = 128;  // of a thread
constexpr int64_t kTurnedRegisters = 80;  // where it reads or writes in another order
constexpr int64_t kMostResident = 16;
constexpr double kTileWait = 1.6e-6;  // seconds: its loads, then three barriers

// Rows of a block: as many as leave every multiprocessor a block, from `least` to `most`.
int rows_of_block(const Program& program, int64_t rows, int64_t least, int64_t most) {
  int64_t result = most;
  while (result / 2 >= least && ceil_divide(rows, result) < blocks_to_fill(program.machine))
    result /= 2;
  return static_cast<int>(result);
}

int resident_blocks(const Machine& machine, const Kernel& kernel, const ScanShape& shape) {
  const bool wide = size_of(compute_type(kernel.scalars[scan_of(kernel).value].dtype)) > 4;
  const int64_t registers = wide                                      ? kWideRegisters
                            : shape.transposed() && shape.tiles() > 1 ? kTurnedRegisters
                                                                      : kRegisters,
                threads = 32 * shape.warps(),
                blocks = ceil_divide(shape.rows, shape.block_rows),
                met = ceil_divide(blocks, int64_t{machine.multiprocessors});
  return static_cast<int>(
      std::min({blocks_held(machine, threads, registers), kMostResident, met}));
}

}  // namespace

// Rows of 257 to 4096, a tile each, are few to a block, which then ends soon, and have as many registers as the
// compiler likes. (H200, ms, by 256 threads and by 96 or fewer: cumsum of bf16[208632,576] .2298, .1749; of
// f32[577,907] .0044, .0037; fifteen draws that nothing was fitted to .75 to 1.04 of the time, .967 in the mean.)
Schedule scanned_rows(const Program& program, const Kernel& kernel) {
  const ScanDirections loads = loads_of_scan(kernel), stores = stores_of_scan(kernel);
  const int64_t rows = row_count(kernel).constant(),
                needed = ceil_divide(inner_count(kernel, scan_of(kernel)).constant(), kGroup);
  const bool fills = rows >= kRowsToTurn * blocks_to_fill(program.machine) / 2,
             along = loads.along + stores.along >= loads.across + stores.across ||
                     (fills && loads.along > loads.across);
  const bool turns =
      along && (loads.across > loads.along || (fills && stores.across > stores.along));
  Kernel own = kernel;
  own.schedule = Schedule{.strategy = along ? Strategy::Rows : Strategy::Columns};
  Schedule& s = *own.schedule;
  if (along && !turns) s.groups = needed > kGroup ? kMostGroups : kGroup;
  const ScanShape shape = scan_shape(own);
  const int64_t groups = shape.groups;
  const bool is_tile = s.groups == kMostGroups && shape.tiles() == 1;
  const int64_t threads = is_tile                      ? kThreadsOfTiles
                          : !along && groups == kGroup ? kMostThreads
                                                       : kThreads;
  int64_t least = ceil_divide(kFewestThreads, groups),
          most = std::max<int64_t>(threads / groups, 1);
  if (turns) least = kRowsToTurn;
  if (!along) {
    least = std::max({kSector / size_of(scan_of(kernel).dtype), int64_t{8}, least});
    most = std::max<int64_t>(most / 32, 1) * 32;
  }
  s.beside = rows_of_block(program, rows, least, most);
  const auto fits = [&] { return why_illegal_scan(program, own).empty(); };
  if (!fits()) s.groups = kGroup;  // of wide values and their places
  while (!fits() && s.beside > 1) s.beside /= 2;
  if (!is_tile || s.groups == kGroup)
    s.resident = resident_blocks(program.machine, kernel, scan_shape(own));
  return s;
}

namespace {

// Of one direction, how many times its bytes are moved: lines of which a block takes a part.
double width_of(const ScanDirections& d, bool along, bool transposed, double part,
                double alone) {
  const double beside = along && !transposed ? alone : part,
               in_row = along && !transposed ? 1 : alone;
  const int all = d.along + d.across;
  return all == 0 ? 1 : (d.along * in_row + d.across * beside) / all;
}

}  // namespace

// H100, f32, us as measured (by the model): cumsum along 131072 x 640 254 (228), 4096 x 11008 127 (124), 65536 x
// 1000 192 (179); down 640 x 701 7.9 (7.8), 750 x 768 8.1 (7.8), 153 x 65536 33 (30).
ScanTimes scan_times(const Program& program, const Kernel& kernel) {
  const ScanShape shape = scan_shape(kernel);
  const Machine& machine = program.machine;
  const double size = static_cast<double>(size_of(scan_of(kernel).dtype)),
               alone = std::max(1.0, kSector / size),
               part = std::max(1.0, alone / static_cast<double>(shape.block_rows));
  const double width =
      (width_of(loads_of_scan(kernel), shape.along, shape.loads_transposed, part, alone) +
       width_of(stores_of_scan(kernel), shape.along, shape.stores_transposed, part, alone)) /
      2;
  const int64_t threads = 32 * shape.warps(),
                held = occupancy_of(machine, threads, kGroup, shared_of_scan(kernel, shape))
                           .blocks(),
                blocks = ceil_divide(shape.rows, shape.block_rows),
                turns = ceil_divide(blocks, held * machine.multiprocessors);
  ScanTimes times;
  times.bytes =
      static_cast<double>(bytes_moved(program, kernel)) / rates_of(machine).bytes * width;
  times.waits = kTileWait * static_cast<double>(turns * shape.tiles());
  return times;
}

}  // namespace tiny_compile
