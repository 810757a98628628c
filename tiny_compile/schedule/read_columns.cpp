// How does a block go down columns that are read once? Lanes are neighbouring rows of the kernel, and share a
// column where more threads are wanted or fewer columns make up a piece of memory.
//
//   sum over the first of [1024,4096]          rows grid · lane 16
//                                              loop register 32 · serial 2 · warp 8 · lane 2 from 16 resident=2
#include "tiny_compile/schedule/read_columns.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kUnderWay = 64;  // bytes of a thread at a time, of a column that is read once
constexpr int64_t kShortRead = 32;  // elements of one that is short
constexpr int64_t kFewLoads = 2;    // arrays, of which a thread has more under way
constexpr int64_t kOfReader = 128, kOfLightReader = 64;  // its registers
constexpr int64_t kChosenUnderWay = 128;                 // where data chooses each,
constexpr int64_t kMostPlaces = 32;       // of as many places, two registers each
constexpr int64_t kSeveralUnderWay = 16;  // elements, where several sums are of several arrays
constexpr int64_t kAccess = 8;            // bytes that a lane reads of it at a time
constexpr int64_t kFewElements = 4;       // of a column, which is over before others begin:
constexpr int64_t kRowsOfThread = 2;      // a thread has two
constexpr int64_t kOnceLanes = 16;        // of its rows
constexpr int64_t kOnceWarps = 8;         // that share it,
constexpr int64_t kFewOnceWarps = 4;      // or where blocks are many
constexpr int64_t kLongPlaces = 2048;     // elements, whose place more look for
constexpr int64_t kMostWarps = 32;        // of a column, where there are few columns
constexpr int64_t kFewLanes = 8;          // of neighbours then
constexpr int64_t kBlockWarps = 8;        // where lanes are rows
constexpr int64_t kChunkWarps = 4;        // of a chunk of several
constexpr int64_t kMostChunks = 8;        // that a block reads at a time
constexpr int64_t kNeighbours = 4;        // columns of a thread, where blocks are many:
constexpr int64_t kTurns = 3;             // these for each multiprocessor
constexpr int64_t kManyOfPacks = 256;     // elements of a column of packs
constexpr int64_t kFewTurns = 2, kThree = 3;  // blocks of each multiprocessor
constexpr int64_t kMostlyFull = 6;         // a turn that is not, but for one of so many parts
constexpr int64_t kElementsUnderWay = 16;  // of a column, of a thread of theirs

// So many that pieces of memory are a line: a lane's access is a word or more. (H200: sum over 2559 of pairs of
// bf16[..,81006] by 16 lanes .186 ms, by 32 .143.)
int64_t lanes_of_pieces(const Along& rows) {
  return rows.vector * rows.bytes > kWord ? kOnceLanes : kLanes;
}

// More threads share a column while there are far fewer than `many` in all; then fewer neighbouring columns go to a
// warp. A thread has two short ones. Whatever four warps have all of, blocks are of four.
Deal share_columns(const Machine& machine, const Outline& columns, const Along& rows,
                   int64_t many, Deal d) {
  const int64_t padded = power_of_two_from(columns.longest);
  const auto threads = [&] { return d.lanes() * d.warps; };  // of a column
  while (d.warps < kMostWarps && d.registers * threads() < padded &&
         columns.rows / (d.row_vector * d.row_registers) * threads() * 4 < many * 3) {
    if (d.warps > kOnceWarps && d.row_lanes > kFewLanes && rows.vector > 1)
      d.row_lanes /= 2;
    else
      d.warps *= 2;
  }
  if (d.warps == 1 && padded <= kFewElements && d.row_vector == 1 &&
      columns.rows >= kRowsOfThread * many_threads(machine))
    d.row_registers = kRowsOfThread;
  return in_blocks_of(d.warps == kFewOnceWarps ? kFewOnceWarps : kBlockWarps, d);
}

