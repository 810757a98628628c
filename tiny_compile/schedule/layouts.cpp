// Which of the legal layouts is a good one? Each gives the same bits, so this is advice alone.
//
//   softmax over the first of [1000,4096]      rows grid · warp 2 from 4 · lane 8
//                                              loop register 64 · warp 4 · lane 4 from 8
//   sum over the first of [1024,4096]          rows grid · lane 16 · vector 2
//                                              loop register 8 · serial 8 · warp 8 · lane 2 from 16
//   the largest of each 3 by 3 window          rows grid · warp 8 · lane 32    loop register 16
//   softmax over the last of [4096,12,12]      rows grid · warp 4 · lane 32    loop register 4 · vector 4
//   rms_norm over the last of [4096,80]        rows grid · warp 4 · lane 8 from 4
//                                              loop register 8 · lane 4 · vector 4
//
// Lanes go along the rows or along the loops, whichever has its neighbours side by side (accesses.h).
// What is read again is held in registers, as many as a thread may have and still leave others
// room: so a reduction is within threads first, and few threads wait for each other. Pieces of
// memory that a warp reads are short then: 32 bytes, a sector, are enough where much is under way. All
// figures are measured (tests/bench/NOTES.md, "Layouts by measurement").
#include "tiny_compile/schedule/layouts.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/passes_of.h"
#include "tiny_compile/schedule/accesses.h"
#include "tiny_compile/schedule/deal.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLanes = 32;
constexpr int64_t kAccess = 16;       // bytes
constexpr int64_t kWord = 4;          // bytes that a lane reads of a column that is held
constexpr int64_t kSector = 32;       // bytes side by side that a warp reads of long ones
constexpr int64_t kHeld = 32;         // elements of a thread, of a row that is held
constexpr int64_t kHeldOdd = 8;       // at least, where accesses are of one element; 4 of few
constexpr int64_t kOddLanes = 16;     // that a row's elements go to then
constexpr int64_t kHeldColumns = 16;  // side by side
constexpr int64_t kSideBySide = 16;   // elements of a row that lanes read at a time, at least
constexpr int64_t kHeldWarps = 8;     // of a column
constexpr int64_t kMostHeld = 128;    // words of a thread
constexpr int64_t kMostInTurn = 96;   // elements of one, where fewer take more warps
constexpr int64_t kBusyWarps = 8;     // that a multiprocessor has at least
constexpr int64_t kBlockHeldWarps = 16;  // of a block that holds columns
constexpr int64_t kShortColumn = 128;    // to be read by whole warps, halves one by one
constexpr int64_t kAddresses = 24;       // registers of a thread beside its elements
constexpr int64_t kMostCutToFull =
    172;                              // registers that are best cut to all that 16 warps have
constexpr int64_t kSharedChunks = 4;  // of a column that blocks share, at least
constexpr int64_t kSharedWarps = 4;   // of a block of a cluster, at least
constexpr int64_t kUnderWay = 64;  // bytes of a thread at a time, of a column that is read once
constexpr int64_t kSeveralUnderWay = 16;  // elements, where several sums are of several arrays
constexpr int64_t kOnceLanes = 16;        // of its rows
constexpr int64_t kOnceWarps = 8;         // that share it
constexpr int64_t kMostWarps = 32;        // of a column, where there are few columns
constexpr int64_t kFewLanes = 8;          // of neighbours then
constexpr int64_t kBlockWarps = 8;        // where lanes are rows
constexpr int64_t kRowWarps = 4;          // of a block where lanes are elements
constexpr int64_t kFewRowWarps = 2;       // where each has 64 elements a lane
constexpr int64_t kMostOfRow = 12;        // warps of a block of a cluster that hold a row
constexpr int64_t kWaiting = 5;           // blocks of a cluster
constexpr int64_t kOtherRegisters = 32;   // of a thread of theirs, beside what it holds
constexpr int64_t kForExponentials = 56;  // that a thread of theirs needs
constexpr int64_t kWaitingDivided = 4;    // that divide by one number: it takes registers
constexpr double kNear =
    8;  // lines of an access; short rows further apart are staged by others
