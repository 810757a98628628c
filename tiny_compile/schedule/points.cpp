// How many points does a thread take, and in how many slabs?
//
//   exp over 4096x1024 => rows grid · warp 8 · lane 32 · vector 4
//   gelu of them       => rows serial 2 · grid · warp 4 · lane 32 · vector 4, resident=16
//
// With much arithmetic a thread computes a pack in each of two slabs, so that one's loads overlap the others'
// arithmetic; in each of four where data chooses rows, elements are read one by one or heavy packs go on into
// the next row: the four places are asked for together, then the four packs.
#include "tiny_compile/schedule/points.h"

#include <algorithm>
#include <map>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/schedule/rates.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostCompared = 64;  // loads
constexpr int64_t kLongRow = 128;  // packs: so that few warps have one that ends behind a row
constexpr int64_t kWarps = 8;
constexpr int64_t kLeastWarps = 2;
// Several packs a thread, in small blocks, as many as fit. Where memory is the limit, it costs a few percent.
constexpr int64_t kSlabs = 4, kFewSlabs = 2;
constexpr int64_t kWarpsOfSlabs = 4, kBlockOfSlabs = kLanes * kWarpsOfSlabs;
constexpr int kCostly = 30;            // instructions, about
constexpr int64_t kMostUnderWay = 64;  // registers of what four packs read and write
constexpr int64_t kShortPack = 8;      // bytes that are half of an access
constexpr int64_t kLine = 128;         // bytes of memory that a warp is given at a time
constexpr int64_t kNear = 8;           // elements between neighbours' windows
constexpr double kOfPack = 16;         // lines that take as long as what is done once a pack

// Registers of what a thread reads one by one, under conditions. (Four of f16[5,8,197,197], one transposed, stacked,
// with a softplus: packs of 8, 4, 2, 1 take .037, .030, .030, .030 ms; H200.)
constexpr int64_t kMostOfChoices = 24;

// Few points, at most a warp for each multiprocessor: a thread each, in blocks that no warp leaves at
// once. Packs would save instructions that nobody waits for.
bool are_few(const Machine& machine, int64_t points) {
  return points <= kLanes * blocks_to_fill(machine);
}

// Points whose results are no more than an access each: a warp that stores every second 16 bytes, and
// then the others, has half of each sector at a time. (f32 of i8: .0435 ms, so .0393.)
int widest_store(const Kernel& kernel) {
  int64_t largest = 1;
  for (const Step& step : kernel.steps) largest = std::max(largest, size_of(step.dtype));
  return static_cast<int>(kAccessBytes / largest);
}

// Whether some load has neighbours along a row in one access.
bool reads_packs(const Program& program, const Kernel& kernel, int vector) {
  const std::vector<int> ids = evaluated_by_points(kernel);
  return std::any_of(ids.begin(), ids.end(), [&](int id) {
    const Scalar& load = kernel.scalars[id];
    return load.kind == ScalarKind::Load &&
           program.buffers[load.buffer].align >= kAccessBytes &&
           is_pack(load.index, last_row_axis(kernel).symbol(), vector);
  });
}

// What all rows read is in the caches.
bool goes_along_rows(const Kernel& kernel, const Scalar& load) {
  return std::all_of(kernel.axes.begin(), kernel.axes.begin() + kernel.rows,
                     [&](const Axis& row) { return depends_on(load.index, row.name); });
}

// Bytes of a pack of what is read.
int64_t bytes_of_pack(const Program& program, const Kernel& kernel, int64_t vector) {
  int64_t bytes = 0;
  for (const int id : evaluated_by_points(kernel)) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind == ScalarKind::Load && goes_along_rows(kernel, load))
      bytes += vector * size_of(program.buffers[load.buffer].type.dtype);
  }
  return bytes;
}

// Whether its arithmetic takes longer than memory does: on an H200 gelu, not silu(g) * u.
bool takes_long(const Program& program, const Kernel& kernel) {
  int64_t instructions = 0, bytes = bytes_of_pack(program, kernel, 1);
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Apply)
      instructions += scalar.op == Op::gelu ? 2 * kCostly : is_costly(scalar) ? kCostly : 1;
  }
  for (const Step& step : kernel.steps) bytes += size_of(step.dtype);
  const Rates rates = rates_of(program.machine);
  return static_cast<double>(instructions) * rates.bytes >
         static_cast<double>(bytes) * rates.instructions;
}