// What data chooses, a row of a table for each element, lies elsewhere for each: lanes read whole accesses, and
// ask once for the places of more columns. (Mean of 197 embeddings of 2048 halves: .139 ms by pairs, by
// eight .062.)
Deal read_chosen_columns(const Machine& machine, const Outline& columns, const Along& rows) {
  const int64_t padded = power_of_two_from(columns.longest),
                word = std::min(rows.vector, std::max<int64_t>(1, kAccess / rows.bytes));
  Deal d;
  d.row_lanes = kLanes;
  d.row_vector = rows.vector;
  while (d.row_vector > word &&
         columns.rows / d.row_vector * std::min(kOnceWarps, padded) < many_threads(machine))
    d.row_vector /= 2;
  d.registers =
      std::clamp<int64_t>(kChosenUnderWay / (d.row_vector * rows.bytes), 1, kMostPlaces);
  if (columns.loads > 1 && columns.reductions > 1)
    d.registers = std::min(d.registers, kSeveralUnderWay);
  while (d.warps < kOnceWarps && 2 * d.registers * d.warps < padded) d.warps *= 2;
  return share_columns(machine, columns, rows, many_threads(machine), d);
}

bool is_half(const Along& rows) { return rows.bytes < kWord; }

bool is_long(const Outline& columns) { return columns.longest > kShortRead; }

// Of a thread, in bytes, and what that is in elements: twice as many where one or two arrays of words are read and
// columns are not short, or so many that a thread may have all of up to 32 (H200: largest of 25 of f32 in .81 of the
// time), and of halves where four warps have all of a column so (H200, ms: masked mean over 77 of bf16[432,77,4096]
// .0788, .0697); no more than several sums of several arrays leave registers for.
int64_t elements_under_way(const Machine& machine, const Outline& columns, const Along& rows,
                           int64_t neighbours) {
  const bool is_whole = power_of_two_from(columns.longest) == kShortRead &&
                        columns.rows >= kRowsOfThread * many_threads(machine),
             is_more =
                 !is_half(rows) && columns.loads <= kFewLoads && (is_long(columns) || is_whole);
  const bool has_all = rows.vector > 1 && columns.longest <= kFewOnceWarps * kShortRead;
  const int64_t bytes = is_more || (is_half(rows) && has_all) ? 2 * kUnderWay : kUnderWay,
                elements =
                    std::max<int64_t>(1, std::max<int64_t>(1, bytes / rows.bytes) / neighbours);
  const bool has_several = columns.loads > 1 && columns.reductions > 1;
  return has_several ? std::min(elements, kSeveralUnderWay) : elements;
}

// Neighbours that a thread and a warp have: eight bytes a lane, or four of words where rows begin anywhere, whose
// pieces of memory share sectors, which one thread asks for one after another. Fewer where threads would be few. (H200,
// ms: sum over 384 of a product of bf16[..,32000] by pieces of 64 bytes .0154, of 128 .0098.)
Deal neighbours_of(const Machine& machine, const Outline& columns, const Along& rows) {
  const int64_t padded = power_of_two_from(columns.longest), many = many_threads(machine) / 2,
                word = std::min(rows.vector, std::max<int64_t>(1, kWord / rows.bytes));
  Deal d;
  d.row_lanes = kLanes;
  d.row_vector = std::min(rows.vector, std::max<int64_t>(1, kAccess / rows.bytes));
  if (rows.vector == 1 && rows.bytes == kWord && is_long(columns) && !columns.places)
    d.row_registers = kNeighbours;
  const auto threads = [&] {
    return columns.rows / (d.row_vector * d.row_registers) * std::min(kOnceWarps, padded);
  };
  const bool in_pieces = is_half(rows) || !is_long(columns) || threads() < many;
  const int64_t lanes = in_pieces ? lanes_of_pieces(rows) : kLanes,
                of_column = is_half(rows) && columns.costly ? 1 : kLanes / lanes;
  while (d.row_vector > word && threads() * of_column < many) d.row_vector /= 2;
  while (d.row_registers > 1 && threads() < many) d.row_registers /= 2;
  d.registers = elements_under_way(machine, columns, rows, d.row_vector * d.row_registers);
  if (d.registers < padded) d.row_lanes = lanes;
  return d;
}

