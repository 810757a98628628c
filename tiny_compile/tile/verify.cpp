// Question: may this tile be run? Statement by statement, with what is known where each stands
// (tile/known.h). As in C, what a body names and computes is gone behind it.
//
//   if lane < 16 { $7 = t0[0] of lane ^ 16 }   =>   "a shuffle where not all lanes of a warp come"
#include "tiny_compile/tile/verify.h"

#include <algorithm>
#include <set>

#include "tiny_compile/tile/again.h"
#include "tiny_compile/tile/multiplied.h"
#include "tiny_compile/tile/sent.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/turns.h"
#include "tiny_compile/tile/uses.h"
#include "tiny_compile/tile/verify_head.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostUnrolled = 1 << 16;  // times that a statement is written
constexpr int kNowhere = -1;                // how deep a scalar is that is not computed

// What a thread can do by itself, on a CPU or on any machine.
bool is_for_one_thread(const Statement& s, bool on_cpu) {
  switch (s.kind) {
    case StatementKind::Let:
    case StatementKind::Define:
    case StatementKind::Set:
    case StatementKind::Store:
    case StatementKind::Update:
    case StatementKind::For:
    case StatementKind::If:
    case StatementKind::Else: return true;
    case StatementKind::Stream:
    case StatementKind::Tree:
    case StatementKind::UpdateAll:
    case StatementKind::Prefetch: return on_cpu;
    default: return false;
  }
}

// A CPU's loops of vectors, squares and products.
bool has_own_way(const Statement& s) { return s.vector || s.transposed || s.multiplied; }

bool is_scalar(const Tile& tile, int id) {
  return id >= 0 && id < static_cast<int>(tile.kernel.scalars.size());
}

// What is known at a statement, of which everything before it has been checked.
struct Walk {
  const Program& program;
  const Tile& tile;
  Accesses accesses;
  const std::vector<Scalar>& scalars = tile.kernel.scalars;
  Known& known = accesses.known;
  // How deep the body is that computed each scalar.
  std::vector<int> defined = std::vector<int>(scalars.size(), kNowhere);
  std::set<int> sent{}, awaited{};  // arrays
  bool has_started = false;
  int depth = 0, statement = -1;
  int64_t unrolled = 1;
};

void check(Walk& w, const Body& body);

void require_defined(const Walk& w, int id) {
  require(is_scalar(w.tile, id), "no such scalar");
  const bool known = w.scalars[id].kind == ScalarKind::Constant || w.defined[id] != kNowhere;
  require(known, "uses a value that is not computed on all paths to here");
}

// --- integers and values ---------------------------------------------------------------------

void check_let(Walk& w, const Statement& s) {
  w.accesses.check_name(s.name);
  require(s.place.is_constant() && s.place.constant() >= 1, s.name, " is below no number");
  if (s.value < 0) {
    w.accesses.check_readable(s.index);
    return w.known.add_let(s.name, s.place, s.index);
  }
  require_defined(w, s.value);
  require(is_integer(w.scalars[s.value].dtype), "no integer is $", s.value);
  w.known.add_chosen(s.name, s.place);
}

void check_scalar(Walk& w, int id, const Scalar& s) {
  require(s.kind != ScalarKind::Constant && s.kind != ScalarKind::Register,
          "a constant or a register is not computed");
  for (int operand : s.operands) require_defined(w, operand);
  if (s.mask >= 0) require_defined(w, s.mask);
  w.accesses.check_computed(id, s);
}

void check_definition(Walk& w, const Statement& s) {
  require(is_scalar(w.tile, s.value), "no such scalar");
  const Scalar& scalar = w.scalars[s.value];
  const bool reads = s.array >= 0 || scalar.kind == ScalarKind::Element;
  require(w.defined[s.value] != w.depth, "computes a value a second time in this body");
  require(!reads || w.defined[s.value] == kNowhere, "reads a value that a body around it has");
  if (s.array >= 0) {
    w.accesses.check_element(s.array, s.index);
    require(scalar.dtype == w.tile.arrays[s.array].dtype, "$", s.value, " is ", scalar.dtype,
            ", ", w.tile.arrays[s.array].name, " is ", w.tile.arrays[s.array].dtype);
  } else {
    check_scalar(w, s.value, scalar);
  }
  w.defined[s.value] = w.depth;
}

