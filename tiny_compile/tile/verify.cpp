// Question: may this tile be run? Statement by statement, with what is known where each stands
// (tile/known.h). As in C, what a body names and computes is gone behind it.
//
//   if lane < 16 { $7 = t0[0] of lane ^ 16 }   =>   "a shuffle where not all lanes of a warp come"
#include "tiny_compile/tile/verify.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/mask_facts.h"
#include "tiny_compile/loops/typing.h"
#include "tiny_compile/tile/again.h"
#include "tiny_compile/tile/known.h"
#include "tiny_compile/tile/sent.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShared = 48 << 10;       // bytes that a kernel may declare
constexpr int64_t kMostOwnElements = 4096;  // of an array of a thread's own
constexpr int64_t kMostUnrolled = 1 << 16;  // times that a statement is written
constexpr int64_t kMostBlocks = INT32_MAX;
constexpr int kWidest = 8;    // elements of one access
constexpr int kNowhere = -1;  // how deep a scalar is that is not computed
constexpr int kAlign = 16;    // bytes, of a buffer that vectors are read from

struct Fault {
  std::string why;
};

template <typename... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw Fault{str(parts...)};
}

// --- the tile itself -------------------------------------------------------------------------

void check_arrays(const Program& program, const Tile& tile) {
  std::set<std::string> names;
  int64_t shared = 0;
  for (const Array& array : tile.arrays) {
    require(is_identifier(array.name) && names.insert(array.name).second, "an array '",
            array.name, "': names are letters, digits and '_', each once");
    require(array.size >= 1, array.name, " has no elements");
    require(!array.packed || (array.space != Space::Cluster && is_half(array.dtype)),
            array.name, " is packed: only halves of a thread or a block are");
    const int64_t blocks = array.space == Space::Cluster ? tile.cluster : 1;
    require(array.size % blocks == 0, array.name, " has ", array.size, " elements in ", blocks,
            " blocks");
    if (array.space != Space::Register)
      shared += array.size / blocks * bytes_of_element(array);
    else
      require(array.size <= kMostOwnElements, array.name, " has ", array.size,
              " elements, a thread's own at most ", kMostOwnElements);
    require(shared <= std::min(kShared, program.machine.block_shared), "a block has ", shared,
            " bytes of shared memory or more, at most ",
            std::min(kShared, program.machine.block_shared));
  }
}

void check_head(const Program& program, const Tile& tile) {
  const Interval grid = tile.grid.bounds();
  require(grid.low >= 1 && grid.high < kMostBlocks, "a grid of ", tile.grid);
  require(tile.cluster >= 1 && tile.cluster <= std::max<int64_t>(1, program.machine.cluster) &&
              grid.high < kMostBlocks / tile.cluster,
          "clusters of ", tile.cluster, " blocks");
  require(tile.warps >= 1 && tile.warps <= 32, "a block of ", tile.warps, " warps, not 1..32");
  const int64_t most = program.machine.threads / 32;
  require(tile.resident >= 0 && tile.resident <= 32 && tile.resident * tile.warps <= most,
          tile.resident, " blocks of ", tile.warps,
          " warps are resident, a multiprocessor holds ", most, " warps");
  check_arrays(program, tile);
}

// A tile reads and writes what its kernel does: launches are ordered and memory is planned by that.
void check_buffers(const Program& program, const Kernel& kernel, const std::vector<int>& used,
                   const std::vector<int>& allowed, const char* does) {
  std::set<int> storages;
  for (int buffer : allowed) storages.insert(storage_of(program, buffer));
  for (int buffer : used)
    require(storages.count(storage_of(program, buffer)) > 0, does, " ",
            program.buffers[buffer].name, ", which kernel ", kernel.name, " does not");
}

// --- names, arrays and buffers ----------------------------------------------------------------------

// No place that data could choose is one.
bool is_never(const Scalar& s) {
  return std::any_of(s.limits.begin(), s.limits.end(),
                     [](const Expr& limit) { return limit.is_constant(0); });
}

// What a tile reads and writes, with what is known where it does.
class Accesses {
 public:
  Accesses(const Program& program, const Kernel& kernel, const Tile& tile)
      : known(tile), program_(program), kernel_(kernel), tile_(tile), masks_(tile.kernel) {}

  Known known;

  void check_readable(const Expr& index, size_t places = 0) {
    const std::string why = known.why_unreadable(index, places);
    require(why.empty(), why);
  }

  void check_element(int array, const Expr& index, int width = 1) {
    require(array >= 0 && array < static_cast<int>(tile_.arrays.size()), "no such array");
    const Array& a = tile_.arrays[array];
    check_readable(index);
    require(a.space != Space::Register || known.is_unrolled(index), a.name, "[", index,
            "]: a thread's own elements are named by unrolled loops alone");
    require(known.is_within(index, a.size - width + 1), a.name, "[", index, "]",
            width == 1 ? "" : str(" x", width), " leaves the array's ", a.size, " elements");
  }

  bool is_buffer(int buffer) const {
    return buffer >= 0 && buffer < static_cast<int>(program_.buffers.size());
  }

  void check_place(int buffer, const Expr& index, int mask, size_t places, bool never) {
    const Buffer& b = program_.buffers[buffer];
    check_readable(index, places);
    require(never || masks_.within(index, b.size, mask) || known.is_within(index, b.size),
            b.name, "[", index, "] leaves the buffer's ", b.size,
            " elements, as far as is known");
  }