// Of a multiprocessor: all its threads, or half where packs take more than 5 of 8 registers that each of all could
// have. With all of them gelu's and silu's gradients took a quarter longer beside what they are the gradients of, and
// three taps of bf16[512,128,153] a third; with half of them gelu takes longer, by 3 % in even packs and by 13 % where
// rows begin anywhere (H200, bf16[..,197]: .0814 ms, .0739). Rows of 127 halves that data chooses, and their gradient,
// take .0805 with all of them, .0729 with half.
int small_blocks(const Machine& machine, int64_t words) {
  const int64_t blocks = machine.threads / kBlockOfSlabs,
                registers = machine.registers / machine.threads;
  return static_cast<int>(8 * words > 5 * registers ? blocks / 2 : blocks);
}

// Places of an array that a thread reads one by one, `stride` elements apart (0: not evenly): those of a pack, and of windows that
// go on behind it.
struct Window {
  const Scalar* first = nullptr;
  int64_t stride = 1, low = 0, high = 0;
};

// Whether it is read in accesses of `vector` elements.
bool is_in_packs(const Program& program, const Kernel& kernel, const Scalar& load, int vector) {
  return program.buffers[load.buffer].align >= kAccessBytes &&
         (is_pack(load.index, last_row_axis(kernel).symbol(), vector) ||
          (load.index - flat_index(kernel)).is_constant(0));
}

// Of loads that differ along a row, but not in such accesses.
std::vector<Window> windows_of(const Program& program, const Kernel& kernel, int vector) {
  const Expr along = last_row_axis(kernel).symbol();
  std::vector<Window> windows;
  for (const int id : evaluated_by_points(kernel)) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind != ScalarKind::Load || !depends_on(load.index, along.symbol()) ||
        is_in_packs(program, kernel, load, vector))
      continue;
    const auto is_near = [&](const Window& window) {
      const Expr apart = load.index - window.first->index;
      return window.first->buffer == load.buffer && window.stride == 1 && apart.is_constant() &&
             std::abs(apart.constant()) <= kNear;
    };
    const auto near = std::find_if(windows.begin(), windows.end(), is_near);
    if (near == windows.end()) {
      windows.push_back({&load, std::abs(coefficient(load.index, along))});
      continue;
    }
    const int64_t apart = (load.index - near->first->index).constant();
    near->low = std::min(near->low, apart);
    near->high = std::max(near->high, apart);
  }
  return windows;
}

// Registers of a pack's elements that are read one by one, and of the places that data gives each.
int64_t words_one_by_one(const Program& program, const Kernel& kernel, int vector) {
  int64_t words = 0;
  for (const Window& window : windows_of(program, kernel, vector)) {
    words += vector + window.high - window.low;
    if (!window.first->operands.empty()) words += vector;
  }
  return words;
}

// The same of arrays that are read under conditions: an element takes one of them, but all are asked for.
int64_t words_of_choices(const Program& program, const Kernel& kernel, int vector) {
  std::set<int> buffers;
  for (const int id : evaluated_by_points(kernel)) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind == ScalarKind::Load && load.mask >= 0 &&
        depends_on(load.index, last_row_axis(kernel).name) &&
        !is_in_packs(program, kernel, load, vector))
      buffers.insert(load.buffer);
  }
  return vector * static_cast<int64_t>(buffers.size());
}

// Registers of what is read in packs and of all that is written, which is held as floats.
int64_t words_in_packs(const Program& program, const Kernel& kernel, int vector) {
  int64_t words = 0;
  for (const int id : evaluated_by_points(kernel)) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind == ScalarKind::Load && depends_on(load.index, last_row_axis(kernel).name) &&
        is_in_packs(program, kernel, load, vector))
      words += ceil_divide(vector * size_of(load.dtype), 4);
  }
  return words + vector * static_cast<int64_t>(kernel.steps.size());
}

