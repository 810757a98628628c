// Question: may this tile be run? Statement by statement, with what is known where each stands
// (tile/known.h). As in C, what a body names and computes is gone behind it.
//
//   if lane < 16 { $7 = t0[0] of lane ^ 16 }   =>   "a shuffle where not all lanes of a warp come"
#include "tiny_compile/tile/verify.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/loops/panel_shape.h"
#include "tiny_compile/tile/again.h"
#include "tiny_compile/tile/multiplied.h"
#include "tiny_compile/tile/sent.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/turns.h"
#include "tiny_compile/tile/uses.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostOwnElements = 4096;  // of an array of a thread's own
constexpr int64_t kMostUnrolled = 1 << 16;  // times that a statement is written
constexpr int kNowhere = -1;                // how deep a scalar is that is not computed

// --- the tile itself -------------------------------------------------------------------------

void check_arrays(const Program& program, const Tile& tile) {
  std::set<std::string> names;
  const Machine& machine = program.machine;
  int64_t shared = 0, l1 = 0, l2 = 0;
  for (const Array& array : tile.arrays) {
    require(is_identifier(array.name) && names.insert(array.name).second, "an array '",
            array.name, "': names are letters, digits and '_', each once");
    const int64_t size = array.size.constant();
    require(size >= 1, array.name, " has no elements");
    require(!array.packed || (array.space != Space::Cluster && is_half(array.dtype)),
            array.name, " is packed: only halves of a thread or a block are");
    const int64_t blocks = array.space == Space::Cluster ? tile.cluster : 1;
    require(size % blocks == 0, array.name, " has ", size, " elements in ", blocks, " blocks");
    const bool is_kept = array.space == Space::Kept,
               is_memory = array.space == Space::Memory || is_kept;
    require(
        is_on_cpu(tile) == (array.space == Space::L1 || array.space == Space::L2 || is_memory),
        "a CPU's arrays are in L1, L2 or memory, a GPU's not");
    require(!is_kept || (is_integer(array.dtype) && size <= kMostKept), array.name,
            " is kept: integers are, at most ", kMostKept);
    require(!tile.alone || array.space == Space::Register, array.name,
            " is shared, by threads that go alone");
    if (is_memory) continue;
    if (is_on_cpu(tile))
      (array.space == Space::L1 ? l1 : l2) += size * bytes_of_element(array);
    else if (array.space != Space::Register)
      shared += size / blocks * bytes_of_element(array);
    else
      require(size <= kMostOwnElements, array.name, " has ", size,
              " elements, a thread's own at most ", kMostOwnElements);
    require(shared <= machine.block_shared, "a block has ", shared,
            " bytes of shared memory or more, at most ", machine.block_shared);
    require(l1 <= machine.l1, "a thread has ", l1, " bytes in L1, which has ", machine.l1);
    require(l2 <= machine.l2, "a thread has ", l2, " bytes in L2, which has ", machine.l2);
  }
}

void check_head(const Program& program, const Tile& tile) {
  require(is_on_cpu(tile) == (program.target == Target::Cpp),
          "a CPU's tile has units, a GPU's a grid");
  if (is_on_cpu(tile)) {
    require(!tile.alone, "a CPU has no blocks");
    require(
        tile.grid.is_constant(1) && tile.cluster == 1 && tile.warps == 1 && tile.resident == 0,
        "a CPU has no blocks");
    require(tile.grain.bounds().low >= 1, "a grain of ", tile.grain);
    return check_arrays(program, tile);
  }
  const Interval grid = tile.grid.bounds();
  require(grid.low >= 1 && grid.high < kMostBlocks, "a grid of ", tile.grid);
  require(tile.cluster >= 1 && tile.cluster <= std::max<int64_t>(1, program.machine.cluster) &&
              grid.high < kMostBlocks / tile.cluster,
          "clusters of ", tile.cluster, " blocks");
  require(tile.warps >= 1 && tile.warps <= 32, "a block of ", tile.warps, " warps, not 1..32");
  const int64_t most = program.machine.threads / 32;
  require(!tile.alone || tile.cluster == 1, "threads of a cluster that go alone");
  require(tile.resident >= 0 && tile.resident <= 32 && tile.resident * tile.warps <= most,
          tile.resident, " blocks of ", tile.warps,
          " warps are resident, a multiprocessor holds ", most, " warps");
  check_arrays(program, tile);
}

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

// --- statements ------------------------------------------------------------------------------

class TileVerifier {
 public:
  TileVerifier(const Program& program, const Kernel& kernel, const Tile& tile)
      : program_(program),
        tile_(tile),
        scalars_(tile.kernel.scalars),
        accesses_(program, kernel, tile),
        known_(accesses_.known),
        defined_(scalars_.size(), kNowhere) {}

