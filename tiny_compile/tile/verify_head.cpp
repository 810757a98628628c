// Question: may a tile be run whose statements are sound? Its arrays fit the machine, and so do its blocks and units.
//
//   shared t0: f32[65536], a block has 232448 bytes   =>   "a block has 262144 bytes of shared memory or more .."
#include "tiny_compile/tile/verify_head.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/loops/panel_shape.h"
#include "tiny_compile/tile/uses.h"
#include "tiny_compile/tile/verify.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostOwnElements = 4096;  // of an array of a thread's own

void check_arrays(const Program& program, const Tile& tile) {
  std::set<std::string> names;
  const Machine& machine = program.machine;
  int64_t shared = 0, l1 = 0, l2 = 0;
  for (const Array& array : tile.arrays) {
    require(is_identifier(array.name) && names.insert(array.name).second, "an array '",
            array.name, "': names are letters, digits and '_', each once");
    const int64_t size = array.size.constant();
    require(size >= 1, array.name, " has no elements");
    require(!array.packed || (array.space != Space::Cluster && is_half(array.dtype)),
            array.name, " is packed: only halves of a thread or a block are");
    const int64_t blocks = array.space == Space::Cluster ? tile.cluster : 1;
    require(size % blocks == 0, array.name, " has ", size, " elements in ", blocks, " blocks");
    const bool is_kept = array.space == Space::Kept,
               is_memory = array.space == Space::Memory || is_kept;
    require(
        is_on_cpu(tile) == (array.space == Space::L1 || array.space == Space::L2 || is_memory),
        "a CPU's arrays are in L1, L2 or memory, a GPU's not");
    require(!is_kept || (is_integer(array.dtype) && size <= kMostKept), array.name,
            " is kept: integers are, at most ", kMostKept);
    require(!tile.alone || array.space == Space::Register, array.name,
            " is shared, by threads that go alone");
    if (is_memory) continue;
    if (is_on_cpu(tile))
      (array.space == Space::L1 ? l1 : l2) += size * bytes_of_element(array);
    else if (array.space != Space::Register)
      shared += size / blocks * bytes_of_element(array);
    else
      require(size <= kMostOwnElements, array.name, " has ", size,
              " elements, a thread's own at most ", kMostOwnElements);
    require(shared <= machine.block_shared, "a block has ", shared,
            " bytes of shared memory or more, at most ", machine.block_shared);
    require(l1 <= machine.l1, "a thread has ", l1, " bytes in L1, which has ", machine.l1);
    require(l2 <= machine.l2, "a thread has ", l2, " bytes in L2, which has ", machine.l2);
  }
}

}  // namespace

void check_head(const Program& program, const Tile& tile) {
  require(is_on_cpu(tile) == (program.target == Target::Cpp),
          "a CPU's tile has units, a GPU's a grid");
  if (is_on_cpu(tile)) {
    require(!tile.alone, "a CPU has no blocks");
    require(
        tile.grid.is_constant(1) && tile.cluster == 1 && tile.warps == 1 && tile.resident == 0,
        "a CPU has no blocks");
    require(tile.grain.bounds().low >= 1, "a grain of ", tile.grain);
    return check_arrays(program, tile);
  }
  const Interval grid = tile.grid.bounds();
  require(grid.low >= 1 && grid.high < kMostBlocks, "a grid of ", tile.grid);
  require(tile.cluster >= 1 && tile.cluster <= std::max<int64_t>(1, program.machine.cluster) &&
              grid.high < kMostBlocks / tile.cluster,
          "clusters of ", tile.cluster, " blocks");
  require(tile.warps >= 1 && tile.warps <= 32, "a block of ", tile.warps, " warps, not 1..32");
  const int64_t most = program.machine.threads / 32;
  require(!tile.alone || tile.cluster == 1, "threads of a cluster that go alone");
  require(tile.resident >= 0 && tile.resident <= 32 && tile.resident * tile.warps <= most,
          tile.resident, " blocks of ", tile.warps,
          " warps are resident, a multiprocessor holds ", most, " warps");
  check_arrays(program, tile);
}

}  // namespace tiny_compile