// A pack within a row, or of the points counted through where rows are part of a pack, or where nothing but
// results suits packs within rows: rows of 34 with margins, pairs at best.
int widest_of(const Program& program, const Kernel& kernel, int most) {
  const int within = std::min(most, widest_within(program, kernel));
  if (kernel.rows == 1) return within;
  const int64_t count = row_count(kernel).constant(),
                extent = last_row_axis(kernel).extent.constant();
  int whole = std::min(most, widest_through(program, kernel));
  const bool is_short = within == extent;  // it is part of a pack, of which all are full
  while (is_short && whole > within && count % whole != 0) whole /= 2;
  const bool ends_early = is_short && within < whole;
  const bool is_part = whole > within && !reads_packs(program, kernel, within);
  return within == 1 || ends_early || is_part ? whole : within;
}

int vector_of(const Program& program, const Kernel& kernel, int most) {
  int vector = widest_of(program, kernel, most);
  double cost = lines_of_packs(program, kernel, vector);
  while (vector > 1) {
    const double of_half = lines_of_packs(program, kernel, vector / 2);
    if (of_half >= cost) break;
    vector /= 2;
    cost = of_half;
  }
  while (vector > 2 && words_of_choices(program, kernel, vector) > kMostOfChoices) vector /= 2;
  return vector;
}