  TileFault run() {
    try {
      check_head(program_, tile_);
      check(tile_.body);
      statement_ = -1;
      check_messages();
      return {};
    } catch (const Fault& fault) {
      return {fault.why, statement_};
    } catch (const Error& overflow) {  // of an index written out in threads
      return {overflow.what(), statement_};
    }
  }

 private:
  void check(const Body& body) {
    const Known::Mark mark = known_.mark();
    const std::vector<int> defined = defined_;
    depth_++;
    for (size_t n = 0; n < body.size(); n++) {
      statement_++;
      if (body[n].kind == StatementKind::Else) {
        require(n > 0 && body[n - 1].kind == StatementKind::If, "an else without its if");
        check_other(body[n - 1], body[n].body);
      } else {
        check(body[n]);
      }
    }
    depth_--;
    known_.back_to(mark);
    defined_ = defined;
  }

  void check(const Statement& s) {
    require(!goes_alone(tile_) || is_for_one_thread(s, is_on_cpu(tile_)),
            "one thread does not do this");
    switch (s.kind) {
      case StatementKind::Let: return check_let(s);
      case StatementKind::Define: return check_definition(s);
      case StatementKind::Divisor:
        require_defined(s.value);
        return require(compute_type(scalars_[s.value].dtype) == DType::f32, "a divisor is f32");
      case StatementKind::Set: return check_set(s);
      case StatementKind::Load: return check_load(s);
      case StatementKind::StoreAll: return accesses_.check_vector(s);
      case StatementKind::Stream: return accesses_.check_stream(s);
      case StatementKind::Tree: return accesses_.check_tree(s);
      case StatementKind::Store: return check_store(s);
      case StatementKind::Update: return check_update(s);
      case StatementKind::UpdateAll: return accesses_.check_update(s);
      case StatementKind::Prefetch: return accesses_.check_prefetch(s);
      case StatementKind::For: return check_loop(s);
      case StatementKind::If: return check_condition(s);
      case StatementKind::Else: return;  // with the If before it
      case StatementKind::Shortcut: return check_shortcut(s);
      case StatementKind::Barrier:
        return require(known_.all_threads_come(),
                       "a barrier where not all threads of a block come");
      case StatementKind::ClusterBarrier:
        return require(known_.all_blocks_come(),
                       "a barrier where not all threads of a cluster come");
      case StatementKind::ClusterStart: return check_start();
      case StatementKind::Send: return check_send(s);
      case StatementKind::Await: return check_await(s);
    }
  }

  void check_start() {
    require(depth_ == 1 && !has_started_,
            "a cluster starts once, outside of loops and conditions");
    require(tile_.cluster > 1, "a block alone has no cluster to start");
    has_started_ = true;
  }

  void check_send(const Statement& s) {
    check_element_set(s);
    const Array& array = tile_.arrays[s.array];
    require(has_started_, "sends before the cluster has started");
    require(array.space == Space::Cluster && can_be_sent(array.dtype), "sends to ", array.name,
            ": no cluster's array of words");
    require(awaited_.count(s.array) == 0, "sends to ", array.name,
            ", which has been waited for");
    sent_.insert(s.array);
  }

  void check_await(const Statement& s) {
    require(s.array >= 0 && s.array < static_cast<int>(tile_.arrays.size()), "no such array");
    const std::string& name = tile_.arrays[s.array].name;
    require(depth_ == 1, "waits for ", name, " in a loop or where some threads do not come");
    require(sent_.count(s.array) > 0, "waits for ", name, ", which nobody sends");
    require(awaited_.insert(s.array).second, "waits for ", name, " twice");
  }

  // All that is sent is waited for, and all that is waited for is sent.
  void check_messages() {
    for (int array : sent_)
      require(awaited_.count(array) > 0, "nobody waits for ", tile_.arrays[array].name);
    require(has_started_ == !sent_.empty(), "a cluster starts, and nothing is sent");
    const std::string why = why_not_sent_once(tile_);
    require(why.empty(), why);
  }

  void check_let(const Statement& s) {
    accesses_.check_name(s.name);
    require(s.place.is_constant() && s.place.constant() >= 1, s.name, " is below no number");
    if (s.value < 0) {
      accesses_.check_readable(s.index);
      return known_.add_let(s.name, s.place, s.index);
    }
    require_defined(s.value);
    require(is_integer(scalars_[s.value].dtype), "no integer is $", s.value);
    known_.add_chosen(s.name, s.place);
  }

