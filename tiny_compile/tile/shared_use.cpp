// What is staged where? Of the arrays of a tile program those that a block shares, each with its reason:
//
//   via load 1 rows lane 32 loop register 4 · warp 8 padding 1
//   =>  staged0, 4224 bytes: 32 rows x 32 elements of x (load 1, f32, padding 1), read along memory, taken across it
//
// An access that goes by way of shared memory is known by the buffer that fills its array; of others the
// array's name says what the lowering made it for.
#include "tiny_compile/tile/shared_use.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/legal_via.h"

namespace tiny_compile {
namespace {

// Buffers from which arrays are filled, directly or by way of others.
using Sources = std::map<int, std::set<int>>;

void collect_sources(const Tile& tile, const Body& body, Sources& sources) {
  for (const Statement& s : body) {
    collect_sources(tile, s.body, sources);
    if (s.kind == StatementKind::Load) sources[s.array].insert(s.buffer);
    if (s.kind != StatementKind::Set || s.value < 0) continue;
    const Scalar& value = tile.kernel.scalars[s.value];
    if (value.kind == ScalarKind::Load) sources[s.array].insert(value.buffer);
    if (value.kind != ScalarKind::Element) continue;
    const std::set<int> from = sources[value.step];
    sources[s.array].insert(from.begin(), from.end());
  }
}

int buffer_of(const Kernel& kernel, const Via& via) {
  return via.stores ? kernel.steps[stored_by(kernel, via)].buffer
                    : kernel.scalars[loaded_by(kernel, via)].buffer;
}

bool is_staged(const Array& array) { return array.name.starts_with("staged"); }

// Which of the schedule's accesses goes by way of each array: loads come before stores.
std::map<int, const Via*> accesses_by_array(const Kernel& kernel, const Tile& tile) {
  Sources sources;
  collect_sources(tile, tile.body, sources);
  std::map<int, const Via*> accesses;
  std::set<const Via*> taken;
  for (size_t a = 0; a < tile.arrays.size(); a++) {
    const Array& array = tile.arrays[a];
    if (!is_staged(array)) continue;
    const std::set<int>& from = sources[static_cast<int>(a)];
    const auto fits = [&](const Via& via) {
      return taken.count(&via) == 0 && dtype_of(kernel, via) == array.dtype &&
             array.size.is_constant(elements_of_stage(via));
    };
    for (const bool stores : {false, true}) {
      for (const Via& via : kernel.schedule->via) {
        const bool is_it = via.stores || from.count(buffer_of(kernel, via)) > 0;
        if (via.stores != stores || accesses.count(static_cast<int>(a)) > 0 || !is_it ||
            !fits(via))
          continue;
        accesses[static_cast<int>(a)] = &via;
        taken.insert(&via);
      }
    }
  }
  return accesses;
}

std::string what_goes_by(const Program& program, const Kernel& kernel, const Via& via) {
  std::string text =
      str(covered_by(via.rows), " rows x ", covered_by(via.loop) / via.pieces, " elements of ",
          program.buffers[buffer_of(kernel, via)].name, " (", via.stores ? "store " : "load ",
          via.number, ", ", dtype_of(kernel, via));
  if (via.padding > 0) text += str(", padding ", via.padding);
  if (via.pieces > 1) text += str(", one of ", via.pieces, " pieces, two at a time");
  return text + (via.stores ? "), left across memory, stored along it"
                            : "), read along memory, taken across it");
}

// Of a product: steps of the sums at a time.
std::string slice_of(const Schedule& schedule, const char* what) {
  return str("of ", schedule.slice, " steps of the sums, ", kTileSide * schedule.each, " ",
             what);
}

std::string purpose_by_name(const Tile& tile, const Array& array) {
  static constexpr std::array<std::pair<const char*, const char*>, 17> kPurposes = {
      {{"given", "that warps hand to each other"},
       {"held", "that wait for later turns of rows, to be added to them"},
       {"totals", "that groups of a scan come to"},
       {"upper", "that groups of groups of a scan come to"},
       {"whole", "that the rows of a scan come to"},
       {"shared", "of a tile that is scanned, along memory on one side, by rows on the other"},
       {"places", "that say where each element of the order comes from"},
       {"room", "of keys that threads exchange while they sort"},
       {"cuts", "where sorted runs are cut, to be merged apart"},
       {"values_", "of a chunk of updates"},
       {"sorted", "of places of updates, in order"},
       {"ordered_", "of updates, in the order of their places"},
       {"sums", "of a row's sums, one of each place"},
       {"listed", "of updates that concern the block"},
       {"counts", "of updates that each warp has found"},
       {"ends", "where the block's updates begin and end"},
       {"begins", "where each target's updates begin"}}};
  if (array.space == Space::Cluster) return "that the blocks of a cluster hand to each other";
  const Schedule& schedule = *tile.kernel.schedule;
  if (array.name.starts_with("left")) return slice_of(schedule, "rows of the left operand");
  if (array.name.starts_with("right"))
    return slice_of(schedule, "columns of the right operand");
  for (const auto& [start, purpose] : kPurposes)
    if (array.name.starts_with(start)) return purpose;
  return "that threads share";
}

// Where warps give what their rows add to columns.
bool is_of_folds(const Tile& tile, const Array& array) {
  int64_t room = 0;
  for (const Step& step : tile.kernel.steps) {
    if (step.kind == StepKind::Fold && step.dtype == array.dtype)
      room = std::max(room, room_for_columns(tile.kernel, step));
  }
  return room > 0 && array.name.starts_with("given") &&
         array.size.is_constant(room * tile.warps);
}

}  // namespace

std::vector<SharedUse> shared_uses(const Program& program, const Kernel& kernel,
                                   const Tile& tile) {
  const std::map<int, const Via*> accesses = accesses_by_array(kernel, tile);
  std::vector<SharedUse> uses;
  for (size_t a = 0; a < tile.arrays.size(); a++) {
    const Array& array = tile.arrays[a];
    const bool of_cluster = array.space == Space::Cluster;
    if (array.space != Space::Shared && !of_cluster) continue;
    const int64_t blocks = of_cluster ? tile.cluster : 1;
    SharedUse use{array.name, bytes_of(array).constant() / blocks, ""};
    const auto access = accesses.find(static_cast<int>(a));
    use.what = access != accesses.end()
                   ? what_goes_by(program, kernel, *access->second)
                   : str(array.size.constant() / blocks, " ", array.dtype, " ",
                         is_of_folds(tile, array) ? "that the warps' rows give to columns"
                                                  : purpose_by_name(tile, array));
    uses.push_back(std::move(use));
  }
  return uses;
}

std::string str(const SharedUse& use) {
  return tiny_compile::str("shared memory: ", use.array, ", ", use.bytes, " bytes: ", use.what);
}

}  // namespace tiny_compile
