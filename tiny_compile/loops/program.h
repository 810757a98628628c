// The Program: loops over flat buffers. What `lower` makes of a Graph and `fuse` rewrites.
//
//   program softmax {      # of symbolic sizes: softmax[n: 1..4096]; elsewhere: on cuda for a100
//     input x: f32[4096,1024]
//     output y: f32[4096,1024]
//     kernel softmax rows(i: 4096) {                         # softmax.cpp:3
//       r0: f32 = max(j: 1024) load x[i*1024 + j]
//       $2 = exp(sub(load x[i*1024 + j], r0))
//       r1: f32 = sum(j: 1024) $2
//       store y[i*1024 + j] for (j: 1024) = div($2, r1)
//     }
//     launch softmax
//     return y
//   }
//
// A kernel is parallel rows and ordered steps. A step either reduces over its inner axes into a
// register, one a row, or stores for each point of rows x inner. Scalar computations are a DAG
// in which equal subexpressions are one node; views are gone, they became index expressions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/expr.h"
#include "tiny_compile/base/literal.h"
#include "tiny_compile/graph/graph.h"
#include "tiny_compile/graph/op.h"
#include "tiny_compile/loops/schedule.h"

namespace tiny_compile {

enum class Role : uint8_t { Input, Output, Temporary };

struct Buffer {
  std::string name;  // unique; letters, digits and '_'
  Role role = Role::Temporary;
  Type type;             // shape of the tensor it holds
  Expr size;             // elements reachable; > product(shape) only for strided inputs
  Shape strides;         // of an input that is not row-major, else empty; may be negative
  Expr offset;           // elements before element [0,...,0] (negative strides), else 0
  int align = 16;        // of an input: bytes that element [0,...,0]'s address is a multiple of
  bool donated = false;  // an input that the caller gives up: an output may be written over it
  int64_t place = -1;    // of a temporary: byte offset in the arena, set by plan_memory
  int over = -1;         // the buffer whose bytes it takes (in_place.h), set by plan_memory
  bool operator==(const Buffer&) const = default;
};

// The place number k that data chooses: at0, at1, ...
inline Symbol indirect(size_t k) { return {str("at", k), SymbolKind::Indirect}; }

// An axis is a loop. Its name is a symbol with bounds [0, extent-1] in
// the kernel's expressions.
struct Axis {
  std::string name;
  Expr extent;
  Expr symbol() const { return Expr::index(name, extent); }
  bool operator==(const Axis&) const = default;
};

enum class ScalarKind : uint8_t {
  Constant,
  Load,
  Index,
  Register,
  Apply,
  Philox,
  Element,
  Votes
};

// One node of a kernel's DAG; operands are indices of earlier scalars of the same kernel.
//   Constant  value
//   Load      buffer[index], or `value` where the bool scalar `mask` is false (-1: always).
//             Symbols at0, at1, ... in index stand for the integer scalars `operands`, which
//             must lie in [0, limits[k]); where one does not, the result is 0 and an error is
//             raised.
//   Index     the expression `index` as an i64
//   Register  the result of the reducing step number `step`
//   Apply     the pointwise op `op` on operands; of cast, `dtype` is the target
//   Philox    word `index` of draw value+operands[1] under seed operands[0]; u32
//   Element   of tile programs alone (tile/tile.h): array number `step` at `index`, in the lane
//             whose number differs in the bits of `value`
//   Votes     of tile programs alone: in how many lanes of the warp the bool scalar operands[0] is true; of step 1
//             in how many of those below this one; i32
struct Scalar {
  ScalarKind kind = ScalarKind::Constant;
  DType dtype = DType::f32;
  Op op = Op::constant;
  std::vector<int> operands;
  Literal value;
  int buffer = -1;
  Expr index;
  int mask = -1;
  std::vector<Expr> limits;
  int step = -1;
  bool operator==(const Scalar&) const = default;
};

enum class StepKind : uint8_t { Reduce, Dot, Store, Fold, Scan, Sort, Scatter };

// One step, run for each row in order.
//   Reduce   r = op(inner) value               op: a reduction; inner in order, last fastest; or
//            a scan, whose total it is (the last of the running results)
//   Dot      r = dot(inner) value * other      fma from +0, ascending
//   Store    buffer[index] = value for (inner)
//   Fold     buffer[index] = sum of value over the last row axis, for (inner); index is free of it
//   Scan     buffer[index] = op's running result of value for (inner), in order (graph/scan.h);
//            `other` stands before the row, if there is one; exclusive: each result is what stands
//            before its element; mask: not stored where false; values: of cummax and cummin not
//            the place, but what stands there (as their total, in a Reduce, always does)
//   Sort     buffer[index] = places of value in order (graph/sort.h), of each `limit` elements of
//            (inner) apart where limit is not 0; alone in its kernel. `other` is its own result
//            for limit / 2, of an earlier kernel: only to merge; mask: for the first places
//   Scatter  buffer[index] = op(buffer[index], value) for (inner), ascending, rounded at each
//            update; index may use at0 = scalar `rhs` in [0, limit), else dropped with an error;
//            mask: skipped if false; `order` is its updates' numbers, sorted by place (order_updates.h),
//            which changes no result: a target finds its own by it
struct Step {
  StepKind kind = StepKind::Store;
  Op op = Op::sum;
  std::vector<int> inner;  // axes of the kernel that are not rows
  int value = -1;
  int rhs = -1;
  int mask = -1;
  int buffer = -1;
  Expr index;
  Expr limit;
  bool exclusive = false, values = false;
  DType dtype = DType::f32;  // of the register
  int order = -1;
  bool operator==(const Step&) const = default;

