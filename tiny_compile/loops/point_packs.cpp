// Where are the points that a thread takes?
//
//   rows(i0: 4096, i1: 1024) { store y[..] = add(load x[..], load b[i1]) }
//   schedule pointwise rows grid · warp 8 · lane 32 · vector 4
// =>
//   packs of 4, in blocks of 256 threads: a pack is 16 bytes of x and y
//
// Rows of 1023 end within a pack; then packs go on into the next row, and what is not as long as
// the points themselves (b) is read element by element. `serial 4` in front of the grid: four slabs, whole
// rows apart, in each of which a thread has a pack; all four have the same columns, so that b is read once.
#include "tiny_compile/loops/point_packs.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"

namespace tiny_compile {
namespace {

constexpr int64_t kWarps = 8;  // where no layout says how many
constexpr int64_t kMostSlabs = 16, kMostWarps = 32, kMostVector = 8;

// Whole rows and packs: a slab has as many as there are slabs at least, or the last one has no points.
int64_t unit_of(const PointPacks& packs) {
  return std::lcm(packs.line ? 1 : packs.extent.constant(), int64_t{packs.vector});
}

bool has_whole_slabs(const PointPacks& packs) {
  return packs.slabs == 1 ||
         packs.count.constant() / unit_of(packs) >= packs.slabs * packs.slabs;
}

}  // namespace

Layout layout_of_points(int64_t slabs, int64_t warps, int64_t vector) {
  Layout layout;
  add_part(layout, Level::Serial, slabs);
  layout.push_back({Level::Grid});
  add_part(layout, Level::Warp, warps);
  add_part(layout, Level::Lane, kLanes);
  add_part(layout, Level::Vector, vector);
  return layout;
}

std::string why_illegal_points(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  if (s.rows.empty() && s.loops.empty() && s.via.empty() && s.resident == 0 && !s.parted)
    return "";
  if (program.target != Target::Cuda || !sizes(program).empty())
    return "schedule pointwise is laid out on cuda alone, where sizes are numbers";
  if (!s.loops.empty() || !s.via.empty())
    return "schedule pointwise has a layout of rows alone";
  const int64_t slabs = extent_of(s.rows, Level::Serial),
                warps = extent_of(s.rows, Level::Warp),
                vector = extent_of(s.rows, Level::Vector);
  const auto is_power = [](int64_t n, int64_t most) { return n <= most && is_power_of_two(n); };
  if (s.rows != layout_of_points(slabs, warps, vector) || !is_power(slabs, kMostSlabs) ||
      !is_power(warps, kMostWarps) || !is_power(vector, kMostVector))
    return str("schedule pointwise rows ", str(s.rows), ": [serial 2, 4, 8 or 16] · grid · ",
               "[warp 2 .. 32] · lane 32 · [vector 2, 4 or 8]");
  if (s.resident < 0 || s.resident * warps * kLanes > program.machine.threads)
    return str("schedule resident=", s.resident, ": ", program.machine.name, " has ",
               program.machine.threads, " threads a multiprocessor");
  if (row_count(kernel).is_constant(0)) return "";
  const int most = std::max(widest_within(program, kernel), widest_through(program, kernel));
  if (vector > most)
    return str("schedule pointwise: what lies side by side suits packs of ", most, ", not of ",
               vector);
  const PointPacks packs = point_packs_of(program, kernel, false);
  if (packs.through && packs.ragged && vector % packs.extent.constant() == 0)
    return str("schedule pointwise: packs of ", vector, " are whole rows of ", packs.extent,
               ", and the last one ends beyond the last point");
  if (s.parted && !packs.parted)
    return str(
        "schedule pointwise parted=1: for packs that go on into the next row, of rows as "
        "long as a pack");
  return has_whole_slabs(packs)
             ? ""
             : str("schedule pointwise: too few points for ", slabs, " slabs of whole rows");
}

PointPacks point_packs_of(const Program& program, const Kernel& kernel, bool any_count) {
  const Schedule s = schedule_of(kernel);
  PointPacks packs;
  packs.count = row_count(kernel);
  packs.extent = last_row_axis(kernel).extent;
  packs.line = kernel.rows == 1;
  packs.vector = static_cast<int>(extent_of(s.rows, Level::Vector));
  packs.slabs = extent_of(s.rows, Level::Serial);
  packs.block =
      static_cast<int>(kLanes * (s.rows.empty() ? kWarps : extent_of(s.rows, Level::Warp)));
  packs.resident = s.resident;
  packs.through =
      !packs.line && (packs.vector == 1 || packs.vector > widest_within(program, kernel));
  packs.parted =
      s.parted && packs.through && packs.vector > 1 && packs.extent.constant() >= packs.vector;
  packs.slab = packs.count;
  if (packs.slabs > 1) {
    const int64_t unit = unit_of(packs);
    packs.slab = ceil_divide(packs.count.constant(), packs.slabs * unit) * unit;
    if (!packs.line && !packs.through) packs.chosen = choosing_rows(kernel);
  }
  packs.ragged = packs.vector > 1 && (any_count || packs.count.constant() % packs.vector != 0);
  return packs;
}

Expr flat_index(const Kernel& kernel) {
  Expr index = 0;
  for (int row = 0; row < kernel.rows; row++)
    index = index * kernel.axes[row].extent + kernel.axes[row].symbol();
  return index;
}

int widest_pack(const Program& program, const Kernel& kernel, const std::vector<int>& ids,
                const std::vector<const Step*>& steps, int axis, int64_t extent) {
  const Expr along = kernel.axes[axis].symbol();
  int64_t smallest = kAccessBytes;
  std::vector<const Expr*> indices;
  const auto add = [&](const Expr& index, int buffer) {
    if (!has_neighbours(index, along) || program.buffers[buffer].align < kAccessBytes) return;
    smallest = std::min(smallest, size_of(program.buffers[buffer].type.dtype));
    indices.push_back(&index);
  };
  for (int id : ids) {
    const Scalar& load = kernel.scalars[id];
    if (is_plain(load)) add(load.index, load.buffer);
  }
  for (const Step* step : steps) {
    if (step->kind == StepKind::Store) add(step->index, step->buffer);
  }
  if (indices.empty()) return 1;
  for (int vector = std::min(8, static_cast<int>(kAccessBytes / smallest)); vector > 1;
       vector /= 2) {
    const auto fits = [&](const Expr* index) { return is_pack(*index, along, vector); };
    if (extent % vector == 0 && std::all_of(indices.begin(), indices.end(), fits))
      return vector;
  }
  return 1;
}

std::vector<int> evaluated_by_points(const Kernel& kernel) {
  std::vector<int> roots;
  for (const Step& step : kernel.steps) roots.push_back(step.value);
  return evaluated_for(kernel, roots, [](int) { return false; });
}

int widest_within(const Program& program, const Kernel& kernel) {
  std::vector<const Step*> steps;
  for (const Step& step : kernel.steps) steps.push_back(&step);
  const int64_t extent = kernel.rows == 1 ? 0 : last_row_axis(kernel).extent.constant();
  return widest_pack(program, kernel, evaluated_by_points(kernel), steps, kernel.rows - 1,
                     extent);
}

int widest_through(const Program& program, const Kernel& kernel) {
  if (kernel.rows == 1) return 1;
  const Expr flat = flat_index(kernel);
  int64_t smallest = kAccessBytes;
  const auto is_flat = [&](const Expr& index, int buffer) {
    if (program.buffers[buffer].align < kAccessBytes || !(index - flat).is_constant(0))
      return false;
    smallest = std::min(smallest, size_of(program.buffers[buffer].type.dtype));
    return true;
  };
  for (const Step& step : kernel.steps) {
    if (!is_flat(step.index, step.buffer)) return 1;
  }
  for (int id : evaluated_by_points(kernel)) {
    const Scalar& load = kernel.scalars[id];
    if (is_plain(load)) is_flat(load.index, load.buffer);
  }
  return static_cast<int>(std::min(kMostVector, kAccessBytes / smallest));
}

std::vector<int> choosing_rows(const Kernel& kernel) {
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  const uint64_t outer = (uint64_t{1} << (kernel.rows - 1)) - 1;
  std::set<int> chosen;
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& load = kernel.scalars[id];
    for (size_t k = 0; k < load.limits.size() && load.mask < 0; k++) {
      const int place = load.operands[k];
      const bool is_shared = (axes[id] & ~axes[place]) != 0;
      if (is_shared && (axes[place] & ~outer) == 0 &&
          kernel.scalars[place].kind != ScalarKind::Constant)
        chosen.insert(place);
    }
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace tiny_compile