// The compiler is told how many registers are enough: by itself it takes fewer, and then reads one element
// after another. But one array of halves is read as well by itself, and halves one by one by more than eight
// warps, or all at once, and several arrays by more than eight. Of exponentials that are added up it computes
// so many side by side that 128 registers are too few, and is told 64. (H200, ms: exp, sum over 1024 of
// f32[..,30000] .0547, .0378; over 36928 of 5120 .2245, .2190; sums of products of two of bf16[..,77] .052,
// .025, of [..,512] by 16 warps .0097, .0154.)
Deal with_registers_to_read(const Machine& machine, const Outline& columns, const Along& rows,
                            Deal d) {
  const bool is_well_by_itself = rows.vector == 1 ? d.warps > kOnceWarps : columns.loads == 1;
  const bool takes_more = columns.loads > kFewLoads || columns.reductions > 1,
             in_turns = d.registers * d.lanes() * d.warps < columns.longest;
  if (rows.bytes == 1 || (is_half(rows) && (is_well_by_itself || !in_turns ||
                                            (takes_more && d.warps > kOnceWarps))))
    return d;
  const bool has_few = (is_half(rows) && !takes_more) || columns.exponentials;
  d.resident = blocks_held(machine, kLanes * d.row_warps * d.warps,
                           has_few ? kOfLightReader : kOfReader);
  return d;
}

// Blocks that read packs of halves and are few, though not so few that more warps are wanted: with twice as
// many under way three of them fit a multiprocessor, where their turns are full. (H200, sum over 1024 and
// others of bf16[..,5120], ..: 21 that are full from .68 to .88 of the time and from .86 to 1.00; but in a
// fourth block's turn 1.22.)
bool are_threes_of_packs(const Machine& machine, const Outline& columns, const Along& rows,
                         const Deal& d) {
  const int64_t blocks = columns.rows / (d.row_lanes * d.row_vector),
                turn = kThree * machine.multiprocessors, turns = ceil_divide(blocks, turn);
  return is_half(rows) && d.row_vector * rows.bytes == kAccess && columns.reductions == 1 &&
         columns.loads == 1 && columns.longest >= kManyOfPacks &&
         blocks >= kFewTurns * machine.multiprocessors &&
         (turns == 1 || (turns == 2 && blocks * kMostlyFull > turn * 2 * (kMostlyFull - 1)));
}

// As many warps as there are elements for.
Deal by_warps(const Outline& columns, int64_t most, Deal d) {
  const int64_t padded = power_of_two_from(columns.longest);
  while (d.warps < most && d.registers * d.lanes() * d.warps < padded) d.warps *= 2;
  return d;
}

Deal in_threes(const Outline& columns, Deal d) {
  d.registers *= 2, d.resident = kThree;
  return by_warps(columns, kOnceWarps, d);
}

}  // namespace

// A part of it at a time. (H200, ms, before and with as many registers as it needs: sum over 16380 of f32[..,4097]
// .0757, .0682; over 1000 of [64,1000,513] .0403, .0363; of a product of two bf16[..,1023] .0681, .0459, [..,768]
// .0456, .0366; over 196 of [128,196,513], largest, .0173, .0125. Places take longer to exchange than to compare: by
// eight warps, by four, argmin over 384 of f32[424,384,77] .0192, .0144, over 128 of 65536 .0110, .0101, over 1024 of
// 8192 .0482, .0449.)
Deal read_columns(const Machine& machine, const Outline& columns, const Along& rows) {
  if (columns.chosen) return read_chosen_columns(machine, columns, rows);
  const int64_t many = many_threads(machine);
  Deal d = neighbours_of(machine, columns, rows);
  const bool is_shared = power_of_two_from(columns.longest) > d.registers;
  if (are_threes_of_packs(machine, columns, rows, d)) return in_threes(columns, d);
  const int64_t blocks = columns.rows / (kLanes * d.row_vector * d.row_registers);
  const bool are_many = d.row_registers == kNeighbours && blocks > 2 * machine.multiprocessors;
  const int64_t most = are_many || (columns.places && columns.longest <= kLongPlaces)
                           ? kFewOnceWarps
                           : kOnceWarps;
  d = by_warps(columns, most, d);
  const bool has_much = is_long(columns) && !is_half(rows);
  d = are_many ? in_blocks_of(kFewOnceWarps, d)
               : share_columns(machine, columns, rows, has_much ? many / 2 : many, d);
  return is_long(columns) && is_shared ? with_registers_to_read(machine, columns, rows, d) : d;
}

