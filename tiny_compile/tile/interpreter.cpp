// What do the threads of a cluster's blocks do? The same statement, all that are in it at once, as in
// a GPU that had a lane for each. So a shuffle reads what the others have just computed, and what would be a
// race on a machine is seen here:
//
//   given[warp] = $3              written by thread 32
//   $4 = given[warp ^ 1]          read by thread 0 without a barrier between: an error
#include "tiny_compile/tile/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/tile/cluster.h"
#include "tiny_compile/tile/sized.h"
#include "tiny_compile/tile/stored.h"

namespace tiny_compile {
namespace {

template <typename Each>
void in_batches(const Threads& threads, Each each) {
  for (size_t from = 0; from < threads.size(); from += kLanes)
    each(from, static_cast<int>(std::min<size_t>(kLanes, threads.size() - from)));
}

// A pointwise op, many threads at a time.
void compute_op(const Scalar& s, int id, const Threads& threads, Cluster& known) {
  Lanes operands[3], out;
  const auto operand = [&](size_t k) { return k < s.operands.size() ? &operands[k] : nullptr; };
  in_batches(threads, [&](size_t from, int n) {
    for (size_t k = 0; k < s.operands.size(); k++)
      known.gather(s.operands[k], threads, from, n, operands[k]);
    apply(s.op, s.dtype, operand(0), operand(1), operand(2), n, out);
    known.scatter(id, threads, from, n, out);
  });
}

void draw(const Scalar& s, int id, const Threads& threads, Cluster& known) {
  const Integers words = known.integers.evaluate(s.index, threads);
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
      : tile_(tile),
        buffers_(buffers),
        threads_(tile, number),
        first_(number * tile.cluster * tile.warps * 32) {
    run(tile.body, threads_.integers.all());
    threads_.end();
  }
  // A CPU's thread.
  ClusterRun(const Tile& tile, Buffers& buffers, int64_t begin, int64_t end, OwnMemory& own)
      : tile_(tile), buffers_(buffers), threads_(tile, begin, end), first_(begin) {
    threads_.exchange(own);
    run(tile.body, {0});
    threads_.exchange(own);
  }

 private:
  // Turns of a loop are one thread's.
  Buffers::Asker asker(int thread) const {
    return {first_ + (is_on_cpu(tile_) ? 0 : thread), threads_.barriers(thread)};
  }

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
      threads_.integers.set(indirect(k).name, threads, places[k]);
    return threads_.integers.evaluate(s.index, threads);
  }

  void compute(int id, const Threads& threads) {
    const Scalar& s = tile_.kernel.scalars[id];
    if (s.kind == ScalarKind::Apply) {
      if (highest_ >= 0 && s.op == Op::exp && s.dtype == DType::f32)
        check_exponents(s.operands[0], threads);
      return compute_op(s, id, threads, threads_);
    }
    if (s.kind == ScalarKind::Philox) return draw(s, id, threads, threads_);
    CHECK(s.kind == ScalarKind::Load || s.kind == ScalarKind::Index, "no value of this kind");
    read(id, threads);
  }

  // Where the highest is NaN or infinite nobody trusts it.
  void check_exponents(int exponent, const Threads& threads) {
    for (int t : threads) {
      const auto at = [&](int id) {
        return std::bit_cast<float>(static_cast<uint32_t>(threads_.value(id, t)));
      };
      if (std::isfinite(at(highest_)) && !(at(exponent) <= at(highest_)))
        fail("an exponent of a shortcut is not below $", highest_);
    }
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
        buffers_.fetch(s.buffer, index[n], asker(wanted[n]), one);
      threads_.scatter(id, {wanted[n]}, 0, 1, one);
    }
  }

  // --- statements ---

  void run(const Body& body, const Threads& threads) {
    if (threads.empty()) return;
    for (size_t n = 0; n < body.size(); n++) {
      if (body[n].kind == StatementKind::Else)
        run(body[n].body, those_where(body[n - 1], false, threads));
      else
        run(body[n], threads);
    }
  }

