// What do the threads of a cluster's blocks do? The same statement, all that are in it at once, as in
// a GPU that had a lane for each. So a shuffle reads what the others have just computed, and what would be a
// race on a machine is seen here:
//
//   given[warp] = $3              written by thread 32
//   $4 = given[warp ^ 1]          read by thread 0 without a barrier between: an error
#include "tiny_compile/tile/interpreter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/tile/access.h"

namespace tiny_compile {
namespace {

using Threads = std::vector<int>;       // those that a statement is done by, ascending
using Integers = std::vector<int64_t>;  // one for each of these

size_t width_of(DType dtype) { return size_of(compute_type(dtype)); }

int64_t of(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case ExprKind::Add: return a + b;
    case ExprKind::Mul: return a * b;
    case ExprKind::FloorDiv: return floor_quotient(a, b);
    case ExprKind::Mod: return floor_remainder(a, b);
    case ExprKind::Min: return std::min(a, b);
    default: return std::max(a, b);
  }
}

// The program's buffers while a tile runs.
class Buffers {
 public:
  Buffers(const Tile& tile, std::vector<Memory>& memory)
      : tile_(tile), memory_(memory), stored_(memory.size()) {}

  void fetch(int buffer, int64_t index, Lanes& one) const {
    check(buffer, index);
    load(memory_[buffer].dtype, memory_[buffer].data, &index, 1, one);
  }

  void put(int buffer, int64_t index, uint64_t bits) {
    check(buffer, index);
    std::vector<bool>& stored = stored_[buffer];
    stored.resize(static_cast<size_t>(memory_[buffer].size));
    if (stored[index]) fail("tile ", tile_.kernel.name, " stores element ", index, " twice");
    stored[index] = true;
    Lanes one;
    one.dtype = memory_[buffer].dtype;
    std::memcpy(one.data, &bits, width_of(one.dtype));
    store(one, memory_[buffer].data, &index, 1);
  }

 private:
  void check(int buffer, int64_t index) const {
    if (index < 0 || index >= memory_[buffer].size)
      fail("tile ", tile_.kernel.name, " uses element ", index, " of ", memory_[buffer].size);
  }

  const Tile& tile_;
  std::vector<Memory>& memory_;
  std::vector<std::vector<bool>> stored_;  // elements of each buffer, by all blocks
};

// What the threads of a cluster know: integers by name, scalars and arrays.
class Cluster {
 public:
  Cluster(const Tile& tile, int64_t number)
      : tile_(tile),
        block_(32 * tile.warps),
        threads_(block_ * tile.cluster),
        stretch_(static_cast<size_t>(tile.cluster)) {
    values_.resize(tile.kernel.scalars.size());
    for (const Array& array : tile.arrays) {
      const int copies = array.space == Space::Register ? threads_
                         : array.space == Space::Shared ? tile.cluster
                                                        : 1;
      const size_t elements = static_cast<size_t>(array.size) * static_cast<size_t>(copies);
      arrays_.emplace_back(elements, 0xffffffffffffffffull);
      accesses_.emplace_back(array.space == Space::Register ? 0 : elements);
    }
    Integers ranks, warps, lanes;
    for (int t : all()) {
      ranks.push_back(rank_of(t));
      warps.push_back(t % block_ / 32);
      lanes.push_back(t % 32);
    }
    set_symbol("block", all(), Integers(warps.size(), number));
    set_symbol("rank", all(), ranks);
    set_symbol("warp", all(), warps);
    set_symbol("lane", all(), lanes);
  }