// --- arrays and memory -----------------------------------------------------------------------

void check_element_set(Walk& w, const Statement& s) {
  require_defined(w, s.value);
  w.accesses.check_element(s.array, s.index);
  const DType value = w.scalars[s.value].dtype, array = w.tile.arrays[s.array].dtype;
  require(array == value || array == compute_type(value), "puts ", value, " in ",
          w.tile.arrays[s.array].name, ", which is ", array);
}

void check_set(Walk& w, const Statement& s) {
  require(w.sent.count(s.array) == 0, "sets what is sent");
  check_element_set(w, s);
}

// Of places that data chooses, those of a load of the same buffer.
void check_load(Walk& w, const Statement& s) {
  if (s.value < 0) return w.accesses.check_vector(s);
  require(is_scalar(w.tile, s.value), "no such scalar");
  const Scalar& load = w.scalars[s.value];
  require(load.kind == ScalarKind::Load && load.buffer == s.buffer && !load.operands.empty(),
          "$", s.value, " is no load of this buffer from places that data chooses");
  for (int operand : load.operands) require_defined(w, operand);
  w.accesses.check_vector(s, load.operands.size(), is_never(load));
}

void check_store(Walk& w, const Statement& s) {
  require(w.accesses.is_buffer(s.buffer), "no such buffer");
  require_defined(w, s.value);
  const Buffer& b = w.program.buffers[s.buffer];
  require(w.scalars[s.value].dtype == b.type.dtype, "stores ", w.scalars[s.value].dtype, " in ",
          b.name, ", which is ", b.type.dtype);
  w.accesses.check_place(s.buffer, s.index, -1, 0, false);
  w.accesses.use(s.buffer, true);
}

void check_update(Walk& w, const Statement& s) {
  w.accesses.check_update(s);
  require_defined(w, s.value);
  if (s.chosen >= 0) {
    require_defined(w, s.chosen);
    require(w.scalars[s.chosen].dtype == DType::i64, "no i64 is $", s.chosen);
  }
  const bool sums = s.array >= 0;
  const DType own =
      sums ? w.tile.arrays[s.array].dtype : w.program.buffers[s.buffer].type.dtype;
  require(w.scalars[s.value].dtype == own, "updates ",
          sums ? w.tile.arrays[s.array].name : w.program.buffers[s.buffer].name, " with ",
          w.scalars[s.value].dtype);
}

// --- messages in a cluster -------------------------------------------------------------------

void check_start(Walk& w) {
  require(w.depth == 1 && !w.has_started,
          "a cluster starts once, outside of loops and conditions");
  require(w.tile.cluster > 1, "a block alone has no cluster to start");
  w.has_started = true;
}

void check_send(Walk& w, const Statement& s) {
  check_element_set(w, s);
  const Array& array = w.tile.arrays[s.array];
  require(w.has_started, "sends before the cluster has started");
  require(array.space == Space::Cluster && can_be_sent(array.dtype), "sends to ", array.name,
          ": no cluster's array of words");
  require(w.awaited.count(s.array) == 0, "sends to ", array.name,
          ", which has been waited for");
  w.sent.insert(s.array);
}

void check_await(Walk& w, const Statement& s) {
  require(s.array >= 0 && s.array < static_cast<int>(w.tile.arrays.size()), "no such array");
  const std::string& name = w.tile.arrays[s.array].name;
  require(w.depth == 1, "waits for ", name, " in a loop or where some threads do not come");
  require(w.sent.count(s.array) > 0, "waits for ", name, ", which nobody sends");
  require(w.awaited.insert(s.array).second, "waits for ", name, " twice");
}

// All that is sent is waited for, and all that is waited for is sent.
void check_messages(const Walk& w) {
  for (int array : w.sent)
    require(w.awaited.count(array) > 0, "nobody waits for ", w.tile.arrays[array].name);
  require(w.has_started == !w.sent.empty(), "a cluster starts, and nothing is sent");
  const std::string why = why_not_sent_once(w.tile);
  require(why.empty(), why);
}

// --- loops -----------------------------------------------------------------------------------

