// How does a block hold columns, which are read again? Lanes are neighbouring rows of the kernel, and share a
// column where more threads are wanted or fewer columns make up a piece of memory.
//
//   softmax over the first of [1000,4096]      rows grid · lane 16
//                                              loop register 64 · warp 8 · lane 2 from 16
#include "tiny_compile/schedule/held_columns.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kSector = 32;         // bytes side by side that a warp reads of long ones
constexpr int64_t kHeld = 32;           // elements of a thread, of a row that is held
constexpr int64_t kHeldColumns = 16;    // side by side
constexpr int64_t kHeldWarps = 8;       // of a column
constexpr int64_t kMostHeld = 128;      // words of a thread
constexpr int64_t kMostInTurn = 96;     // elements of one, where fewer take more warps
constexpr int64_t kAlignedAccess = 16;  // bytes, where rows lie evenly
constexpr int64_t kMostWhole =
    1536;  // f32 that are held of columns best read by whole warps else
constexpr int64_t kMostWholeHalves = 512;  // halves of theirs
constexpr int64_t kMostCut = 768;     // halves of a chunk that is not whole; more have no pairs
constexpr int64_t kBusyWarps = 8;     // that a multiprocessor has at least,
constexpr int64_t kManyTurns = 4;     // and so many times as many, where columns are many
constexpr int64_t kFewElements = 4;   // of a column, which is over before others begin
constexpr int64_t kMostOfFours = 50;  // halves of a thread that has four columns,
constexpr int64_t kTurnsOfFours = 3;  // and so many blocks of each multiprocessor
constexpr int64_t kTurns = 2;         // in which columns are read again, at least,
constexpr int64_t kBlocks = 2;        // by so many blocks of each multiprocessor
constexpr int64_t kBlockHeldWarps = 16;  // of a block that holds columns
constexpr int64_t kShortColumn = 128;    // to be read by whole warps, halves one by one
constexpr int64_t kAddresses = 24;       // registers of a thread beside its elements
constexpr int64_t kHeldWords = 64;       // of a thread that is told how many it has,
constexpr int64_t kFewAddresses = 20;    // and these beside them;
constexpr int64_t kManyOfThree = 48;     // of one that adds them up three times,
constexpr int64_t kOfThree = 128;        // and its registers
constexpr int64_t kTurnsOfTwo = 4;       // blocks of each multiprocessor that hold two arrays
constexpr int64_t kMostCutToFull =
    172;                               // registers that are best cut to all that 16 warps have
constexpr int64_t kSharedChunks = 4;   // of a column that blocks share, at least
constexpr int64_t kSharedWarps = 4;    // of a block of a cluster, at least
constexpr int64_t kBlockWarps = 8;     // where lanes are rows
constexpr int64_t kHalvesWarps = 4;    // of halves, where rows begin with a line:
constexpr int64_t kLineOfHalves = 64;  // softmax over 197 of bf16[..,294912] .1039 ms, .0873

// Blocks of a cluster share columns that one cannot hold, or of which there are too few to keep all
// multiprocessors busy; each has whole chunks, of which it gives the others one result.
Deal in_clusters(const Machine& machine, const Outline& columns, Deal d) {
  const auto blocks = [&] {
    return ceil_divide(columns.rows, d.row_lanes * d.row_vector) * d.cluster;
  };
  const auto wants_more = [&] {
    return d.warps > kBlockHeldWarps ||
           (d.warps > kSharedWarps && blocks() * 4 < machine.multiprocessors * 3);
  };
  const int64_t chunks = power_of_two_from(columns.longest) / kChunk,
                most = chunks < kSharedChunks ? 1 : std::min(machine.cluster, chunks);
  while (2 * d.cluster <= most && wants_more()) {
    d.cluster *= 2;
    d.warps /= 2;
  }
  return d;
}

