// Does what goes by way of shared memory come to all who want it?
//
//   rows grid · lane 32 loop register 32 · warp 8  via load 1 rows lane 16 loop register 32 · warp 8
//   =>  "via load 1: rows cover 16, not the block's 32"
#include "tiny_compile/loops/legal_via.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/laid_out.h"

namespace tiny_compile {
namespace {

constexpr int kMostPieces = 64, kMostPadding = 64;

// Integers alone decide it.
bool is_of_indices(const Kernel& kernel, int id) {
  const Scalar& s = kernel.scalars[id];
  return s.kind != ScalarKind::Load && s.kind != ScalarKind::Register && s.mask < 0 &&
         std::all_of(s.operands.begin(), s.operands.end(),
                     [&](int operand) { return is_of_indices(kernel, operand); });
}

const Expr& index_of(const Kernel& kernel, const Via& via) {
  return via.stores ? kernel.steps[stored_by(kernel, via)].index
                    : kernel.scalars[loaded_by(kernel, via)].index;
}

// One of its layouts beside the kernel's own, of `what`.
std::string why_wrong_side(const Layout& layout, const Layout& own, const std::string& what,
                           const std::vector<int>& axes, const Kernel& kernel) {
  for (size_t p = 0; p < layout.size(); p++) {
    const Part& part = layout[p];
    const bool is_vector = part.level == Level::Vector;
    const int64_t most = part.level == Level::Warp   ? warps_of(*kernel.schedule)
                         : part.level == Level::Lane ? 32
                         : is_vector                 ? 8
                                                     : 128;
    if (!is_of_block(part.level))
      return str(what, " have a ", name_of(part.level), ", which is as the kernel's");
    if (!is_power_of_two(part.extent) || !is_power_of_two(part.step) || part.extent > most ||
        part.step > most / part.extent || (is_own(part.level) && part.step > 1))
      return str(what, ": ", name_of(part.level), " ", part.extent, " from ", part.step,
                 ": a power of two, up to ", most);
    if (is_vector && p + 1 < layout.size()) return what + ": vector is the last part";
    if (is_vector && !mod(kernel.axes[axes.back()].extent, part.extent).is_constant(0))
      return str(what, ": vectors of ", part.extent, " in ", kernel.axes[axes.back()].extent);
  }
  const int64_t covered = covered_by(layout), wanted = covered_by(of_block(own));
  return covered == wanted ? "" : str(what, " cover ", covered, ", not the block's ", wanted);
}

bool cuts_registers(const Layout& layout, int pieces) {
  const Layout block = of_block(layout);
  return pieces == 1 ||
         (!block.empty() && block[0].level == Level::Register && block[0].extent % pieces == 0);
}

std::string why_no_access(const Kernel& kernel, const Via& via) {
  const int id = via.stores ? stored_by(kernel, via) : loaded_by(kernel, via);
  if (id < 0) return "there is no such access";
  if (!via.stores && !chosen_by_indices(kernel, kernel.scalars[id]))
    return "data chooses what is read";
  if (loops_of(kernel, via).empty() ||
      !depends_on_any(kernel, index_of(kernel, via), axes_laid_out(kernel)))
    return "it does not go over rows and loops";
  return "";
}

std::string why_wrong(const Kernel& kernel, const Via& via) {
  if (const std::string why = why_no_access(kernel, via); !why.empty()) return why;
  const Schedule& s = *kernel.schedule;
  const std::vector<int> inner = loops_of(kernel, via);
  const Layout loop = layout_over(kernel, inner);
  std::string why = why_wrong_side(via.rows, s.rows, "rows", axes_laid_out(kernel), kernel);
  if (why.empty()) why = why_wrong_side(via.loop, loop, "loops", inner, kernel);
  if (!why.empty()) return why;
  for (Level level : {Level::Warp, Level::Lane}) {
    const int64_t rows = bits_taken(via.rows, level), loops = bits_taken(via.loop, level);
    if (rows < 0 || loops < 0 || (rows & loops))
      return str("names ", name_of(level), "s twice");
  }
  if (extent_of(via.rows, Level::Vector) > 1 && extent_of(via.loop, Level::Vector) > 1)
    return "vectors of rows and of loops";
  const Layout transposed = of_block(loop);
  if (!std::equal(transposed.begin(), transposed.end(), loop.end() - std::ssize(transposed)))
    return "turns of the loops, and blocks of a cluster, come before all else";
  const int64_t registers = own_elements(via.rows) * own_elements(via.loop);
  if (registers > 128) return str(registers, " elements of a thread, at most 128");
  if (via.pieces < 1 || via.pieces > kMostPieces || via.padding > kMostPadding)
    return str("at most ", kMostPieces, " pieces, and a padding of ", kMostPadding);
  if (!cuts_registers(loop, via.pieces) || !cuts_registers(via.loop, via.pieces))
    return str("pieces ", via.pieces, " are parts of the loops' first registers");
  const bool differ = std::any_of(s.via.begin(), s.via.end(), [&](const Via& other) {
    return why_no_access(kernel, other).empty() && loops_of(kernel, other) == inner &&
           other.pieces != via.pieces;
  });
  if (differ) return "others over its loops have other pieces";
  return "";
}

}  // namespace

bool chosen_by_indices(const Kernel& kernel, const Scalar& load) {
  return load.operands.empty() && (load.mask < 0 || is_of_indices(kernel, load.mask));
}

int loaded_by(const Kernel& kernel, const Via& via) {
  for (int id = 0, left = via.number; id < static_cast<int>(kernel.scalars.size()); id++) {
    if (kernel.scalars[id].kind == ScalarKind::Load && --left == 0) return via.stores ? -1 : id;
  }
  return -1;
}

int stored_by(const Kernel& kernel, const Via& via) {
  for (int s = 0, left = via.number; s < static_cast<int>(kernel.steps.size()); s++) {
    if (kernel.steps[s].kind == StepKind::Store && --left == 0) return via.stores ? s : -1;
  }
  return -1;
}

DType dtype_of(const Kernel& kernel, const Via& via) {
  return via.stores ? kernel.steps[stored_by(kernel, via)].dtype
                    : kernel.scalars[loaded_by(kernel, via)].dtype;
}

std::vector<int> loops_of(const Kernel& kernel, const Via& via) {
  if (via.stores) return kernel.steps[stored_by(kernel, via)].inner;
  for (const std::vector<int>& inner : loops_of(kernel)) {
    if (depends_on_any(kernel, index_of(kernel, via), inner)) return inner;
  }
  return {};
}

Layout of_block(const Layout& layout) {
  Layout block = layout;
  std::erase_if(block, [](const Part& part) { return !is_of_block(part.level); });
  return block;
}

Layout of_piece(const Layout& layout, int pieces) {
  Layout piece = of_block(layout);
  if (pieces > 1) piece[0].extent /= pieces;
  return piece;
}

bool goes_along_rows(const Via& via) {
  if (via.rows.empty() || via.loop.empty()) return !via.rows.empty();
  const auto is_lowest = [](const Part& part) {
    return part.level == Level::Vector || (part.level == Level::Lane && part.step == 1);
  };
  return extent_of(via.loop, Level::Vector) == 1 && is_lowest(via.rows.back());
}

int64_t elements_of_stage(const Via& via) {
  const int64_t rows = covered_by(via.rows), loops = covered_by(via.loop) / via.pieces,
                elements = goes_along_rows(via) ? rows * (loops + via.padding)
                                                : loops * (rows + via.padding);
  return elements * (via.pieces > 1 ? 2 : 1);
}

int64_t staged_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const Via& via : kernel.schedule->via)
    bytes += elements_of_stage(via) * static_cast<int64_t>(size_of(dtype_of(kernel, via)));
  return bytes;
}

std::string why_wrong_via(const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  if (s.via.empty()) return "";
  if (!is_power_of_two(warps_of(s))) return "via: of blocks of a power of two of warps";
  for (size_t v = 0; v < s.via.size(); v++) {
    const Via& via = s.via[v];
    const std::string name = str("via ", via.stores ? "store " : "load ", via.number);
    for (size_t other = 0; other < v; other++) {
      if (s.via[other].stores == via.stores && s.via[other].number == via.number)
        return name + " a second time";
    }
    if (const std::string why = why_wrong(kernel, via); !why.empty()) return name + ": " + why;
  }
  return "";
}

}  // namespace tiny_compile