constexpr int64_t kFewChunks = 3;    // of a row: of them the last, which is short, is much
constexpr int64_t kHeldChunks = 32;  // of a block's rows, each of 32 registers a thread
constexpr int64_t kShort = 8;        // elements of a window that others read in wider pieces

// From here on all multiprocessors are busy; with rows that are held, from twice as many.
int64_t many_threads(const Machine& machine) { return threads_to_fill(machine) / 2; }

// What decides.
struct Shape {
  int64_t rows = 1, longest = 1;  // of its loops
  int64_t streams = 1;            // values of an element that are held at a time,
  int64_t words = 1;              // and the words that they take
  int reductions = 0;
  int64_t loads = 0;          // of an element, whose places rows and loops name
  bool exponentials = false;  // it adds up some
  bool divides = false;
  bool held = false;    // elements are wanted again by a later pass,
  bool again = false;   // or when all of a chunk have been read
  bool writes = false;  // an element of each
  bool exact = true;    // its reductions are the same in any order,
  bool places = false;  // and some are of places
};

Shape shape_of(const Kernel& kernel) {
  Shape shape;
  shape.rows = row_count(kernel).constant();
  for (const Step& step : kernel.steps) {
    shape.longest = std::max(shape.longest, elements_of(kernel, step.inner));
    shape.reductions += step.kind == StepKind::Reduce && !step.inner.empty();
    if (step.kind == StepKind::Reduce && !step.inner.empty()) {
      const DType operand = kernel.scalars[step.value].dtype;
      shape.exact = shape.exact && is_exact(step.op, accumulator(step.op, operand));
      shape.places = shape.places || is_arg(step);
    }
    shape.exponentials = shape.exponentials || step.op == Op::sum_exp;
    shape.writes = shape.writes || (!makes_register(step) && !step.inner.empty());
  }
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  const uint64_t of_rows = (uint64_t{1} << kernel.rows) - 1;
  for (size_t id = 0; id < axes.size(); id++)
    shape.loads += kernel.scalars[id].kind == ScalarKind::Load && (axes[id] & of_rows) != 0 &&
                   (axes[id] & ~of_rows) != 0;
  const Held held = most_held(kernel);
  shape.streams = std::max<int64_t>(1, held.values);
  shape.words = std::max<int64_t>(1, ceil_divide(held.bytes, kWord));
  shape.held = held.values > 0;
  shape.again = shape.held || shape.exponentials;
  shape.divides = std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                              [](const Scalar& s) { return s.op == Op::div; });
  return shape;
}

// What lies along an axis: elements that one access can have of all of it, and the bytes of the
// largest that the loops read or write. Arrays that begin anywhere are gone over one by one; where more
// do not, all others in words of two, so that the former's elements are still near each other.
struct Along {
  int64_t vector = 1, bytes = 1;
  bool is_all = true;  // every array is gone over so
};

Along along(const Program& program, const Kernel& kernel, const Axis& axis) {
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  int64_t width = 8, of_loops = 0, even = 0, odd = 0;
  const auto differs = [&](const Expr& index) {  // from row to row
    return std::any_of(kernel.axes.begin(), kernel.axes.begin() + kernel.rows,
                       [&](const Axis& a) { return depends_on(index, a.name); });
  };
  const auto see = [&](const Expr& index, int b, bool in_loops) {
    const Buffer& buffer = program.buffers[b];
    if (!is_contiguous(index, axis.symbol(), 1)) return;
    const int64_t size = size_of(buffer.type.dtype);
    if (in_loops) of_loops = std::max(of_loops, size);
    if (kernel.rows == 0 || differs(index)) (buffer.align < kAccess ? odd : even)++;
    if (buffer.align < kAccess) return;
    width = std::min(width, kAccess / size);
    while (width > 1 && !is_contiguous(index, axis.symbol(), static_cast<int>(width)))
      width /= 2;
  };
  for (size_t id = 0; id < axes.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (scalar.kind == ScalarKind::Load)
      see(scalar.index, scalar.buffer, axes[id] >> kernel.rows != 0);
  }
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) see(step.index, step.buffer, !step.inner.empty());
  }
  if (odd >= even) width = 1;
  if (odd > 0) width = std::min(width, 2 * kWord / std::max<int64_t>(1, of_loops));
  while (width > 1 && axis.extent.constant() % width != 0) width /= 2;
  return of_loops == 0 ? Along{1, kWord} : Along{width, of_loops, odd == 0};
}