// Registers of a thread that would have `elements` of a padded column: more, where many lie beyond the
// end and hold nothing, and fewer, where an element is held in several words.
int64_t registers_for(const Outline& columns, int64_t row_vector, int64_t elements) {
  const int64_t padded = power_of_two_from(columns.longest);
  int64_t registers = std::max<int64_t>(1, elements / row_vector);
  const auto held = [&](int64_t n) { return n * row_vector * columns.longest / padded; };
  while (held(2 * registers) <= elements) registers *= 2;
  while (registers > 1 && held(registers) * columns.words > kMostHeld) registers /= 2;
  return registers;
}

// Of a thread: its elements, as often as they are held, and once more to be added up.
int64_t registers_of(const Outline& columns, const Deal& d) {
  const int64_t held =
      d.registers * d.row_vector * columns.longest / power_of_two_from(columns.longest);
  return kAddresses + held * (columns.streams + 1);
}

// What holds 64 words, and adds them up once or twice, needs no more registers than a few beside them, or
// some more to write what becomes of them: by itself the compiler takes so many that a multiprocessor has a
// block less, or so few that it reads one element after another. Three sums need twice as many. (H200:
// largest of 1024 of f32[..] that are read again .0598 ms, .0263; of halves .0652, .0587; sum, least and
// largest of 1024 of f32[11008,6144] .292, .125. But softmax over 1024 of bf16[..,65720] .1576 with as many
// as it is told, .1324 by itself.)
Deal with_its_registers(const Machine& machine, const Outline& columns, const Along& rows,
                        Deal d) {
  const int64_t padded = power_of_two_from(columns.longest),
                threads = kLanes * d.row_warps * d.warps,
                words = d.registers * d.row_vector * columns.words,
                held = words * columns.longest / padded,
                beside = columns.writes ? kAddresses + kFewAddresses : kFewAddresses;
  const bool are_three = columns.reductions == 3 && held >= kManyOfThree && rows.vector > 1,
             is_one = columns.reductions <= 2 && words == kHeldWords && held == words &&
                      !(columns.writes && rows.bytes == 2);
  const int64_t blocks = blocks_held(machine, threads, are_three ? kOfThree : words + beside);
  if ((is_one || are_three) && columns.streams == 1 && d.cluster == 1 && blocks > 1)
    d.resident = blocks;
  return d;
}

// Long columns of halves, in registers: by 16 warps, whose lanes read neighbours in words that make up a sector.
// (H200, ms, by pairs and one by one in half as many warps: softmax over 1500 of f16[..,10240] .051 and .071, over
// 1200 of bf16[..,30000] .077 and .112, over 3000 of 8192 .071 and .098, over 1500 of 2048 .017 and .019; its
// gradient over 2048 of f16[..,16384] .165 and .294.) Nothing where a thread would have too many, or blocks are few.
std::optional<Deal> hold_words(const Machine& machine, const Outline& columns, int64_t word,
                               const Along& rows) {
  Deal d;
  d.row_vector = word;
  d.row_lanes = kSector / (word * rows.bytes);
  d.warps = kBlockHeldWarps;
  const int64_t padded = power_of_two_from(columns.longest),
                blocks = ceil_divide(columns.rows, d.row_lanes * word);
  d.registers = padded / (d.warps * d.lanes());
  const int64_t held = d.registers * word * columns.longest / padded;
  if (held > kMostInTurn || held * columns.words > kMostHeld ||
      blocks * 4 < machine.multiprocessors * 3)
    return {};
  return d;
}

