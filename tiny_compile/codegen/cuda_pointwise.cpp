// Which thread computes which point? Neighbouring threads take neighbouring packs of points:
//
//   rows(i0: 4096, i1: 1024) { store y[..] = add(load x[..], load b[i1]) }
// =>
//   first = (blockIdx.x*256 + threadIdx.x) * 4;  i0 = first / 1024;  e = first % 1024;
//   pack_0 = x[first..first+3], pack_1 = b[e..e+3];  four additions;  y[first..first+3] = ...
//
// Rows of 1023 end within a pack; then packs go on into the next row, and what is not as long as
// the points themselves (b) is read element by element.
//
// With much arithmetic a thread computes a pack in each of four slabs, whole rows apart: all four
// have the same columns, so that b is read once.
#include "tiny_compile/codegen/cuda_pointwise.h"

#include <algorithm>
#include <numeric>

namespace tiny_compile {
namespace {

constexpr int kBlock = 256;
// Few points: a thread each, in blocks that no warp leaves at once. Packs would save instructions
// that nobody waits for.
constexpr int64_t kFewPoints = 4096;
constexpr int kLeastBlock = 64;
// Arithmetic that takes longer than memory: four packs a thread, so that one's loads overlap the
// others' arithmetic, in small blocks, as many as fit. Where memory is the limit, it costs a few
// percent.
constexpr int64_t kTurns = 4;
constexpr int kSmallBlock = 128;
constexpr int kResident = 16;  // small blocks on a multiprocessor: all its threads
constexpr int64_t kManyPacks = int64_t{1} << 20;  // from here on every multiprocessor has work
constexpr int kCostly = 30;                       // instructions, about
constexpr int64_t kHeavy = 6;                     // instructions a byte: gelu, not silu(g) * u

// The points of a launch. A thread has a pack in each slab.
struct Slabs {
  int64_t count = 1, size = 0;  // points of a slab: whole rows, whole packs
  bool is_one() const { return count == 1; }
};

Slabs slabs_of(int64_t points, int64_t row, int64_t vector, bool heavy) {
  const int64_t unit = std::lcm(row, vector);
  if (!heavy || points / vector < kManyPacks || points / unit < kTurns * kTurns)
    return {1, ceil_divide(points, vector) * vector};
  return {kTurns, ceil_divide(points, kTurns * unit) * unit};
}

void write_elements(CudaText& text, const std::vector<int>& ids,
                    const std::vector<const Step*>& steps, std::vector<bool> defined) {
  text.define(ids, {row_axes_mask(text.kernel), true}, defined);
  for (const Step* step : steps) text.write_store(*step);
}

// Where a point stands if they are counted through: 1024*i0 + i1.
Expr flat_index(const Kernel& kernel) {
  Expr index = 0;
  for (int row = 0; row < kernel.rows; row++)
    index = index * kernel.axes[row].extent + kernel.axes[row].symbol();
  return index;
}

// Points in 16 bytes of what is read and written at the flat index; 1 if a store is not.
int flat_vector(const CudaText& text, const std::vector<int>& ids, const Expr& flat) {
  size_t smallest = 16;
  auto is_flat = [&](const Expr& index, int buffer) {
    const Buffer& b = text.program.buffers[buffer];
    if (b.align < 16 || !(index - flat).is_constant(0)) return false;
    smallest = std::min(smallest, size_of(b.type.dtype));
    return true;
  };
  for (const Step& step : text.kernel.steps) {
    if (step.other >= 0 || !is_flat(step.index, step.buffer)) return 1;
  }
  for (int id : ids) {
    const Scalar& load = text.kernel.scalars[id];
    if (load.kind == ScalarKind::Load && load.mask < 0 && load.operands.empty())
      is_flat(load.index, load.buffer);
  }
  return std::min(8, static_cast<int>(16 / smallest));
}

// What all rows read is in the caches, and its bytes do not count.
bool is_heavy(const CudaText& text) {
  int64_t instructions = 0, bytes = 0;
  for (const Scalar& scalar : text.kernel.scalars) {
    const int64_t size = static_cast<int64_t>(size_of(scalar.dtype));
    const auto steps_along = [&](const Axis& row) {
      return depends_on(scalar.index, row.name);
    };
    if (scalar.kind == ScalarKind::Load &&
        std::all_of(text.kernel.axes.begin(), text.kernel.axes.begin() + text.kernel.rows,
                    steps_along))
      bytes += size;
    if (scalar.kind == ScalarKind::Apply)
      instructions += scalar.op == Op::gelu ? 2 * kCostly : is_costly(scalar) ? kCostly : 1;
  }
  for (const Step& step : text.kernel.steps) bytes += static_cast<int64_t>(size_of(step.dtype));
  return instructions > kHeavy * bytes;
}

// The loop over the slabs, where there are several; the row of the thread's pack.
Expr open_slabs(CudaText& text, const Slabs& slabs, int64_t points, int64_t extent,
                bool places) {
  if (slabs.is_one()) return floor_div(Expr::symbol("first", 0, slabs.size - 1), extent);
  const Expr start = Expr::symbol("start", 0, slabs.size - 1);
  const Expr turn = Expr::symbol("turn", 0, slabs.count - 1);
  const bool whole = slabs.size * slabs.count == points;
  text.out.line("#pragma unroll");
  text.out.open(str("for (", text.integer, " turn = 0; turn < ", slabs.count, "; turn++)"));
  if (places || !whole) text.declare("first", (start + turn * slabs.size).str());
  // Only the last slab may be shorter; asked in the others, it would part their loads.
  if (!whole)
    text.out.line(str("if (turn == ", slabs.count - 1, " && first >= ", points, ") return;"));
  return floor_div(start, extent) + turn * floor_div(slabs.size, extent);
}

// Element v of a pack that began at `column` of `row`. Beyond the last point, that is computed
// again, and not stored.
void declare_point(CudaText& text, const Expr& row, int vector, bool ragged) {
  const int last = text.kernel.rows - 1;
  const Axis& axis = text.kernel.axes[last];
  const int64_t extent = axis.extent.constant();
  const std::string beyond = vector > 1 ? " + v" : "";
  text.declare("step",
               "column" + (ragged ? str(" + min((", text.integer, ")v, left - 1)") : beyond));
  const bool once = vector <= extent + 1;  // a pack goes on into the next row at most
  const std::string over = once ? str("(step >= ", extent, ")") : str("step/", extent);
  text.declare("above", str(row.str(), " + ", over));
  const int64_t rows = row_count(text.kernel).constant() / extent;
  text.unpack_rows(last, Expr::symbol("above", 0, rows - 1));
  text.declare(axis.name, once ? str("step < ", extent, " ? step : step - ", extent)
                               : str("step%", extent));
}

}  // namespace

KernelEntry write_cuda_pointwise(CudaText& text, const std::string& function) {
  const Kernel& kernel = text.kernel;
  const int last = kernel.rows - 1;
  const int64_t points = row_count(kernel).constant();
  const int64_t extent = kernel.axes[last].extent.constant();
  const bool line = kernel.rows == 1;
  const std::vector<const Step*> steps = all_steps(kernel);
  const std::vector<int> ids = text.needed(steps);
  // A single axis may end within a pack; of several, the last must be whole packs.
  const bool few = points <= kFewPoints;
  int vector = few ? 1 : text.widest(steps, last, line ? 0 : extent);
  const bool through = vector == 1 && !line;
  const Expr flat = flat_index(kernel);
  if (through && !few) vector = flat_vector(text, ids, flat);
  const Slabs slabs = slabs_of(points, line ? 1 : extent, vector, is_heavy(text));
  const int block = few ? kLeastBlock : slabs.is_one() ? kBlock : kSmallBlock;
  const int64_t packs = slabs.size / vector;
  KernelEntry entry =
      text.begin(function, ceil_divide(packs, block), block, 1, slabs.is_one() ? 0 : kResident);
  std::vector<bool> defined(kernel.scalars.size());
  const std::string wide = text.integer == "int" ? "" : "(long long)";
  const char* start = slabs.is_one() ? "first" : "start";
  const std::string thread = str("blockIdx.x * ", wide, block, " + threadIdx.x");
  text.declare(start, vector == 1 ? thread : str("(", thread, ") * ", vector));
  if (packs % block != 0) text.out.line(str("if (", start, " >= ", slabs.size, ") return;"));
  // Where the pack stands in its row: in every slab in the same place.
  if (!line)
    text.declare(through ? "column" : "e",
                 mod(Expr::symbol(start, 0, slabs.size - 1), extent).str());
  const Expr row = open_slabs(text, slabs, points, extent, through || line);
  if (through) {
    text.set_flat(flat, vector);
  } else {
    text.set_vector(last, vector);
    if (line) text.declare("e", "first");
    if (!line) text.unpack_rows(last, row);
    text.define(ids, {row_axes_mask(kernel) & ~(uint64_t{1} << last), false}, defined);
  }
  const bool ragged = points % vector != 0;
  if (ragged) {
    const std::string others =
        slabs.is_one() ? "" : str("turn < ", slabs.count - 1, " ? ", vector, " : ");
    text.declare("left", str(others, points, " - first"));
    text.left = "left";
  }
  text.load_packs(ids, defined);
  text.declare_store_packs(steps);
  if (vector > 1) {
    text.out.line("#pragma unroll");
    text.out.open(str("for (int v = 0; v < ", vector, "; v++)"));
    if (ragged && !through) text.out.open("if (v < left)");
  }
  if (through)
    declare_point(text, row, vector, ragged);
  else
    text.declare(kernel.axes[last].name, vector > 1 ? "e + v" : "e");
  write_elements(text, ids, steps, defined);
  if (vector > 1) {
    if (ragged && !through) text.out.close();
    text.out.close();
  }
  text.store_packs(steps);
  if (!slabs.is_one()) text.out.close();
  text.out.close();
  return entry;
}

}  // namespace tiny_compile
