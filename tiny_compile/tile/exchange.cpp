// Each gives the others what it has, waits for theirs, and adds all of it up for itself. Warps meet in
// shared memory. Blocks of a cluster send to each other's; or leave it in their own, where it is much,
// until all have read it:
//
//   warp 4               if lane < 1 { given[warp] = t[0] }   barrier
//                        u[w] = given[w], w < 4; u[0] = (u[0] + u[2]) + (u[1] + u[3])
//   cluster 4 · warp 8   if lane < 4 { send given[(rank*8 + warp)*4 + lane] = t[0] }   await given
//                        u[0] = given[lane*4 + rank]; u[0] = u[0] + u[0] of lane ^ 16, ^ 8, ..., ^ 1
//
// Of many parts a lane reads one: they are added in the same order as in a thread, which would be
// short of registers for all.
#include "tiny_compile/tile/exchange.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kFewParts = 4;    // that a thread reads
constexpr int64_t kMostSent = 512;  // elements, to each block

using Place = std::function<Expr(const Expr& result, const Expr& part)>;

// All lanes of a warp read a part of many, or each thread reads them all.
Taken taken_by(const Exchange& exchange) {
  Taken how{exchange.parts.count()};
  if (!exchange.of_warps || how.parts <= kFewParts) return how;
  how.lanes = std::min(kLanes, power_of_two_from(how.parts));
  for (int64_t step = how.lanes / 2; step > 0; step /= 2)
    how.steps.push_back(static_cast<int>(step));
  return how;
}

class Exchanging {
 public:
  Exchanging(Tile& tile, const Exchange& exchange)
      : tile_(tile), e_(exchange), parts_(exchange.parts) {}

  Exchanged run() {
    if (parts_.blocks == 1)
      meet(Space::Shared, "given", barrier());
    else if (sends(tile_, e_))
      send_to_all();
    else
      meet(Space::Cluster, "sent", cluster_barrier());
    return std::move(result_);
  }

 private:
  // Of the warps that share nothing a part each; of one that has other results in each lane 32.
  Expr among_warps(const Expr& result, const Expr& part) const {
    const int64_t step = parts_.warp_step, groups = tile_.warps / parts_.warps;
    const Expr warp = warp_of(tile_),
               group = floor_div(warp, step * parts_.warps) * step + mod(warp, step),
               place = (result * groups + group) * parts_.count() + part;
    return e_.of_warps ? place : place * kLanes + lane_of_warp();
  }

  // What a block has stands in its own memory.
  Expr in_a_block(const Expr& result, const Expr& rank) const {
    const Expr warp = result * tile_.warps + warp_of(tile_);
    return (e_.of_warps ? warp : warp * kLanes + lane_of_warp()) * tile_.cluster + rank;
  }

  Expr own_part() const {
    const Expr warp = mod(floor_div(warp_of(tile_), parts_.warp_step), parts_.warps),
               block = mod(floor_div(rank_of(tile_), parts_.block_step), parts_.blocks);
    return parts_.blocks_first ? block * parts_.warps + warp : warp * parts_.blocks + block;
  }

  // The block that has this part.
  Expr rank_of_part(const Expr& part) const {
    const Expr rank = rank_of(tile_);
    const int64_t step = parts_.block_step, many = step * parts_.blocks;
    return floor_div(rank, many) * many + part * step + mod(rank, step);
  }

  void meet(Space space, const char* name, const Statement& wait) {
    const bool of_blocks = space == Space::Cluster;
    const Place at = [&](const Expr& result, const Expr& part) {
      return of_blocks ? in_a_block(result, rank_of_part(part)) : among_warps(result, part);
    };
    const int64_t givers = tile_.warps * (e_.of_warps ? 1 : kLanes),
                  size = e_.results * givers * (of_blocks ? tile_.cluster : 1);
    const Accumulator given = like(tile_, e_.all, name, size, space);
    Body give = each("p", e_.results, [&](const Expr& p) {
      return copy(tile_, given, at(p, own_part()), e_.all, p);
    });
    if (e_.of_warps) give = {if_less(lane_of_warp(), 1, std::move(give))};
    result_.give = std::move(give);
    result_.wait = {wait};
    take(given, at);
    if (e_.repeats) result_.take.push_back(wait);
  }

