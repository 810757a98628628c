// What one thread has of an index under a layout: where it begins, and which registers and turns
// it goes through.
#pragma once

#include <string>
#include <vector>

#include "tiny_compile/loops/layout.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

//   loop register 4 · warp 16 of "k":  k = k_first + r_k*16 + v_k,  k_first = warp
//
// The thread's registers are numbered by bits too, in the order in which a reduction meets them:
// its first halves are registers p and p + registers / 2.
struct Share {
  std::string name;  // of the index
  Expr count = 1;    // of the index; more may be covered
  Layout layout;
  std::vector<Bit> bits;  // in the order of a reduction, see tile/reduce.h
  Expr first;             // the index where r and v are 0; may use `turn`
  int64_t registers = 1;  // r goes over these
  int64_t vector = 1;     // v over these
  int64_t turns = 1;
  bool covers_more = false;  // some of what is covered is beyond the last

  Expr r() const { return one_of("r_" + name, registers); }
  Expr v() const { return one_of("v_" + name, vector); }
  Expr turn() const { return one_of(turn_name(), turns); }
  std::string turn_name() const { return name == "k" ? "turn" : "turn_" + name; }
  Expr start() const;   // the index at r, v = 0: where a vector begins
  Expr at() const;      // at r and v
  Expr number() const;  // of the register at r and v, among registers * vector
  // What a register's number adds to the index: those with as much as the count have no element.
  Expr place(const Expr& number) const;
  // The chunk of the index, for number `live` of what is left of a thread's registers when each
  // chunk is one.
  Expr chunk(const Expr& live) const;

 private:
  static Expr one_of(const std::string& name, int64_t extent) {
    return extent == 1 ? Expr(0) : Expr::index(name, extent);
  }
};

// `tile` gives warps, `block` is the grid's part. Turns come in bit-reversed order, so that few results
// of a reduction wait.
Share share_of(const Tile& tile, const std::string& name, const Expr& count,
               const Layout& layout, const Expr& block);

// `body` in each of its turns.
Body in_turns(const Share& k, Body body);

// The sum over a number's bits, the highest first, of what each stands for.
//   number = r, of 4 bits; places 64 32 16 1  =>  r/2*16 + r%2
Expr spread(const Expr& number, const std::vector<int64_t>& places);

// The bits of a number that `mask` has, side by side: 0 where it has none.
Expr packed(const Expr& number, int64_t mask);

// An index of the threads that share a cluster's blocks, a block's warps or a warp's lanes with
// others: the bits of theirs that no layout of `used` names. Where all of them are 0, the thread is the first of its like.
std::vector<Expr> unused_bits(const Tile& tile, const std::vector<Layout>& used);

}  // namespace tiny_compile
