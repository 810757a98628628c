// Which of the legal layouts is a good one? Each gives the same bits, so this is advice alone.
//
//   softmax over the first of [1000,4096]      rows grid · lane 16
//                                              loop register 64 · warp 8 · lane 2 from 16
//   sum over the first of [1024,4096]          rows grid · lane 16
//                                              loop register 32 · serial 2 · warp 8 · lane 2 from 16 resident=2
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
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/schedule/accesses.h"
#include "tiny_compile/schedule/crossed.h"
#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/held_columns.h"
#include "tiny_compile/schedule/long_rows.h"
#include "tiny_compile/schedule/outline.h"
#include "tiny_compile/schedule/read_columns.h"
#include "tiny_compile/schedule/short_rows.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAccess = 16;      // bytes
constexpr int64_t kSector = 32;      // bytes side by side that a warp reads of long ones
constexpr int64_t kHeld = 32;        // elements of a thread, of a row that is held
constexpr int64_t kMostHeld = 128;   // words of a thread
constexpr int64_t kMostWarps = 32;   // of a column
constexpr int64_t kCrossedRows = 8;  // side by side, of a block
constexpr int64_t kFew = 4;          // elements of a thread, or rows
constexpr int64_t kBlockWarps = 8;   // where lanes are rows
constexpr int64_t kFewRowWarps = 2;  // where each has 64 elements a lane
constexpr int64_t kMostRead = 12;    // of one that reads a row once, each a chunk
constexpr int64_t kForRow = 64;      // registers of a thread beside what it holds of an odd row
constexpr int64_t kOtherRegisters = 32;  // of a thread, beside what it holds
constexpr double kFar = 16;              // lines of an access: elements lie apart
constexpr double kNear =
    8;  // lines of an access; short rows further apart are staged by others
constexpr int64_t kFewTurns = 4;       // of a block that shares a row
constexpr int64_t kLongPlaces = 32;    // chunks, of which any number of warps goes on for long
constexpr int64_t kFewChunks = 3;      // of a row that is read once: by four warps
constexpr int64_t kHeldChunks = 32;    // of a block's rows, each of 32 registers a thread
constexpr int64_t kFolded = 4;         // registers for each element of a row that a block folds
constexpr int64_t kFoldingBlocks = 4;  // of a multiprocessor, at most

// Of what is the same in any order all warps have as much, chunks or not; and fewer warps twice as much
// where places go along, each of which takes more instructions to compare than to read. (Maximum and its place
// over 1280 of f32: 16.8 us for 25.5.)
Deal read_evenly(const Machine& machine, const Outline& shape, Deal d) {
  d.evenly = true;
  Deal fewer = d;
  fewer.warps = std::max<int64_t>(1, d.warps / 2);
  fewer.registers = d.registers * d.warps / fewer.warps;
  const bool fills = threads_of(shape, fewer) >= many_threads(machine),
             is_whole = shape.longest == power_of_two_from(shape.longest);
  return shape.places && fills && !is_whole ? fewer : d;
}

// Where powers of two would leave warps idle: 5 chunks by eight, 9 in two turns.
bool has_odd_chunks(const Outline& shape) {
  const int64_t chunks = ceil_divide(shape.longest, kChunk);
  return chunks > kFewChunks && chunks <= kMostRead && power_of_two_from(chunks) != chunks;
}

// Places of long rows by half as many warps, each of which goes on for longer before they meet, in blocks of a row.
// (H200, ms: argmax of f32[1024,32064] .0430, .0408, [2048,21841] .0566, .0512, [1357,14336] .0269, .0250,
// [1024,10000] .0139, .0119; draws that nothing was fitted to: .0191, .0167; .0402, .0354; .0245, .0235.)
Deal by_fewer(const Machine& machine, const Outline& shape, Deal d) {
  if (d.warps < kBlockWarps || d.warps % 2 != 0 || shape.longest > kLongPlaces * kChunk ||
      threads_of(shape, d) < many_threads(machine) / 2)
    return in_blocks_of(kBlockWarps, d);
  d.warps /= 2;
  if (has_odd_chunks(shape)) d.registers *= 2;
  return d;
}

