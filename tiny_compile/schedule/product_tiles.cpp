// A block of 16 x 16 threads has a tile of the result; how many rows and columns of it has a thread?
//
//   f32 4096 x 64 x 4096       tiles each=8 slice=8     1024 blocks of 128 x 128
//   f32 1024 x 64 x 1024       tiles                     256 of 64 x 64
//   bf16 512 x 64 x 512        tiles each=2 slice=32     256 of 32 x 32
//
// What takes the least time: large tiles read shared memory less often, small ones leave no multiprocessor
// idle. For each k a thread multiplies each * each pairs and reads 2 * each operands; between slices it waits,
// unless another block of its multiprocessor goes on.
#include "tiny_compile/schedule/product_tiles.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/schedule/occupancy.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

constexpr int kThreads = kTileSide * kTileSide;
constexpr int kStaged = 64;  // each * slice: eight elements that a thread stages at a time
constexpr double kOfOperand = 1.5;      // instructions of an operand from shared memory
constexpr double kOfStep = 4.5;         // of a k, beside products and operands
constexpr double kSliceWait = 0.23e-6;  // seconds

// Of a size without a bound more than any machine has.
double blocks_of_tiles(const Kernel& kernel, int each) {
  double blocks = 1;
  for (int a = 0; a < kernel.rows; a++) {
    const double extent = static_cast<double>(kernel.axes[a].extent.bounds().high);
    blocks *= a < kernel.rows - 2 ? extent : std::ceil(extent / (kTileSide * each));
  }
  return blocks;
}

int64_t operand_bytes(const Kernel& kernel) {
  return size_of(compute_type(kernel.scalars[kernel.steps[dot_axes(kernel).step].value].dtype));
}

// Blocks that a multiprocessor has at a time.
double resident_blocks(const Machine& machine, const Schedule& s, int64_t bytes) {
  const int64_t values = s.each * s.each + 2 * s.each + 2 * s.each * s.slice / kTileSide;
  return static_cast<double>(
      occupancy_of(machine, kThreads, values * bytes / 4, 2 * s.slice * slice_stride(s) * bytes)
          .blocks());
}

}  // namespace

// H100, f32, ms as measured before products were tile programs, which are faster (by the model, launch and all: tc explain --machine=h200), by 2 x 2 results a thread and
// 32 of k, 4 x 4 and 16, 8 x 8 and 8: 256 x 256 x 256 .0125 (.0092), .0213 (.0165), .0459 (.0382); 1024 x 1024 x
// 1024 .149 (.157), .0876 (.0959), .149 (.144); 2048 x 2048 x 2048 1.09 (1.21), .605 (.688), .499 (.507); 64 x 8192
// x 64, whose largest tile is half empty, .197 (.202), .489 (.434), .759 (1.13).
TileTimes tile_times(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  const Rates rates = rates_of(program.machine);
  const double multiprocessors = static_cast<double>(program.machine.multiprocessors);
  const int64_t bytes = operand_bytes(kernel);
  const double pairs = s.each * s.each,
               of_step = static_cast<double>(bytes) / 4 * (pairs + 2 * kOfOperand * s.each) +
                         kOfStep;  // instructions of a thread
  const Step& dot = kernel.steps[dot_axes(kernel).step];
  const double steps = static_cast<double>(inner_count(kernel, dot).bounds().high),
               slices = std::ceil(steps / s.slice);
  const double blocks = std::ceil(blocks_of_tiles(kernel, s.each) / multiprocessors),
               turns = std::ceil(blocks / resident_blocks(program.machine, s, bytes));
  const double results = static_cast<double>(row_count(kernel).bounds().high);
  TileTimes times;
  times.arithmetic = results / pairs * steps * of_step / rates.instructions;
  times.all =
      blocks * slices * s.slice * kThreads * of_step * multiprocessors / rates.instructions +
      turns * slices * kSliceWait;
  return times;
}

// Of those that stage eight elements a thread; f64 has not the registers for the largest.
Schedule product_tiles(const Program& program, Kernel kernel) {
  Schedule best{.strategy = Strategy::Tiles};
  std::optional<double> least;
  for (const int each : {8, 4, 2}) {
    if (each == 8 && operand_bytes(kernel) > 4) continue;
    kernel.schedule =
        Schedule{.strategy = Strategy::Tiles, .each = each, .slice = kStaged / each};
    const double time = tile_times(program, kernel).all;
    if (least && time >= *least) continue;
    least = time;
    best = *kernel.schedule;
  }
  return best;
}

}  // namespace tiny_compile