// Warps that a block has at least, where there is work for them.
Deal in_blocks_of(int64_t warps, Deal d) {
  d.row_warps = std::max<int64_t>(1, warps / d.warps);
  return d;
}

// Blocks of a cluster share columns that one cannot hold, or of which there are too few to keep all
// multiprocessors busy; each has whole chunks, of which it gives the others one result.
Deal in_clusters(const Machine& machine, const Shape& shape, Deal d) {
  const auto blocks = [&] {
    return ceil_divide(shape.rows, d.row_lanes * d.row_vector) * d.cluster;
  };
  const auto wants_more = [&] {
    return d.warps > kBlockHeldWarps ||
           (d.warps > kSharedWarps && blocks() * 4 < machine.multiprocessors * 3);
  };
  const int64_t chunks = power_of_two_from(shape.longest) / kChunk,
                most = chunks < kSharedChunks ? 1 : std::min(machine.cluster, chunks);
  while (2 * d.cluster <= most && wants_more()) {
    d.cluster *= 2;
    d.warps /= 2;
  }
  return d;
}

// Registers of a thread that would have `elements` of a padded column: more, where many lie beyond the
// end and hold nothing, and fewer, where an element is held in several words.
int64_t registers_for(const Shape& shape, int64_t row_vector, int64_t elements) {
  const int64_t padded = power_of_two_from(shape.longest);
  int64_t registers = std::max<int64_t>(1, elements / row_vector);
  const auto held = [&](int64_t n) { return n * row_vector * shape.longest / padded; };
  while (held(2 * registers) <= elements) registers *= 2;
  while (registers > 1 && held(registers) * shape.words > kMostHeld) registers /= 2;
  return registers;
}

// Of a thread: its elements, as often as they are held, and once more to be added up.
int64_t registers_of(const Shape& shape, const Deal& d) {
  const int64_t held =
      d.registers * d.row_vector * shape.longest / power_of_two_from(shape.longest);
  return kAddresses + held * (shape.streams + 1);
}

// All of a column in registers: by up to eight warps, else with more in each thread, but where there
// are so few columns that all threads are wanted. Where threads have most, blocks are of 16 warps, which
// ends a thread's registers at 128: a block of eight took twice as many, and was alone. Halves are
// read in pairs, but one by one by the whole warps of short columns, and of long ones, which had too
// many threads to hold a part each: of these a block has neighbours that make up a sector.
Deal hold_columns(const Machine& machine, const Shape& shape, const Along& rows) {
  const int64_t padded = power_of_two_from(shape.longest),
                word = std::min(rows.vector, std::max<int64_t>(1, kWord / rows.bytes));
  const bool is_short = word > 1 && padded > kHeld / word && padded <= kShortColumn,
             is_long = padded > kChunk;
  Deal d;
  d.row_vector = is_short || is_long ? 1 : word;
  const auto hold = [&](int64_t elements, int64_t lanes) {
    Deal held = d;
    held.registers = registers_for(shape, d.row_vector, elements);
    held.row_lanes = padded > held.registers ? lanes : kLanes;
    held.warps = std::max<int64_t>(1, padded / (held.registers * held.lanes()));
    return held;
  };
  const auto fills = [&](const Deal& held) {
    return shape.rows / (held.row_lanes * held.row_vector) * held.warps >=
           kBusyWarps * machine.multiprocessors;
  };
  const int64_t lanes = kSector / (word * rows.bytes);
  const Deal some = hold(kHeld, is_short ? kLanes : kHeldColumns / word),
             more = hold(2 * kHeld, lanes), most = hold(4 * kHeld, lanes);
  const int64_t taken = registers_of(shape, more);
  if (some.warps <= kHeldWarps ||
      (some.warps <= kBlockHeldWarps && (!fills(more) || taken > kMostCutToFull)))
    return in_blocks_of(kBlockWarps, in_clusters(machine, shape, some));
  if (more.warps > kHeldWarps && most.warps <= kHeldWarps && fills(most) &&
      4 * kHeld * shape.longest / padded <= kMostInTurn)
    return in_blocks_of(2 * kHeldWarps, most);
  const Deal shared = in_clusters(machine, shape, more);
  // Of a thread, of 16 warps: all that there are.
  const int64_t full = machine.registers / (kBlockHeldWarps * kLanes);
  const bool is_full =
      word > 1 && fills(more) && shared.cluster == 1 && taken <= kMostCutToFull &&
      (is_long || shape.longest < padded || (shape.streams > 1 && taken > full));
  return in_blocks_of(is_full ? 2 * kBlockWarps : kBlockWarps, shared);
}