// Long ones that are read once: a warp has chunks; of few rows, blocks of a cluster have parts. `far`:
// elements lie apart, and each is a sector of memory, so that fewer threads keep it busy; and the fewer
// rows are read at a time, the more of their sectors are still there for the next row.
Deal read_rows(const Machine& machine, const Outline& shape, const Along& loops, bool far) {
  const int64_t most_warps = far ? 2 * kBlockWarps : kBlockWarps,
                many = many_threads(machine) / (far ? kFew : 1);
  Deal d;
  d.loops_first = true;
  d.vector = loops.vector;
  d.registers = kChunk / (kLanes * d.vector);
  const int64_t chunks = power_of_two_from(ceil_divide(shape.longest, kChunk));
  d.warps = std::min(most_warps, chunks);
  if (shape.exact && d.warps == chunks)
    return in_blocks_of(kBlockWarps, read_evenly(machine, shape, d));
  const int64_t most = std::min(machine.cluster, chunks / d.warps);
  const auto wants_more = [&] {  // half as many do where each would have few turns
    const bool have_few = chunks < kFewTurns * 2 * d.cluster * d.warps;
    return threads_of(shape, d) < (have_few ? many / 2 : many);
  };
  while (2 * d.cluster <= most && wants_more()) d.cluster *= 2;
  if (d.cluster == 1 && has_odd_chunks(shape)) d.warps = ceil_divide(shape.longest, kChunk);
  return d.cluster == 1 && shape.places ? by_fewer(machine, shape, d)
                                        : in_blocks_of(kBlockWarps, d);
}

// Those of two chunks, the last of which is short: a warp has all of a row, and waits for nobody. (Softmax
// over 1280 of bf16[18912,1280]: .0388 ms, by a warp a chunk .0706.)
Deal hold_by_warps(const Along& loops) {
  Deal d = hold_chunks(loops, 1);
  d.registers *= 2;
  return in_blocks_of(kFewRowWarps, d);
}

// Of few rows by four warps.
Deal hold_by_few(const Outline& shape, const Along& loops) {
  Deal d = hold_chunks(loops, kRowWarps);
  d.registers = power_of_two_from(shape.longest) / (kLanes * kRowWarps * d.vector);
  return d;
}

// A lane has no more than 48 of each value.
bool holds_by_warps(const Outline& shape) {
  return shape.longest <= kChunk + kChunk / 2 &&
         shape.words * ceil_divide(shape.longest, kLanes) <= kMostHeld;
}

// Several loops go over parts of a row, as the chunks of a variance do: a warp has the row and
// all its parts, where many would wait for each other at every one of them. (instance_norm over
// 56 by 56 of bf16[2,2048,..]: .0211 ms, by four warps .0354.) A lane has no more of it than 64
// words.
bool holds_parts_by_warps(const Machine& machine, const Outline& shape, const Along& loops) {
  return power_of_two_from(shape.longest) / kLanes * loops.bytes <= kMostHeld / 2 * kWord &&
         shape.rows >= kRowWarps * machine.multiprocessors;
}

Deal hold_parts_by_warps(const Outline& shape, const Along& loops) {
  Deal d = hold_chunks(loops, 1);
  d.registers = power_of_two_from(shape.longest) / (kLanes * d.vector);
  return in_blocks_of(kRowWarps, d);
}

bool fits_in_chunks(const Outline& shape) {
  const int64_t chunks = shape.longest / kChunk;
  return shape.longest % kChunk == 0 && chunks * shape.streams <= kHeldChunks;
}

// Where a row's elements lie side by side and other rows elsewhere, lanes share rows, and it takes
// shuffles to bring together what they have.
bool prefers_rows_as_lanes(const Lines& lines, const Outline& shape) {
  const double padded = static_cast<double>(std::min(kLanes, power_of_two_from(shape.longest))),
               shuffles = shape.reductions * std::log2(padded) * kLanes /
                          static_cast<double>(std::max(kLanes, shape.longest));
  return lines.of_rows <= lines.of_loops + shuffles;
}

