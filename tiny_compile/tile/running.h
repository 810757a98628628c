// Running results as statements: what a scan has so far, and how two of these become one.
#pragma once

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// A running result: scalars. Of cummax and cummin the place too where it stands, -1 for none.
struct Stood {
  int value = -1, place = -1;
};

// Arrays of running results.
struct StoodArray {
  int values = -1, places = -1;
};

class Running {
 public:
  // Of a Scan step, or a Reduce step that is a scan's total. Places are below `length`.
  Running(Tile& tile, const Step& step, DType value, int64_t length);

  bool has_places() const { return places_; }
  bool is_costly() const;
  DType type() const { return type_; }
  DType place_type() const { return place_; }

  Stood identity();
  Stood both(Body& body, const Stood& a, const Stood& b);  // a, then b
  // One or the other, as a bool scalar says.
  Stood chosen(Body& body, int which, const Stood& a, const Stood& b);
  // Element number `index` of the row, of this value; that there is, or else the identity.
  Stood element(Body& body, int value, const Expr& index, const Expr& length, bool asks);

  StoodArray array(const char* what, int64_t size, Space space);
  StoodArray array(const char* what, int64_t size);  // of a thread
  Stood read(Body& body, const StoodArray& from, const Expr& index);
  Body set(const StoodArray& to, const Expr& index, const Stood& value) const;

  // a < b, of indices.
  int is_less(Body& body, const Expr& a, const Expr& b);

 private:
  int later(Body& body, const Stood& a, const Stood& b);

  Tile& tile_;
  const Op op_;
  const bool places_;
  const DType type_, place_;
};

// What stands before a group once the groups before it are over: of groups of 16, 256, ... what they come
// to so far, and what stands before them. Of as many rows side by side, for the one of this number, whose
// own element stands at that place in all arrays.
class RunningGroups {
 public:
  RunningGroups(Running& running, int levels, int64_t rows = 1, Expr row = 0);

  Body begin(const StoodArray& stands);
  // Group number `number` is over, of the groups of this level: `total` is its own, and `stands` becomes
  // what stands before the next one.
  Body next(const Expr& number, const Stood& total, const StoodArray& stands);
  // Of all groups that are over, and what has come since.
  Stood total(Body& body, const Stood& since);

 private:
  Body over(const Expr& done, int level);
  Expr at(int level) const { return level * rows_ + row_; }

  Running& running_;
  const int levels_;
  const int64_t rows_;
  const Expr row_;
  StoodArray sums_, stood_;
};

}  // namespace tiny_compile
