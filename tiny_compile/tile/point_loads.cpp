// How many accesses does a pack take? One for each load whose elements lie side by side, under what all of
// them are read under:
//
//   load x[i0*64 + i1] if lt(i1, 64), four at a time   =>   if e < 64 { pack3[0] = load x[i0*64 + e] x4 }
//   load x[at0*4096 + i1], at0 = $2                    =>   pack3[0] = load $4: x[at0*4096 + e] x4
//
// A pack starts at a multiple of its width. A comparison with a multiple of it therefore says the same of
// all its elements, and so does what does not step along them. Where a comparison parts a pack, the pack is
// read as soon as one of its elements is, if the array has all of its places; the others take the load's value:
//
//   load x[i0*72 + i1] if lt(i1, 65)
//   =>   if e < 65 { pack3[0] = load x[i0*72 + e] x8 };  for v < 8 { if 64 < e + v { pack3[v] = 0.0 } }
#include "tiny_compile/tile/point_loads.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/branches.h"
#include "tiny_compile/loops/simplify_under_mask.h"
#include "tiny_compile/loops/slides.h"
#include "tiny_compile/schedule/sides.h"

namespace tiny_compile {
namespace {

constexpr int kMostConditions = 8;  // of a pack
constexpr int64_t kMostBeyond = int64_t{1}
                                << 60;  // that a number is below 0, and may become less
constexpr int64_t kMostEarly = 32;      // elements of a thread, read before any takes long

}  // namespace

bool is_wide(const Points& p, const Expr& index, int buffer) {
  if (p.packs.vector == 1 || p.program.buffers[buffer].align < kAccessBytes) return false;
  return p.packs.through ? (index - flat_index(p.kernel)).is_constant(0)
                         : is_pack(index, last(p).symbol(), p.packs.vector);
}

Expr at_start(const Points& p, const Expr& index, const At& at) {
  return p.packs.through ? at.first : substitute(index, {{last(p).name, at.column}});
}

namespace {

// Under which conditions a pack is read, each around those behind it, and what an element then lacks.
struct Conditions {
  std::vector<Statement> read, lacks;
};

// Whether the array has the places of all packs, those that no element of is asked for as well.
bool has_all_places(const Points& p, const Scalar& load) {
  const Interval places = load.index.bounds();
  const Expr& size = p.program.buffers[load.buffer].size;
  return load.operands.empty() && places.low >= 0 && size.is_constant() &&
         places.high < size.constant();
}

// lhs < rhs and lhs >= rhs: true of the first element of a pack, or the last, if it is of any.
bool add_comparison(const Points& p, int id, int of_load, const At& at, Conditions& all) {
  const Scalar& scalar = p.kernel.scalars[id];
  if (scalar.kind != ScalarKind::Apply || (scalar.op != Op::lt && scalar.op != Op::ge))
    return false;
  const auto lhs = integer_of(p.kernel, scalar.operands[0]),
             rhs = integer_of(p.kernel, scalar.operands[1]);
  if (!lhs || !rhs) return false;
  const Expr start = at_start(p, *lhs, at), along = last(p).symbol();
  const bool parts = varies(p, id) &&
                     !(rhs->is_constant() && is_contiguous(*lhs - *rhs, along, p.packs.vector));
  if (parts &&
      (rhs->bounds().low < -kMostBeyond || depends_on(*rhs, along.symbol()) ||
       !is_contiguous(*lhs, along, 1) || !has_all_places(p, p.kernel.scalars[of_load])))
    return false;
  const int64_t others = parts ? p.packs.vector - 1 : 0;
  all.read.push_back(scalar.op == Op::lt ? if_less(start, *rhs, {})
                                         : if_less(*rhs - 1 - others, start, {}));
  if (!parts) return true;
  all.lacks.push_back(scalar.op == Op::lt ? if_less(*rhs - 1, start + element(p), {})
                                          : if_less(start + element(p), *rhs, {}));
  return true;
}

bool add_conditions(const Points& p, int id, int of_load, const PointScope& scope, const At& at,
                    Conditions& all) {
  const Scalar& scalar = p.kernel.scalars[id];
  if (all.read.size() > kMostConditions) return false;
  if (scalar.kind == ScalarKind::Apply && scalar.op == Op::bitwise_and)
    return add_conditions(p, scalar.operands[0], of_load, scope, at, all) &&
           add_conditions(p, scalar.operands[1], of_load, scope, at, all);
  if (add_comparison(p, id, of_load, at, all)) return true;
  if (varies(p, id) || (!scope.defined[id] && scalar.kind != ScalarKind::Constant))
    return false;
  return all.read.push_back(if_true(p.ids[id], {})), true;
}

// None where elements of a pack may differ in whether they may be read.
std::optional<Conditions> conditions_of(const Points& p, int id, const PointScope& scope,
                                        const At& at) {
  const Scalar& load = p.kernel.scalars[id];
  Conditions all;
  if (is_plain(load)) return all;
  if (p.packs.through) return {};
  for (int chosen : load.operands) {
    const bool is_known =
        scope.defined[chosen] || p.kernel.scalars[chosen].kind == ScalarKind::Constant;
    if (varies(p, chosen) || !is_known) return {};
  }
  if (load.mask >= 0 && !add_conditions(p, load.mask, id, scope, at, all)) return {};
  return all;
}

Body load_pack(Points& p, int id, const Conditions& conditions, int array, const At& at) {
  const Scalar& load = p.kernel.scalars[id];
  Statement read =
      load_vector(array, 0, load.buffer, at_start(p, load.index, at), p.packs.vector);
  if (!load.operands.empty()) read.value = p.ids[id];
  read.left = at.left;
  if (is_plain(load)) return {std::move(read)};
  for (size_t k = conditions.read.size(); k-- > 0;) {
    Statement outer = conditions.read[k];
    outer.body = {std::move(read)};
    read = std::move(outer);
  }
  const Statement without = set(array, element(p), add_constant(p.tile, load.value));
  Body body = {for_each("v", p.packs.vector, true, {without}), std::move(read)};
  Body each = conditions.lacks;
  for (Statement& lacks : each) lacks.body = {without};
  if (!each.empty()) body.push_back(for_each("v", p.packs.vector, true, std::move(each)));
  return body;
}

}  // namespace

Body load_packs(Points& p, PointScope& scope, const std::vector<int>& ids, const At& at) {
  Body body;
  for (int id : ids) {
    const Scalar& load = p.kernel.scalars[id];
    if (load.kind != ScalarKind::Load || scope.defined[id] || scope.places.count(id) > 0 ||
        !is_wide(p, load.index, load.buffer))
      continue;
    const auto conditions = conditions_of(p, id, scope, at);
    if (!conditions) continue;
    const int array = add_values(p, "pack", load.dtype, p.packs.vector);
    append(body, load_pack(p, id, *conditions, array, at));
    scope.places[id] = {array, element(p)};
  }
  return body;
}

// --- ahead of the points ---------------------------------------------------------------------------

namespace {

// Whether some of these take long, or may go a long way: quotients of f32 have a branch.
bool take_long(const Points& p, const std::vector<int>& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](int id) {
    const Scalar& s = p.kernel.scalars[id];
    return is_costly(s) || (s.kind == ScalarKind::Apply && s.op == Op::div &&
                            compute_type(s.dtype) == DType::f32);
  });
}

}  // namespace