// Neighbouring rows lie in each other, fewer bytes apart than a sector has, and other rows elsewhere: seven columns of
// f32, a chunk of them at a time.
bool lie_in_each_other(const Program& program, const Kernel& kernel) {
  if (kernel.rows == 0 || loops_of(kernel).size() != 1) return false;
  const Axis &row = kernel.axes[kernel.rows - 1],
             &loop = kernel.axes[loops_of(kernel)[0].back()];
  const int64_t rows = row.extent.constant();
  int loads = 0;
  for (const Scalar& s : kernel.scalars) {
    if (s.kind != ScalarKind::Load) continue;
    const int64_t size = size_of(program.buffers[s.buffer].type.dtype);
    const bool is_dense =
        coefficient(s.index, row.symbol()) == 1 && coefficient(s.index, loop.symbol()) == rows;
    if (!is_dense || size > kWord || rows * size >= kSector) return false;
    loads++;
  }
  return loads == 1;
}

// Sixteen rows a block, each by a warp, so that each line is read once or twice: of 513 to 1024 elements that are read
// once. (H200, ms, by lanes along the rows or by fewer warps: sum over many of f32[..,7] .0958, .0697; [..,5] .0810,
// .0674; [..,3] .0707, .0648.)
Deal read_in_each_other(const Machine& machine, const Outline& shape) {
  Deal d;
  d.loops_first = true;
  d.registers = std::max<int64_t>(1, power_of_two_from(shape.longest) / kLanes);
  d.row_warps = kMostOfRow;
  d.resident = blocks_held(machine, kLanes * d.row_warps, d.registers + kOtherRegisters);
  return d;
}

// Where its elements lie depends on sizes that are no numbers yet.
bool has_symbolic_places(const Kernel& kernel) {
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [](const Scalar& s) { return has_size(s.index); }) ||
         std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& s) { return has_size(s.index); });
}

// Rows of words that begin anywhere are read one element after another, unless the compiler is told that
// it may take registers for all of them. (H200, ms: layer_norm of f32[65600,1023] .147, .134; [528416,127] .139,
// .132; sum over 95 .109, .098. Halves, which are put into words, do as well by themselves.)
Deal with_their_registers(const Machine& machine, const Kernel& kernel, const Outline& shape,
                          const Along& loops, Deal d) {
  const auto is_word = [](const Scalar& s) {
    return s.kind != ScalarKind::Load || size_of(s.dtype) == kWord;
  };
  const bool has_many = d.registers >= kHeldOdd && d.cluster == 1,
             are_words = std::all_of(kernel.scalars.begin(), kernel.scalars.end(), is_word);
  if (has_many && loops.vector == 1 && are_words)
    d.resident = blocks_held(machine, kLanes * d.row_warps * d.warps,
                             d.registers * shape.words + kForRow);
  return d;
}

// Lanes go along the loops; what several lists of loops go over they do not share.
Deal share_rows(const Machine& machine, const Kernel& kernel, const Outline& shape,
                const Along& loops, const Lines& lines) {
  if (shape.longest <= kChunk)
    return with_their_registers(machine, kernel, shape, loops,
                                hold_rows(machine, shape, loops));
  if (!shape.held)
    return read_rows(machine, shape, loops, lines.of_loops > kFar * lines.accesses);
  const int64_t chunks = ceil_divide(shape.longest, kChunk);
  const bool is_even = loops.is_all && loops.vector * loops.bytes >= kAccess,
             has_parts = loops_of(kernel).size() > 1, is_one = kernel.rows == 0;
  if (has_parts && holds_parts_by_warps(machine, shape, loops))
    return hold_parts_by_warps(shape, loops);
  if (is_even && fits_in_chunks(shape))
    return has_parts || is_one ? hold_chunks(loops, chunks)
                               : hold_by_two(machine, loops, chunks);
  if (has_parts && is_one && chunks <= kBlockWarps) return hold_alone(machine, loops, chunks);
  if (has_parts && chunks > kMostOfRow) return hold_in_turns(machine, shape, loops);
  if (has_parts || (is_one && chunks <= kBlockWarps))
    return hold_chunks(loops, chunks > kBlockWarps ? kMostOfRow : chunks);
  if (chunks == 2 && shape.rows < kRowWarps * machine.multiprocessors)
    return hold_by_few(shape, loops);
  return chunks == 2 && holds_by_warps(shape)
             ? hold_by_warps(loops)
             : with_their_registers(machine, kernel, shape, loops,
                                    hold_in_clusters(machine, shape, loops));
}

