// What is known while a kernel of points is written as a GPU's tile (tile/packs.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

struct Points {
  const Program& program;
  Kernel kernel;                 // of points
  PointPacks packs;              // who has which
  bool any_count = false;        // how many there are is a symbol
  std::vector<uint64_t> axes{};  // of each scalar: those it depends on
  std::vector<std::vector<int>>
      branches{};              // of each: what is done where it chooses that (loops/branches.h)
  std::vector<bool> inside{};  // of each, whether it is done in a branch
  std::vector<int> roots{}, outer{};  // what steps store; the rows but the last
  std::vector<int> ids{};             // of each scalar the tile's
  Tile tile{};
};

Points points_for(const Program& program, const Kernel& kernel, bool any_count);
// Of a kernel with row axes, whose packs are these.
Points points_in(const Program& program, const Kernel& kernel, PointPacks packs);

// An element of an array, from which a scalar is read.
struct ElementPlace {
  int array = -1;
  Expr index;
};

// What has been computed at a place of the text, and what is read from arrays there.
struct PointScope {
  std::vector<bool> defined;
  std::map<int, ElementPlace> places;
};

// Where a pack is: its first point, counted through; its row, and where it begins there.
struct At {
  Expr first, row, column;
  Expr left;  // points from there on, where they may be fewer than a pack's; else 0
};

const Axis& last(const Points& p);
uint64_t all_rows(const Points& p);  // bits 0 .. rows - 1
uint64_t last_row(const Points& p);
bool varies(const Points& p, int id);                   // along the last row
Expr element(const Points& p);                          // v of a pack
std::string unused(const Points& p, std::string name);  // a name that no axis or size has
int add_values(Points& p, const char* what, DType dtype, int64_t size);

// These scalars again, with axes that are elsewhere; operands that are not among them stay as they
// are. Gives all scalars' numbers in the tile.
std::vector<int> copied(Points& p, const std::vector<int>& which,
                        const Substitution& elsewhere);

PointScope nothing(const Points& p);
// What is to be computed for these, in order, but for what is done in a branch.
std::vector<int> needed(const Points& p, const PointScope& scope,
                        const std::vector<int>& roots);
// Those that know all they need where these axes have values.
Body define_over(Points& p, PointScope& scope, const std::vector<int>& ids, uint64_t axes);

// For each of a pack's points; those that are there, if it asks.
Body over_points(const Points& p, const At& at, Body each);

}  // namespace tiny_compile