  // All that a GPU's threads do together is done as often by each.
  void check_turns(const Statement& s) {
    require(!has_own_way(s), "a GPU has no loops of vectors");
    require(s.index.is_constant() && s.index.constant() >= 1 && s.index.constant() <= INT32_MAX,
            "a loop of ", s.index, " turns, not 1..", INT32_MAX);
  }

  void check_range(const Statement& s) {
    require(s.place.is_constant() && s.place.constant() >= 1, s.name, " is below no number");
    require(is_on_cpu(tile_) || !has_own_way(s), "a GPU has no loops of vectors");
    require(goes_alone(tile_) || !contains_any(s.body, StatementKind::Send),
            "sends in a loop of which threads have turns of their own");
    require(!s.unrolled || (s.from.is_constant(0) && s.index == s.place), s.name,
            " is unrolled, and not always of ", s.place, " turns");
    const auto has = [&](StatementKind kind) { return s.vector && contains_any(s.body, kind); };
    require(!has(StatementKind::For), "a loop in one of vectors");
    require(!has(StatementKind::Tree) && !has(StatementKind::Stream) &&
                !has(StatementKind::UpdateAll),
            "a loop of vectors reduces, streams or adds no array");
    require(s.vector + s.transposed + s.multiplied <= 1, s.name, " goes several ways");
    if (s.transposed) check_square(s);
    if (s.multiplied) check_product(s);
    if (s.vector) check_side_by_side(s);
    accesses_.check_readable(s.from);
    accesses_.check_readable(s.index);
    require(known_.is_at_least_zero(s.from) && known_.is_at_least_zero(s.place - s.index),
            s.name, " from ", s.from, " to ", s.index, " is not always in 0..",
            s.place.constant() - 1);
  }

  void check_side_by_side(const Statement& s) const {
    std::vector<bool> known;
    for (size_t id = 0; id < scalars_.size(); id++)
      known.push_back(scalars_[id].kind == ScalarKind::Constant || defined_[id] != kNowhere);
    const std::string why = why_turns_meet(s, known);
    require(why.empty(), "a loop of vectors ", why);
  }

  // A body whose statements may yet name what is not there.
  void check_square(const Statement& s) const {
    const auto is_there = [&](const Statement& inside) {
      return inside.kind == StatementKind::Let ||
             (is_scalar(tile_, inside.value) &&
              inside.array < static_cast<int>(tile_.arrays.size()));
    };
    const bool all_there = std::all_of(s.body.begin(), s.body.end(), [&](const Statement& in) {
      return std::all_of(in.body.begin(), in.body.end(), is_there);
    });
    if (all_there && !s.vector && transposed_lines(tile_, s)) return;
    const auto square = all_there && !s.vector ? square_of(tile_, s) : std::nullopt;
    require(square && known_.is_at_least_zero(kSquare - square->columns), s.name,
            " is transposed, but its body transposes no square");
  }

  void check_product(const Statement& s) const {
    const auto product = multiplied_of(tile_, s);
    require(product.has_value(), s.name, " is multiplied, but its body multiplies no panels");
    const std::string why = why_no_registers(tile_, *product, program_.machine.vector);
    require(why.empty(), s.name, " is multiplied: ", why);
  }

  void check_loop(const Statement& s) {
    accesses_.check_name(s.name);
    if (goes_alone(tile_) || !is_even(s))
      check_range(s);
    else
      check_turns(s);
    const int64_t before = unrolled_;
    if (s.unrolled) unrolled_ = clamp_to_bounds(Wide{unrolled_} * s.index.constant());
    require(unrolled_ <= kMostUnrolled, "loops are unrolled ", unrolled_, " times, at most ",
            kMostUnrolled);
    const Known::Mark mark = known_.mark();
    known_.add_loop(s);
    check(s.body);
    known_.back_to(mark);
    unrolled_ = before;
  }

  // Where the condition of an If does not hold.
  void check_other(const Statement& s, const Body& body) {
    if (s.value < 0) return check_where(s.place - 1, s.index, body);
    check_some(body, -1);
  }

  // By some threads, that data chooses.
  void check_some(const Body& body, int holds) {
    const Known::Mark mark = known_.mark();
    known_.add_choice();
    accesses_.holding.push_back(holds);
    check(body);
    accesses_.holding.pop_back();
    known_.back_to(mark);
  }

  void check_condition(const Statement& s) {
    if (s.value >= 0) {
      require_defined(s.value);
      require(scalars_[s.value].dtype == DType::boolean, "no condition is $", s.value);
      return check_some(s.body, s.value);
    }
    accesses_.check_readable(s.index);
    accesses_.check_readable(s.place);
    check_where(s.index, s.place, s.body);
  }

  void check_where(const Expr& lesser, const Expr& greater, const Body& body) {
    const Known::Mark mark = known_.mark();
    known_.add_condition(lesser, greater);
    check(body);
    known_.back_to(mark);
  }