// A part of it at a time.
Deal read_columns(const Machine& machine, const Shape& shape, const Along& rows) {
  const int64_t padded = power_of_two_from(shape.longest);
  Deal d;
  d.row_lanes = kLanes;
  d.row_vector = std::min<int64_t>(rows.vector, 2);
  const int64_t word = std::min(d.row_vector, std::max<int64_t>(1, kWord / rows.bytes));
  while (d.row_vector > word &&
         shape.rows / d.row_vector * std::min(kOnceWarps, padded) < many_threads(machine))
    d.row_vector /= 2;
  d.registers = std::max<int64_t>(1, kUnderWay / (d.row_vector * rows.bytes));
  if (shape.loads > 1 && shape.reductions > 1)
    d.registers = std::min(d.registers, kSeveralUnderWay);
  if (padded > d.registers && rows.vector > 1) d.row_lanes = kOnceLanes;
  const auto threads = [&] { return d.lanes() * d.warps; };  // of a column
  while (d.warps < kOnceWarps && d.registers * threads() < padded) d.warps *= 2;
  while (d.warps < kMostWarps && d.registers * threads() < padded &&
         shape.rows / d.row_vector * threads() < many_threads(machine)) {
    if (d.warps > kOnceWarps && d.row_lanes > kFewLanes && rows.vector > 1)
      d.row_lanes /= 2;
    else
      d.warps *= 2;
  }
  return in_blocks_of(kBlockWarps, d);
}

// Few long ones that are read once and lie oddly: a block has a chunk of 32 columns at a time, the
// cluster all, or so many as it has blocks. (2839 of bf16[.., 1537], two arrays: 31 us; by threads
// whose columns lie apart 235.)
Deal read_odd_columns(const Machine& machine, const Shape& shape) {
  Deal d;
  d.row_lanes = kLanes;
  d.warps = kMostWarps;
  d.registers = kChunk / d.warps;
  d.cluster = std::min(machine.cluster, power_of_two_from(shape.longest) / kChunk);
  return d;
}

// Of all rows.
int64_t threads_of(const Shape& shape, const Deal& d) {
  return shape.rows * d.lanes() * d.warps * d.cluster;
}

// Rows in registers, by as few lanes as can and keep the machine busy. But where each element is
// written by itself, a warp shall not write to 32 lines at a time; nor shall it come back to the lines
// of as many long rows for each access, when others have driven them out of L1. (Standardise over
// 32 of f32: 239 us, by four lanes a row 125.)
Deal hold_rows(const Machine& machine, const Shape& shape, const Along& loops) {
  const int64_t padded = std::max(loops.vector, power_of_two_from(shape.longest)),
                some = (shape.words > 1 ? 2 : 1) * kHeld / power_of_two_from(shape.words);
  const int64_t least_odd = padded <= kLanes ? kHeldOdd / 2 : kHeldOdd;
  const bool is_apart = loops.vector > 1 && shape.longest * loops.bytes >= 2 * kSector;
  const int64_t least = is_apart ? std::min(padded, kSideBySide) / loops.vector : 1;
  const auto of_each = [&](int64_t held) {
    const int64_t lanes = std::clamp<int64_t>(padded / held, least, kLanes);
    Deal d;
    d.loops_first = true;
    d.vector = loops.vector;
    d.row_lanes = kLanes / lanes;
    d.warps = std::max<int64_t>(1, padded / (held * lanes));
    d.registers = padded / (d.vector * lanes * d.warps);
    return in_blocks_of(kRowWarps, d);
  };
  int64_t held = loops.vector == 1 && shape.writes
                     ? std::clamp(padded / kOddLanes, least_odd, std::max(kHeldOdd, some))
                     : std::max(loops.vector, some);
  Deal d = of_each(held);
  while (held > loops.vector && of_each(held / 2).warps == 1 &&
         threads_of(shape, d) < threads_to_fill(machine))
    d = of_each(held /= 2);
  return d;
}