  Threads all() const {
    Threads threads(static_cast<size_t>(threads_));
    std::iota(threads.begin(), threads.end(), 0);
    return threads;
  }
  void pass_barrier(const Threads& threads) {
    std::vector<int> come(stretch_.size());
    for (int t : threads) come[rank_of(t)]++;
    for (size_t rank = 0; rank < come.size(); rank++) {
      if (come[rank] == 0) continue;
      require_all(come[rank], block_);
      stretch_[rank]++;
    }
  }
  void pass_cluster_barrier(const Threads& threads) {
    require_all(static_cast<int>(threads.size()), threads_);
    for (int64_t& stretch : stretch_) stretch++;
    of_cluster_++;
    is_elsewhere_ = false;
  }
  // A block's memory is there from its start to its end, and blocks start and end by themselves.
  void end() const {
    if (is_elsewhere_)
      fail("tile ", tile_.kernel.name, ": blocks end while others use what they hold");
  }

  // --- integers ---

  void set_symbol(const std::string& name, const Threads& threads, const Integers& values) {
    Integers& all = symbols_[name];
    all.resize(static_cast<size_t>(threads_));
    for (size_t n = 0; n < threads.size(); n++) all[threads[n]] = values[n];
  }

  Integers evaluate(const Expr& expr, const Threads& threads) const {
    if (expr.is_constant()) return Integers(threads.size(), expr.constant());
    Integers result;
    if (expr.kind() == ExprKind::Symbol) {
      const auto known = symbols_.find(expr.name());
      if (known == symbols_.end())
        fail("a tile program reads ", expr.name(), ", which it has not");
      for (int t : threads) result.push_back(known->second[t]);
      return result;
    }
    result = evaluate(expr.operands()[0], threads);
    for (size_t k = 1; k < expr.operands().size(); k++) {
      const Integers more = evaluate(expr.operands()[k], threads);
      for (size_t n = 0; n < result.size(); n++)
        result[n] = of(expr.kind(), result[n], more[n]);
    }
    return result;
  }

  // --- values ---

  // Values of a scalar in `n` threads from number `from` on.
  void gather(int id, const Threads& threads, size_t from, int n, Lanes& lanes) const {
    const Scalar& s = tile_.kernel.scalars[id];
    if (s.kind == ScalarKind::Constant) return fill(s.value, n, lanes);
    if (values_[id].empty()) fail("a tile program uses $", id, " before it is defined");
    lanes.dtype = s.dtype;
    const size_t width = width_of(s.dtype);
    for (int k = 0; k < n; k++)
      std::memcpy(lanes.data + static_cast<size_t>(k) * width,
                  &values_[id][threads[from + static_cast<size_t>(k)]], width);
  }

  uint64_t value(int id, int thread) const {
    Lanes one;
    gather(id, {thread}, 0, 1, one);
    uint64_t bits = 0;
    std::memcpy(&bits, one.data, width_of(tile_.kernel.scalars[id].dtype));
    return bits;
  }

  void set_value(int id, int thread, uint64_t bits) {
    values_[id].resize(static_cast<size_t>(threads_));
    values_[id][thread] = bits;
  }

  void scatter(int id, const Threads& threads, size_t from, int n, const Lanes& lanes) {
    const size_t width = width_of(tile_.kernel.scalars[id].dtype);
    for (int k = 0; k < n; k++) {
      uint64_t bits = 0;
      std::memcpy(&bits, lanes.data + static_cast<size_t>(k) * width, width);
      set_value(id, threads[from + static_cast<size_t>(k)], bits);
    }
  }

  // --- arrays ---

  uint64_t element_read(int array, int64_t index, int thread) {
    const size_t at = place(array, index, thread);
    const bool shared = tile_.arrays[array].space != Space::Register;
    if (shared && !accesses_[array][at].reads(thread, stretch_of(array, index, thread)))
      fail_race("reads", array, index, thread);
    return arrays_[array][at];
  }

  void element_write(int array, int64_t index, int thread, uint64_t bits) {
    const size_t at = place(array, index, thread);
    arrays_[array][at] = bits;
    const bool shared = tile_.arrays[array].space != Space::Register;
    if (shared && !accesses_[array][at].writes(thread, stretch_of(array, index, thread)))
      fail_race("writes", array, index, thread);
  }

