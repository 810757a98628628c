// What the groups of a tile come to, handed from thread to thread.
#pragma once

#include <utility>

#include "tiny_compile/tile/running.h"
#include "tiny_compile/tile/scan_moves.h"

namespace tiny_compile {

// What stands before the thread's group in its tile: before its group of groups, and before it among these;
// and the tile's total.
struct ScanTotals {
  std::vector<Stood> before;
  Stood total;
};

class ScanExchange {
 public:
  ScanExchange(ScanTile& s, Running& running);

  // Of tile number t, behind `body`; `own` is the total of the thread's group.
  ScanTotals totals(Body& body, const Stood& own, const Expr& t);

 private:
  int64_t stride() const { return s_.shape.along ? 1 : s_.shape.block_rows; }
  int64_t at_once() const { return std::min(s_.shape.groups, kGroup); }  // totals in a sequence
  // Totals of two tiles, where nobody waits but for them.
  bool alternates() const { return s_.shape.tiles() > 1 && !s_.shape.along; }
  int64_t room() const { return s_.threads() + at_once() * stride(); }  // for all sequences
  int64_t rows() const;
  std::pair<Stood, Stood> combined(Body& body, const StoodArray& from, const Expr& first,
                                   int64_t step, int64_t count, const Expr& me);
  ScanTotals by_all(Body& body, const Expr& from);
  Body in_place(const StoodArray& values, const Expr& first, int64_t step, int64_t count,
                const StoodArray& to);
  ScanTotals by_few(Body& body, const Expr& from);

  ScanTile& s_;
  Running& running_;
  StoodArray totals_, upper_, whole_, here_;
};

}  // namespace tiny_compile