  void send_to_all() {
    const int64_t blocks = tile_.cluster, size = e_.results * tile_.warps * blocks * blocks;
    const Accumulator given = like(tile_, e_.all, "given", size, Space::Cluster);
    Body give = each("p", e_.results, [&](const Expr& p) {
      return sent(
          copy(tile_, given, among_warps(p, own_part()) * blocks + lane_of_warp(), e_.all, p));
    });
    result_.give = {if_less(lane_of_warp(), blocks, std::move(give))};
    result_.wait = {await(given.values)};
    if (given.places >= 0) result_.wait.push_back(await(given.places));
    take(given, [&](const Expr& result, const Expr& part) {
      return among_warps(result, part) * blocks + rank_of(tile_);
    });
  }

  void take(const Accumulator& given, const Place& at) {
    const Taken how = taken_by(e_);
    Accumulator theirs = like(tile_, e_.all, "u", how.many(), Space::Register);
    result_.take = each("p", e_.results, [&](const Expr& p) {
      Body body = taken(tile_, theirs, how, mod(lane_of_warp(), how.lanes),
                        [&](const Expr& w, const Expr& part) {
                          return copy(tile_, theirs, w, given, at(p, part));
                        });
      append(body, added_up(tile_, theirs, how));
      append(body, copy(tile_, e_.all, p, theirs, 0));
      return body;
    });
  }

  Tile& tile_;
  const Exchange& e_;
  const Parts& parts_;
  Exchanged result_;
};

}  // namespace

int64_t Taken::many() const { return ceil_divide(parts, lanes); }

Body taken(Tile& tile, const Accumulator& theirs, const Taken& how, const Expr& lane,
           const std::function<Body(const Expr& w, const Expr& part)>& read) {
  if (how.lanes == 1) return each("w", how.parts, [&](const Expr& w) { return read(w, w); });
  Body body;
  for (int64_t w = 0; w < how.many(); w++) {
    const Expr part = lane + w * how.lanes;
    if ((w + 1) * how.lanes <= how.parts) {
      append(body, read(w, part));
      continue;
    }
    append(body, set_identity(tile, theirs, w));
    body.push_back(if_less(part, how.parts, read(w, part)));
  }
  return body;
}

Body added_up(Tile& tile, const Accumulator& theirs, const Taken& how) {
  Body body;
  for (int64_t n = how.many(), half; n > 1; n = half) {
    half = power_of_two_from(n) / 2;
    append(body, each("w", n - half, [&](const Expr& w) {
             return combine(tile, theirs, w, theirs, w + half);
           }));
  }
  for (int step : how.steps) append(body, combine(tile, theirs, 0, theirs, 0, step));
  return body;
}

bool sends(const Tile& tile, const Exchange& e) {
  const int64_t of_a_block = e.results * tile.warps * tile.cluster;
  return tile.cluster > 1 && e.parts.blocks == tile.cluster && e.of_warps && !e.repeats &&
         can_be_sent(e.all.dtype) && of_a_block <= kMostSent;
}

Exchanged exchanged(Tile& tile, const Exchange& exchange) {
  return Exchanging(tile, exchange).run();
}

void bound_cluster(Body& body, size_t reduced) {
  const auto waits = [](const Statement& s) {
    return contains(s, StatementKind::ClusterBarrier);
  };
  const auto sends = [](const Statement& s) { return contains(s, StatementKind::Send); };
  if (std::any_of(body.begin(), body.end(), waits))
    body.insert(body.begin() + static_cast<int64_t>(reduced), cluster_barrier());
  if (std::any_of(body.begin(), body.end(), sends))
    body.insert(std::find_if(body.begin(), body.end(),
                             [&](const Statement& s) { return waits(s) || sends(s); }),
                cluster_start());
}

}  // namespace tiny_compile