  void read_element(int id, int array, const Expr& place, int lane_xor,
                    const Threads& threads) {
    const Integers index = evaluate(place, threads);
    std::map<int, int64_t> of_thread;
    for (size_t n = 0; n < threads.size(); n++) of_thread[threads[n]] = index[n];
    std::vector<uint64_t> bits;
    for (int t : threads) {
      const auto from = of_thread.find(t ^ lane_xor);
      if (from == of_thread.end())
        fail("tile ", tile_.kernel.name, ": thread ", t,
             " shuffles with one that is not there");
      bits.push_back(element_read(array, from->second, from->first));
    }
    for (size_t n = 0; n < threads.size(); n++) set_value(id, threads[n], bits[n]);
  }

 private:
  [[noreturn]] void fail_race(const char* does, int array, int64_t index, int thread) const {
    fail("tile ", tile_.kernel.name, ": thread ", thread, " ", does, " ",
         tile_.arrays[array].name, "[", index, "], which another writes between two barriers");
  }

  int rank_of(int thread) const { return thread / block_; }

  void require_all(int come, int all) const {
    if (come != all)
      fail("tile ", tile_.kernel.name, ": a barrier that ", come, " threads of ", all,
           " come to");
  }

  size_t place(int array, int64_t index, int thread) const {
    const Array& a = tile_.arrays[array];
    if (index < 0 || index >= a.size)
      fail("tile ", tile_.kernel.name, " uses element ", index, " of ", a.name, "[", a.size,
           "]");
    const int64_t copy = a.space == Space::Register ? thread
                         : a.space == Space::Shared ? rank_of(thread)
                                                    : 0;
    return static_cast<size_t>(copy * a.size + index);
  }

  // The stretch between barriers in which a thread uses a shared element.
  int64_t stretch_of(int array, int64_t index, int thread) {
    if (tile_.arrays[array].space == Space::Shared) return stretch_[rank_of(thread)];
    const bool is_elsewhere = index % tile_.cluster != rank_of(thread);
    if (is_elsewhere && of_cluster_ == 0)
      fail("tile ", tile_.kernel.name, ": thread ", thread, " uses ", tile_.arrays[array].name,
           "[", index, "] before all blocks are there");
    is_elsewhere_ = is_elsewhere_ || is_elsewhere;
    return of_cluster_;
  }

  const Tile& tile_;
  const int block_, threads_;                  // threads of a block, of a cluster
  std::map<std::string, Integers> symbols_;    // a value for each thread
  std::vector<std::vector<uint64_t>> values_;  // of each scalar, for each thread
  std::vector<std::vector<uint64_t>> arrays_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<int64_t> stretch_;  // barriers of each block so far
  int64_t of_cluster_ = 0;        // of all of them
  bool is_elsewhere_ = false;     // what another block holds has been used since
};

template <typename Each>
void in_batches(const Threads& threads, Each each) {
  for (size_t from = 0; from < threads.size(); from += kLanes)
    each(from, static_cast<int>(std::min<size_t>(kLanes, threads.size() - from)));
}

// A pointwise op, many threads at a time.
void compute_op(const Scalar& s, int id, const Threads& threads, Cluster& known) {
  Lanes operands[3], out;
  in_batches(threads, [&](size_t from, int n) {
    for (size_t k = 0; k < s.operands.size(); k++)
      known.gather(s.operands[k], threads, from, n, operands[k]);
    apply(s.op, s.dtype, &operands[0], &operands[1], &operands[2], n, out);
    known.scatter(id, threads, from, n, out);
  });
}

void draw(const Scalar& s, int id, const Threads& threads, Cluster& known) {
  const Integers words = known.evaluate(s.index, threads);
  for (size_t n = 0; n < threads.size(); n++) {
    const uint64_t seed = known.value(s.operands[0], threads[n]),
                   counter = known.value(s.operands[1], threads[n]) +
                             static_cast<uint64_t>(s.value.as_integer());
    known.set_value(id, threads[n],
                    prelude::tc_philox(seed, counter, static_cast<uint64_t>(words[n])));
  }
}

// What the threads of a cluster do, over memory.
class ClusterRun {
 public:
  ClusterRun(const Tile& tile, Buffers& buffers, int64_t number)
      : tile_(tile), buffers_(buffers), threads_(tile, number) {
    run(tile.body, threads_.all());
    threads_.end();
  }