// Halves of which nothing is written but what becomes of a column, and which three reductions go over, or that are of
// two arrays, are read again in turns, from a cache, in pieces of 64 bytes: held, they would come in pieces of 32.
// Exponentials are not, whose chunks are held, nor are short columns. (H200, ms: sums and the least of 576 of
// bf16[..,32768] .0293, .0172, of 192 of [3526,192,256] .1608, .1378; mean, least and largest of 2048 of
// [7,2048,14336] .1952, .1630. Draws that nothing was fitted to: .1874, .1236; .0199, .0134; .0521, .0348; by fewer
// blocks .0167, .0187; of five of 1024 three took 1.06 to 1.12 of the time, two .67. But two sums, of which the
// second wants the first, over 1024 of [82,1024,4096] .2682, .3508.)
std::optional<Deal> read_again_in_turns(const Machine& machine, const Outline& columns,
                                        const Along& rows) {
  const bool are_several = columns.reductions > 2 || columns.streams > 1;
  if (rows.bytes != 2 || rows.vector == 1 || columns.writes || columns.exponentials ||
      !are_several || columns.longest <= kShortColumn)
    return {};
  const int64_t padded = power_of_two_from(columns.longest);
  Deal d;
  d.row_vector = 2;
  d.row_lanes = kLanes / 2;
  d.registers = padded > 2 * kShortColumn ? kHeld : kHeld / 2;
  d.warps = std::min(padded / (d.registers * d.lanes() * kTurns),
                     padded > kChunk ? kBlockHeldWarps : kHeldWarps);
  const int64_t blocks = columns.rows / (d.row_lanes * d.row_vector);
  return blocks < kBlocks * machine.multiprocessors ? std::nullopt : std::optional(d);
}

// All of a column in registers: about `elements` of it in each thread, and, where that takes more
// threads than one, `lanes` columns a warp.
Deal held_deal(const Outline& columns, int64_t row_vector, int64_t elements, int64_t lanes) {
  const int64_t padded = power_of_two_from(columns.longest);
  Deal held;
  held.row_vector = row_vector;
  held.registers = std::min(padded, registers_for(columns, row_vector, elements));
  held.row_lanes = padded > held.registers ? lanes : kLanes;
  held.warps = std::max<int64_t>(1, padded / (held.registers * held.lanes()));
  return held;
}

// Two neighbours a thread, so that a warp's piece of memory is a line: of words where threads hold few of each, and
// columns are many. (H200, ms, by 16 lanes, and by 16 of two: log_softmax's gradient down 64 of f32[..,404934] .1733,
// .1369, softmax's of 328172 .1347, .1105; softmax over 512 of f32[512,512,149] .1043, .0897, over 195 of 49152 .0131,
// .0128; logsumexp over 2 of f32[1006,2,50176] .3432, .2986.)
Deal in_pairs(const Machine& machine, const Outline& columns, const Along& rows, Deal d) {
  const int64_t padded = power_of_two_from(columns.longest),
                words = 2 * d.registers * columns.longest / padded * columns.words;
  const bool has_pairs = rows.bytes == kWord && rows.vector > 1 && d.row_vector == 1,
             is_part_of_line = d.row_lanes < kLanes || padded <= kFewElements,
             is_light = columns.streams == 1 && !columns.writes && padded > kChunk &&
                        words <= kMostInTurn,
             has_room = d.cluster == 1 && (d.registers <= kHeld || is_light) &&
                        words <= kMostHeld && (columns.streams == 1 || d.warps == 1);
  const int64_t warps = columns.rows / (2 * d.row_lanes) * d.warps;
  if (has_pairs && is_part_of_line && has_room &&
      warps >= kManyTurns * kBusyWarps * machine.multiprocessors)
    d.row_vector = 2;
  return d;
}

// Halves by 16 warps: by eight with as many registers as that leaves, where they suffice. (H200, ms: standardise's
// gradient down 1000 of bf16[..,8192] .0385, .0273; but softmax over 2048, twice as many, of [..,62456] .3164, .3544.)
Deal in_half_the_warps(const Machine& machine, const Outline& columns, const Along& rows,
                       Deal d) {
  const bool is_half = rows.bytes == 2,
             has_room = 2 * d.registers * d.row_vector * columns.words <= kHeldWords;
  if (!is_half || !has_room || d.warps != kBlockHeldWarps || d.cluster > 1) return d;
  d.warps /= 2;
  d.registers *= 2;
  d.resident = blocks_held(machine, kLanes * d.row_warps * d.warps,
                           machine.registers / (2 * kLanes * d.warps));
  return d;
}

