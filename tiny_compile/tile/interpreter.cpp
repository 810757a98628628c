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

// What the threads of a cluster know, over memory.
struct Run {
  const Tile& tile;
  Buffers& buffers;
  Cluster cluster;
  const int64_t first;  // number of its first thread among all
  int highest = -1;     // of all exponents where it runs now
};

void run(Run& r, const Body& body, const Threads& threads);

// Turns of a loop are one thread's.
Buffers::Asker asker(const Run& r, int thread) {
  return {r.first + (is_on_cpu(r.tile) ? 0 : thread), r.cluster.barriers(thread)};
}

// --- scalars ---------------------------------------------------------------------------------

template <typename Each>
void in_batches(const Threads& threads, Each each) {
  for (size_t from = 0; from < threads.size(); from += kLanesAtOnce)
    each(from, static_cast<int>(std::min<size_t>(kLanesAtOnce, threads.size() - from)));
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

// The index, with at0, at1, ... the integers that data gave; threads whose data is out of range
// are left out, and the error is raised.
Integers chosen_index(Run& r, const Scalar& s, Threads& threads) {
  Threads inside;
  std::vector<Integers> places(s.operands.size());
  for (int t : threads) {
    bool fits = true;
    Integers mine;
    for (size_t k = 0; k < s.operands.size() && fits; k++) {
      Lanes one;
      r.cluster.gather(s.operands[k], {t}, 0, 1, one);
      mine.push_back(lane_integer(one, 0));
      fits = index_fits(mine.back(), s.limits[k].constant());
    }
    if (!fits) continue;
    inside.push_back(t);
    for (size_t k = 0; k < mine.size(); k++) places[k].push_back(mine[k]);
  }
  threads = inside;
  for (size_t k = 0; k < places.size(); k++)
    r.cluster.integers.set(indirect(k).name, threads, places[k]);
  return r.cluster.integers.evaluate(s.index, threads);
}

void read(Run& r, int id, const Threads& threads) {
  const Scalar& s = r.tile.kernel.scalars[id];
  Threads wanted;
  Lanes one;
  for (int t : threads) {
    const bool is_wanted = s.mask < 0 || r.cluster.value(s.mask, t) != 0;
    if (is_wanted) wanted.push_back(t);
    fill(is_wanted || s.kind == ScalarKind::Index ? Literal{s.dtype, 0} : s.value, 1, one);
    r.cluster.scatter(id, {t}, 0, 1, one);
  }
  const Integers index = chosen_index(r, s, wanted);
  for (size_t n = 0; n < wanted.size(); n++) {
    if (s.kind == ScalarKind::Index)
      fill_iota(&index[n], 1, one);
    else
      r.buffers.fetch(s.buffer, index[n], asker(r, wanted[n]), one);
    r.cluster.scatter(id, {wanted[n]}, 0, 1, one);
  }
}

// Where the highest is NaN or infinite nobody trusts it.
void check_exponents(Run& r, int exponent, const Threads& threads) {
  for (int t : threads) {
    const auto at = [&](int id) {
      return std::bit_cast<float>(static_cast<uint32_t>(r.cluster.value(id, t)));
    };
    if (std::isfinite(at(r.highest)) && !(at(exponent) <= at(r.highest)))
      fail("an exponent of a shortcut is not below $", r.highest);
  }
}

void compute(Run& r, int id, const Threads& threads) {
  const Scalar& s = r.tile.kernel.scalars[id];
  if (s.kind == ScalarKind::Apply) {
    if (r.highest >= 0 && s.op == Op::exp && s.dtype == DType::f32)
      check_exponents(r, s.operands[0], threads);
    return compute_op(s, id, threads, r.cluster);
  }
  if (s.kind == ScalarKind::Philox) return draw(s, id, threads, r.cluster);
  CHECK(s.kind == ScalarKind::Load || s.kind == ScalarKind::Index, "no value of this kind");
  read(r, id, threads);
}

void define(Run& r, const Statement& s, const Threads& threads) {
  const Scalar& scalar = r.tile.kernel.scalars[s.value];
  if (s.array >= 0) return r.cluster.read_element(s.value, s.array, s.index, 0, threads);
  if (scalar.kind == ScalarKind::Votes) return r.cluster.vote(s.value, threads);
  if (scalar.kind == ScalarKind::Element)
    return r.cluster.read_element(s.value, scalar.step, scalar.index, lane_xor_of(scalar),
                                  threads);
  compute(r, s.value, threads);
}

// --- elements and memory ---------------------------------------------------------------------

void set(Run& r, const Statement& s, const Threads& threads) {
  const Integers index = r.cluster.integers.evaluate(s.index, threads);
  for (size_t n = 0; n < threads.size(); n++)
    r.cluster.element_write(s.array, index[n], threads[n],
                            r.cluster.value(s.value, threads[n]));
}

void send(Run& r, const Statement& s, const Threads& threads) {
  const Integers index = r.cluster.integers.evaluate(s.index, threads);
  for (size_t n = 0; n < threads.size(); n++)
    r.cluster.send(s.array, index[n], threads[n], r.cluster.value(s.value, threads[n]));
}

void store(Run& r, const Statement& s, const Threads& threads) {
  const Integers index = r.cluster.integers.evaluate(s.index, threads);
  for (size_t n = 0; n < threads.size(); n++)
    r.buffers.put(s.buffer, index[n], r.cluster.value(s.value, threads[n]),
                  asker(r, threads[n]));
}

// Where a vector is in memory; threads whose data chose a place that is none are left out.
Integers vector_index(Run& r, const Statement& s, Threads& threads) {
  if (s.value < 0) return r.cluster.integers.evaluate(s.index, threads);
  Scalar load = r.tile.kernel.scalars[s.value];
  load.index = s.index;
  return chosen_index(r, load, threads);
}

void move(Run& r, const Statement& s, Threads threads) {
  const Integers index = vector_index(r, s, threads),
                 place = r.cluster.integers.evaluate(s.place, threads),
                 left = r.cluster.integers.evaluate(s.left, threads);
  Lanes one;
  for (size_t n = 0; n < threads.size(); n++) {
    if (index[n] % s.width != 0) fail("tile ", r.tile.kernel.name, ": a vector astride");
    const int64_t width = s.left.is_constant(0) ? s.width : std::min<int64_t>(s.width, left[n]);
    for (int64_t v = 0; v < width; v++) {
      if (s.kind == StatementKind::StoreAll) {
        r.buffers.put(s.buffer, index[n] + v,
                      r.cluster.element_read(s.array, place[n] + v, threads[n]),
                      asker(r, threads[n]));
        continue;
      }
      r.buffers.fetch(s.buffer, index[n] + v, asker(r, threads[n]), one);
      r.cluster.element_write(s.array, place[n] + v, threads[n], bits_of(one));
    }
  }
}

void stream(Run& r, const Statement& s, const Threads& threads) {
  const int64_t index = r.cluster.integers.evaluate(s.index, threads)[0],
                count = r.cluster.integers.evaluate(s.place, threads)[0];
  for (int64_t v = 0; v < count; v++)
    r.buffers.put(s.buffer, index + v, r.cluster.element_read(s.array, v, threads[0]),
                  asker(r, threads[0]));
}

void reduce_array(Run& r, const Statement& s, const Threads& threads) {
  const DType dtype = r.tile.arrays[s.array].dtype;
  const int64_t count = r.cluster.integers.evaluate(s.index, threads)[0];
  std::vector<std::byte> values(static_cast<size_t>(count) * width_of(dtype));
  for (int64_t e = 0; e < count; e++) {
    const uint64_t bits = r.cluster.element_read(s.array, e, threads[0]);
    std::memcpy(&values[static_cast<size_t>(e) * width_of(dtype)], &bits, width_of(dtype));
  }
  r.cluster.forget(s.array);
  r.cluster.element_write(s.array, 0, threads[0],
                          reduce(s.op, dtype, values.data(), count).bits);
}

// --- updates ---------------------------------------------------------------------------------

// Where the element is that a thread updates, if what data chose is a place.
std::optional<int64_t> chosen_place(Run& r, const Statement& s, int64_t chosen, int thread) {
  if (!index_fits(chosen, s.place.constant())) return std::nullopt;
  r.cluster.integers.set(indirect(0).name, {thread}, {chosen});
  return r.cluster.integers.evaluate(s.index, {thread})[0];
}

void update_one(Run& r, const Statement& s, int64_t index, int thread) {
  const uint64_t value = r.cluster.value(s.value, thread);
  if (s.array < 0) return r.buffers.update(s, index, value, asker(r, thread));
  uint64_t& sum = r.cluster.element_to_add(s.array, index, thread);
  sum = combined(s.op, sum, value, r.tile.arrays[s.array].dtype);
}

void update(Run& r, const Statement& s, const Threads& threads) {
  for (int t : threads) {
    const std::optional<int64_t> index =
        s.chosen < 0
            ? r.cluster.integers.evaluate(s.index, {t})[0]
            : chosen_place(r, s, static_cast<int64_t>(r.cluster.value(s.chosen, t)), t);
    if (index) update_one(r, s, *index, t);
  }
}

void update_all(Run& r, const Statement& s, const Threads& threads) {
  const int t = threads[0];
  const DType dtype = r.tile.arrays[s.array].dtype;
  const int64_t count = r.cluster.integers.evaluate(s.left, threads)[0],
                neighbours = r.cluster.integers.evaluate(s.from, threads)[0];
  std::map<int64_t, uint64_t> parts;  // of each place
  for (int64_t e = 0; e < count; e++) {
    const auto chosen = static_cast<int64_t>(r.cluster.element_read(s.chosen, e, t));
    if (chosen == -1) continue;
    const auto index = chosen_place(r, s, chosen, t);
    for (int64_t l = 0; index && l < neighbours; l++) {
      const uint64_t value = r.cluster.element_read(s.array, e * s.width + l, t);
      const auto [part, is_new] = parts.insert({*index + l, value});
      if (!is_new) part->second = combined(s.op, part->second, value, dtype);
    }
  }
  r.cluster.forget(s.array);
  for (const auto& [index, part] : parts) r.buffers.update(s, index, part, asker(r, t));
}

// --- bodies ----------------------------------------------------------------------------------

// Threads for which the condition of an If holds, or does not.
Threads those_where(const Run& r, const Statement& s, bool holds, const Threads& threads) {
  if (s.value < 0) return r.cluster.integers.those_where(s, holds, threads);
  Threads those;
  for (int t : threads) {
    if ((r.cluster.value(s.value, t) != 0) == holds) those.push_back(t);
  }
  return those;
}

// As by a thread each: what one writes no other reads.
void run_turns(Run& r, const Statement& s, int64_t from, int64_t to) {
  if (from >= to) return;
  r.cluster.spread(static_cast<int>(std::min<int64_t>(to - from, kTurns)));
  for (int64_t first = from; first < to; first += kTurns) {
    Threads turns(static_cast<size_t>(std::min<int64_t>(to - first, kTurns)));
    std::iota(turns.begin(), turns.end(), 0);
    Integers places(turns.size());
    std::iota(places.begin(), places.end(), first);
    r.cluster.integers.set(s.name, turns, places);
    run(r, s.body, turns);
  }
  r.cluster.end_turns();
}

// Threads may have other turns, each its own.
void run_for(Run& r, const Statement& s, const Threads& threads) {
  const Integers from = r.cluster.integers.evaluate(s.from, threads),
                 to = r.cluster.integers.evaluate(s.index, threads);
  if (s.vector) return run_turns(r, s, from[0], to[0]);
  const int64_t last = *std::max_element(to.begin(), to.end());
  for (int64_t i = *std::min_element(from.begin(), from.end()); i < last; i++) {
    Threads here;
    for (size_t n = 0; n < threads.size(); n++)
      if (from[n] <= i && i < to[n]) here.push_back(threads[n]);
    r.cluster.integers.set(s.name, here, Integers(here.size(), i));
    run(r, s.body, here);
  }
}

void run_shortcut(Run& r, const Statement& s, const Threads& threads) {
  r.highest = s.value;
  run(r, s.body, threads);
  r.highest = -1;
}

void run(Run& r, const Statement& s, const Threads& threads) {
  if (threads.empty()) return;
  switch (s.kind) {
    case StatementKind::Let:
      return r.cluster.integers.set(
          s.name, threads,
          s.value < 0 ? r.cluster.integers.evaluate(s.index, threads)
                      : r.cluster.nearest(s.value, s.place.constant() - 1, threads));
    case StatementKind::Define: return define(r, s, threads);
    case StatementKind::Divisor: return;
    case StatementKind::Set: return set(r, s, threads);
    case StatementKind::Load:
    case StatementKind::StoreAll: return move(r, s, threads);
    case StatementKind::Store: return store(r, s, threads);
    case StatementKind::Update: return update(r, s, threads);
    case StatementKind::UpdateAll: return update_all(r, s, threads);
    case StatementKind::Stream: return stream(r, s, threads);
    case StatementKind::Tree: return reduce_array(r, s, threads);
    case StatementKind::Prefetch: return;
    case StatementKind::For: return run_for(r, s, threads);
    case StatementKind::If: return run(r, s.body, those_where(r, s, true, threads));
    case StatementKind::Else: return;  // with the If before it
    case StatementKind::Shortcut: return run_shortcut(r, s, threads);
    case StatementKind::Barrier: return r.cluster.pass_barrier(threads);
    case StatementKind::ClusterBarrier: return r.cluster.pass_cluster_barrier(threads);
    case StatementKind::ClusterStart: return r.cluster.start(threads);
    case StatementKind::Send: return send(r, s, threads);
    case StatementKind::Await: r.cluster.await(s.array, threads);
  }
}

void run(Run& r, const Body& body, const Threads& threads) {
  if (threads.empty()) return;
  for (size_t n = 0; n < body.size(); n++) {
    if (body[n].kind == StatementKind::Else)
      run(r, body[n].body, those_where(r, body[n - 1], false, threads));
    else
      run(r, body[n], threads);
  }
}

void run_cluster(const Tile& tile, Buffers& buffers, int64_t number) {
  Run r{tile, buffers, {tile, number}, number * tile.cluster * tile.warps * 32};
  run(r, tile.body, r.cluster.integers.all());
  r.cluster.end();
}

// By a CPU's thread.
void run_unit(const Tile& tile, Buffers& buffers, int64_t begin, int64_t end, OwnMemory& own) {
  Run r{tile, buffers, {tile, begin, end}, begin};
  r.cluster.exchange(own);
  run(r, tile.body, {0});
  r.cluster.exchange(own);
}

// By three threads, where there is work for them, in two turns.
void run_units(const Tile& tile, Buffers& buffers) {
  constexpr int64_t kThreads = 3, kPieces = 2 * kThreads;
  const int64_t units = tile.units.constant(),
                each = std::max(ceil_divide(units, kPieces), tile.grain.constant());
  std::vector<OwnMemory> own;
  for (int64_t t = 0; t < kThreads; t++) own.emplace_back(tile);
  for (int64_t begin = 0; begin < units; begin += each)
    run_unit(tile, buffers, begin, std::min(begin + each, units),
             own[static_cast<size_t>(begin / each % kThreads)]);
}

}  // namespace

void run_tile(const Tile& tile, std::vector<Memory>& memory) {
  Buffers buffers(tile, memory);
  if (is_on_cpu(tile)) return run_units(tile, buffers);
  const int64_t clusters = tile.grid.constant();
  for (int64_t number = 0; number < clusters; number++) run_cluster(tile, buffers, number);
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