  // Threads for which the condition of an If holds, or does not.
  Threads those_where(const Statement& s, bool holds, const Threads& threads) const {
    if (s.value < 0) return threads_.integers.those_where(s, holds, threads);
    Threads those;
    for (int t : threads) {
      if ((threads_.value(s.value, t) != 0) == holds) those.push_back(t);
    }
    return those;
  }

  void run(const Statement& s, const Threads& threads) {
    if (threads.empty()) return;
    switch (s.kind) {
      case StatementKind::Let:
        return threads_.integers.set(
            s.name, threads,
            s.value < 0 ? threads_.integers.evaluate(s.index, threads)
                        : threads_.nearest(s.value, s.place.constant() - 1, threads));
      case StatementKind::Define: return define(s, threads);
      case StatementKind::Divisor: return;
      case StatementKind::Set: return set(s, threads);
      case StatementKind::Load:
      case StatementKind::StoreAll: return move(s, threads);
      case StatementKind::Store: {
        const Integers index = threads_.integers.evaluate(s.index, threads);
        for (size_t n = 0; n < threads.size(); n++)
          buffers_.put(s.buffer, index[n], threads_.value(s.value, threads[n]),
                       asker(threads[n]));
        return;
      }
      case StatementKind::Update: return update(s, threads);
      case StatementKind::UpdateAll: return update_all(s, threads);
      case StatementKind::Stream: return stream(s, threads);
      case StatementKind::Tree: return reduce_array(s, threads);
      case StatementKind::Prefetch: return;
      case StatementKind::For: return run_for(s, threads);
      case StatementKind::If: return run(s.body, those_where(s, true, threads));
      case StatementKind::Else: return;  // with the If before it
      case StatementKind::Shortcut: {
        highest_ = s.value;
        run(s.body, threads);
        highest_ = -1;
        return;
      }
      case StatementKind::Barrier: return threads_.pass_barrier(threads);
      case StatementKind::ClusterBarrier: return threads_.pass_cluster_barrier(threads);
      case StatementKind::ClusterStart: return threads_.start(threads);
      case StatementKind::Send: return send(s, threads);
      case StatementKind::Await: threads_.await(s.array, threads);
    }
  }

  // Where the element is that a thread updates, if what data chose is a place.
  std::optional<int64_t> chosen_place(const Statement& s, int64_t chosen, int thread) {
    if (!index_fits(chosen, s.place.constant())) return std::nullopt;
    threads_.integers.set(indirect(0).name, {thread}, {chosen});
    return threads_.integers.evaluate(s.index, {thread})[0];
  }

  void update(const Statement& s, const Threads& threads) {
    for (int t : threads) {
      const std::optional<int64_t> index =
          s.chosen < 0 ? threads_.integers.evaluate(s.index, {t})[0]
                       : chosen_place(s, static_cast<int64_t>(threads_.value(s.chosen, t)), t);
      if (index) update(s, *index, t);
    }
  }

  void update(const Statement& s, int64_t index, int thread) {
    const uint64_t value = threads_.value(s.value, thread);
    if (s.array < 0) return buffers_.update(s, index, value, asker(thread));
    uint64_t& sum = threads_.element_to_add(s.array, index, thread);
    sum = combined(s.op, sum, value, tile_.arrays[s.array].dtype);
  }

  void update_all(const Statement& s, const Threads& threads) {
    const int t = threads[0];
    const DType dtype = tile_.arrays[s.array].dtype;
    const int64_t count = threads_.integers.evaluate(s.left, threads)[0],
                  neighbours = threads_.integers.evaluate(s.from, threads)[0];
    std::map<int64_t, uint64_t> parts;  // of each place
    for (int64_t e = 0; e < count; e++) {
      const auto chosen = static_cast<int64_t>(threads_.element_read(s.chosen, e, t));
      if (chosen == -1) continue;
      const auto index = chosen_place(s, chosen, t);
      for (int64_t l = 0; index && l < neighbours; l++) {
        const uint64_t value = threads_.element_read(s.array, e * s.width + l, t);
        const auto [part, is_new] = parts.insert({*index + l, value});
        if (!is_new) part->second = combined(s.op, part->second, value, dtype);
      }
    }
    threads_.forget(s.array);
    for (const auto& [index, part] : parts) buffers_.update(s, index, part, asker(t));
  }

