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

namespace tiny_compile {
namespace {

constexpr int64_t kThreads = 256, kMostThreads = 512;  // of a block; where 16 scan a column
constexpr int64_t kFewestThreads = 64;
constexpr int64_t kSector = 32;                           // bytes: memory gives no less
constexpr int64_t kRegisters = 64, kWideRegisters = 128;  // of a thread
constexpr int64_t kTurnedRegisters = 80;  // where it reads or writes in another order
constexpr int64_t kMostResident = 16;

// Rows of a block: as many as leave every multiprocessor a block, from `least` to `most`.
int rows_of_block(const Program& program, int64_t rows, int64_t least, int64_t most) {
  int64_t result = most;
  while (result / 2 >= least && ceil_divide(rows, result) < blocks_to_fill(program.machine))
    result /= 2;
  return static_cast<int>(result);
}

int resident_blocks(const Machine& machine, const Kernel& kernel, const ScanShape& shape) {
  const bool wide = size_of(compute_type(kernel.scalars[scan_of(kernel).value].dtype)) > 4;
  const int64_t registers = wide                                  ? kWideRegisters
                            : shape.turned() && shape.tiles() > 1 ? kTurnedRegisters
                                                                  : kRegisters,
                threads = ceil_divide(shape.threads(), int64_t{32}) * 32,
                blocks = ceil_divide(shape.rows, shape.block_rows),
                met = ceil_divide(blocks, int64_t{machine.multiprocessors});
  return static_cast<int>(
      std::min({blocks_held(machine, threads, registers), kMostResident, met}));
}

}  // namespace

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
  const int64_t groups = scan_shape(own).groups,
                threads = !along && groups == kGroup ? kMostThreads : kThreads;
  int64_t least = ceil_divide(kFewestThreads, groups), most = threads / groups;
  if (turns) least = kRowsToTurn;
  if (!along) {
    least = std::max({kSector / size_of(scan_of(kernel).dtype), int64_t{8}, least});
    most = std::max<int64_t>(most / 32, 1) * 32;
  }
  s.beside = rows_of_block(program, rows, least, most);
  s.resident = resident_blocks(program.machine, kernel, scan_shape(own));
  return s;
}

}  // namespace tiny_compile