  void check_shortcut(const Statement& s) {
    const std::string why = why_not_again(tile_, s.body, s.value >= 0);
    require(why.empty(), s.value < 0 ? "a shortcut is done again: it " : "a shortcut ", why);
    if (s.value >= 0) require_defined(s.value);
    require(s.value < 0 || scalars_[s.value].dtype == DType::f32, "no f32 is $", s.value);
    check(s.body);
  }

  // Of places that data chooses, those of a load of the same buffer.
  void check_load(const Statement& s) {
    if (s.value < 0) return accesses_.check_vector(s);
    require(is_scalar(tile_, s.value), "no such scalar");
    const Scalar& load = scalars_[s.value];
    require(load.kind == ScalarKind::Load && load.buffer == s.buffer && !load.operands.empty(),
            "$", s.value, " is no load of this buffer from places that data chooses");
    for (int operand : load.operands) require_defined(operand);
    accesses_.check_vector(s, load.operands.size(), is_never(load));
  }

  void check_store(const Statement& s) {
    require(accesses_.is_buffer(s.buffer), "no such buffer");
    require_defined(s.value);
    const Buffer& b = program_.buffers[s.buffer];
    require(scalars_[s.value].dtype == b.type.dtype, "stores ", scalars_[s.value].dtype, " in ",
            b.name, ", which is ", b.type.dtype);
    accesses_.check_place(s.buffer, s.index, -1, 0, false);
    accesses_.use(s.buffer, true);
  }

  void check_update(const Statement& s) {
    accesses_.check_update(s);
    require_defined(s.value);
    if (s.chosen >= 0) {
      require_defined(s.chosen);
      require(scalars_[s.chosen].dtype == DType::i64, "no i64 is $", s.chosen);
    }
    const bool sums = s.array >= 0;
    const DType own =
        sums ? tile_.arrays[s.array].dtype : program_.buffers[s.buffer].type.dtype;
    require(scalars_[s.value].dtype == own, "updates ",
            sums ? tile_.arrays[s.array].name : program_.buffers[s.buffer].name, " with ",
            scalars_[s.value].dtype);
  }

  void require_defined(int id) const {
    require(is_scalar(tile_, id), "no such scalar");
    const bool known = scalars_[id].kind == ScalarKind::Constant || defined_[id] != kNowhere;
    require(known, "uses a value that is not computed on all paths to here");
  }

  void check_set(const Statement& s) {
    require(sent_.count(s.array) == 0, "sets what is sent");
    check_element_set(s);
  }

  void check_element_set(const Statement& s) {
    require_defined(s.value);
    accesses_.check_element(s.array, s.index);
    const DType value = scalars_[s.value].dtype, array = tile_.arrays[s.array].dtype;
    require(array == value || array == compute_type(value), "puts ", value, " in ",
            tile_.arrays[s.array].name, ", which is ", array);
  }

  void check_definition(const Statement& s) {
    require(is_scalar(tile_, s.value), "no such scalar");
    const Scalar& scalar = scalars_[s.value];
    const bool reads = s.array >= 0 || scalar.kind == ScalarKind::Element;
    require(defined_[s.value] != depth_, "computes a value a second time in this body");
    require(!reads || defined_[s.value] == kNowhere, "reads a value that a body around it has");
    if (s.array >= 0) {
      accesses_.check_element(s.array, s.index);
      require(scalar.dtype == tile_.arrays[s.array].dtype, "$", s.value, " is ", scalar.dtype,
              ", ", tile_.arrays[s.array].name, " is ", tile_.arrays[s.array].dtype);
    } else {
      check_scalar(s.value, scalar);
    }
    defined_[s.value] = depth_;
  }

  void check_scalar(int id, const Scalar& s) {
    require(s.kind != ScalarKind::Constant && s.kind != ScalarKind::Register,
            "a constant or a register is not computed");
    for (int operand : s.operands) require_defined(operand);
    if (s.mask >= 0) require_defined(s.mask);
    accesses_.check_computed(id, s);
  }

  const Program& program_;
  const Tile& tile_;
  const std::vector<Scalar>& scalars_;
  Accesses accesses_;
  Known& known_;
  std::vector<int> defined_;      // how deep the body is that computed each scalar
  std::set<int> sent_, awaited_;  // arrays
  bool has_started_ = false;
  int depth_ = 0, statement_ = -1;
  int64_t unrolled_ = 1;
};

}  // namespace

TileFault fault_of_numbers(const Program& program, const Kernel& kernel, const Tile& tile) {
  return TileVerifier(program, kernel, tile).run();
}

}  // namespace tiny_compile