 private:
  // --- scalars ---

  // The index, with at0, at1, ... the integers that data gave; threads whose data is out of range
  // are left out, and the error is raised.
  Integers chosen_index(const Scalar& s, Threads& threads) {
    Threads inside;
    std::vector<Integers> places(s.operands.size());
    for (int t : threads) {
      bool fits = true;
      Integers mine;
      for (size_t k = 0; k < s.operands.size() && fits; k++) {
        Lanes one;
        threads_.gather(s.operands[k], {t}, 0, 1, one);
        mine.push_back(lane_integer(one, 0));
        fits = index_fits(mine.back(), s.limits[k].constant());
      }
      if (!fits) continue;
      inside.push_back(t);
      for (size_t k = 0; k < mine.size(); k++) places[k].push_back(mine[k]);
    }
    threads = inside;
    for (size_t k = 0; k < places.size(); k++)
      threads_.set_symbol(indirect(k).name, threads, places[k]);
    return threads_.evaluate(s.index, threads);
  }

  void compute(int id, const Threads& threads) {
    const Scalar& s = tile_.kernel.scalars[id];
    if (s.kind == ScalarKind::Apply) return compute_op(s, id, threads, threads_);
    if (s.kind == ScalarKind::Philox) return draw(s, id, threads, threads_);
    CHECK(s.kind == ScalarKind::Load || s.kind == ScalarKind::Index, "no value of this kind");
    read(id, threads);
  }

  void read(int id, const Threads& threads) {
    const Scalar& s = tile_.kernel.scalars[id];
    Threads wanted;
    Lanes one;
    for (int t : threads) {
      const bool is_wanted = s.mask < 0 || threads_.value(s.mask, t) != 0;
      if (is_wanted) wanted.push_back(t);
      fill(is_wanted || s.kind == ScalarKind::Index ? Literal{s.dtype, 0} : s.value, 1, one);
      threads_.scatter(id, {t}, 0, 1, one);
    }
    const Integers index = chosen_index(s, wanted);
    for (size_t n = 0; n < wanted.size(); n++) {
      if (s.kind == ScalarKind::Index)
        fill_iota(&index[n], 1, one);
      else
        buffers_.fetch(s.buffer, index[n], one);
      threads_.scatter(id, {wanted[n]}, 0, 1, one);
    }
  }

  // --- statements ---

  void run(const Body& body, const Threads& threads) {
    for (size_t n = 0; n < body.size(); n++) {
      if (body[n].kind == StatementKind::Else)
        run(body[n].body, those_where(body[n - 1], false, threads));
      else
        run(body[n], threads);
    }
  }

  void run(const Statement& s, const Threads& threads) {
    if (threads.empty()) return;
    switch (s.kind) {
      case StatementKind::Let:
        return threads_.set_symbol(s.name, threads, threads_.evaluate(s.index, threads));
      case StatementKind::Define: return define(s, threads);
      case StatementKind::Divisor: return;
      case StatementKind::Set: return set(s, threads);
      case StatementKind::Load:
      case StatementKind::StoreAll: return move(s, threads);
      case StatementKind::Store: {
        const Integers index = threads_.evaluate(s.index, threads);
        for (size_t n = 0; n < threads.size(); n++)
          buffers_.put(s.buffer, index[n], threads_.value(s.value, threads[n]));
        return;
      }
      case StatementKind::For: return run_for(s, threads);
      case StatementKind::If: return run(s.body, those_where(s, true, threads));
      case StatementKind::Else: return;  // with the If before it
      case StatementKind::Shortcut: return run(s.body, threads);
      case StatementKind::Barrier: return threads_.pass_barrier(threads);
      case StatementKind::ClusterBarrier: threads_.pass_cluster_barrier(threads);
    }
  }