  void define(const Statement& s, const Threads& threads) {
    const Scalar& scalar = tile_.kernel.scalars[s.value];
    if (s.array >= 0) return threads_.read_element(s.value, s.array, s.index, 0, threads);
    if (scalar.kind == ScalarKind::Votes) return threads_.vote(s.value, threads);
    if (scalar.kind == ScalarKind::Element)
      return threads_.read_element(s.value, scalar.step, scalar.index, lane_xor_of(scalar),
                                   threads);
    compute(s.value, threads);
  }

  void set(const Statement& s, const Threads& threads) {
    const Integers index = threads_.integers.evaluate(s.index, threads);
    for (size_t n = 0; n < threads.size(); n++)
      threads_.element_write(s.array, index[n], threads[n],
                             threads_.value(s.value, threads[n]));
  }

  void send(const Statement& s, const Threads& threads) {
    const Integers index = threads_.integers.evaluate(s.index, threads);
    for (size_t n = 0; n < threads.size(); n++)
      threads_.send(s.array, index[n], threads[n], threads_.value(s.value, threads[n]));
  }

  // Where a vector is in memory; threads whose data chose a place that is none are left out.
  Integers vector_index(const Statement& s, Threads& threads) {
    if (s.value < 0) return threads_.integers.evaluate(s.index, threads);
    Scalar load = tile_.kernel.scalars[s.value];
    load.index = s.index;
    return chosen_index(load, threads);
  }

  void move(const Statement& s, Threads threads) {
    const Integers index = vector_index(s, threads),
                   place = threads_.integers.evaluate(s.place, threads),
                   left = threads_.integers.evaluate(s.left, threads);
    Lanes one;
    for (size_t n = 0; n < threads.size(); n++) {
      if (index[n] % s.width != 0) fail("tile ", tile_.kernel.name, ": a vector astride");
      const int64_t width =
          s.left.is_constant(0) ? s.width : std::min<int64_t>(s.width, left[n]);
      for (int64_t v = 0; v < width; v++) {
        if (s.kind == StatementKind::StoreAll) {
          buffers_.put(s.buffer, index[n] + v,
                       threads_.element_read(s.array, place[n] + v, threads[n]),
                       asker(threads[n]));
          continue;
        }
        buffers_.fetch(s.buffer, index[n] + v, asker(threads[n]), one);
        threads_.element_write(s.array, place[n] + v, threads[n], bits_of(one));
      }
    }
  }

  void stream(const Statement& s, const Threads& threads) {
    const int64_t index = threads_.integers.evaluate(s.index, threads)[0],
                  count = threads_.integers.evaluate(s.place, threads)[0];
    for (int64_t v = 0; v < count; v++)
      buffers_.put(s.buffer, index + v, threads_.element_read(s.array, v, threads[0]),
                   asker(threads[0]));
  }

  void reduce_array(const Statement& s, const Threads& threads) {
    const DType dtype = tile_.arrays[s.array].dtype;
    const int64_t count = threads_.integers.evaluate(s.index, threads)[0];
    std::vector<std::byte> values(static_cast<size_t>(count) * width_of(dtype));
    for (int64_t e = 0; e < count; e++) {
      const uint64_t bits = threads_.element_read(s.array, e, threads[0]);
      std::memcpy(&values[static_cast<size_t>(e) * width_of(dtype)], &bits, width_of(dtype));
    }
    threads_.forget(s.array);
    threads_.element_write(s.array, 0, threads[0],
                           reduce(s.op, dtype, values.data(), count).bits);
  }

