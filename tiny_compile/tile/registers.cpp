// How does a thread go over its registers? All at once, or some at a time; and where its warp has all that
// they could hold, it asks once, not for each.
#include "tiny_compile/tile/registers.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "tiny_compile/tile/exponentials.h"
#include "tiny_compile/tile/range.h"

namespace tiny_compile {
namespace {

constexpr int64_t kApart = 4;  // registers of a thread that are asked for together, at least
constexpr int64_t kMostChunksOfRegisters = 4;  // whose runs are apart

// A lane, and one of its registers.
Substitution own_at(const Share& k, int64_t lane, int64_t r) {
  Substitution values = {{lane_of_warp().symbol(), lane}};
  if (k.registers > 1) values.push_back({k.r().symbol(), r});
  return values;
}

// The body without asking whether each register's elements are there.
Body unguarded(const Share& k, const Body& body) {
  Body all;
  for (Statement s : body) {
    s.body = unguarded(k, s.body);
    if (s.kind == StatementKind::If && s.index == k.start() && s.place == k.count)
      append(all, std::move(s.body));
    else
      all.push_back(std::move(s));
  }
  return all;
}

// The body for the one piece that begins at `begin`, which the text then names as a number: which of its
// registers are beyond the last element nvcc finds out by itself.
Body at_piece(const Share& k, const Expr& own, int64_t begin, Body body) {
  for (Statement& s : body) {
    s.body = at_piece(k, own, begin, std::move(s.body));
    const bool is_index = s.kind == StatementKind::Let && s.name == k.name,
               asks = s.kind == StatementKind::If && s.place == k.count;
    if ((is_index || asks) && s.index == k.start()) s.index = own + begin;
  }
  return body;
}

// Where most warps have all that their registers could hold, each asks once (of two warps nvcc finds
// out which questions need no asking, and one body is as good); and where their pieces lie one
// behind the other, a single one is cut short:
//
//   for r_k < 32 { if lane + r_k*32 + warp*1024 < 5121 { .. } }
//   =>   if warp*1024 + 1023 < 5121 { for r_k < 32 { .. } }
//        else { if warp*1024 < 5121 { for r_k < 32 { if lane + r_k*32 + 5120 < 5121 { .. } } } }
//
// Where the text of an element is long (`is_long`), a second body costs more than the questions do, unless the cut
// piece has few elements.
Body whole_apart(const Share& k, Body body, bool is_long) {
  if (!k.covers_more || k.registers < kApart) return body;
  const Expr last = substitute(k.start(), own_at(k, 31, k.registers - 1)) + (k.vector - 1),
             first = substitute(k.start(), own_at(k, 0, 0)), piece = last - first + 1;
  const int64_t size = 32 * k.registers * k.vector;
  const bool is_behind = k.count.is_constant() && k.count.constant() % size > 0 &&
                         piece.is_constant(size) && range_of(first).has_only_multiples_of(size);
  if (is_long && !(is_behind && 2 * (k.count.constant() % size) <= size)) return body;
  if (last.bounds().low >= k.count.bounds().high) return body;
  if (!is_behind && 2 * (last.bounds().low + 1) > k.count.bounds().high) return body;
  Body whole = unguarded(k, body);
  if (is_behind)
    body = at_piece(k, k.start() - first, k.count.constant() / size * size, std::move(body));
  if (first.bounds().high >= k.count.bounds().low)
    body = {if_less(first, k.count, std::move(body))};
  return {if_less(last, k.count, std::move(whole)), otherwise(std::move(body))};
}

// Registers first, first + stride, .. of a thread: such as have all that they could hold whichever
// thread it is, or some of which a thread asks each.
struct Run {
  int64_t first = 0, stride = 1, count = 0;
  bool is_whole = true;
};

Expr number_of(const Run& run) {
  return Expr::index("g_k", run.count) * run.stride + run.first;
}

Expr start_of(const Share& k, const Run& run) {
  return substitute(k.start(), {{k.r().symbol(), number_of(run)}});
}

// All registers of which any thread has anything, as runs: where registers are the index's highest bits
// (or but for those of its chunks), the first ones are whole and the last hold nothing. None where
// no register is whole.
std::vector<Run> runs_of(const Share& k) {
  if (!k.covers_more || k.registers == 1 || !k.count.is_constant()) return {};
  enum Held { Nothing, Some, All };
  const int64_t count = k.count.constant();
  std::vector<Held> held;
  for (int64_t r = 0; r < k.registers; r++) {
    const Interval at = substitute(k.start(), {{k.r().symbol(), r}}).bounds();
    held.push_back(at.high + k.vector <= count ? All : at.low < count ? Some : Nothing);
  }
  const auto whole = std::count(held.begin(), held.end(), All),
             some = std::count(held.begin(), held.end(), Some);
  if (whole == 0 || some > std::max<int64_t>(1, whole / kApart))
    return {};  // each asks once instead
  for (int64_t chunks = 1; chunks <= std::min(kMostChunksOfRegisters, k.registers);
       chunks *= 2) {
    std::vector<Run> runs;
    bool in_order = true;
    for (int64_t c = 0; c < chunks; c++) {
      for (int64_t r = c; r < k.registers; r += chunks) {
        in_order = in_order && (r == c || held[r] <= held[r - chunks]);
        if (held[r] == Nothing) continue;
        const bool goes_on = r > c && held[r] == held[r - chunks];
        if (!goes_on) runs.push_back({r, chunks, 0, held[r] == All});
        runs.back().count++;
      }
    }
    const auto is_plain = [&](const Run& run) {  // as the index's bounds say as well
      return !run.is_whole || start_of(k, run).bounds().high + k.vector <= count;
    };
    if (in_order && std::all_of(runs.begin(), runs.end(), is_plain)) return runs;
  }
  return {};
}

Body with_register(Body body, const Substitution& number) {
  for (Statement& s : body) {
    for (Expr* index : {&s.index, &s.place, &s.from, &s.left})
      *index = substitute(*index, number);
    s.body = with_register(std::move(s.body), number);
  }
  return body;
}

//   for r_k < 32 { if r_k*32 + warp < 1000 { .. } }
//   =>   for g_k < 31 { .. g_k .. }   for g_k < 1 { if g_k*32 + warp + 992 < 1000 { .. } }
Body by_runs(const Lowering& l, const Share& k, const std::vector<Run>& runs,
             const Body& body) {
  const std::vector<Scalar>& scalars = l.tile.kernel.scalars;
  const bool is_named = std::any_of(scalars.begin(), scalars.end(), [&](const Scalar& s) {
    return depends_on(s.index, k.r().name());
  });
  Body all;
  for (const Run& run : runs) {
    Body each;
    if (is_named) each.push_back(let(k.r().name(), k.registers, number_of(run)));
    append(each, with_register(run.is_whole ? unguarded(k, body) : body,
                               {{k.r().symbol(), number_of(run)}}));
    all.push_back(for_each("g_k", run.count, true, std::move(each)));
  }
  return all;
}

// The number of a register by its piece and its own number there. Pieces differ in the highest
// bits of the index; where that has several chunks these are not the first of the number:
//
//   two pieces of registers that stand for 512, 256 and 1024   =>   g_k*2 + s_k
Expr number_in_piece(const Share& k, const Expr& piece, const Expr& own, int64_t pieces) {
  std::vector<int64_t> strides, of_piece, of_own;
  for (const Bit& bit : k.bits) {
    if (bit.level == Level::Register) strides.push_back(bit.stride);
  }
  std::vector<int64_t> sorted = strides;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto place_of = [&](int64_t stride) {
    const auto at = std::find(strides.begin(), strides.end(), stride);
    return int64_t{1} << (strides.end() - at - 1);
  };
  int64_t least = INT64_MAX;  // stride of the piece's bits
  for (size_t n = 0; int64_t{1} << n < pieces; n++)
    of_piece.push_back(place_of(least = sorted[n]));
  for (int64_t stride : strides) {
    if (stride < least) of_own.push_back(place_of(stride));
  }
  return spread(piece, of_piece) + spread(own, of_own);
}

}  // namespace

Body over_registers(const Lowering& l, const Share& k, std::vector<Work> works, int pieces) {
  const auto any = [&](auto holds) { return std::any_of(works.begin(), works.end(), holds); };
  const bool hastens = any([](const Work&w) { return w.hastens; }),
             waits = any([](const Work&w) { return !w.after.empty(); });
  const int64_t some = std::max<int64_t>(1, kHastened / (k.vector * l.row_registers())),
                parts = waits     ? pieces
                        : hastens ? k.registers / std::min(some, k.registers)
                                  : 1;
  const bool is_one = parts == 1 && !waits && !hastens && !l.inner.empty();
  const std::vector<Run> runs = is_one ? runs_of(k) : std::vector<Run>{};
  Body all;
  for (Work& work : works) {
    Body body = std::move(work.body);
    if (!runs.empty() && !work.share) {
      append(all, by_runs(l, k, runs, body));
      continue;
    }
    const Share& share = work.share ? *work.share : k;
    const int64_t at_a_time = share.registers / parts;
    if (parts > 1) {
      const Expr part = Expr::index("s_k", parts), own = Expr::index("g_k", at_a_time);
      body.insert(body.begin(), let("r_k", share.registers,
                                    waits ? number_in_piece(share, part, own, parts)
                                          : part * at_a_time + own));
    }
    if (!l.inner.empty())
      body = {for_each(parts > 1 ? "g_k" : "r_k", at_a_time, true, std::move(body))};
    if (work.hastens) body = {shortcut(std::move(body), work.highest)};
    append(all, std::move(body));
    append(all, std::move(work.after));
  }
  if (parts > 1) all = {for_each("s_k", parts, true, std::move(all))};
  if (waits || !runs.empty()) return all;
  const bool is_long =
      hastens && (parts == k.registers || any([](const Work& w) { return w.is_costly; }));
  return whole_apart(k, std::move(all), is_long);
}

}  // namespace tiny_compile