// Pairs of halves by fours, in pieces of 64 bytes, where a thread has room for them and columns are many; not where
// exponentials of all four are computed and written. (H200, ms: normalize over 384 of bf16[..,310128] .2103, .1539,
// over 299 of 16448 .0075, .0061, over 153 of 262144 .0593, .0530; logsumexp over 383 of 443992 .2232, .1786; but
// three sums of all of 512 of 81904 .0623, .0804, logsumexp over 576 of [256,576,196], by 16 warps, .0340, .0471,
// softmax over 399 of [399,184,256] .0321, .0359.)
Deal in_fours(const Machine& machine, const Outline& columns, const Along& rows, Deal d) {
  const int64_t padded = power_of_two_from(columns.longest),
                words = 4 * d.registers * columns.longest / padded,
                blocks = columns.rows / (4 * d.row_lanes * d.row_warps);
  const bool has_pairs = rows.bytes == 2 && rows.vector >= 4 && d.row_vector == 2,
             is_piece = d.row_lanes == kSector / 4 && d.cluster == 1,
             is_light = !(columns.costly && columns.writes);
  if (has_pairs && is_piece && is_light && d.warps <= kBlockWarps && words <= kMostOfFours &&
      blocks >= kTurnsOfFours * machine.multiprocessors)
    d.row_vector = 4;
  return d;
}

// Threads that meet have a block to themselves, unless two arrays are held by many: what others hold there
// waits for them as well. By whole warps they are neighbours in memory, and stay together. (H200, from two
// or four groups in a block to one: 60 draws .98 in the geometric mean, of them softmax over 195 of
// f32[..,11008] .61, its gradient over 257 of 12288 .85; but of 96 of f32[..,131072], two arrays, 1.16, over
// 65 by whole warps 1.46.)
Deal in_own_block(const Machine& machine, const Outline& columns, int64_t warps,
                  const Deal& d) {
  const Deal beside = in_blocks_of(warps, d);
  const int64_t blocks = columns.rows / (d.row_lanes * d.row_vector * beside.row_warps);
  const bool are_many = blocks > kTurnsOfTwo * machine.multiprocessors;
  const bool is_alone =
      d.warps > 1 && d.row_lanes < kLanes && (columns.streams == 1 || !are_many);
  return is_alone ? d : beside;
}

int64_t most_whole(int64_t bytes) {  // of an element
  return bytes == kWord ? kMostWhole : bytes == 2 ? kMostWholeHalves : 0;
}

bool keeps_busy(const Machine& machine, const Outline& columns, const Deal& held) {
  return columns.rows / (held.row_lanes * held.row_vector) * held.warps >=
         kBusyWarps * machine.multiprocessors;
}

int64_t block_warps(const Along& rows) {
  return rows.bytes == 2 && rows.extent % kLineOfHalves == 0 ? kHalvesWarps : kBlockWarps;
}

// Told as many registers as a thread of 16 warps has: a block of eight took twice as many by itself, and was alone.
Deal cut_to_full(const Machine& machine, const Outline& columns, int64_t taken, Deal d) {
  const int64_t full = machine.registers / (kBlockHeldWarps * kLanes);
  const bool is_whole =
      columns.longest == power_of_two_from(columns.longest) && columns.longest <= kChunk;
  if (d.cluster == 1 && d.warps < kBlockHeldWarps && (!is_whole || taken > full))
    d.resident = blocks_held(machine, kLanes * d.row_warps * d.warps, full);
  return d;
}

