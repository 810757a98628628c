// What is known while a CPU's rows are written, and how an element's scalars are.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tiny_compile/loops/costly_values.h"
#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

// Neighbouring rows that are done side by side: of the last row axis those from `start` to `stop` - 1.
// Each has elements of its own in all arrays, element k of lane l at k*most + l.
struct Strip {
  Axis axis;
  int64_t most = 1;
  int64_t unit = 1;  // of work, in rows
  Expr start{}, stop{}, lane{};
};

struct RowTile {
  const Program& program;
  Kernel kernel;
  std::map<int, Expr> ends{};    // axis -> elements of the row at hand, where rows end early
  std::map<int, Expr> counts{};  // those of them that a step has named
  Tile tile{};
  std::vector<int> ids{};               // of each of its scalars, the tile's
  std::vector<uint64_t> needs{};        // of each, the axes that it is computed within
  std::vector<bool> defined{};          // for the row
  std::map<int, int> keeps{};           // scalar -> the array that has it for later steps
  std::set<int> kept{};                 // those whose arrays are filled
  std::map<std::string, int> arrays{};  // that steps have in common, by name
  std::map<int, int> blocks{};          // buffer -> what is sent there
  std::optional<Strip> lanes{};         // several rows, not one
  std::map<int, int> registers{};       // step -> the array of its lanes' registers

  Expr index(const std::string& name, const Expr& extent) const;  // by a name that no size has
  // On a GPU, where a thread has a row and hardly any room.
  bool is_alone() const { return tile.alone; }
};

// Of a kernel whose scalars are the tile's.
RowTile row_tile(const Program& program, const Kernel& kernel);

// A row's own element of this number, and what each row does with its own: in a loop over the lanes.
Expr own_place(const RowTile& r, const Expr& number);
Body for_lanes(const RowTile& r, Body each);

// An array of at least so many elements of a row, which all steps use under this name.
int scratch(RowTile& r, const std::string& name, DType dtype, int64_t size);

// A new scalar, defined at the end of `body`.
int read_back(RowTile& r, Body& body, int array, const Expr& index);

// The scalar that is a step's register; -1 where nothing reads it.
int register_of(const Kernel& kernel, int step);

// A row's axes and registers, among what a scalar needs (loops/costly_values.h); and those of them that lanes
// share.
uint64_t row_scope(const RowTile& r);
uint64_t shared_scope(const RowTile& r);

// What these steps evaluate that is not kept, operands first.
std::vector<int> wanted_by(const RowTile& r, const std::vector<const Step*>& steps);

// Those that need no other axes than these.
Body define_within(const RowTile& r, const std::vector<int>& wanted, uint64_t axes,
                   std::vector<bool>& defined);

// The same with the row's place and, of those that are wanted, its own values: what `each` adds there.
Body in_lanes(RowTile& r, const std::vector<int>& wanted,
              const std::function<void(Body&)>& each);

// Where an element is: what the axes of the step's loops are there, where these have no names; and its
// number among the elements of the row.
struct RowPlace {
  Expr flat;
  Substitution axes = {};
};

// The scalars of one element, which they are, by names for axes or new ones, and which are there so far.
struct RowElement {
  Body body;
  std::vector<int> ids;
  std::vector<bool> defined;
};

// Those that need no other axes than these and are not there; with what later steps need again put into its
// array.
RowElement element_at(RowTile& r, const std::vector<int>& wanted, RowElement known,
                      const RowPlace& place, uint64_t axes = ~uint64_t{0});

// each(number among the elements of the row), in a loop over the first `loops` of these axes: what is wanted
// is defined as far out as it can be.
Body over_axes(RowTile& r, const std::vector<int>& inner, size_t loops,
               const std::vector<int>& wanted, const std::function<Body(const Expr&)>& each);

// What of these has an array for later steps is in it from here on.
void mark_kept(RowTile& r, const std::vector<int>& ids);

}  // namespace tiny_compile
