// How many points does a thread take, and where are they?
//
//   rows(i0: 4096, i1: 1024) { store y[..] = add(load x[..], load b[i1]) }
// =>
//   packs of 4, in blocks of 256 threads: a pack is 16 bytes of x and y
//
// Rows of 1023 end within a pack; then packs go on into the next row, and what is not as long as
// the points themselves (b) is read element by element. So they do where rows of 2 are part of one,
// and where nothing but results suits packs within rows: rows of 34 with margins, pairs at best.
//
// With much arithmetic a thread computes a pack in each of four slabs, whole rows apart: all four
// have the same columns, so that b is read once. So it is where data chooses rows: the four places
// are asked for together, then the four packs.
#include "tiny_compile/schedule/point_packs.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/schedule/sides.h"

namespace tiny_compile {
namespace {

constexpr int kBlock = 256;
constexpr int kLeastBlock = 64;
// Arithmetic that takes longer than memory: four packs a thread, so that one's loads overlap the
// others' arithmetic, in small blocks, as many as fit. Where memory is the limit, it costs a few
// percent.
constexpr int64_t kSlabs = 4;
constexpr int kSmallBlock = 128;
constexpr int kCostly = 30;           // instructions, about
constexpr int64_t kHeavy = 6;         // instructions a byte: gelu, not silu(g) * u
constexpr size_t kMostCompared = 64;  // loads
constexpr int64_t kLongRow = 128;  // packs: so that few warps have one that ends behind a row

// What its points evaluate, and along which axes it changes.
struct Points {
  const Program& program;
  const Kernel& kernel;
  std::vector<int> ids;
  std::vector<uint64_t> axes;