  // The scalars that it names; -1 for none.
  std::array<int, 4> roots() const { return {value, rhs, mask, order}; }
  std::array<int*, 4> roots() { return {&value, &rhs, &mask, &order}; }
};

inline bool makes_register(const Step& step) {
  return step.kind == StepKind::Reduce || step.kind == StepKind::Dot;
}

// Of cummax and cummin.
inline bool gives_places(const Step& step) {
  return step.kind == StepKind::Scan && !step.values &&
         (step.op == Op::cummax || step.op == Op::cummin);
}

struct Kernel {
  std::string name;             // after the user's ops: "add_gelu"
  std::vector<Axis> axes;       // rows first
  int rows = 0;                 // how many of them are rows
  std::vector<Scalar> scalars;  // operands before users
  std::vector<Step> steps;
  int again = 0;                     // how often its values were computed before
  std::optional<Schedule> schedule;  // once it is chosen; until then the defaults run
  std::vector<SizedSchedule> sized;  // instead, where its sizes are in their ranges
  std::vector<Location> where;       // of the ops in it, each once; not part of its value
};

bool operator==(const Kernel& lhs, const Kernel& rhs);

// How it is run: as was chosen, or by the defaults.
inline Schedule schedule_of(const Kernel& kernel) {
  return kernel.schedule.value_or(Schedule{});
}

// Who multiplies matrices: generated kernels, or the vendor's library wherever a kernel is a
// call of it (library_matmul.h), with f32 factors as they are or rounded to tf32.
enum class Matmul : uint8_t { Generated, Library, LibraryTf32 };

struct Program {
  std::string name = "main";
  Target target = Target::Cpp;
  Machine machine = default_machine(Target::Cpp);  // the target's
  Matmul matmul = Matmul::Generated;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;             // in an order in which they may run
  std::vector<std::vector<int>> launches;  // groups of independent kernels; or a product of
                                           // the library's and the sums it makes beside it
  std::vector<int> outputs;                // buffers
  int64_t arena_bytes = 0;                 // set by plan_memory
  std::vector<std::string> refusals;  // "sum_3 + exp_4: <reason>", from fuse; not its value
};

bool operator==(const Program& lhs, const Program& rhs);

// The same for another machine and its target. What schedules say stays; what they leave to the
// machine's defaults is that machine's.
Program for_machine(Program program, const Machine& machine);

// Hash-consing: add() returns the id of an equal scalar where there is one.
class ScalarTable {
 public:
  explicit ScalarTable(Kernel& kernel);  // indexes what is already there
  int add(Scalar scalar);
  int constant(const Literal& value);
  int index(const Expr& value);  // i64
  int apply(Op op, DType result, std::vector<int> operands);
  int load(const Program& program, int buffer, const Expr& index);
  const Kernel& kernel() const { return kernel_; }

 private:
  Kernel& kernel_;
  std::unordered_multimap<size_t, int> by_hash_;
};

// loops/normalize.cpp: drops dead scalars, numbers the rest in the order in which the steps first reach them
// (operands first, left to right), names rows i0, i1, ... and other axes j0, j1, ... and drops
// unused axes. Every pass returns normal kernels, so that equal kernels are equal values.
Kernel normalize(Kernel kernel);

// A load without a mask, from a place that the loops alone choose.
inline bool is_plain(const Scalar& s) {
  return s.kind == ScalarKind::Load && s.mask < 0 && s.operands.empty();
}

bool is_costly(const Scalar& scalar);  // transcendental or random

std::vector<int> row_axes(const Kernel& kernel);  // 0 .. rows-1
// What these axes are where they are counted through and the count is `flat`: the last goes fastest.
Substitution unflatten(const Kernel& kernel, const std::vector<int>& axes, Expr flat);
Expr row_count(const Kernel& kernel);  // product of the rows' extents
Expr inner_count(const Kernel& kernel, const Step& step);
std::vector<bool> buffers_read(const Program& program, const Kernel& kernel);
std::vector<bool> buffers_written(const Program& program, const Kernel& kernel);
std::vector<bool> reachable(const Kernel& kernel,
                            const Step& step);  // scalars a step evaluates

Literal identity(Op op, DType dtype);  // -0.0 for sum, -inf for max, ...

// loops/sizes.cpp -------------------------------------------------------------------------------
std::vector<Expr> sizes(const Program& program);  // symbolic ones, in order of appearance
Program substitute(const Program& program, const Substitution& values);  // numbers for sizes
Program substitute_in_buffers(Program program, const Substitution& values);  // kernels stay

// loops/bytes_moved.cpp ------------------------------------------------------------------------
//
// Fewest bytes a kernel can move: distinct elements it reads and writes, by their index ranges.
int64_t bytes_moved(const Program& program, const Kernel& kernel);
int64_t bytes_moved(const Program& program);  // over all launches

// loops/text.cpp -------------------------------------------------------------------------------
std::string print(const Program& program);
std::string print(const Program& program, const Kernel& kernel);
Program parse_program(std::string_view text);  // throws; the result is verified

// loops/verify.cpp -----------------------------------------------------------------------------
//
// Throws tc::Error naming kernel and step: axes, dtypes, registers, index bounds,
// order of kernels.
void verify(const Program& program);

}  // namespace tiny_compile