// Many columns of many chunks, each by a warp, more than eight in turns, so that warps meet once. (H200: sum
// over 32768 of f32[..,16384] .495 ms, by 32 warps chunk after chunk .687; over 8192 of bf16[..,20000] .092, by
// four warps .105.)
Deal read_chunks_by_warps(const Along& rows, int64_t chunks, Deal d) {
  if (chunks > kMostChunks) {
    d.row_lanes = kLanes;
    d.row_vector = std::min(rows.vector, std::max<int64_t>(1, kAccess / rows.bytes));
  }
  d.warps = 1;
  d.chunks = std::min(chunks, 2 * kMostChunks);
  d.registers = std::min(kElementsUnderWay,
                         std::max<int64_t>(1, kChosenUnderWay / (d.row_vector * rows.bytes)));
  return d;
}

// Chunks side by side, each by four warps whose threads have sixteen elements of two columns under way, or of
// four where there are many or they are halves; by more warps and the blocks of a cluster where there are few.
// (H200, 24 layouts each: sum over 2100 of f32[..,40000] .091 ms, by clusters .094 to .11; largest over 2304 of
// 1024 columns by a block .0129, by a cluster .0123. H100: sum over 8192 of 30000 by fours .352, by twos .378;
// over 32768 of 16384 chunk after chunk .715, by clusters .736.)
Deal read_long_columns(const Machine& machine, const Outline& columns, const Along& rows) {
  const int64_t chunks = power_of_two_from(ceil_divide(columns.longest, kChunk));
  Deal d;
  d.row_lanes = lanes_of_pieces(rows);
  d.row_vector = std::min(rows.vector, std::max<int64_t>(kNeighbours, kAccess / rows.bytes));
  d.warps = kChunkWarps;
  d.chunks = std::min(chunks, kMostChunks);
  const auto blocks = [&] {
    return ceil_divide(columns.rows, d.row_lanes * d.row_vector) * d.cluster;
  };
  const auto narrow_to = [&](int64_t bytes, int64_t turns) {  // where the blocks are fewer
    while (d.row_vector * rows.bytes > bytes && d.row_vector > 1 &&
           blocks() < turns * machine.multiprocessors)
      d.row_vector /= 2;
  };
  narrow_to(kAccess, kTurns);
  narrow_to(kWord, 1);
  while (2 * d.cluster <= std::min(machine.cluster, chunks) &&
         blocks() < machine.multiprocessors) {
    d.cluster *= 2;
    d.chunks = std::min(kMostChunks, chunks / d.cluster);
    if (d.chunks < kMostChunks) d.warps = 2 * kChunkWarps;
  }
  while (d.row_lanes > kFewLanes && rows.vector > 1 && blocks() < machine.multiprocessors)
    d.row_lanes /= 2;
  if (d.cluster == 1 && chunks >= kMostChunks && rows.vector > 1)
    return read_chunks_by_warps(rows, chunks, d);
  const bool is_whole = d.cluster * d.chunks >= chunks;  // else a thread has all of a chunk's
  if (!is_whole) d.warps = kMostWarps, d.chunks = 1;
  d.registers = is_whole ? kElementsUnderWay : kChunk / kMostWarps;
  return d;
}

// Few long ones that are read once and lie oddly: a block has a chunk of 32 columns at a time, the
// cluster all, or so many as it has blocks. (2839 of bf16[.., 1537], two arrays: 31 us; by threads
// whose columns lie apart 235.)
Deal read_odd_columns(const Machine& machine, const Outline& columns) {
  Deal d;
  d.row_lanes = kLanes;
  d.warps = kMostWarps;
  d.registers = kChunk / d.warps;
  d.cluster = std::min(machine.cluster, power_of_two_from(columns.longest) / kChunk);
  return d;
}

}  // namespace tiny_compile
