// Which loops fill up their last vector with elements that are done again? Those of which that changes nothing, where
// the elements that are left would take longer one after the other:
//
//   for i1: 100 = 0 .. 100 vector { $0 = load x[i1] ; store y[i1] = $0 }, 16 lanes
//   =>  i1 = 0 .. 95, then 84 .. 99
#include "tiny_compile/tile/whole_vectors.h"

#include <algorithm>
#include <set>

namespace tiny_compile {
namespace {

// One after the other is as fast for an eighth of a vector's lanes, and for what takes an eighth of a row.
constexpr int64_t kFewLanes = 8;

// What a body puts into arrays and reads from them, and whether it updates memory.
struct Touched {
  std::set<int> set, read;
  bool updates = false;
};

void find_touched(const Tile& tile, const Body& body, Touched& all) {
  for (const Statement& s : body) {
    find_touched(tile, s.body, all);
    if (s.kind == StatementKind::Set) all.set.insert(s.array);
    if (s.kind == StatementKind::Update) all.updates = true;
    if (s.kind != StatementKind::Define) continue;
    const Scalar& scalar = tile.kernel.scalars[s.value];
    if (s.array >= 0) all.read.insert(s.array);
    if (scalar.kind == ScalarKind::Element) all.read.insert(scalar.step);
  }
}

// Whether its turns may be done again: none reads from an array or a buffer what one has put there.
bool can_repeat(const Program& program, const Tile& tile, const Statement& loop) {
  Touched all;
  find_touched(tile, loop.body, all);
  const std::vector<bool> read = buffers_read(program, tile.kernel),
                          written = buffers_written(program, tile.kernel);
  for (size_t b = 0; b < program.buffers.size(); b++)
    if (read[b] && written[b]) return false;
  return !all.updates && std::none_of(all.set.begin(), all.set.end(),
                                      [&](int array) { return all.read.count(array) > 0; });
}

// Of the smallest elements that the kernel has to do with.
int64_t lanes_of(const Program& program, const Kernel& kernel) {
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  int64_t bytes = 8;
  for (size_t b = 0; b < program.buffers.size(); b++)
    if (read[b] || written[b]) bytes = std::min(bytes, size_of(program.buffers[b].type.dtype));
  return program.machine.vector / bytes;
}

}  // namespace

std::optional<int64_t> lanes_of_last(const Program& program, const Tile& tile,
                                     const Statement& loop) {
  if (!loop.vector || !loop.from.is_constant(0) || !loop.index.is_constant())
    return std::nullopt;
  const int64_t lanes = lanes_of(program, tile.kernel), count = loop.index.constant(),
                rest = count % lanes;
  const bool is_short =
      count <= lanes || rest <= lanes / kFewLanes || (kFewLanes - 1) * rest < count / lanes;
  if (is_short || !can_repeat(program, tile, loop)) return std::nullopt;
  return lanes;
}

}  // namespace tiny_compile
