// Who owns which bit of an index? A layout cuts a flat index into parts of powers of two, each
// made by a level of the machine, the highest first; see lessons/small/11_layouts.h. A loop's first
// part may be any number of warps:  loop warp 5 · register 32 · lane 32, of a row of 5000
//
//   rows grid · lane 32 · vector 4           a block has 128 neighbouring rows, a thread four
//   loop register 16 · warp 16               a row of 256: warp w has 16 r + w for each register r
//   loop register 4 · cluster 8 · warp 32 · lane 32   a row of 32768, of which 8 blocks have a part
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tiny_compile {

//   Grid      blocks: whatever the other parts leave, so its extent is 1 and it stands first; of rows,
//             and of loops that only store
//   Cluster   blocks that exchange what they have: of loops, and Grid's blocks are clusters then
//   Warp      warps of a block
//   Lane      lanes of a warp
//   Register  registers of a thread: an unrolled loop
//   Vector    neighbours that a thread reads and writes in one access: the lowest part
//   Serial    turns of a loop
//
// X(name, its word in the text, what the part is of, what combines the two halves of a reduction that one of
// its bits keeps apart)
// clang-format off
#define TC_LEVELS(X)                         \
  X(Grid,     "grid",     Blocks,  Nothing)  \
  X(Cluster,  "cluster",  Numbers, Exchange) \
  X(Warp,     "warp",     Numbers, Exchange) \
  X(Lane,     "lane",     Numbers, Shuffle)  \
  X(Register, "register", Thread,  Thread)   \
  X(Vector,   "vector",   Thread,  Thread)   \
  X(Serial,   "serial",   Turns,   Turns)
// clang-format on

enum class Level : uint8_t {
#define X(name, ...) name,
  TC_LEVELS(X)
#undef X
};

constexpr int kLevelCount = 0
#define X(...) +1
    TC_LEVELS(X)
#undef X
    ;

// Blocks: what the other parts leave. Numbers: of a cluster's blocks, of warps, of lanes. Thread: what a
// thread has at a time. Turns: what it has one after the other.
enum class PartOf : uint8_t { Blocks, Numbers, Thread, Turns };

// The cheapest first, but for Nothing: a reduction that may choose its order takes this one.
enum class CombinedBy : uint8_t { Nothing, Thread, Turns, Shuffle, Exchange };

struct LevelInfo {
  const char* name;  // "grid"
  PartOf part_of;
  CombinedBy combined_by;
};
const LevelInfo& info(Level level);

inline const char* name_of(Level level) { return info(level).name; }
inline CombinedBy combined_by(Level level) { return info(level).combined_by; }
inline bool is_numbered(Level level) { return info(level).part_of == PartOf::Numbers; }
inline bool is_own(Level level) { return info(level).part_of == PartOf::Thread; }

// Of what the threads of one block have at a time.
inline bool is_of_block(Level level) {
  return is_own(level) || (is_numbered(level) && level != Level::Cluster);
}

struct Part {
  Level level = Level::Grid;
  int64_t extent = 1;  // a power of two, but for a loop's first warps
  int64_t step = 1;    // Cluster, Warp, Lane: the part is number / step % extent
  bool operator==(const Part&) const = default;
};

using Layout = std::vector<Part>;

inline constexpr int64_t kAccessBytes =
    16;  // that a thread of a GPU reads or writes at once, at most

// An access of rows and loops that runs across what neighbouring threads have goes by way of shared
// memory: a block reads its rows and elements as `rows` and `loop` say, or stores them, and the threads
// take them there as the kernel's own layouts say. These cover the same, without the grid and turns.
//
//   rows grid · register 4 · warp 8 · lane 2    loop grid · lane 16 · vector 4
//   via load 1   rows lane 16 · vector 4        loop register 4 · warp 8 · lane 2   padding 1
struct Via {
  bool stores = false;
  int number = 1;  // of the kernel's loads or stores, from 1
  Layout rows, loop;
  int padding = 0;  // elements between what is side by side there
  int pieces = 1;   // that the loop is cut into: one at a time is in shared memory
  bool operator==(const Via&) const = default;
};

// Behind the others, where it is more than nothing.
void add_part(Layout& layout, Level level, int64_t extent, int64_t step = 1);

std::string str(const Layout& layout);  // "grid · warp 4 · lane 8 from 4"
std::string str(const Via& via);        // "via load 1 rows lane 8 loop register 4 padding 1"

// A bit of an index, and who owns it.
struct Bit {
  Level level = Level::Register;
  int64_t stride = 1;  // what it adds to the index
  int64_t step = 1;    // Cluster, Warp, Lane: its bit of their numbers
};

// All bits but the grid's in the order in which halves are added: in each digit of 1024 the
// highest first, from the lowest digit on.
std::vector<Bit> bits_in_order(const Layout& layout);

// Whether the later bit is done with the one before it: both are of one level, and of the warps' or
// blocks' number they are neighbours.
bool joins(const Bit& before, const Bit& later);

int64_t extent_of(const Layout& layout, Level level);  // product of its parts' extents
int64_t own_elements(const Layout& layout);            // that a thread has at a time
int64_t covered_by(const Layout& layout);              // product of all but the grid's

}  // namespace tiny_compile