// Of what is the same in any order all warps have as much, chunks or not; and fewer warps twice as much
// where places go along, each of which takes more instructions to compare than to read. (Maximum and its place
// over 1280 of f32: 16.8 us for 25.5.)
Deal read_evenly(const Machine& machine, const Shape& shape, Deal d) {
  d.evenly = true;
  Deal fewer = d;
  fewer.warps = std::max<int64_t>(1, d.warps / 2);
  fewer.registers = d.registers * d.warps / fewer.warps;
  const bool fills = threads_of(shape, fewer) >= many_threads(machine),
             is_whole = shape.longest == power_of_two_from(shape.longest);
  return shape.places && fills && !is_whole ? fewer : d;
}

// Long ones that are read once: a warp has chunks; of few rows, blocks of a cluster have parts.
Deal read_rows(const Machine& machine, const Shape& shape, const Along& loops) {
  Deal d;
  d.loops_first = true;
  d.vector = loops.vector;
  d.registers = kChunk / (kLanes * d.vector);
  const int64_t chunks = power_of_two_from(ceil_divide(shape.longest, kChunk));
  d.warps = std::min(kBlockWarps, chunks);
  if (shape.exact && d.warps == chunks)
    return in_blocks_of(kBlockWarps, read_evenly(machine, shape, d));
  const int64_t most = std::min(machine.cluster, chunks / d.warps);
  while (2 * d.cluster <= most && threads_of(shape, d) < many_threads(machine)) d.cluster *= 2;
  return in_blocks_of(kBlockWarps, d);
}

// Blocks of a cluster that a multiprocessor has: some wait while others compute. Where threads hold
// several values of an element, as many as have registers for them: what is spilled costs more than
// a block that waits is worth.
int64_t waiting_blocks(const Machine& machine, const Shape& shape, const Deal& d) {
  const int64_t threads = kLanes * d.warps,
                most = std::min(shape.divides ? kWaitingDivided : kWaiting,
                                machine.threads / threads);
  if (shape.streams < 2 && !shape.exponentials) return most;
  const int64_t each =
      shape.streams < 2 ? kForExponentials : kOtherRegisters + shape.words * kHeld;
  return std::clamp<int64_t>(machine.registers / (threads * each), 1, most);
}

// Long ones in registers: a warp has a chunk.
Deal hold_chunks(const Along& loops, int64_t warps) {
  Deal d;
  d.loops_first = true;
  d.vector = loops.vector;
  d.registers = kChunk / (kLanes * d.vector);
  d.warps = warps;
  return d;
}

// Those of two chunks, the last of which is short: a warp has all of a row, and waits for nobody. (Softmax
// over 1280 of bf16[18912,1280]: .0388 ms, by a warp a chunk .0706.)
Deal hold_by_warps(const Along& loops) {
  Deal d = hold_chunks(loops, 1);
  d.registers *= 2;
  return in_blocks_of(kFewRowWarps, d);
}

bool fits_in_chunks(const Shape& shape) {
  const int64_t chunks = shape.longest / kChunk;
  return shape.longest % kChunk == 0 && chunks * shape.streams <= kHeldChunks;
}

// Where a row's elements lie side by side and other rows elsewhere, lanes share rows, and it takes
// shuffles to bring together what they have.
bool prefers_rows_as_lanes(const Lines& lines, const Shape& shape) {
  const double padded = static_cast<double>(std::min(kLanes, power_of_two_from(shape.longest))),
               shuffles = shape.reductions * std::log2(padded) * kLanes /
                          static_cast<double>(std::max(kLanes, shape.longest));
  return lines.of_rows <= lines.of_loops + shuffles;
}

