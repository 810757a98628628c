// What is known while a CPU's rows are written, and how an element's scalars are.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {

struct RowTile {
  const Program& program;
  Kernel kernel;
  std::map<int, Expr> ends{};  // axis -> elements of the row at hand, where rows end early
  Tile tile{};
  std::vector<int> ids{};               // of each of its scalars, the tile's
  std::vector<uint64_t> needs{};        // of each, the axes that it is computed within
  std::vector<bool> defined{};          // for the row
  std::map<int, int> keeps{};           // scalar -> the array that has it for later steps
  std::set<int> kept{};                 // those whose arrays are filled
  std::map<std::string, int> arrays{};  // that steps have in common, by name
  std::map<int, int> blocks{};          // buffer -> what is sent there

  Expr index(const std::string& name, const Expr& extent) const;  // by a name that no size has
};

// An array of at least so many elements, which all steps use under this name.
int scratch(RowTile& r, const std::string& name, DType dtype, int64_t size);

// A new scalar, defined at the end of `body`.
int read_back(RowTile& r, Body& body, int array, const Expr& index);

// The scalar that is a step's register; -1 where nothing reads it.
int register_of(const Kernel& kernel, int step);

// A row's axes and registers, among what a scalar needs.
inline constexpr uint64_t kRegisters = uint64_t{1} << 63;
uint64_t row_scope(const RowTile& r);

// What these steps evaluate that is not kept, operands first.
std::vector<int> wanted_by(const RowTile& r, const std::vector<const Step*>& steps);

// Those that need no other axes than these.
Body define_within(const RowTile& r, const std::vector<int>& wanted, uint64_t axes,
                   std::vector<bool>& defined);

// Where an element is: what the axes of the step's loops are there, where these have no names; and its
// number among the elements of the row.
struct RowPlace {
  Expr flat;
  Substitution axes = {};
};

// The scalars of one element, and which they are: those that have names for axes, or new ones.
struct RowElement {
  Body body;
  std::vector<int> ids;
};

// With what later steps need again put into its array.
RowElement element_at(RowTile& r, const std::vector<int>& wanted,
                      const std::vector<bool>& defined, const RowPlace& place);

}  // namespace tiny_compile
