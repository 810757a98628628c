// Which thread computes which point? Neighbouring threads take neighbouring packs of points:
//
//   rows(i0: 4096, i1: 1024) { store y[..] = add(load x[..], load b[i1]) }
// =>
//   first = (blockIdx.x*256 + threadIdx.x) * 4;  i0 = first / 1024;  e = first % 1024;
//   pack_0 = x[first..first+3], pack_1 = b[e..e+3];  four additions;  y[first..first+3] = ...
//
// Rows of 1023 end within a pack; then packs go on into the next row, and what is not as long
// as the points themselves (b) is read element by element. So they do where rows of 2 are part
// of one, and where nothing but results suits packs within rows: rows of 34 with margins, pairs
// at best.
//
// With much arithmetic a thread computes a pack in each of four slabs, whole rows apart: all four
// have the same columns, so that b is read once. So it is where data chooses rows: the four places
// are asked for together, then the four packs.
#include "tiny_compile/codegen/cuda_pointwise.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include "tiny_compile/codegen/branches.h"
#include "tiny_compile/codegen/cuda_guard.h"
#include "tiny_compile/codegen/cuda_slides.h"
#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

constexpr int kBlock = 256;
constexpr int kLeastBlock = 64;
// Arithmetic that takes longer than memory: four packs a thread, so that one's loads overlap the
// others' arithmetic, in small blocks, as many as fit. Where memory is the limit, it costs a few
// percent.
constexpr int64_t kTurns = 4;
constexpr int kSmallBlock = 128;
constexpr int kCostly = 30;           // instructions, about
constexpr int64_t kHeavy = 6;         // instructions a byte: gelu, not silu(g) * u
constexpr size_t kMostCompared = 64;  // loads
constexpr int64_t kLongRow = 128;  // packs: so that few warps have one that ends behind a row

// Few points, at most a warp for each multiprocessor: a thread each, in blocks that no warp leaves at
// once. Packs would save instructions that nobody waits for.
bool are_few(const Machine& machine, int64_t points) {
  return points <= 32 * blocks_to_fill(machine);
}

// Registers of the packs that a thread reads and writes; what is written is held as floats.
int64_t words_of_packs(const CudaText& text, const std::vector<int>& ids, int vector) {
  const Kernel& kernel = text.kernel;
  int64_t words = 0;
  for (const int id : ids) {
    const Scalar& load = kernel.scalars[id];
    const std::string& last = kernel.axes[kernel.rows - 1].name;
    if (load.kind == ScalarKind::Load && depends_on(load.index, last))
      words += ceil_divide(vector * size_of(load.dtype), 4);
  }
  return words + vector * static_cast<int64_t>(kernel.steps.size());
}

// Of a multiprocessor: all its threads, or half where packs take more than half of the registers that
// each of all could have. With all of them gelu's and silu's gradients took a quarter longer beside what
// they are the gradients of, with half of them gelu alone 3 % longer (H200).
int small_blocks(const Machine& machine, int64_t words) {
  const int64_t blocks = machine.threads / kSmallBlock,
                registers = machine.registers / machine.threads;
  return static_cast<int>(2 * words > registers ? blocks / 2 : blocks);
}

