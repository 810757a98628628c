// A block of 16 x 16 threads has a tile of the result; how many rows and columns of it has a thread?
//
//   f32 4096 x 64 x 4096       tiles each=8 slice=8     1024 blocks of 128 x 128
//   f32 1024 x 64 x 1024       tiles                     256 of 64 x 64
//   bf16 512 x 64 x 512        tiles each=2 slice=32     256 of 32 x 32
#include "tiny_compile/schedule/product_tiles.h"

#include <cmath>

#include "tiny_compile/loops/dot_axes.h"

namespace tiny_compile {
namespace {

// Of a size without a bound more than any machine has.
double blocks_of_tiles(const Kernel& kernel, int each) {
  double blocks = 1;
  for (int a = 0; a < kernel.rows; a++) {
    const double extent = static_cast<double>(kernel.axes[a].extent.bounds().high);
    blocks *= a < kernel.rows - 2 ? extent : std::ceil(extent / (kTileSide * each));
  }
  return blocks;
}

}  // namespace

// As large as leaves all multiprocessors a block, of the largest two; then memory is read less often. (H200,
// f32, by 2 x 2 results a thread and 32 of k, 4 x 4 and 16, 8 x 8 and 8: 256 x 256 x 256 .0128, .0211, .0439
// ms; 512 x 512 x 512 .0285, .0366, .0806; 1024 x 1024 x 1024 .151, .0895, .149; 4096 x 4096 x 4096 8.45,
// 4.77, 3.88; 64 x 8192 x 64 .197, .497, .760.) f64 has not the registers for the largest.
Schedule product_tiles(const Program& program, const Kernel& kernel) {
  Schedule schedule{.strategy = Strategy::Tiles};
  if (program.target == Target::Cpp) return schedule;
  const DType operand = kernel.scalars[kernel.steps[dot_axes(kernel).step].value].dtype;
  const double enough = static_cast<double>(blocks_to_fill(program.machine));
  if (blocks_of_tiles(kernel, 8) >= 2 * enough && compute_type(operand) == DType::f32)
    schedule.each = schedule.slice = 8;
  else if (blocks_of_tiles(kernel, 4) < enough)
    schedule.each = 2, schedule.slice = 32;
  return schedule;
}

}  // namespace tiny_compile