// Whether neighbouring points of a pack read the same, as those of sliding windows do.
bool shares_loads(const Kernel& kernel, int64_t vector) {
  std::vector<const Scalar*> known;
  for (const int id : evaluated_by_points(kernel)) {
    const Scalar& load = kernel.scalars[id];
    if (!is_plain(load) || !depends_on(load.index, last_row_axis(kernel).name)) continue;
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

// Of packs that go on into the next row, where few warps have one that does: what those within a row do is
// written apart, and reads once what neighbours share.
Schedule with_parts(const Program& program, Kernel kernel, Schedule schedule) {
  kernel.schedule = schedule;
  const PointPacks packs = point_packs_of(program, kernel, false);
  schedule.parted = packs.through && packs.vector > 1 &&
                    packs.extent.constant() >= kLongRow * packs.vector &&
                    shares_loads(kernel, packs.vector);
  return schedule;
}

// Whether a thread that has one pack has little under way: what is read has little more than half as many bytes as what
// is stored, or fewer, as bytes and their scales that become halves have; but an eighth at least, for less comes from a
// cache.
bool reads_little(const Program& program, const Kernel& kernel) {
  const auto bytes_of = [&](const std::set<int>& buffers) {
    int64_t bytes = 0;
    for (const int buffer : buffers) {
      const Buffer& b = program.buffers[buffer];
      if (b.size.is_constant()) bytes += b.size.constant() * size_of(b.type.dtype);
    }
    return bytes;
  };
  std::set<int> read, stored;
  for (const int id : evaluated_by_points(kernel)) {
    if (kernel.scalars[id].kind == ScalarKind::Load) read.insert(kernel.scalars[id].buffer);
  }
  for (const Step& step : kernel.steps) stored.insert(step.buffer);
  const int64_t reads = bytes_of(read), stores = bytes_of(stored);
  return stores > 0 && 8 * reads <= 5 * stores && stores <= 8 * reads;
}

// Packs of a thread, where every thread that the GPU holds has one in each of the slabs. What is read element by
// element is much asked for little, and so is what is heavy and goes on into the next row: four packs have enough
// under way. (H200, 55 draws of pictures, windows, pads and mirrored rows: .73 to 1.06 of the time, .96 in the
// geometric mean. Gelu of a bias added to bf16[..,4097] by one pack, two, four .104, .087, .072 ms.) Else it is one,
// and two of heavy arithmetic: of 32 Mi halves softplus takes .0515 by one, .0483 by two, .0482 by four, gelu .0377,
// .0363, .0381, gelu times another .0498, .0500, .0521. Two also where little is read: f32 of bytes times scales of
// u8[32768,24,64] .0761, .0662, bf16 of half bytes u8[32768,1000] .0511, .0485, pictures .2152, .2066 (20 draws of
// more than four packs for each thread: .87 to 1.01; of fewer up to 1.07). Where packs are shorter than an access, as
// many as make one: patches of four of bf16[2048,4,64,64] by one .0448, by two .0407, pairs of [4096,16,16,12] by two
// .0181, by four .0140 (of fourteen draws that nothing was fitted to .619 to .989). Packs of many registers are
// two: bf16[12544,15932] of four, one beside the other, by four .3668, by two .2560.
int64_t slabs_of(const Program& program, const Kernel& kernel) {
  const PointPacks packs = point_packs_of(program, kernel, false);
  const int64_t threads = threads_to_fill(program.machine),
                count = packs.count.constant() / packs.vector;
  const int vector = static_cast<int>(packs.vector);
  const int64_t one_by_one = words_one_by_one(program, kernel, vector),
                words = one_by_one + words_in_packs(program, kernel, vector);
  const bool is_heavy = takes_long(program, kernel),
             is_asked_much =
                 !packs.chosen.empty() || (is_heavy && packs.through) || one_by_one > 0;
  if (is_asked_much && count >= kSlabs * threads)
    return kSlabs * words > kMostUnderWay ? kFewSlabs : kSlabs;
  if (count >= kSlabs * threads && reads_little(program, kernel)) return kFewSlabs;
  const int64_t bytes = bytes_of_pack(program, kernel, packs.vector);
  if (count >= kSlabs * threads && bytes > 0 && bytes <= kShortPack)
    return kAccessBytes / bytes >= kSlabs ? kSlabs : kFewSlabs;
  return is_heavy && count >= kFewSlabs * threads ? kFewSlabs : 1;
}

}  // namespace

// What a point costs in packs of `vector`, in lines of memory that a warp reads. An element each, lanes read
// `vector` elements apart. (Laplacian of bf16[43,514,514], packs of 8, 4, 2, 1: .042, .028, .032, .046 ms;
// four taps of bf16[64,640,257]: .040, .041, .044, .048; H200.)
// Of several arrays that are read under conditions, as those of a concat are, a point reads one.
double lines_of_packs(const Program& program, const Kernel& kernel, int vector) {
  double always = kOfPack / vector;
  std::map<int, double> by_buffer;
  for (const Window& window : windows_of(program, kernel, vector)) {
    const Scalar& load = *window.first;
    const int64_t elements = window.stride * vector + window.high - window.low,
                  bytes = elements * size_of(program.buffers[load.buffer].type.dtype);
    const double lines = static_cast<double>(kLanes * std::min(bytes, kLine)) / kLine;
    (load.mask < 0 ? always : by_buffer[load.buffer]) += lines;
  }
  double most = 0;
  for (const auto& [buffer, lines] : by_buffer) most = std::max(most, lines);
  return always + most;
}

Schedule points_laid_out(const Program& program, Kernel kernel, bool any_count) {
  Schedule plain{.strategy = Strategy::Pointwise};
  if (row_count(kernel).is_constant(0)) return plain;
  const bool few = !any_count && are_few(program.machine, row_count(kernel).constant());
  const int vector = vector_of(program, kernel, few ? 1 : widest_store(kernel));
  plain.rows = layout_of_points(1, few ? kLeastWarps : kWarps, vector);
  if (any_count) return plain;
  plain = with_parts(program, kernel, plain);
  Schedule slabs = plain;
  slabs.rows = layout_of_points(kSlabs, kWarpsOfSlabs, vector);
  kernel.schedule = slabs;
  for (int64_t count = slabs_of(program, kernel); count > 1; count /= 2) {
    slabs.rows = layout_of_points(count, kWarpsOfSlabs, vector);
    slabs.resident = small_blocks(program.machine, words_one_by_one(program, kernel, vector) +
                                                       words_in_packs(program, kernel, vector));
    slabs = with_parts(program, kernel, slabs);
    kernel.schedule = slabs;
    if (why_illegal_points(program, kernel).empty()) return slabs;
  }
  return plain;
}

}  // namespace tiny_compile