  const Axis& last() const { return kernel.axes[static_cast<size_t>(kernel.rows) - 1]; }
  bool is_aligned(int buffer) const { return program.buffers[buffer].align >= kAccessBytes; }
};

Points points_of(const Program& program, const Kernel& kernel) {
  std::vector<int> roots;
  for (const Step& step : kernel.steps) roots.push_back(step.value);
  return {program, kernel, evaluated_for(kernel, roots, [](int) { return false; }),
          axes_of_scalars(kernel)};
}

// Few points, at most a warp for each multiprocessor: a thread each, in blocks that no warp leaves at
// once. Packs would save instructions that nobody waits for.
bool are_few(const Machine& machine, int64_t points) {
  return points <= 32 * blocks_to_fill(machine);
}

// Points whose results are no more than an access each: a warp that stores every second 16 bytes, and
// then the others, has half of each sector at a time. (f32 of i8: .0435 ms, so .0393.)
int widest_store(const Kernel& kernel) {
  int64_t largest = 1;
  for (const Step& step : kernel.steps) largest = std::max(largest, size_of(step.dtype));
  return static_cast<int>(16 / largest);
}

// Points in 16 bytes of what is read and written at the flat index; 1 if a store is not.
int flat_vector(const Points& p) {
  const Expr flat = flat_index(p.kernel);
  int64_t smallest = 16;
  const auto is_flat = [&](const Expr& index, int buffer) {
    if (!p.is_aligned(buffer) || !(index - flat).is_constant(0)) return false;
    smallest = std::min(smallest, size_of(p.program.buffers[buffer].type.dtype));
    return true;
  };
  for (const Step& step : p.kernel.steps) {
    if (!is_flat(step.index, step.buffer)) return 1;
  }
  for (int id : p.ids) {
    const Scalar& load = p.kernel.scalars[id];
    if (is_plain(load)) is_flat(load.index, load.buffer);
  }
  return std::min(8, static_cast<int>(16 / smallest));
}

// Whether some load has neighbours along a row in one access.
bool reads_packs(const Points& p, int vector) {
  return std::any_of(p.ids.begin(), p.ids.end(), [&](int id) {
    const Scalar& load = p.kernel.scalars[id];
    return load.kind == ScalarKind::Load && p.is_aligned(load.buffer) &&
           is_contiguous(load.index, p.last().symbol(), vector);
  });
}

// Whether neighbouring points of a pack read the same, as those of sliding windows do.
bool shares_loads(const Points& p, int64_t vector) {
  std::vector<const Scalar*> known;
  for (const int id : p.ids) {
    const Scalar& load = p.kernel.scalars[id];
    if (!is_plain(load) || !depends_on(load.index, p.last().name)) continue;
    const auto is_near = [&](const Scalar* other) {
      const Expr apart = other->index - load.index;
      return other->buffer == load.buffer && apart.is_constant() &&
             std::abs(apart.constant()) < vector;
    };
    if (std::any_of(known.begin(), known.end(), is_near)) return true;
    if (known.size() < kMostCompared) known.push_back(&load);
  }
  return false;
}

// What all rows read is in the caches, and its bytes do not count.
bool is_heavy(const Kernel& kernel) {
  int64_t instructions = 0, bytes = 0;
  for (const Scalar& scalar : kernel.scalars) {
    const auto steps_along = [&](const Axis& row) {
      return depends_on(scalar.index, row.name);
    };
    if (scalar.kind == ScalarKind::Load &&
        std::all_of(kernel.axes.begin(), kernel.axes.begin() + kernel.rows, steps_along))
      bytes += size_of(scalar.dtype);
    if (scalar.kind == ScalarKind::Apply)
      instructions += scalar.op == Op::gelu ? 2 * kCostly : is_costly(scalar) ? kCostly : 1;
  }
  for (const Step& step : kernel.steps) bytes += size_of(step.dtype);
  return instructions > kHeavy * bytes;
}

// Registers of the packs that a thread reads and writes; what is written is held as floats.
int64_t words_of_packs(const Points& p, int vector) {
  int64_t words = 0;
  for (const int id : p.ids) {
    const Scalar& load = p.kernel.scalars[id];
    if (load.kind == ScalarKind::Load && depends_on(load.index, p.last().name))
      words += ceil_divide(vector * size_of(load.dtype), 4);
  }
  return words + vector * static_cast<int64_t>(p.kernel.steps.size());
}

// Of a multiprocessor: all its threads, or half where packs take more than half of the registers that
// each of all could have. With all of them gelu's and silu's gradients took a quarter longer beside what
// they are the gradients of, with half of them gelu alone 3 % longer (H200).
int small_blocks(const Machine& machine, int64_t words) {
  const int64_t blocks = machine.threads / kSmallBlock,
                registers = machine.registers / machine.threads;
  return static_cast<int>(2 * words > registers ? blocks / 2 : blocks);
}

// Of a row; if rows are to be whole packs, of whole rows.
int widest(const Points& p, int64_t extent) {
  std::vector<const Step*> steps;
  for (const Step& step : p.kernel.steps) steps.push_back(&step);
  return widest_pack(p.program, p.kernel, p.ids, steps, p.kernel.rows - 1, extent);
}

// A pack within a row, or of the points counted through.
void choose_vector(const Points& p, PointPacks& packs, int most) {
  if (packs.line) {
    packs.vector = std::min(most, widest(p, 0));
    return;
  }
  const int64_t count = packs.count.constant(), extent = packs.extent.constant();
  packs.vector = std::min(most, widest(p, extent));
  int whole = std::min(most, flat_vector(p));
  const bool short_row = packs.vector == extent;  // it is part of a pack, of which all are full
  while (short_row && whole > packs.vector && count % whole != 0) whole /= 2;
  const bool ends_early = short_row && packs.vector < whole;
  const bool is_part = whole > packs.vector && !reads_packs(p, packs.vector);
  packs.through = packs.vector == 1 || ends_early || is_part;
  if (packs.through) packs.vector = whole;
  packs.parted =
      packs.through && extent >= kLongRow * packs.vector && shares_loads(p, packs.vector);
}

// Four slabs, where every thread that the GPU holds has a pack in each.
void choose_slabs(const Points& p, PointPacks& packs) {
  const int64_t count = packs.count.constant(), vector = packs.vector,
                row = packs.line ? 1 : packs.extent.constant(), unit = std::lcm(row, vector);
  if (!packs.line && !packs.through) packs.chosen = choosing_rows(p.kernel);
  const bool wants_some = !packs.chosen.empty() || is_heavy(p.kernel);
  if (!wants_some || count / vector < kSlabs * threads_to_fill(p.program.machine) ||
      count / unit < kSlabs * kSlabs) {
    packs.chosen.clear();
    return;
  }
  packs.slabs = kSlabs;
  packs.slab = ceil_divide(count, kSlabs * unit) * unit;
  packs.block = kSmallBlock;
  packs.resident = small_blocks(p.program.machine, words_of_packs(p, packs.vector));
}

}  // namespace

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
    if (!is_contiguous(index, along, 1) || program.buffers[buffer].align < kAccessBytes) return;
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
    const auto fits = [&](const Expr* index) { return is_contiguous(*index, along, vector); };
    if (extent % vector == 0 && std::all_of(indices.begin(), indices.end(), fits))
      return vector;
  }
  return 1;
}

std::vector<int> choosing_rows(const Kernel& kernel) {
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  const uint64_t rows = (uint64_t{1} << kernel.rows) - 1;
  std::set<int> chosen;
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& load = kernel.scalars[id];
    for (size_t k = 0; k < load.limits.size() && load.mask < 0; k++) {
      const int place = load.operands[k];
      const bool is_shared = (axes[id] & ~axes[place]) != 0;
      if (is_shared && (axes[place] & ~rows) == 0 &&
          kernel.scalars[place].kind != ScalarKind::Constant)
        chosen.insert(place);
    }
  }
  return {chosen.begin(), chosen.end()};
}

PointPacks point_packs_of(const Program& program, const Kernel& kernel, bool any_count) {
  const Points p = points_of(program, kernel);
  PointPacks packs;
  packs.count = row_count(kernel);
  packs.extent = p.last().extent;
  packs.line = kernel.rows == 1;
  const bool few = !any_count && are_few(program.machine, packs.count.constant());
  choose_vector(p, packs, few ? 1 : widest_store(kernel));
  packs.slab = packs.count;
  if (few) packs.block = kLeastBlock;
  if (!any_count) choose_slabs(p, packs);
  packs.ragged = packs.vector > 1 && (any_count || packs.count.constant() % packs.vector != 0);
  return packs;
}

}  // namespace tiny_compile
