// How a kernel is run, apart from what it computes. The defaults always run; the policy
// (schedule/policy.h) chooses one for each kernel that has none, a learner or the search edits it.
// No field changes a result's bits, but for a vendor's products.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/loops/layout.h"
#include "tiny_compile/loops/machine.h"

namespace tiny_compile {

struct Program;

//   Pointwise  one flat range of points, the last row axis innermost; CUDA: as the layout of rows says
//   Rows       one row after another, steps vectorised along their inner axes
//   Columns    lanes are neighbouring rows (the last row axis is the contiguous one)
//              CUDA: both are a row each thread, but what threads sort or scatter together (Rows), and what scans:
//              rows lie along memory, columns side by side
//   Tiles      blocks of a matmul's rows and columns
//   Layouts    CUDA: as the layouts say
//   Library    CUDA: a product is a call of the vendor's library (library_matmul.h), which alone may
//              change bits; only where the Program leaves products to it
enum class Strategy : uint8_t { Pointwise, Rows, Columns, Tiles, Layouts, Library };

// Whether a kernel starts while those before it still run. Where a line does not say, plan_memory says Yes where
// that is worth it (early.h).
enum class Early : uint8_t { Unsaid, Yes, No };

// Each field belongs to the generators and strategies that read it (fields(), below); elsewhere it
// keeps its default.
struct Schedule {
  Strategy strategy = Strategy::Rows;
  // Values that several steps use: kept where a rule says so, or all computed again. Rows of a CPU: what costs more to
  // compute than to read, up to 256 KiB a value, in all a MiB or half of L2, whichever is less (costly_values.h); the
  // others are computed again. Layouts: what a pass reads, or computes at some cost, and a later one over the same
  // loops takes, where these have no turns, however many registers that takes (kept_values.h). Points of a CPU: what
  // lies across comes into L2 in squares, or is read where it lies (transposed_loads.h)
  bool keep = true;
  // C++
  int lanes = 64;  // Columns: rows worked on at once
  // Reduce: 8 adds a chunk's eighths straight from memory, where it is full and its elements are cheap (eighths.h; some
  // chunk has to be), 1 by way of L1
  int unroll = 1;
  // Store: bypass the caches (large outputs that nobody reads soon), where results lie so (streamed_stores.h)
  bool stream = false;
  // Rows (Tiles: blocks; Columns: columns_unit rows each) that a thread takes at least: of more than there are one has
  // all. Points: whole squares, or whole short rows, rounded down, at least one. Rows and columns of symbolic sizes:
  // no fewer than are worth a thread
  int64_t grain = 1;
  // Tiles of a CPU (panel_shape.h)
  int down = 4, across = 16;                // rows and columns whose sums are in registers
  int panels_down = 16, panels_across = 4;  // such panels of a block
  int64_t depth =
      512;       // steps of the sums before the next panels are packed: 512 or all, where fewer
  int kept = 0;  // packed for a thread's next blocks: 1 columns, 2 rows too
  bool packs_rows = true;  // else they are multiplied from where they lie
  // Tiles of a GPU; its rows that are sorted
  // Rows and columns of a thread; elements that it sorts or merges, updates that it scatters: 4 or all, where fewer;
  // where blocks own runs of a result, columns of a pack
  int each = 4;
  int slice = 16;  // of the products' sums, that shared memory holds at a time
  // Rows and columns of a GPU that are scanned (scan_shape.h); rows whose updates are sorted (scatter_rules.h)
  // Of 16 elements of a row, a thread each, that a block has at a time: 16 or 256, or all
  int groups = 16;
  int beside =
      4;  // rows of a block; of rows that are scattered a warp's, where it has more than 4
  // Results of a GPU that rows with the same places are scattered to (scatter_rules.h)
  int64_t run = 1024;  // packs of points that a block owns, at most
  // Library
  int algorithm = 0;  // the library's choices in its order, from 0
  int split_k = 0;    // parts of the sum that its first choice makes apart; 0: as it likes
  // Pointwise of a GPU (point_packs.h)
  bool parted =
      false;  // packs within a row are written apart from those that go on into the next
  // Pointwise of a GPU, what is scanned, and Layouts
  int resident = 0;  // blocks that a multiprocessor holds at least; 0: the compiler's
  // Pointwise of a GPU, and Layouts: started while the kernels before it still run (from sm_90 on; others
  // start it behind them). It waits for them itself
  Early early = Early::Unsaid;
  Layout rows{};  // of the flat index of the row axes
  // Layouts
  // Blocks, or clusters, until what they ask for is read; rows that fold: 1, their block's next. 0: none asks, as where
  // nothing can be asked for (asked_ahead.h)
  int prefetch = 0;
  int outer =
      0;  // row axes, of the first, of which each block has one place; `rows` has the others
  std::vector<Layout> loops{};  // of each list of loops (laid_out.h)
  std::vector<Via> via{};
  bool operator==(const Schedule&) const = default;
};

// A size from `low` to `high`.
struct SizeRange {
  std::string size;
  int64_t low = 0, high = 0;
  bool operator==(const SizeRange&) const = default;
};
std::string str(const std::vector<SizeRange>& when);  // "n: 1..1024 and m: 1..64"

// How a kernel is run where its sizes are in all of these ranges.
struct SizedSchedule {
  std::vector<SizeRange> when;
  Schedule schedule;
  bool operator==(const SizedSchedule&) const = default;
};

const char* name_of(Strategy strategy);  // "pointwise"

inline bool is_early(const Schedule& schedule) { return schedule.early == Early::Yes; }

// Which values a field may have.
struct FieldValues {
  enum Kind { Range, Powers, Ends } kind = Range;  // Powers: of two; Ends: least or most alone
  int64_t least = 0, most = INT64_MAX;             // least 0 of Powers: 0, or from 1 on
};

// A generator that reads a field, for kernels of a strategy.
struct FieldReader {
  Target target;
  Strategy strategy;
  bool operator==(const FieldReader&) const = default;
};

// A field as the text has it, which values it may have, and who reads it: a row of the table in
// schedule.cpp. The printer, the parser, the verifier and the search go by it. What a line does not say is -1.
struct ScheduleField {
  const char* name;
  int64_t value, otherwise;  // the default
  FieldValues values;
  std::vector<FieldReader> readers;
};
std::vector<ScheduleField> fields(const Schedule& schedule);
bool is_read(const ScheduleField& field, Target target, Strategy strategy);

// "rows unroll=8 grain=4": the strategy and what is not the default.
std::string str(const Schedule& schedule);

// A field by the name it has there; false if there is none.
bool set_field(Schedule& schedule, std::string_view name, int64_t value);

// Columns: the rows that are handed to a thread at least, a part of the lanes.
inline int64_t columns_unit(const Schedule& schedule) {
  return schedule.lanes < 64 ? schedule.lanes : schedule.lanes / 4;
}

// Tiles of a GPU: a block's threads, down and across, and the elements from one k of a slice in shared memory to
// the next, which keeps what is stored for several k at a time in different banks.
inline constexpr int kTileSide = 16;
inline int slice_stride(const Schedule& schedule) { return kTileSide * schedule.each + 4; }

// loops/memory.cpp
//
// Gives every temporary a place in one arena; buffers whose lives do not overlap share bytes.
Program plan_memory(const Program& program);

}  // namespace tiny_compile
