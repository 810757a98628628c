// The tile program: what a kernel under a schedule means, thread by thread.
//
//   tile sum_1 grid 4 block 16 warps {
//     array t0: f32[16]
//     shared given0: f32[512]
//     row: 100 = min(block*32 + lane, 99)
//     for q < 16 unrolled {
//       k: 256 = q*16 + warp
//       $0 = load x[k*100 + row]
//       t0[q] = $0
//     }
//     ...
//   }
//
// All threads of a block run the same statements. Integers are Exprs over `block`, `rank`, `warp`,
// `lane`, `thread` (warp*32 + lane) and what Let and For declare; where blocks stand in clusters,
// `block` is the cluster's number and `rank` that of the block in it; values are a kernel's scalars, of
// which an Element reads an array where it is defined. A printer writes a statement as it stands and
// decides nothing.
//
// On a CPU a block is one thread, and does the units of work begin .. end - 1 that it is handed:
//
//   tile exp_1 units 6400 {
//     for row: 64 = begin/100 .. (end + 99)/100 {
//       first: 100 = max(begin - row*100, 0)
//       last: 101 = min(end - row*100, 100)
//       for i1: 100 = first .. last vector {
//         $0 = load x[row*128 + i1]
//         ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

//   Register  a thread's own
//   Shared    a block's
//   Cluster   all blocks' of a cluster: element e stands in block e % cluster at e / cluster
//   L1, L2    of a CPU's thread: few enough bytes to stay in that cache
//   Memory    of a CPU's thread, as many as it takes: what it holds stays while the thread is handed units
//   Kept      a few integers of a CPU's thread, 0 before it is handed the first units, that stay as long
enum class Space : uint8_t { Register, Shared, Cluster, L1, L2, Memory, Kept };

const char* name_of(Space space);  // as the text has it: "shared"

struct Array {
  std::string name;
  DType dtype = DType::f32;  // its elements are in the compute type of this
  Expr size = 1;             // in memory what sizes say, else a number
  Space space = Space::Register;
  bool packed = false;  // halves as they lie in memory: of a thread, two to a register
  bool operator==(const Array&) const = default;
};

//   Let      name = index, known in the statements that follow; in 0 .. place - 1 where it is read; or
//            what the integer scalar `value` is, or else the nearest of 0 .. place - 1
//   Define   scalar number `value` is computed here; or read from array[index], if one is named
//   Divisor  the f32 scalar `value` divides many others: what that takes is computed here, once
//   Set      array[index] = value
//   Load     array[place ..] = buffer[index ..], `width` neighbours in one access, or the first `left`
//            of them; of a scalar `value`, a load: at0, at1, ... are its operands, and where one is out
//            of range an error is raised and the array stays as it is
//   Store    buffer[index] = value
//   StoreAll buffer[index ..] = array[place ..], `width` neighbours in one access, or the first `left`
//   Tree     array[0] = what its first `index` elements, one at least, come to by the contract's tree of
//            `op`, a sum, product, maximum or minimum of floats; the others are used up; on a CPU
//   Prefetch buffer[index ..], `width` neighbours of them, or the first `left`, will be read soon:
//            nothing else
//   Stream   buffer[index ..] = the first `place` elements of an array, past the caches; on a CPU
//   Update   buffer[index], which the thread has stored, or another of its block before a barrier, = what it
//            is combined with `value` by `op`, of a scatter; at0 in the index is the scalar `chosen`, if it has
//            one: where that is not in 0 .. place - 1, an error is raised and nothing changes. Or the same of
//            array[index], a block's integers, which any of its threads add to as they come
//   UpdateAll  the same of a chunk: for each e < left, at0 = chosen[e], an array's; of -1 nothing. Values
//            of the same place are combined first; array[e*width ..], `from` neighbours, are theirs, and
//            used up; on a CPU
//   For      body for name = from .. index - 1, below `place`; `unrolled`: indices of registers may
//            use the name; `vector`: on a CPU, no turn reads what another writes; `transposed`: the body
//            is a loop of vectors which loads what lies side by side along this one and puts it in an
//            array side by side along its own: by squares that are transposed in registers;
//            `multiplied`: each turn adds a product to every sum of a tile, which stay in registers (multiplied.h)
//   If       body where index < place; or where the bool scalar `value` is true
//   Else     body where the If right before it has none
//   Shortcut body: quotients by a Divisor and f32 exponentials in it may take short ways that say
//            where they are not exact; then all of it is done again the long way. It has no
//            stores, barriers or lanes' elements, and reads nothing that it sets. With a scalar
//            `value` no f32 exponent in it is above that, which decides the way before: the body is
//            done once, may read what it sets, and has no quotients
//   Barrier  of the block's threads, which all come to it
//   ClusterBarrier  of all threads of the cluster's blocks
//   ClusterStart  all threads of the cluster wait here until each of its blocks has begun, and so
//            is there to be sent to
//   Send     array[index] = value in another block or this one, of a cluster's array, each element
//            once; nobody waits
//   Await    a block waits until all that it has of the array has been sent
enum class StatementKind : uint8_t {
  Let,
  Define,
  Divisor,
  Set,
  Load,
  Store,
  StoreAll,
  Stream,
  Tree,
  Update,
  UpdateAll,
  Prefetch,
  For,
  If,
  Else,
  Shortcut,
  Barrier,
  ClusterBarrier,
  ClusterStart,
  Send,
  Await
};

