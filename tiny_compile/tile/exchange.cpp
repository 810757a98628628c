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
#include "tiny_compile/loops/legal_layouts.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLanes = 32;
constexpr int64_t kFewParts = 4;  // that a thread reads

using Place = std::function<Expr(const Expr& result, const Expr& part)>;

class Exchanging {
 public:
  Exchanging(Tile& tile, const Exchange& exchange)
      : tile_(tile), e_(exchange), parts_(exchange.parts) {}

  Body run() {
    if (parts_.blocks == 1)
      meet(Space::Shared, "given_", barrier());
    else if (sends(tile_, e_))
      send_to_all();
    else
      meet(Space::Cluster, "sent_", cluster_barrier());
    return std::move(body_);
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

  void meet(Space space, const std::string& name, const Statement& wait) {
    const bool of_blocks = space == Space::Cluster;
    const Place at = [&](const Expr& result, const Expr& part) {
      return of_blocks ? in_a_block(result, rank_of_part(part)) : among_warps(result, part);
    };
    const Accumulator given = shared(space, name, wait);
    Body give = each("p", e_.results, [&](const Expr& p) {
      return copy(tile_, given, at(p, own_part()), e_.all, p);
    });
    if (e_.of_warps) give = {if_less(lane_of_warp(), 1, std::move(give))};
    append(body_, std::move(give));
    body_.push_back(wait);
    add_up(given, at);
    if (e_.repeats) body_.push_back(wait);
  }

  void send_to_all() {
    const int64_t blocks = tile_.cluster, size = e_.results * tile_.warps * blocks * blocks;
    const Accumulator given = like(tile_, e_.all, "given", size, Space::Cluster);
    Body give = each("p", e_.results, [&](const Expr& p) {
      Body all =
          copy(tile_, given, among_warps(p, own_part()) * blocks + lane_of_warp(), e_.all, p);
      for (Statement& s : all) {
        if (s.kind == StatementKind::Set) s.kind = StatementKind::Send;
      }
      return all;
    });
    body_.push_back(if_less(lane_of_warp(), blocks, std::move(give)));
    body_.push_back(await(given.values));
    if (given.places >= 0) body_.push_back(await(given.places));
    add_up(given, [&](const Expr& result, const Expr& part) {
      return among_warps(result, part) * blocks + rank_of(tile_);
    });
  }

  // All large exchanges of a tile use one array, a barrier apart.
  Accumulator shared(Space space, const std::string& name, const Statement& wait) {
    const int64_t givers = tile_.warps * (e_.of_warps ? 1 : kLanes),
                  size = e_.results * givers * (space == Space::Cluster ? tile_.cluster : 1);
    Accumulator given = e_.all;
    bool again = false;
    given.values = shared_array(str(name, given.dtype), given.dtype, size, space, again);
    if (given.places >= 0)
      given.places = shared_array(name + "places", DType::i64, size, space, again);
    if (again) body_.push_back(wait);
    return given;
  }

  // `again`: it has been used before.
  int shared_array(const std::string& name, DType dtype, int64_t size, Space space,
                   bool& again) {
    for (size_t a = 0; a < tile_.arrays.size(); a++) {
      Array& array = tile_.arrays[a];
      if (array.name != name || array.dtype != dtype) continue;
      if (is_small_exchange(size, dtype))
        return add_array(tile_, {str(name, "_", tile_.arrays.size()), dtype, size, space});
      array.size = std::max(array.size, size);
      again = true;
      return static_cast<int>(a);
    }
    return add_array(tile_, {name, dtype, size, space});
  }

  void add_up(const Accumulator& given, const Place& at) {
    const bool by_lanes = e_.of_warps && parts_.count() > kFewParts;
    const int64_t many = by_lanes ? ceil_divide(parts_.count(), kLanes) : parts_.count();
    Accumulator theirs = like(tile_, e_.all, "u", many, Space::Register);
    if (theirs.op == Op::sum_exp) theirs.op = Op::sum;
    append(body_, each("p", e_.results, [&](const Expr& p) {
             Body body = by_lanes ? read_by_lanes(theirs, many, given, p, at)
                                  : each("w", many, [&](const Expr& w) {
                                      return copy(tile_, theirs, w, given, at(p, w));
                                    });
             append(body, added(theirs, many));
             if (by_lanes) append(body, added_by_lanes(theirs));
             append(body, copy(tile_, e_.all, p, theirs, 0));
             return body;
           }));
  }

  int64_t lanes() const { return std::min(kLanes, power_of_two_from(parts_.count())); }

  // Lane l has parts l, l + 32, ...: the rest of a power of two adds nothing.
  Body read_by_lanes(const Accumulator& theirs, int64_t many, const Accumulator& given,
                     const Expr& result, const Place& at) {
    const int64_t count = parts_.count();
    const Expr lane = mod(lane_of_warp(), lanes());
    Body body;
    for (int64_t w = 0; w < many; w++) {
      const Expr part = lane + w * kLanes;
      Body read = copy(tile_, theirs, w, given, at(result, part));
      if ((w + 1) * lanes() <= count) {
        append(body, std::move(read));
        continue;
      }
      append(body, set_identity(tile_, theirs, w));
      body.push_back(if_less(part, count, std::move(read)));
    }
    return body;
  }

  Body added(const Accumulator& theirs, int64_t many) {
    Body body;
    for (int64_t n = many, half; n > 1; n = half) {
      half = power_of_two_from(n) / 2;
      append(body, each("w", n - half, [&](const Expr& w) {
               return combine(tile_, theirs, w, theirs, w + half);
             }));
    }
    return body;
  }

  Body added_by_lanes(const Accumulator& theirs) {
    Body body;
    for (int64_t step = lanes() / 2; step > 0; step /= 2)
      append(body, combine(tile_, theirs, 0, theirs, 0, static_cast<int>(step)));
    return body;
  }

  Tile& tile_;
  const Exchange& e_;
  const Parts& parts_;
  Body body_;
};

}  // namespace

bool sends(const Tile& tile, const Exchange& e) {
  const int64_t of_a_block = e.results * tile.warps * tile.cluster;
  return tile.cluster > 1 && e.parts.blocks == tile.cluster && e.of_warps && !e.repeats &&
         can_be_sent(e.all.dtype) && is_small_exchange(of_a_block, DType::i64);
}

Body exchanged(Tile& tile, const Exchange& exchange) {
  return Exchanging(tile, exchange).run();
}

}  // namespace tiny_compile