// All that a GPU's threads do together is done as often by each.
void check_turns(const Statement& s) {
  require(!has_own_way(s), "a GPU has no loops of vectors");
  require(s.index.is_constant() && s.index.constant() >= 1 && s.index.constant() <= INT32_MAX,
          "a loop of ", s.index, " turns, not 1..", INT32_MAX);
}

void check_side_by_side(const Walk& w, const Statement& s) {
  std::vector<bool> known;
  for (size_t id = 0; id < w.scalars.size(); id++)
    known.push_back(w.scalars[id].kind == ScalarKind::Constant || w.defined[id] != kNowhere);
  const std::string why = why_turns_meet(s, known);
  require(why.empty(), "a loop of vectors ", why);
}

// A body whose statements may yet name what is not there.
void check_square(const Walk& w, const Statement& s) {
  const auto is_there = [&](const Statement& inside) {
    return inside.kind == StatementKind::Let ||
           (is_scalar(w.tile, inside.value) &&
            inside.array < static_cast<int>(w.tile.arrays.size()));
  };
  const bool all_there = std::all_of(s.body.begin(), s.body.end(), [&](const Statement& in) {
    return std::all_of(in.body.begin(), in.body.end(), is_there);
  });
  if (all_there && !s.vector && transposed_lines(w.tile, s)) return;
  const auto square = all_there && !s.vector ? square_of(w.tile, s) : std::nullopt;
  require(square && w.known.is_at_least_zero(kSquare - square->columns), s.name,
          " is transposed, but its body transposes no square");
}

void check_product(const Walk& w, const Statement& s) {
  const auto product = multiplied_of(w.tile, s);
  require(product.has_value(), s.name, " is multiplied, but its body multiplies no panels");
  const std::string why = why_no_registers(w.tile, *product, w.program.machine.vector);
  require(why.empty(), s.name, " is multiplied: ", why);
}

void check_range(Walk& w, const Statement& s) {
  require(s.place.is_constant() && s.place.constant() >= 1, s.name, " is below no number");
  require(is_on_cpu(w.tile) || !has_own_way(s), "a GPU has no loops of vectors");
  require(goes_alone(w.tile) || !contains_any(s.body, StatementKind::Send),
          "sends in a loop of which threads have turns of their own");
  require(!s.unrolled || (s.from.is_constant(0) && s.index == s.place), s.name,
          " is unrolled, and not always of ", s.place, " turns");
  const auto has = [&](StatementKind kind) { return s.vector && contains_any(s.body, kind); };
  require(!has(StatementKind::For), "a loop in one of vectors");
  require(!has(StatementKind::Tree) && !has(StatementKind::Stream) &&
              !has(StatementKind::UpdateAll),
          "a loop of vectors reduces, streams or adds no array");
  require(s.vector + s.transposed + s.multiplied <= 1, s.name, " goes several ways");
  if (s.transposed) check_square(w, s);
  if (s.multiplied) check_product(w, s);
  if (s.vector) check_side_by_side(w, s);
  w.accesses.check_readable(s.from);
  w.accesses.check_readable(s.index);
  require(w.known.is_at_least_zero(s.from) && w.known.is_at_least_zero(s.place - s.index),
          s.name, " from ", s.from, " to ", s.index, " is not always in 0..",
          s.place.constant() - 1);
}

void check_loop(Walk& w, const Statement& s) {
  w.accesses.check_name(s.name);
  if (goes_alone(w.tile) || !is_even(s))
    check_range(w, s);
  else
    check_turns(s);
  const int64_t before = w.unrolled;
  if (s.unrolled) w.unrolled = clamp_to_bounds(Wide{w.unrolled} * s.index.constant());
  require(w.unrolled <= kMostUnrolled, "loops are unrolled ", w.unrolled, " times, at most ",
          kMostUnrolled);
  const Known::Mark mark = w.known.mark();
  w.known.add_loop(s);
  check(w, s.body);
  w.known.back_to(mark);
  w.unrolled = before;
}

// --- conditions ------------------------------------------------------------------------------

// By some threads, that data chooses.
void check_some(Walk& w, const Body& body, int holds) {
  const Known::Mark mark = w.known.mark();
  w.known.add_choice();
  w.accesses.holding.push_back(holds);
  check(w, body);
  w.accesses.holding.pop_back();
  w.known.back_to(mark);
}