// Where its elements lie depends on sizes that are no numbers yet.
bool has_symbolic_places(const Kernel& kernel) {
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [](const Scalar& s) { return has_size(s.index); }) ||
         std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& s) { return has_size(s.index); });
}

// Lanes go along the loops. Others hold rows of more than two chunks that begin anywhere, and of three of
// which the last is short; what several lists of loops go over they do not share.
std::optional<Deal> share_rows(const Machine& machine, const Kernel& kernel, const Shape& shape,
                               const Along& loops) {
  const bool is_even = loops.is_all && loops.vector * loops.bytes >= kAccess,
             is_one = kernel.rows == 0;
  if (shape.longest <= kChunk) {
    const Deal d = hold_rows(machine, shape, loops);
    return d.lanes() * d.vector == 1 ? std::nullopt : std::optional(d);
  }
  if (!shape.held) return read_rows(machine, shape, loops);
  const int64_t chunks = ceil_divide(shape.longest, kChunk);
  if (is_even && fits_in_chunks(shape)) return hold_chunks(loops, chunks);
  if (loops_of(kernel).size() > 1 ||
      (is_one && chunks <= kBlockWarps))  // in turns, where they are many
    return hold_chunks(loops, chunks > kBlockWarps ? 2 * kBlockWarps : chunks);
  if (chunks == 2 && shape.words * 2 * kChunk / kLanes <= kMostHeld)
    return hold_by_warps(loops);
  if (!is_even || chunks <= kFewChunks) return std::nullopt;
  Deal d = hold_chunks(loops, chunks);
  while (2 * d.cluster <= machine.cluster && chunks > kBlockWarps * d.cluster) d.cluster *= 2;
  d.warps = ceil_divide(chunks, d.cluster);
  if (d.cluster > 1) d.resident = waiting_blocks(machine, shape, d);
  return d.warps <= kMostOfRow ? std::optional(d) : std::nullopt;
}

std::optional<Deal> deal_of(const Program& program, const Kernel& kernel) {
  const Shape shape = shape_of(kernel);
  if (shape.reductions == 0 || has_symbolic_places(kernel)) return std::nullopt;
  const std::vector<std::vector<int>> loops = loops_of(kernel);
  const Along along_loops = along(program, kernel, kernel.axes[loops[0].back()]);
  const Lines lines = lines_of(program, kernel);
  if (lines.crosses) return std::nullopt;  // by way of shared memory
  if (kernel.rows > 0 && prefers_rows_as_lanes(lines, shape)) {
    const Along rows = along(program, kernel, kernel.axes[kernel.rows - 1]);
    const bool is_window =
        rows.vector == 1 && shape.longest * shape.streams <= kHeld && along_loops.vector > 1;
    if (is_window && !shape.again && shape.longest < kShort) return std::nullopt;
    const bool far = rows.vector == 1 && lines.of_rows > kNear * lines.accesses;
    if (far && !is_window) return std::nullopt;
    if (!shape.again && shape.longest > 2 * kChunk)
      return rows.vector == 1 && shape.rows < 2 * kLanes * program.machine.multiprocessors
                 ? std::optional(read_odd_columns(program.machine, shape))
                 : std::nullopt;
    if (!is_window) {
      const Deal d = shape.again ? hold_columns(program.machine, shape, rows)
                                 : read_columns(program.machine, shape, rows);
      return d.warps > kMostWarps ? std::nullopt : std::optional(d);
    }
    return hold_rows(program.machine, shape, along_loops);
  }
  return share_rows(program.machine, kernel, shape, along_loops);
}

}  // namespace

std::optional<Schedule> layouts_of(const Program& program, const Kernel& kernel) {
  if (!can_be_laid_out(program, kernel)) return std::nullopt;
  const std::optional<Deal> deal = deal_of(program, kernel);
  if (!deal) return std::nullopt;
  Kernel chosen = kernel;
  chosen.schedule = laid_out(program, kernel, *deal);
  if (!why_illegal_layouts(program, chosen).empty()) return std::nullopt;
  return chosen.schedule;
}

}  // namespace tiny_compile