//   for v < 4 unrolled { i1: 1024 = e + v; $3 = load x[..]; early2[v] = $3 }
Body load_ahead(Points& p, PointScope& scope, const At& at) {
  if (p.packs.vector == 1) return {};
  const std::vector<int> ids = needed(p, scope, p.roots);
  std::vector<int> loads;
  for (int id : ids) {
    const bool is_load = p.kernel.scalars[id].kind == ScalarKind::Load;
    if (is_load && !scope.defined[id] && scope.places.count(id) == 0) loads.push_back(id);
  }
  const bool has_room = p.packs.vector * std::ssize(loads) <= kMostEarly;
  if (loads.empty() || !(has_branch(p.branches) || (has_room && take_long(p, ids)))) return {};
  PointScope here = scope;
  Body each = define_over(p, here, needed(p, here, loads), all_rows(p));
  for (int id : loads) {
    const int early = add_values(p, "early", p.kernel.scalars[id].dtype, p.packs.vector);
    each.push_back(set(early, element(p), p.ids[id]));
    scope.places[id] = {early, element(p)};
  }
  return over_points(p, at, std::move(each));
}

//   for w < 6 unrolled { at: 1026 = e + w; $9 = load x[..]; slide2[w] = $9 }
Body slide_ahead(Points& p, PointScope& scope, const At& at) {
  if (p.packs.vector == 1 || p.packs.through || p.packs.line || p.packs.ragged ||
      has_branch(p.branches))
    return {};
  Body body;
  std::map<int, ElementPlace> places;
  for (const Slide& slide :
       slides_of(p.kernel, needed(p, scope, p.roots), p.kernel.rows - 1, p.packs.vector)) {
    const int64_t count = p.packs.vector + slide.longest;
    const Expr w = Expr::index("w", count), beyond = last(p).extent + slide.longest,
               place = Expr::index(unused(p, "at"), beyond);
    const int array = add_values(p, "slide", p.kernel.scalars[slide.first].dtype, count);
    std::vector<int> moved = needed(p, scope, {slide.first});
    std::erase_if(moved, [&](int id) {
      return !varies(p, id) || p.kernel.scalars[id].kind == ScalarKind::Constant;
    });
    const std::vector<int> ids = copied(p, moved, {{last(p).name, place}});
    Body each = {let(place.name(), beyond, at.column + w)};
    PointScope here = scope;
    append(each,
           define_over(p, here, needed(p, here, {slide.first}), all_rows(p) & ~last_row(p)));
    for (int id : moved) each.push_back(define(ids[id]));
    each.push_back(set(array, w, ids[slide.first]));
    body.push_back(for_each("w", count, true, std::move(each)));
    for (const auto& [id, distance] : slide.members)
      places[id] = {array, element(p) + distance};
  }
  scope.places.insert(places.begin(), places.end());
  return body;
}

}  // namespace tiny_compile
