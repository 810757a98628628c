// An element may be read where it is used, as long as its array has not changed since it was defined:
//
//   $7 = sum2[p]; $9 = add($7, $8); sum2[p] = $9     sum2[p] = sum2[p] + ..
//   $7 = sum2[p]; sum2[p] = $8;     $9 = add($7, ..)  const float element_7 = sum2[p]; ..
#include "tiny_compile/codegen/tile_uses.h"

#include <algorithm>

namespace tiny_compile {
namespace {

void count(const Body& body, const std::vector<Scalar>& scalars, TileUses& all,
           std::vector<bool>& seen) {
  for (const Statement& s : body) {
    count(s.body, scalars, all, seen);
    if (s.value < 0) continue;
    const Scalar& own = scalars[s.value];
    if (s.kind == StatementKind::Define) {
      if (s.array >= 0 || own.kind == ScalarKind::Element)
        all.read.insert(s.array >= 0 ? s.array : own.step);
      if (s.array >= 0) all.taken[s.value] = true;
    } else {
      all.counts[s.value] += s.kind == StatementKind::Let ? 2 : 1;  // it is compared first
    }
    if (s.kind == StatementKind::Update && s.chosen >= 0) all.counts[s.chosen]++;
    if (s.kind == StatementKind::Load) {
      for (int chosen : own.operands) all.counts[chosen]++;
    }
    if (s.kind != StatementKind::Define || seen[s.value] || s.array >= 0) continue;
    seen[s.value] = true;
    for (int operand : own.operands) all.counts[operand]++;
    if (own.mask >= 0) all.counts[own.mask]++;
  }
}

bool is_used(const Statement& s, const std::vector<Scalar>& scalars, int id) {
  if (s.kind == StatementKind::Update && s.chosen == id) return true;
  if (s.value >= 0) {
    const std::vector<int>& operands = scalars[s.value].operands;
    const bool reads =
        s.kind == StatementKind::Load || (s.kind == StatementKind::Define && s.array < 0);
    if (reads &&
        (std::count(operands.begin(), operands.end(), id) > 0 || scalars[s.value].mask == id))
      return true;
    if (s.kind != StatementKind::Define && s.value == id) return true;
  }
  return std::any_of(s.body.begin(), s.body.end(),
                     [&](const Statement& inside) { return is_used(inside, scalars, id); });
}

// Whether another value may stand in the array behind it.
bool changes(const Statement& s, const Tile& tile, int array) {
  switch (s.kind) {
    case StatementKind::Set:
    case StatementKind::Load:
    case StatementKind::Update:
    case StatementKind::Send: return s.array == array;
    case StatementKind::Barrier:
    case StatementKind::ClusterBarrier:
    case StatementKind::Await: return tile.arrays[array].space != Space::Register;
    default:
      return std::any_of(s.body.begin(), s.body.end(),
                         [&](const Statement& inside) { return changes(inside, tile, array); });
  }
}

// From a definition on, up to the last statement of its body that uses it: a statement without a body may
// change the array itself, once it has read it.
bool stands(const Body& body, size_t definition, const Tile& tile, int id, int array) {
  size_t last = definition;
  for (size_t s = definition + 1; s < body.size(); s++)
    if (is_used(body[s], tile.kernel.scalars, id)) last = s;
  for (size_t s = definition + 1; s <= last; s++)
    if ((s < last || !body[s].body.empty()) && changes(body[s], tile, array)) return false;
  return true;
}

void find_standing(const Body& body, const Tile& tile, std::vector<bool>& standing) {
  for (size_t n = 0; n < body.size(); n++) {
    const Statement& s = body[n];
    find_standing(s.body, tile, standing);
    if (s.kind != StatementKind::Define || s.array >= 0) continue;
    const Scalar& own = tile.kernel.scalars[s.value];
    if (own.kind == ScalarKind::Element && !stands(body, n, tile, s.value, own.step))
      standing[s.value] = false;
  }
}

// What uses a half: stores of its dtype, which round it, and others.
struct HalfUses {
  std::vector<bool> stored, others;  // of each scalar
};

// What a statement stores as a half, if it does.
DType stored_type(const Program& program, const Tile& tile, const Statement& s) {
  if (s.kind == StatementKind::Store) return program.buffers[s.buffer].type.dtype;
  const bool in_block = s.kind == StatementKind::Set && tile.arrays[s.array].packed;
  return in_block ? tile.arrays[s.array].dtype : DType::f32;
}

void find_half_uses(const Program& program, const Tile& tile, const Body& body,
                    HalfUses& uses) {
  for (const Statement& s : body) {
    find_half_uses(program, tile, s.body, uses);
    if (s.value < 0) continue;
    const Scalar& scalar = tile.kernel.scalars[s.value];
    if (s.kind == StatementKind::Define) {
      for (int operand : scalar.operands) uses.others[operand] = true;
      if (scalar.mask >= 0) uses.others[scalar.mask] = true;
    } else if (is_half(scalar.dtype) && stored_type(program, tile, s) == scalar.dtype) {
      uses.stored[s.value] = true;
    } else {
      uses.others[s.value] = true;
    }
  }
}

// How often halves are put in arrays from which nothing but vectors are stored.
void count_stored(const Tile& tile, const TileUses& uses, const Body& body,
                  std::vector<int>& stored) {
  for (const Statement& s : body) {
    count_stored(tile, uses, s.body, stored);
    if (s.kind != StatementKind::Set) continue;
    const Array& array = tile.arrays[s.array];
    stored[s.value] += is_half(array.dtype) && !array.packed && !uses.read.count(s.array);
  }
}

}  // namespace

TileUses uses_of(const Tile& tile) {
  const size_t count_of_scalars = tile.kernel.scalars.size();
  TileUses all{std::vector<int>(count_of_scalars),
               {},
               std::vector<bool>(count_of_scalars),
               std::vector<bool>(count_of_scalars, true)};
  std::vector<bool> seen(count_of_scalars);
  count(tile.body, tile.kernel.scalars, all, seen);
  find_standing(tile.body, tile, all.standing);
  return all;
}

std::vector<bool> rounds_on_cpu(const Program& program, const Tile& tile) {
  const std::vector<bool> none(tile.kernel.scalars.size());
  HalfUses uses{none, none};
  find_half_uses(program, tile, tile.body, uses);
  std::vector<bool> rounds(none.size());
  for (size_t id = 0; id < rounds.size(); id++)
    rounds[id] = !uses.stored[id] || uses.others[id];
  return rounds;
}

std::vector<bool> rounds_on_gpu(const Tile& tile, const TileUses& uses) {
  std::vector<int> stored(uses.counts.size());
  count_stored(tile, uses, tile.body, stored);
  std::vector<bool> rounds(stored.size());
  for (size_t id = 0; id < rounds.size(); id++) rounds[id] = stored[id] < uses.counts[id];
  return rounds;
}

}  // namespace tiny_compile