  void check_vector(const Statement& s, size_t places = 0, bool never = false) {
    const int w = s.width;
    require(is_buffer(s.buffer), "no such buffer");
    const Buffer& b = program_.buffers[s.buffer];
    check_element(s.array, s.place, w);
    require(w >= 1 && w <= kWidest && (w & (w - 1)) == 0, "vectors of ", w, ", not 1, 2, 4 or ",
            kWidest);
    const Array& array = tile_.arrays[s.array];
    require(array.dtype == b.type.dtype, array.name, " is ", array.dtype, ", ", b.name, " is ",
            b.type.dtype);
    const bool is_whole = w % 2 == 0 && known.has_only_multiples_of(s.place, 2);
    require(!array.packed || (is_whole && s.kind == StatementKind::Load), array.name,
            " is packed: it reads pairs, and is not stored");
    check_place(s.buffer, s.index, -1, places, never);
    if (w > 1) {
      require(b.align >= kAlign && known.has_only_multiples_of(s.index, w), b.name, "[",
              s.index, "] x", w, " is astride, as far as is known");
      require(known.is_within(s.index, b.size - w + 1) || b.size.constant() % w == 0, b.name,
              "[", s.index, "] x", w, " leaves the buffer's ", b.size, " elements");
    }
    use(s.buffer, s.kind == StatementKind::StoreAll);
  }

  void check_ahead(const Statement& s) {
    require(is_buffer(s.buffer), "no such buffer");
    check_place(s.buffer, s.index + (s.width - 1), -1, 0, false);
    check_place(s.buffer, s.index, -1, 0, false);
    use(s.buffer, false);
  }

  void use(int buffer, bool stores) const {
    if (stores)
      check_buffers(program_, kernel_, {buffer}, stored_buffers(kernel_), "stores");
    else
      check_buffers(program_, kernel_, {buffer}, loaded_buffers(kernel_), "loads");
  }

  void check_read(const Scalar& s) {
    check_element(s.step, s.index);
    require(s.dtype == tile_.arrays[s.step].dtype, "reads ", tile_.arrays[s.step].name, " as ",
            s.dtype);
    const int64_t lane = s.value.as_integer();
    require(lane >= 0 && lane < 32, "lane ^ ", lane, " is no lane");
    require(lane == 0 || known.all_lanes_come(),
            "a shuffle where not all lanes of a warp come");
  }

  void check_name(const std::string& name) const {
    require(is_identifier(name) && name.find('.') == std::string::npos, "'", name,
            "' is no name of an integer");
    require(!known.has(name), name, " is named already");
    for (const Array& array : tile_.arrays) require(array.name != name, name, " is an array");
  }

  // A scalar whose operands are known.
  void check_computed(int id, const Scalar& s) {
    if (s.kind == ScalarKind::Element) return check_read(s);
    const std::string why = why_ill_typed(program_, tile_.kernel, id);
    require(why.empty(), why);
    if (s.kind == ScalarKind::Apply) return;
    if (s.kind != ScalarKind::Load) return check_readable(s.index, s.operands.size());
    check_place(s.buffer, s.index, s.mask, s.operands.size(), is_never(s));
    use(s.buffer, false);
  }

 private:
  const Program& program_;
  const Kernel& kernel_;
  const Tile& tile_;
  MaskFacts masks_;
};

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
        check_where(body[n - 1].place - 1, body[n - 1].index, body[n].body);
      } else {
        check(body[n]);
      }
    }
    depth_--;
    known_.back_to(mark);
    defined_ = defined;
  }

  void check(const Statement& s) {
    switch (s.kind) {
      case StatementKind::Let: return check_let(s);
      case StatementKind::Define: return check_definition(s);
      case StatementKind::Divisor:
        require_defined(s.value);
        return require(compute_type(scalars_[s.value].dtype) == DType::f32, "a divisor is f32");
      case StatementKind::Set: return check_set(s);
      case StatementKind::Load: return check_load(s);
      case StatementKind::StoreAll: return accesses_.check_vector(s);
      case StatementKind::Store: return check_store(s);
      case StatementKind::Ahead: return accesses_.check_ahead(s);
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
    accesses_.check_readable(s.index);
    known_.add_let(s.name, s.place, s.index);
  }

  void check_loop(const Statement& s) {
    accesses_.check_name(s.name);
    require(s.index.is_constant() && s.index.constant() >= 1 && s.index.constant() <= INT32_MAX,
            "a loop of ", s.index, " turns, not 1..", INT32_MAX);
    const int64_t before = unrolled_;
    if (s.unrolled) unrolled_ = clamp_to_bounds(Wide{unrolled_} * s.index.constant());
    require(unrolled_ <= kMostUnrolled, "loops are unrolled ", unrolled_, " times, at most ",
            kMostUnrolled);
    const Known::Mark mark = known_.mark();
    known_.add_loop(s.name, s.index.constant(), s.unrolled);
    check(s.body);
    known_.back_to(mark);
    unrolled_ = before;
  }

  void check_condition(const Statement& s) {
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
    require(defined_[s.value] != depth_, "computes a value a second time in this body");
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
