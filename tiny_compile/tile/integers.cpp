// The integers of all threads at once, as in a GPU that had a lane for each.
#include "tiny_compile/tile/integers.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

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

}  // namespace

ThreadIntegers::ThreadIntegers(const Tile& tile, int64_t number)
    : threads_(32 * tile.warps * tile.cluster) {
  Integers ranks, warps, lanes, threads;
  for (int t : all()) {
    ranks.push_back(t / (32 * tile.warps));
    warps.push_back(t / 32 % tile.warps);
    lanes.push_back(t % 32);
    threads.push_back(t % (32 * tile.warps));
  }
  set("block", all(), Integers(warps.size(), number));
  set("rank", all(), ranks);
  set("warp", all(), warps);
  set("lane", all(), lanes);
  set("thread", all(), threads);
}

ThreadIntegers::ThreadIntegers(int64_t begin, int64_t end) : threads_(kTurns) {
  set("begin", {0}, {begin});
  set("end", {0}, {end});
}

void ThreadIntegers::spread(int count) {
  for (auto& [name, values] : symbols_)
    std::fill(values.begin(), values.begin() + count, values[0]);
}

Threads ThreadIntegers::all() const {
  Threads threads(static_cast<size_t>(threads_));
  std::iota(threads.begin(), threads.end(), 0);
  return threads;
}

void ThreadIntegers::set(const std::string& name, const Threads& threads,
                         const Integers& values) {
  Integers& all = symbols_[name];
  all.resize(static_cast<size_t>(threads_));
  for (size_t n = 0; n < threads.size(); n++) all[threads[n]] = values[n];
}

Integers ThreadIntegers::evaluate(const Expr& expr, const Threads& threads) const {
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
    for (size_t n = 0; n < result.size(); n++) result[n] = of(expr.kind(), result[n], more[n]);
  }
  return result;
}

Threads ThreadIntegers::those_where(const Statement& condition, bool holds,
                                    const Threads& threads) const {
  const Integers index = evaluate(condition.index, threads),
                 than = evaluate(condition.place, threads);
  Threads those;
  for (size_t n = 0; n < threads.size(); n++) {
    if ((index[n] < than[n]) == holds) those.push_back(threads[n]);
  }
  return those;
}

}  // namespace tiny_compile