struct Statement {
  StatementKind kind = StatementKind::Barrier;
  std::string name;
  Expr index, place, from;
  Expr left;        // of a Load, StoreAll or Prefetch: elements that there are; 0: all of them
  int chosen = -1;  // of an Update a scalar, or none; of an UpdateAll an array
  int value = -1;   // a scalar
  int array = -1;   // of the tile
  int buffer = -1;  // of the program
  int width = 1;
  Op op = Op::sum;  // of a tree or an update
  bool unrolled = false, vector = false, transposed = false, multiplied = false;
  std::vector<Statement> body;
  bool operator==(const Statement&) const = default;
};

using Body = std::vector<Statement>;

struct Tile {
  Kernel kernel;  // what it does; its scalars, and behind them those of the tile alone
  std::vector<Array> arrays;
  Expr grid = 1;     // clusters
  int cluster = 1;   // blocks of a cluster
  int warps = 1;     // of a block
  int resident = 0;  // blocks that fit a multiprocessor at least; 0: what registers allow
  bool alone =
      false;       // on a GPU: threads share nothing and do not wait, and count as a CPU's does
  Expr units = 0;  // on a CPU: of work; 0 on a GPU
  Expr grain = 1;  // units that are worth a thread
  int together = 1;  // units that a thread takes at once where it has so many
  Body body;
  bool operator==(const Tile&) const = default;
};

Expr block_of(const Tile& tile);   // 0 .. grid - 1
Expr rank_of(const Tile& tile);    // 0 .. cluster - 1
Expr warp_of(const Tile& tile);    // 0 .. warps - 1
Expr lane_of_warp();               // 0 .. 31
Expr thread_of(const Tile& tile);  // 0 .. 32*warps - 1
// On a CPU: the units that a thread is handed.
inline bool is_on_cpu(const Tile& tile) { return !tile.units.is_constant(0); }
// Whether threads do not go together: loops may be of another length in each.
inline bool goes_alone(const Tile& tile) { return is_on_cpu(tile) || tile.alone; }
Expr begin_of(const Tile& tile);         // 0 .. units
Expr end_of(const Tile& tile);           // 0 .. units
std::vector<Expr> given(const Tile& t);  // all that a tile's integers are made of

// Statements, and what they are made of.
Statement let(const std::string& name, const Expr& extent, const Expr& value);
Statement let_chosen(const std::string& name, const Expr& extent, int value);
Statement define(int scalar);
Statement define_from(int scalar, int array, const Expr& index);
Statement divisor(int scalar);
Statement set(int array, const Expr& index, int value);
Statement load_vector(int array, const Expr& place, int buffer, const Expr& index, int width);
Statement store(int buffer, const Expr& index, int value);
Statement store_vector(int buffer, const Expr& index, int array, const Expr& place, int width);
Statement stream(int buffer, const Expr& index, int array, const Expr& count);
Statement tree_over(Op op, int array, const Expr& count);
Statement update(Op op, int buffer, const Expr& index, const Expr& limit, int chosen,
                 int value);
Statement update_at(Op op, int buffer, const Expr& index,
                    int value);  // a place that nobody chooses
Statement add_to(int array, const Expr& index, const Expr& limit, int chosen, int value);
Statement ahead_of(int buffer, const Expr& index, int64_t width);
Statement for_each(const std::string& name, int64_t extent, bool unrolled, Body body);
Statement for_range(const std::string& name, const Expr& extent, const Expr& from,
                    const Expr& to, Body body);
Statement if_less(const Expr& index, const Expr& than, Body body);
Statement if_true(int value, Body body);
Statement otherwise(Body body);
Statement shortcut(Body body, int highest = -1);
Statement barrier();
Statement cluster_barrier();
Statement cluster_start();
Statement send(int array, const Expr& index, int value);
Body sent(Body body);  // what it sets is sent
Statement await(int array);
// Whether all threads that come to a loop have the same turns, 0 .. place - 1.
inline bool is_even(const Statement& loop) {
  return loop.from.is_constant(0) && loop.index == loop.place;
}
bool can_be_sent(DType dtype);  // as words of four bytes, or eight
void append(Body& body, Body more);
bool contains(const Statement& statement, StatementKind kind);  // it is one, or one is in it
bool contains_any(const Body& body, StatementKind kind);
int64_t bytes_of_element(const Array& array);
Expr bytes_of(const Array& array);

// tile/number.cpp: new arrays and scalars, and their numbers.
int add_array(Tile& tile, Array array);
// The same one if there is one already, else a new one by a name that no other has.
int array_once(Tile& tile, Array array);
// Each a new scalar: an Element is what the array holds where it is defined, that of the lane whose number
// differs in the bits of `lane_xor`.
int add_element(Tile& tile, int array, const Expr& index, const Expr& lane_xor = 0);
int add_votes(Tile& tile, int holds, bool below);
Expr lane_xor_of(const Scalar& element);  // 0: its own
int add_apply(Tile& tile, Op op, DType dtype, std::vector<int> operands);
int add_constant(Tile& tile, const Literal& value);

// tile/number.cpp: the scalars behind the kernel's `first` in the order in which the text comes to
// them, without those that it never does; equal constants are one. Tiles that say the same are equal.
Tile numbered(Tile tile, size_t first);

// tile/text.cpp, tile/parse.cpp ------------------------------------------------------------------
// `when`: the sizes that it is for, where these are not all.
std::string print(const Program& program, const Tile& tile,
                  const std::vector<SizeRange>& when = {});
// The tile of one of the program's kernels; throws tc::Error with line and column.
Tile parse_tile(const Program& program, std::string_view text);

}  // namespace tiny_compile