// Whether neighbouring points of a pack read the same, as those of sliding windows do.
bool shares_loads(const Kernel& kernel, const std::vector<int>& ids, int64_t vector) {
  std::vector<const Scalar*> known;
  for (const int id : ids) {
    const Scalar& load = kernel.scalars[id];
    if (!is_plain(load) || !depends_on(load.index, kernel.axes[kernel.rows - 1].name)) continue;
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

// Whether some load has neighbours along a row in one access.
bool reads_packs(const CudaText& text, const std::vector<int>& ids, int last, int vector) {
  return std::any_of(ids.begin(), ids.end(), [&](int id) {
    const Scalar& load = text.kernel.scalars[id];
    return load.kind == ScalarKind::Load && text.program.buffers[load.buffer].align >= 16 &&
           is_contiguous(load.index, text.kernel.axes[last].symbol(), vector);
  });
}

// Points whose results are no more than an access each: a warp that stores every second 16
// bytes, and then the others, has half of each sector at a time. (f32 of i8: .0435 ms, so
// .0393.)
int widest_store(const Kernel& kernel) {
  int64_t largest = 1;
  for (const Step& step : kernel.steps) largest = std::max(largest, size_of(step.dtype));
  return static_cast<int>(16 / largest);
}

// The points of a launch. A thread has a pack in each slab.
struct Slabs {
  int64_t count = 1, size = 0;  // points of a slab: whole rows, whole packs
  bool is_one() const { return count == 1; }
};

// Four, where every thread that the GPU holds has a pack in each.
Slabs slabs_of(const Machine& machine, int64_t points, int64_t row, int64_t vector,
               bool heavy) {
  const int64_t unit = std::lcm(row, vector), many = kTurns * threads_to_fill(machine);
  if (!heavy || points / vector < many || points / unit < kTurns * kTurns)
    return {1, ceil_divide(points, vector) * vector};
  return {kTurns, ceil_divide(points, kTurns * unit) * unit};
}

void write_elements(CudaText& text, const std::vector<int>& ids,
                    const std::vector<const Step*>& steps, std::vector<bool> defined) {
  text.define(ids, {row_mask(text.kernel), true}, defined);
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
  int64_t smallest = 16;
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
    if (is_plain(load)) is_flat(load.index, load.buffer);
  }
  return std::min(8, static_cast<int>(16 / smallest));
}

// What all rows read is in the caches, and its bytes do not count.
bool is_heavy(const CudaText& text) {
  int64_t instructions = 0, bytes = 0;
  for (const Scalar& scalar : text.kernel.scalars) {
    const int64_t size = size_of(scalar.dtype);
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
  for (const Step& step : text.kernel.steps) bytes += size_of(step.dtype);
  return instructions > kHeavy * bytes;
}

// The loop over the slabs, where there are several; the row of the thread's pack.
Expr open_slabs(CudaText& text, const Slabs& slabs, int64_t points, int64_t extent,
                bool places) {
  if (slabs.is_one())
    return floor_div(Expr::symbol(tile_symbol("first"), 0, slabs.size - 1), extent);
  const Expr start = Expr::symbol(tile_symbol("start"), 0, slabs.size - 1);
  const Expr turn = Expr::symbol(tile_symbol("turn"), 0, slabs.count - 1);
  const bool whole = slabs.size * slabs.count == points;
  text.out.line("#pragma unroll");
  // Where data chooses rows, what is wrong with them is told behind the loop.
  const char* leave = text.wrong.empty() ? "return" : "break";
  text.out.open(str("for (", text.integer, " turn = 0; turn < ", slabs.count, "; turn++)"));
  if (places || !whole) text.declare("first", start + turn * slabs.size);
  // Only the last slab may be shorter; asked in the others, it would part their loads.
  if (!whole)
    text.out.line(
        str("if (turn == ", slabs.count - 1, " && first >= ", points, ") ", leave, ";"));
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
  text.unpack_rows(last, Expr::symbol(tile_symbol("above"), 0, rows - 1));
  text.declare(axis.name, once ? str("step < ", extent, " ? step : step - ", extent)
                               : str("step%", extent));
}

// Which points a thread takes, and how it counts them.
struct Points {
  int64_t count, extent;  // of all, of a row
  bool line;              // there is one axis, which may end within a pack
  bool told;              // how many there are is a parameter, and `count` the most
  bool through;           // packs go on into the next row
  bool parted;            // what packs within a row do is written apart
  int vector, block;
  std::vector<int> chosen;  // what chooses the rows of packs, in several slabs
  Slabs slabs;
  bool ragged() const { return count % vector != 0 || (told && vector > 1); }
  bool ends_within() const { return ragged() && !through; }
  std::string end() const { return told ? "points" : str(slabs.size); }
  const char* start() const { return slabs.is_one() ? "first" : "start"; }
};

Points points_of(const CudaText& text, const std::vector<int>& ids, const Expr& flat) {
  const Kernel& kernel = text.kernel;
  const int last = kernel.rows - 1;
  Points p{};
  p.count = row_count(kernel).constant();
  p.extent = kernel.axes[last].extent.constant();
  p.line = kernel.rows == 1;
  p.told = text.is_counted();
  // A single axis may end within a pack; of several, the last must be whole packs.
  const bool few = are_few(text.program.machine, p.count);
  const int most = few ? 1 : widest_store(kernel);
  p.vector = std::min(most, text.widest(all_steps(kernel), last, p.line ? 0 : p.extent));
  int whole = p.line ? 1 : std::min(most, flat_vector(text, ids, flat));
  const bool short_row = p.vector == p.extent;  // it is part of a pack, of which all are full
  while (short_row && whole > p.vector && p.count % whole != 0) whole /= 2;
  const bool ends_early = short_row && p.vector < whole;
  const bool is_part = whole > p.vector && !reads_packs(text, ids, last, p.vector);
  p.through = !p.line && (p.vector == 1 || ends_early || is_part);
  if (p.through) p.vector = whole;
  p.parted =
      p.through && p.extent >= kLongRow * p.vector && shares_loads(kernel, ids, p.vector);
  if (!p.line && !p.through && !p.told) p.chosen = choosing_rows(text);
  p.slabs = slabs_of(text.program.machine, p.count, p.line ? 1 : p.extent, p.vector,
                     !p.chosen.empty() || (is_heavy(text) && !p.told));
  if (p.slabs.is_one()) p.chosen.clear();
  p.block = few ? kLeastBlock : p.slabs.is_one() ? kBlock : kSmallBlock;
  return p;
}

// Where the thread's pack starts, in its row and in every slab.
void declare_packs(CudaText& text, const Points& p) {
  const int64_t packs = p.slabs.size / p.vector;
  const std::string wide = text.integer == "int" ? "" : "(long long)",
                    thread = str("blockIdx.x * ", wide, p.block, " + threadIdx.x");
  text.declare(p.start(), p.vector == 1 ? thread : str("(", thread, ") * ", p.vector));
  if (packs % p.block != 0 || p.told)
    text.out.line(str("if (", p.start(), " >= ", p.end(), ") return;"));
  if (!p.line)
    text.declare(
        p.through ? "column" : "e",
        mod(Expr::symbol(tile_symbol(p.start()), 0, p.slabs.size - 1), p.extent).str());
}

// The loop over the thread's packs, where there are several; the row of one.
Expr open_packs(CudaText& text, const Points& p) {
  return open_slabs(text, p.slabs, p.count, p.extent, p.through || p.line);
}

// Reads what chooses the rows of all packs: each row's load would wait for it alone otherwise, and
// the next ones behind it. From here on it is kept.
//
//   for (int turn = 0; turn < 4; turn++) { i0 = ..; load_0 = in_index[i0]; chosen_0[turn] = load_0; }
void choose_ahead(CudaText& text, const Points& p) {
  const int last = text.kernel.rows - 1;
  text.wrong = "wrong";
  text.out.line("tc_wrong wrong = {0, -1};");
  std::vector<bool> wanted(text.kernel.scalars.size()), defined(wanted.size());
  std::vector<int> ids;
  for (int id : p.chosen) {
    text.out.line(str(value_type(text.kernel.scalars[id].dtype), " chosen_", id, "[",
                      p.slabs.count, "];"));
    const std::vector<bool> below = text.below(id);
    for (size_t k = 0; k < below.size(); k++) wanted[k] = wanted[k] || below[k];
  }
  for (size_t id = 0; id < wanted.size(); id++) {
    if (wanted[id]) ids.push_back(static_cast<int>(id));
  }
  const auto checks = std::exchange(text.behind_definition, [](int) {});
  const Expr row = open_packs(text, p);
  text.unpack_rows(last, row);
  text.define(ids, {row_mask(text.kernel), false}, defined);
  text.kept_place = [](int id) { return str("chosen_", id, "[turn]"); };
  for (int id : p.chosen) text.planned[id] = {};
  text.keep(p.chosen);
  text.mark_kept(p.chosen);
  text.out.close();
  text.behind_definition = checks;
}

// The elements left from the pack on.
void declare_left(CudaText& text, const Points& p) {
  const std::string others =
      p.slabs.is_one() ? "" : str("turn < ", p.slabs.count - 1, " ? ", p.vector, " : ");
  text.declare("left", str(others, p.told ? p.end() : str(p.count), " - first"));
  text.left = "left";
}

// The loop over a pack's elements, where there are several; the point of one.
void open_elements(CudaText& text, const Points& p, const Expr& row) {
  if (p.vector > 1) {
    text.out.line("#pragma unroll");
    text.out.open(str("for (int v = 0; v < ", p.vector, "; v++)"));
    if (p.ends_within()) text.out.open("if (v < left)");
  }
  if (p.through)
    declare_point(text, row, p.vector, p.ragged());
  else
    text.declare(text.kernel.axes[text.kernel.rows - 1].name, p.vector > 1 ? "e + v" : "e");
}

void close_elements(CudaText& text, const Points& p) {
  if (p.vector > 1 && p.ends_within()) text.out.close();
  if (p.vector > 1) text.out.close();
}

// Where branches (branches.h) would part the loads of a pack's elements, one after the other, all
// are asked for before the first branch, in a loop of their own: early_3[v] = ..
void load_ahead(CudaText& text, const Points& p, const Expr& row, const std::vector<int>& ids,
                std::vector<bool> defined) {
  const auto has_some = [](const std::vector<int>& branch) { return !branch.empty(); };
  if (p.vector == 1 || std::none_of(text.branches.begin(), text.branches.end(), has_some))
    return;
  std::vector<bool> wanted(defined.size());
  std::vector<int> loads, below;
  for (const int id : ids) {
    const Scalar& load = text.kernel.scalars[id];
    if (load.kind != ScalarKind::Load || defined[id] || text.is_kept(id) || text.in_pack(id))
      continue;
    loads.push_back(id);
    const std::vector<bool> own = text.below(id);
    for (size_t k = 0; k < own.size(); k++) wanted[k] = wanted[k] || own[k];
    text.out.line(str(value_type(load.dtype), " early_", id, "[", p.vector, "];"));
  }
  if (loads.empty()) return;
  for (const int id : ids) {
    if (wanted[id]) below.push_back(id);
  }
  open_elements(text, p, row);
  text.define(below, {row_mask(text.kernel), true}, defined);
  text.kept_place = [loads, before = text.kept_place](int id) {
    const bool is_early = std::count(loads.begin(), loads.end(), id) > 0;
    return is_early ? str("early_", id, "[v]") : before(id);
  };
  for (const int id : loads) text.planned[id] = {};
  text.keep(loads);
  text.mark_kept(loads);
  close_elements(text, p);
}

// What neighbouring points of a pack share is computed ahead of them. Returns what is left to do.
std::vector<int> with_slides(CudaText& text, const Points& p, const std::vector<int>& ids,
                             const std::vector<const Step*>& steps,
                             const std::vector<bool>& defined) {
  const auto has_some = [](const std::vector<int>& branch) { return !branch.empty(); };
  if (p.vector == 1 || p.through || p.line || p.ragged() ||
      std::any_of(text.branches.begin(), text.branches.end(), has_some))
    return ids;
  const int last = text.kernel.rows - 1;
  const std::vector<Slide> slides = slides_of(text, ids, last, p.vector);
  if (slides.empty()) return ids;
  write_slides(text, slides, last, p.vector, defined);
  return text.needed(steps);
}

// A pack within a row, whose elements then read at one place and some next to it.
void write_within_row(CudaText& text, const Points& p, const Expr& row,
                      const std::vector<int>& ids, const std::vector<const Step*>& steps,
                      std::vector<bool> defined) {
  const int last = text.kernel.rows - 1;
  text.unpack_rows(last, row);
  text.define(ids, {row_mask(text.kernel) & ~(uint64_t{1} << last), false}, defined);
  text.out.line("#pragma unroll");
  text.out.open(str("for (int v = 0; v < ", p.vector, "; v++)"));
  text.declare(text.kernel.axes[last].name, "column + v");
  write_elements(text, ids, steps, defined);
  text.out.close();
}

void write_points(CudaText& text, const Points& p, const Expr& row, const std::vector<int>& ids,
                  const std::vector<const Step*>& steps, const std::vector<bool>& defined) {
  if (p.parted) {
    const std::string whole = p.ragged() ? str(" && left >= ", p.vector) : "";
    text.out.open(str("if (column < ", p.extent - p.vector + 1, whole, ")"));
    write_within_row(text, p, row, ids, steps, defined);
    text.out.close();
    text.out.open("else");
  } else {
    load_ahead(text, p, row, ids, defined);
  }
  open_elements(text, p, row);
  write_elements(text, ids, steps, defined);
  close_elements(text, p);
  if (p.parted) text.out.close();
}

}  // namespace

KernelEntry write_cuda_pointwise(CudaText& text, const std::string& function) {
  const Kernel& kernel = text.kernel;
  const int last = kernel.rows - 1;
  const std::vector<const Step*> steps = all_steps(kernel);
  std::vector<int> ids = text.needed(steps);
  const Expr flat = flat_index(kernel);
  const Points p = points_of(text, ids, flat);
  KernelEntry entry =
      text.begin(function, ceil_divide(p.slabs.size / p.vector, p.block), p.block, 1,
                 p.slabs.is_one()
                     ? 0
                     : small_blocks(text.program.machine, words_of_packs(text, ids, p.vector)));
  std::vector<bool> defined(kernel.scalars.size());
  declare_packs(text, p);
  if (!p.chosen.empty()) {
    choose_ahead(text, p);
    ids = text.needed(steps);
  }
  ids = with_branches(text, ids);
  const Expr row = open_packs(text, p);
  if (p.through) {
    text.set_flat(flat, p.vector);
  } else {
    text.set_vector(last, p.vector);
    if (p.line) text.declare("e", "first");
    if (!p.line) text.unpack_rows(last, row);
    text.define(ids, {row_mask(kernel) & ~(uint64_t{1} << last), false}, defined);
  }
  if (p.ragged()) declare_left(text, p);
  ids = with_slides(text, p, ids, steps, defined);
  text.load_packs(ids, defined);
  text.declare_store_packs(steps);
  write_points(text, p, row, ids, steps, defined);
  text.store_packs(steps);
  if (!p.slabs.is_one()) text.out.close();
  if (!text.wrong.empty()) text.out.line("tc_tell(wrong);");
  text.out.close();
  return entry;
}

}  // namespace tiny_compile