void check_where(Walk& w, const Expr& lesser, const Expr& greater, const Body& body) {
  const Known::Mark mark = w.known.mark();
  w.known.add_condition(lesser, greater);
  check(w, body);
  w.known.back_to(mark);
}

// Where the condition of an If does not hold.
void check_other(Walk& w, const Statement& s, const Body& body) {
  if (s.value < 0) return check_where(w, s.place - 1, s.index, body);
  check_some(w, body, -1);
}

void check_condition(Walk& w, const Statement& s) {
  if (s.value >= 0) {
    require_defined(w, s.value);
    require(w.scalars[s.value].dtype == DType::boolean, "no condition is $", s.value);
    return check_some(w, s.body, s.value);
  }
  w.accesses.check_readable(s.index);
  w.accesses.check_readable(s.place);
  check_where(w, s.index, s.place, s.body);
}

void check_shortcut(Walk& w, const Statement& s) {
  const std::string why = why_not_again(w.tile, s.body, s.value >= 0);
  require(why.empty(), s.value < 0 ? "a shortcut is done again: it " : "a shortcut ", why);
  if (s.value >= 0) require_defined(w, s.value);
  require(s.value < 0 || w.scalars[s.value].dtype == DType::f32, "no f32 is $", s.value);
  check(w, s.body);
}

// --- statements ------------------------------------------------------------------------------

void check(Walk& w, const Statement& s) {
  require(!goes_alone(w.tile) || is_for_one_thread(s, is_on_cpu(w.tile)),
          "one thread does not do this");
  switch (s.kind) {
    case StatementKind::Let: return check_let(w, s);
    case StatementKind::Define: return check_definition(w, s);
    case StatementKind::Divisor:
      require_defined(w, s.value);
      return require(compute_type(w.scalars[s.value].dtype) == DType::f32, "a divisor is f32");
    case StatementKind::Set: return check_set(w, s);
    case StatementKind::Load: return check_load(w, s);
    case StatementKind::StoreAll: return w.accesses.check_vector(s);
    case StatementKind::Stream: return w.accesses.check_stream(s);
    case StatementKind::Tree: return w.accesses.check_tree(s);
    case StatementKind::Store: return check_store(w, s);
    case StatementKind::Update: return check_update(w, s);
    case StatementKind::UpdateAll: return w.accesses.check_update(s);
    case StatementKind::Prefetch: return w.accesses.check_prefetch(s);
    case StatementKind::For: return check_loop(w, s);
    case StatementKind::If: return check_condition(w, s);
    case StatementKind::Else: return;  // with the If before it
    case StatementKind::Shortcut: return check_shortcut(w, s);
    case StatementKind::Barrier:
      return require(w.known.all_threads_come(),
                     "a barrier where not all threads of a block come");
    case StatementKind::ClusterBarrier:
      return require(w.known.all_blocks_come(),
                     "a barrier where not all threads of a cluster come");
    case StatementKind::ClusterStart: return check_start(w);
    case StatementKind::Send: return check_send(w, s);
    case StatementKind::Await: return check_await(w, s);
  }
}

void check(Walk& w, const Body& body) {
  const Known::Mark mark = w.known.mark();
  const std::vector<int> defined = w.defined;
  w.depth++;
  for (size_t n = 0; n < body.size(); n++) {
    w.statement++;
    if (body[n].kind == StatementKind::Else) {
      require(n > 0 && body[n - 1].kind == StatementKind::If, "an else without its if");
      check_other(w, body[n - 1], body[n].body);
    } else {
      check(w, body[n]);
    }
  }
  w.depth--;
  w.known.back_to(mark);
  w.defined = defined;
}

}  // namespace

TileFault fault_of_numbers(const Program& program, const Kernel& kernel, const Tile& tile) {
  Walk w{program, tile, {program, kernel, tile}};
  try {
    check_head(program, tile);
    check(w, tile.body);
    w.statement = -1;
    check_messages(w);
    return {};
  } catch (const Fault& fault) {
    return {fault.why, w.statement};
  } catch (const Error& overflow) {  // of an index written out in threads
    return {overflow.what(), w.statement};
  }
}

}  // namespace tiny_compile