// All of a column in registers: by up to eight warps, else with more in each thread, but where there
// are so few columns that all threads are wanted. Halves are
// read in pairs (long ones by hold_words), but one by one by the whole warps of short columns, and of long ones that
// threads cannot hold so: of these a block has neighbours that make up a sector. Of f32 they make up two, and of
// rows that begin anywhere, each in one sector more, four. (H200, ms, by eight lanes, 16, 32: softmax over 1000 of
// f32[4,1000,4096] .053 .047 .057, of [4,1000,3073] .067 .060 .053; standardise .075 .072 .062, .078 .068 .061;
// over 100, 200, 500 and 1500 of 3073 by 16 (1500: eight) .043 .053 .059 .118, by 32 .040 .044 .048 .090; over 500 of
// bf16 .071 and .054.) A chunk of halves that is not whole has no pairs either: of 1000 of [8,1000,4096], by 16 warps, .098,
// one by one by eight .069.
Deal hold_by_elements(const Machine& machine, const Outline& columns, const Along& rows) {
  const int64_t padded = power_of_two_from(columns.longest),
                word = std::min(rows.vector, std::max<int64_t>(1, kWord / rows.bytes));
  const bool is_short = word > 1 && padded > kHeld / word && padded <= kShortColumn,
             is_long = padded > kChunk;
  if (is_long && word > 1) {
    if (const std::optional<Deal> held = hold_words(machine, columns, word, rows)) return *held;
  }
  const bool is_cut = rows.bytes == 2 && columns.longest > kMostCut &&
                      columns.longest < kChunk && columns.streams == 1;
  const int64_t vector = is_short || is_long || is_cut ? 1 : word;
  const auto hold = [&](int64_t elements, int64_t lanes) {
    return held_deal(columns, vector, elements, lanes);
  };
  const auto fills = [&](const Deal& held) { return keeps_busy(machine, columns, held); };
  if (rows.vector * rows.bytes < kAlignedAccess && padded >= kShortColumn &&
      columns.longest * columns.streams <= most_whole(rows.bytes)) {
    const Deal whole = hold(2 * kHeld, kLanes);
    if (fills(whole)) return in_own_block(machine, columns, kBlockWarps, whole);
  }
  const bool is_wide = (rows.bytes == kWord && !is_long) || is_cut;
  const int64_t lanes = is_wide ? kHeldColumns : kSector / (word * rows.bytes);
  const Deal some = hold(kHeld, is_short ? kLanes : kHeldColumns / (is_cut ? 1 : word)),
             more = hold(2 * kHeld, lanes), most = hold(4 * kHeld, lanes);
  const int64_t taken = registers_of(columns, more), block = block_warps(rows);
  if (some.warps <= kHeldWarps ||
      (some.warps <= kBlockHeldWarps && (!fills(more) || taken > kMostCutToFull)))
    return in_own_block(machine, columns, block, in_clusters(machine, columns, some));
  if (more.warps > kHeldWarps && most.warps <= kHeldWarps && fills(most) &&
      4 * kHeld * columns.longest / padded <= kMostInTurn)
    return in_own_block(machine, columns, 2 * kHeldWarps, most);
  const Deal shared =
      in_own_block(machine, columns, block, in_clusters(machine, columns, more));
  const bool is_cut_to_full = word > 1 && !is_cut && columns.writes && fills(more) &&
                              taken <= kMostCutToFull &&
                              (is_long || columns.longest < padded || columns.streams > 1);
  return is_cut_to_full ? cut_to_full(machine, columns, taken, shared) : shared;
}

}  // namespace

Deal hold_columns(const Machine& machine, const Outline& columns, const Along& rows) {
  if (const auto again = read_again_in_turns(machine, columns, rows)) return *again;
  Deal d = in_pairs(machine, columns, rows, hold_by_elements(machine, columns, rows));
  d = in_fours(machine, columns, rows, in_half_the_warps(machine, columns, rows, d));
  return d.resident > 0 ? d : with_its_registers(machine, columns, rows, d);
}

}  // namespace tiny_compile