  // Threads may have other turns, each its own.
  void run_for(const Statement& s, const Threads& threads) {
    const Integers from = threads_.integers.evaluate(s.from, threads),
                   to = threads_.integers.evaluate(s.index, threads);
    if (s.vector) return run_turns(s, from[0], to[0]);
    const int64_t last = *std::max_element(to.begin(), to.end());
    for (int64_t i = *std::min_element(from.begin(), from.end()); i < last; i++) {
      Threads here;
      for (size_t n = 0; n < threads.size(); n++)
        if (from[n] <= i && i < to[n]) here.push_back(threads[n]);
      threads_.integers.set(s.name, here, Integers(here.size(), i));
      run(s.body, here);
    }
  }

  // As by a thread each: what one writes no other reads.
  void run_turns(const Statement& s, int64_t from, int64_t to) {
    if (from >= to) return;
    threads_.spread(static_cast<int>(std::min<int64_t>(to - from, kTurns)));
    for (int64_t first = from; first < to; first += kTurns) {
      Threads turns(static_cast<size_t>(std::min<int64_t>(to - first, kTurns)));
      std::iota(turns.begin(), turns.end(), 0);
      Integers places(turns.size());
      std::iota(places.begin(), places.end(), first);
      threads_.integers.set(s.name, turns, places);
      run(s.body, turns);
    }
    threads_.end_turns();
  }

  const Tile& tile_;
  Buffers& buffers_;
  Cluster threads_;
  const int64_t first_;  // number of its first thread among all
  int highest_ = -1;     // of all exponents where it runs now
};

// By three threads, where there is work for them, in two turns.
void run_units(const Tile& tile, Buffers& buffers) {
  constexpr int64_t kThreads = 3, kPieces = 2 * kThreads;
  const int64_t units = tile.units.constant(),
                each = std::max(ceil_divide(units, kPieces), tile.grain.constant());
  std::vector<OwnMemory> own;
  for (int64_t t = 0; t < kThreads; t++) own.emplace_back(tile);
  for (int64_t begin = 0; begin < units; begin += each)
    ClusterRun(tile, buffers, begin, std::min(begin + each, units),
               own[static_cast<size_t>(begin / each % kThreads)]);
}

}  // namespace

void run_tile(const Tile& tile, std::vector<Memory>& memory) {
  Buffers buffers(tile, memory);
  if (is_on_cpu(tile)) return run_units(tile, buffers);
  const int64_t clusters = tile.grid.constant();
  for (int64_t number = 0; number < clusters; number++) ClusterRun(tile, buffers, number);
}

namespace {

const std::optional<Tile>& tile_for(const Tiles& tiles, size_t kernel,
                                    const Substitution& numbers) {
  const std::vector<SizedSchedule>& sized = tiles.program.kernels[kernel].sized;
  for (size_t n = 0; n < sized.size(); n++)
    if (hold(sized[n].when, numbers)) return tiles.of_sizes.at(kernel).at(n);
  return tiles.of_kernel[kernel];
}

}  // namespace

std::vector<Tensor> interpret(const Tiles& tiles, std::span<const Tensor> inputs,
                              const BeforePoints& before) {
  const std::vector<Kernel>& kernels = tiles.program.kernels;
  const Substitution numbers =
      sizes(tiles.program).empty() ? Substitution{} : sizes_of_call(tiles.program, inputs);
  return interpret(tiles.program, inputs, before,
                   [&](const Program&, const Kernel& kernel, std::vector<Memory>& memory) {
                     const auto is_it = [&](const Kernel& own) {
                       return own.name == kernel.name;
                     };
                     const auto own = std::find_if(kernels.begin(), kernels.end(), is_it);
                     const std::optional<Tile>& tile =
                         tile_for(tiles, static_cast<size_t>(own - kernels.begin()), numbers);
                     if (!tile || has_empty_loop(*own, numbers)) return false;
                     if (before) before(kernel);
                     run_tile(substitute(*tile, numbers), memory);
                     return true;
                   });
}

}  // namespace tiny_compile