// Eight neighbouring rows a block, of a cluster's where they have several chunks, by eight warps: more, and
// then fewer rows, where a thread would have more than 64 words. Of two or three chunks, which
// leave memory no time, 16 rows.
Deal hold_crossed(const Machine& machine, const Outline& shape) {
  const int64_t padded = power_of_two_from(shape.longest),
                chunks = ceil_divide(shape.longest, kChunk);
  const bool is_three = chunks == kFewChunks;
  const int64_t most = (is_three ? 4 : 2) * kHeld / power_of_two_from(shape.words);
  Deal d;
  d.row_lanes = chunks == 2 ? 2 * kCrossedRows : kCrossedRows;
  while (!is_three && 2 * d.cluster <= std::min(machine.cluster, padded / kChunk))
    d.cluster *= 2;
  d.warps = kBlockWarps;
  const auto held = [&] { return padded / (d.cluster * d.warps * d.lanes()); };
  if (held() > most) d.warps *= 2;
  while (held() > most && d.row_lanes > kFew) d.row_lanes /= 2;
  while (d.warps > 1 && held() < 1) d.warps /= 2;
  d.registers = held();
  if (is_three) d.row_warps = 2;
  return d;
}

// A warp has a row, where it begins anywhere.
Deal hold_by_a_warp(const Outline& shape) {
  Deal d;
  d.loops_first = true;
  d.registers = power_of_two_from(shape.longest) / kLanes;
  return d;
}

// Where some arrays lie along the rows and others along the loops, by way of shared memory. Lanes
// read no more than a word of their elements, which then lie in different banks. Where elements
// have three values most arrays lie alike, and caches bring the others' rows together.
std::optional<Schedule> cross(const Program& program, const Kernel& kernel,
                              const Outline& shape, Along loops) {
  const int64_t chunks = ceil_divide(shape.longest, kChunk);
  const bool is_long = chunks > 1, is_one_list = loops_of(kernel).size() == 1;
  if (kernel.rows == 0 || (is_long && !shape.held)) return std::nullopt;
  const bool is_odd = loops.vector == 1 && shape.longest > kMostOdd && !shape.costly;
  if ((is_long || is_odd) && shape.streams > 2) return std::nullopt;
  loops.vector = std::min(loops.vector, std::max<int64_t>(1, kWord / loops.bytes));
  const Machine& machine = program.machine;
  std::optional<Schedule> rows;
  if (!is_long && is_one_list)
    rows = crossed_rows(program, kernel,
                        is_odd ? hold_by_a_warp(shape) : hold_rows(machine, shape, loops));
  else if (chunks > kFewChunks && is_one_list)
    rows = crossed_long_rows(program, kernel, hold_chunks(loops, 1));
  if (rows) return rows;
  if (is_long && is_one_list && shape.reductions > 2) return std::nullopt;
  return crossed_columns(program, kernel, hold_crossed(machine, shape));
}

std::optional<Deal> deal_of(const Program& program, const Kernel& kernel, const Outline& shape,
                            const Lines& lines, const Along& along_loops, bool has_columns) {
  if (!shape.again && shape.longest <= kChunk && shape.longest > kSideBySide * kLanes &&
      lie_in_each_other(program, kernel))
    return read_in_each_other(program.machine, shape);
  if (kernel.rows > 0 && prefers_rows_as_lanes(lines, shape)) {
    const Along rows = along(program, kernel, kernel.axes[kernel.rows - 1]);
    const bool is_window =
        rows.vector == 1 && shape.longest * shape.streams <= kHeld && along_loops.vector > 1;
    const bool far = rows.vector == 1 && lines.of_rows > kNear * lines.accesses;
    if (far && !is_window)
      return share_rows(program.machine, kernel, shape, along_loops, lines);
    const bool is_long = !shape.again && shape.longest > 2 * kChunk;
    if (is_long && rows.vector == 1 &&
        shape.rows < 2 * kLanes * program.machine.multiprocessors)
      return read_odd_columns(program.machine, shape);
    // A place (argmax) is never split into chunks: more threads share a column here.
    if (is_long && has_columns && !shape.places)
      return read_long_columns(program.machine, shape, rows);
    if (!is_window) {
      const Deal d = shape.again ? hold_columns(program.machine, shape, rows)
                                 : read_columns(program.machine, shape, rows);
      if (d.warps <= kMostWarps) return d;
      if (has_columns) return read_long_columns(program.machine, shape, rows);
      return share_rows(program.machine, kernel, shape, along_loops, lines);
    }
    return hold_windows(program.machine, shape, along_loops, !far);
  }
  return share_rows(program.machine, kernel, shape, along_loops, lines);
}

