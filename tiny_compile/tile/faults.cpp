// Which faults has a tile, for whatever sizes? Of symbolic sizes it is asked for some numbers:
//
//   tile f for n: 1..1024 { ... }   =>   n = 1, 1024, 2, ...: each as a tile of numbers
#include <algorithm>

#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/loops/views.h"
#include "tiny_compile/tile/multiplied.h"
#include "tiny_compile/tile/sized.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/verify.h"

namespace tiny_compile {
namespace {

// The kernel's scalars, behind which the tile's own stand; all else is the kernel's.
bool is_of(const Tile& tile, Kernel kernel) {
  const std::vector<Scalar>&own = kernel.scalars, &all = tile.kernel.scalars;
  if (all.size() < own.size() || !std::equal(own.begin(), own.end(), all.begin())) return false;
  kernel.scalars = all;
  return kernel == tile.kernel;
}

// What the program does may be wrong for some numbers, or an index of it nothing, as i0%n is for n = 0:
// it is asked again once they are known.
bool is_sound(const Program& program, const Substitution& numbers) {
  try {
    verify(substitute(program, numbers));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Whether a call can have these sizes: of others some extent would be less than nothing.
bool has_shapes(const Program& program, const Kernel& kernel, const Substitution& numbers) {
  const auto is_extent = [&](const Expr& e) {
    return substitute(e, numbers).bounds().high >= 0;
  };
  const auto has_extent = [&](const Axis& axis) { return is_extent(axis.extent); };
  const auto has_shape = [&](const Buffer& buffer) {
    return std::all_of(buffer.type.shape.begin(), buffer.type.shape.end(), is_extent);
  };
  return std::all_of(kernel.axes.begin(), kernel.axes.end(), has_extent) &&
         std::all_of(program.buffers.begin(), program.buffers.end(), has_shape);
}

// Whether a GPU starts so many blocks; a call of more is refused.
bool can_start(const Tile& tile, const Substitution& numbers) {
  return substitute(tile.grid, numbers).bounds().high < kMostBlocks / tile.cluster;
}

// Of what has no elements nothing is read, wherever that would stand: i0%n of n = 0 is no place.
void forget_places(Body& body, const std::vector<bool>& is_empty) {
  for (Statement& s : body) {
    const bool reads = s.kind == StatementKind::Load || s.kind == StatementKind::Prefetch;
    if (reads && s.buffer >= 0 && is_empty[s.buffer]) s.index = 0;
    forget_places(s.body, is_empty);
  }
}

Tile without_empty_reads(Tile tile, const Program& sized) {
  std::vector<bool> none;
  for (const Buffer& buffer : sized.buffers) none.push_back(is_empty(buffer.type));
  for (Scalar& scalar : tile.kernel.scalars) {
    if (scalar.kind == ScalarKind::Load && none[scalar.buffer]) scalar.index = 0;
  }
  forget_places(tile.body, none);
  return tile;
}

TileFault fault_for(const Program& program, const Tile& tile, const Substitution& numbers) {
  try {
    const Program own = substitute_in_buffers(program, numbers);
    const Tile sized = substitute(without_empty_reads(tile, own), numbers);
    return fault_of_numbers(own, sized.kernel, sized);
  } catch (const Error& error) {
    return {error.what(), -1};
  }
}

// Of symbolic sizes a loop is printed for all of them: what it does must be seen without numbers.
std::string why_not_one_loop(const Tile& tile, const Body& body) {
  for (const Statement& s : body) {
    if (s.multiplied && !multiplied_of(tile, s))
      return s.name + " is multiplied, but multiplies no panels of any sizes";
    if (s.transposed && !transposed_lines(tile, s) && !square_of(tile, s))
      return s.name + " is transposed, but transposes no square of any sizes";
    const std::string why = why_not_one_loop(tile, s.body);
    if (!why.empty()) return why;
  }
  return "";
}

// `symbolic`: the program's sizes.
TileFault fault_of(const Program& program, int kernel, const Tile& tile,
                   const std::vector<Expr>& symbolic) {
  const Kernel& own = program.kernels[kernel];
  if (!is_of(tile, own)) return {str("is not of kernel ", own.name), -1};
  if (symbolic.empty()) return fault_of_numbers(program, own, tile);
  for (const Substitution& numbers : some_numbers(symbolic)) {
    if (!has_shapes(program, own, numbers)) continue;
    if (has_empty_loop(own, numbers) || !can_start(tile, numbers)) continue;
    TileFault fault = fault_for(program, tile, numbers);
    if (fault.why.empty() || !is_sound(program, numbers)) continue;
    fault.why += str(", for ", values_text(numbers));
    return fault;
  }
  return {why_not_one_loop(tile, tile.body), -1};
}

void check(const Program& program, size_t number, const std::optional<Tile>& tile,
           const std::vector<Expr>& symbolic) {
  const Kernel& kernel = program.kernels[number];
  const bool wants = becomes_tile(program, kernel);
  if (wants != tile.has_value())
    fail("kernel ", kernel.name,
         wants ? str(" has ", name_of(schedule_of(kernel).strategy), ", but no tile")
               : str(" has a tile, and is written otherwise"));
  if (!tile) return;
  const TileFault fault = fault_of(program, static_cast<int>(number), *tile, symbolic);
  if (fault.why.empty()) return;
  fail("tile ", kernel.name,
       fault.statement < 0 ? "" : str(", statement ", fault.statement + 1), ": ", fault.why);
}

}  // namespace

TileFault fault_of(const Program& program, int kernel, const Tile& tile) {
  return fault_of(program, kernel, tile, sizes(program));
}

void verify(const Tiles& tiles) {
  const Program& program = tiles.program;
  if (tiles.of_kernel.size() != program.kernels.size())
    fail("program ", program.name, " has ", program.kernels.size(), " kernels, but room for ",
         tiles.of_kernel.size(), " tiles");
  const std::vector<Expr> symbolic = sizes(program);
  const bool fits = tiles.of_sizes.empty() || tiles.of_sizes.size() == program.kernels.size();
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const size_t sized = program.kernels[k].sized.size();
    if (!fits || (tiles.of_sizes.empty() ? 0 : tiles.of_sizes[k].size()) != sized)
      fail("kernel ", program.kernels[k].name, " has ", sized,
           " schedules for some sizes, and as many tiles it has not");
    check(program, k, tiles.of_kernel[k], symbolic);
    for (size_t n = 0; n < sized; n++) {
      const Program own = for_sizes(program, program.kernels[k], n);
      check(own, 0, tiles.of_sizes[k][n], sizes(own));
    }
  }
}

}  // namespace tiny_compile