  void define(const Statement& s, const Threads& threads) {
    const Scalar& scalar = tile_.kernel.scalars[s.value];
    if (s.array >= 0) return threads_.read_element(s.value, s.array, s.index, 0, threads);
    if (scalar.kind == ScalarKind::Element)
      return threads_.read_element(s.value, scalar.step, scalar.index,
                                   static_cast<int>(scalar.value.as_integer()), threads);
    compute(s.value, threads);
  }

  void set(const Statement& s, const Threads& threads) {
    const Integers index = threads_.evaluate(s.index, threads);
    for (size_t n = 0; n < threads.size(); n++)
      threads_.element_write(s.array, index[n], threads[n],
                             threads_.value(s.value, threads[n]));
  }

  // Where a vector is in memory; threads whose data chose a place that is none are left out.
  Integers vector_index(const Statement& s, Threads& threads) {
    if (s.value < 0) return threads_.evaluate(s.index, threads);
    Scalar load = tile_.kernel.scalars[s.value];
    load.index = s.index;
    return chosen_index(load, threads);
  }

  void move(const Statement& s, Threads threads) {
    const Integers index = vector_index(s, threads),
                   place = threads_.evaluate(s.place, threads);
    Lanes one;
    for (size_t n = 0; n < threads.size(); n++) {
      if (index[n] % s.width != 0) fail("tile ", tile_.kernel.name, ": a vector astride");
      for (int v = 0; v < s.width; v++) {
        if (s.kind == StatementKind::StoreAll) {
          buffers_.put(s.buffer, index[n] + v,
                       threads_.element_read(s.array, place[n] + v, threads[n]));
          continue;
        }
        buffers_.fetch(s.buffer, index[n] + v, one);
        uint64_t bits = 0;
        std::memcpy(&bits, one.data, width_of(one.dtype));
        threads_.element_write(s.array, place[n] + v, threads[n], bits);
      }
    }
  }

  void run_for(const Statement& s, const Threads& threads) {
    const int64_t extent = threads_.evaluate(s.index, threads)[0];
    for (int64_t i = 0; i < extent; i++) {
      threads_.set_symbol(s.name, threads, Integers(threads.size(), i));
      run(s.body, threads);
    }
  }

  // Those of the threads for which a condition holds, or does not.
  Threads those_where(const Statement& condition, bool holds, const Threads& threads) const {
    const Integers index = threads_.evaluate(condition.index, threads),
                   than = threads_.evaluate(condition.place, threads);
    Threads those;
    for (size_t n = 0; n < threads.size(); n++) {
      if ((index[n] < than[n]) == holds) those.push_back(threads[n]);
    }
    return those;
  }

  const Tile& tile_;
  Buffers& buffers_;
  Cluster threads_;
};

}  // namespace

void run_tile(const Tile& tile, std::vector<Memory>& memory) {
  Buffers buffers(tile, memory);
  for (int64_t number = 0; number < tile.grid; number++) ClusterRun(tile, buffers, number);
}

std::vector<Tensor> interpret(const Tiles& tiles, std::span<const Tensor> inputs,
                              const BeforePoints& before) {
  return interpret(
      tiles.program, inputs, before,
      [&](const Program& sized, const Kernel& kernel, std::vector<Memory>& memory) {
        const std::optional<Tile>& tile =
            tiles.of_kernel[static_cast<size_t>(&kernel - sized.kernels.data())];
        if (!tile) return false;
        if (before) before(kernel);
        run_tile(*tile, memory);
        return true;
      });
}

}  // namespace tiny_compile