// What goes over few elements follows what goes over many. (Group norm with its gradients of
// f16[128,256,48,48]: 18 chunks are merged, two at a time, before 18432 elements.)
std::vector<int> longest_loops(const Kernel& kernel) {
  const std::vector<std::vector<int>> loops = loops_of(kernel);
  return *std::max_element(loops.begin(), loops.end(),
                           [&](const std::vector<int>& a, const std::vector<int>& b) {
                             return elements_of(kernel, a) < elements_of(kernel, b);
                           });
}

// The first that is legal.
std::optional<Schedule> legal_of(const Program& program, Kernel kernel,
                                 const std::vector<Deal>& deals) {
  for (const Deal& deal : deals) {
    kernel.schedule = laid_out(program, kernel, deal);
    if (why_illegal_layouts(program, kernel).empty()) return kernel.schedule;
  }
  return std::nullopt;
}

// A block has all rows whose columns it adds up: few warps, so that each thread has the registers for a row
// and more, a row each at a time. Each asks for its next row while it has one: what is held of a row
// leaves registers for no more loads.
Schedule fold_rows(const Program& program, const Kernel& kernel, const Outline& shape,
                   const Along& loops) {
  const int64_t rows = kernel.axes[kernel.rows - 1].extent.constant(),
                warps = std::min(rows, kFoldWarps);
  Deal d;
  d.loops_first = true;
  d.vector = loops.vector;
  d.registers = std::max<int64_t>(1, power_of_two_from(shape.longest) / (kLanes * d.vector));
  Schedule s = laid_out(program, kernel, d);
  s.outer = kernel.rows - 1;
  s.rows.clear();
  add_part(s.rows, Level::Warp, warps);
  add_part(s.rows, Level::Serial, rows / warps);
  const int64_t each = kOtherRegisters + kFolded * ceil_divide(shape.longest, kLanes);
  s.resident = static_cast<int>(
      std::min(kFoldingBlocks, program.machine.registers / (kLanes * warps * each)));
  s.prefetch = 1;
  return asking_for_something(kernel, std::move(s));
}

std::optional<Schedule> legal_folds(const Program& program, Kernel kernel, const Outline& shape,
                                    const Along& loops) {
  kernel.schedule = fold_rows(program, kernel, shape, loops);
  return why_illegal_layouts(program, kernel).empty() ? kernel.schedule : std::nullopt;
}

}  // namespace

std::optional<Schedule> layouts_of(const Program& program, const Kernel& kernel,
                                   bool has_columns) {
  if (has_symbolic_sizes(kernel) || !can_be_laid_out(program, kernel) ||
      !is_sequential(kernel) || has_symbolic_places(kernel))
    return std::nullopt;
  const bool folds = folds_rows(kernel), has_loops = !loops_of(kernel).empty();
  if (!has_loops && !folds) return std::nullopt;
  const Outline shape = outline_of(kernel);
  const Along loops =
      has_loops ? along(program, kernel, kernel.axes[longest_loops(kernel).back()]) : Along{};
  if (folds) return legal_folds(program, kernel, shape, loops);
  const Lines lines = lines_of(program, kernel);
  if (lines.crosses) {
    if (const auto crossed = cross(program, kernel, shape, loops)) return crossed;
    return legal_of(program, kernel,
                    {share_rows(program.machine, kernel, shape, loops, lines)});
  }
  const std::optional<Deal> deal = deal_of(program, kernel, shape, lines, loops, has_columns);
  if (!deal) return std::nullopt;
  std::vector<Deal> deals = {*deal};
  if (!has_columns) deals.push_back(share_rows(program.machine, kernel, shape, loops, lines));
  return legal_of(program, kernel, deals);
}

}  // namespace tiny_compile
