// How do a scan's elements come to the threads that have a group of 16 neighbours each? Where rows lie
// along memory, through shared memory: there and back neighbouring threads move neighbouring packs, whatever
// address a row begins at.
//
//   for c < 4 unrolled {                            the thread's packs of the tile
//     x: 4096 = c*1024 + thread*4
//     shared[(x/16)*20 + x%16] = ..                 16 elements and 4 of padding
//   }
//   barrier;  values[k] = shared[thread*20 + k]     the thread's group
//
// A group and its padding are an odd number of 16-byte words, so that threads that read 16 bytes each, of one
// group each, use different banks. Where columns lie side by side a thread reads its group itself: lanes are
// columns. Loads beyond the rows read the last place again, for nobody: a question for each would part them.
#include "tiny_compile/tile/scan_moves.h"

#include <algorithm>

#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {
namespace {

uint64_t row_bits(const Kernel& kernel) { return (uint64_t{1} << kernel.rows) - 1; }

std::vector<int> roots_along(const Kernel& kernel) {
  std::vector<int> roots;
  for (const Step& step : kernel.steps)
    if (!step.inner.empty()) roots.push_back(step.value);
  return roots;
}

// Of a group and its padding, in shared memory.
int64_t pitch_of(DType dtype) {
  const int64_t size = size_of(compute_type(dtype));
  return (size | 1) * 16 / size;
}

}  // namespace

ScanMoves::ScanMoves(ScanTile& s, Running& running)
    : defined(s.kernel.scalars.size()),
      s_(s),
      running_(running),
      ids_(needed_by(s, roots_along(s.kernel))),
      points_(s, ids_) {
  for (const Step& step : s.kernel.steps)
    if (step.kind == StepKind::Store && !step.inner.empty()) stores_.push_back(&step);
}

int ScanMoves::add(const char* what, DType dtype, int64_t size, Space space) {
  return add_array(s_.tile, {str(what, s_.tile.arrays.size()), dtype, size, space});
}

Body ScanMoves::begin() {
  const DType type = s_.kernel.scalars[s_.scan.value].dtype;
  values = add("values", running_.type(), kGroup);
  if (running_.has_places()) places = add("places", running_.place_type(), kGroup);
  if (s_.shape.along) {
    pitch_ = pitch_of(type);
    place_pitch_ = pitch_of(running_.place_type());
    const int64_t rows = ceil_divide(s_.threads(), s_.shape.groups);
    const auto size = [&](int64_t pitch) {
      return s_.threads() * pitch + rows * points_.padding();
    };
    shared_ = add("shared", running_.type(), size(pitch_), Space::Shared);
    if (places >= 0)
      shared_places_ = add("shared", running_.place_type(), size(place_pitch_), Space::Shared);
  }
  choose_early();
  Body body = define_within(s_, ids_, 0, defined);
  if (s_.shape.along) return body;
  append(body, points_.name_row());
  append(body, define_within(s_, ids_, row_bits(s_.kernel), defined));
  return body;
}

// Loads that are under way while the tile before them is scanned, in as many registers as the
// group at hand has; the others are waited for. So are rows that begin anywhere: sixteen loads,
// each with an end of its own, took more time than they saved. (cumsum of f32[792,50257]: .2098
// ms, so .1284.)
void ScanMoves::choose_early() {
  if (s_.shape.along && !s_.shape.transposed() && points_.vector == 1) return;
  int64_t left = kGroup * std::max<int64_t>(size_of(running_.type()), 4);  // in registers of 4
  for (int id : ids_) {
    const Scalar& load = s_.kernel.scalars[id];
    const int64_t bytes = points_.count * points_.vector * size_of(load.dtype);
    if (!is_plain(load) || !depends_on(load.index, s_.axis().name) || bytes > left) continue;
    Array array{str("early", s_.tile.arrays.size()), load.dtype,
                points_.count * points_.vector};
    array.packed = is_half(load.dtype) && points_.is_wide(load.index, load.buffer);
    early_[id] = add_array(s_.tile, std::move(array));
    left -= bytes;
  }
}

// --- from memory -------------------------------------------------------------------------------------

Body ScanMoves::ask(const Expr& tile) const {
  if (early_.empty()) return {};
  ScanPoint at = points_.point(tile, s_.shape.loads_transposed, true);
  Body body = at.names, single;
  append(body, points_.name_place(at, true));
  const Expr first = points_.number() * points_.vector;
  for (const auto& [id, array] : early_) {
    const Scalar& load = s_.kernel.scalars[id];
    const bool reversed = points_.is_reversed(load);
    if (!reversed && !points_.is_wide(load.index, load.buffer)) {
      append(single, {define(id), set(array, first + points_.element(), id)});
      continue;
    }
    const Expr start = reversed ? at.e + (points_.vector - 1) : at.e;
    body.push_back(load_vector(array, first, load.buffer, points_.at_start(load.index, start),
                               static_cast<int>(points_.vector)));
  }
  if (!single.empty()) append(body, points_.each_element(at, std::move(single)));
  return points_.each_point(std::move(body));
}

// Loads that are packs, and not there yet.
std::map<int, int> ScanMoves::load_packs(Body& body, const ScanPoint& at) {
  std::map<int, int> packs;
  for (int id : ids_) {
    const Scalar& load = s_.kernel.scalars[id];
    if (!is_plain(load) || early_.count(id) > 0 || !points_.is_wide(load.index, load.buffer))
      continue;
    packs[id] = add("pack", load.dtype, points_.vector);
    body.push_back(load_vector(packs[id], 0, load.buffer, points_.at_start(load.index, at.e),
                               static_cast<int>(points_.vector)));
  }
  return packs;
}

// An element's scalars, of which packs have some.
Body ScanMoves::define_element(const std::map<int, int>& packs,
                               std::vector<bool>& known) const {
  Body body;
  const Expr v = points_.element(), first = points_.number() * points_.vector;
  for (int id : ids_) {
    if (known[id] || s_.kernel.scalars[id].kind == ScalarKind::Constant) continue;
    known[id] = true;
    if (const auto early = early_.find(id); early != early_.end()) {
      const bool reversed = points_.is_reversed(s_.kernel.scalars[id]);
      const Expr own = reversed ? Expr(points_.vector - 1) - v : v;
      body.push_back(define_from(id, early->second, first + own));
    } else if (const auto pack = packs.find(id); pack != packs.end()) {
      body.push_back(define_from(id, pack->second, v));
    } else {
      body.push_back(define(id));
    }
  }
  return body;
}

// An element's value goes to its place, and what is stored beside the scan to memory: with such stores all is
// done for the rows' points alone, and their loads stay in front of the stores.
Body ScanMoves::put(const Expr& tile) {
  const bool stores = !stores_.empty();
  ScanPoint at = points_.point(tile, s_.shape.loads_transposed, !stores);
  Body body = points_.name_place(at, !stores), after, before = at.names;
  if (stores && !s_.shape.along)
    before.push_back(set(values, points_.number(), running_.identity().value));
  const std::map<int, int> packs = load_packs(body, at);
  std::vector<bool> known = defined;
  append(body, define_within(s_, ids_, row_bits(s_.kernel), known));
  Body each = define_element(packs, known);
  append(each, put_value(at, stores ? Conditions() : at.inside, after));
  for (const Step* step : stores_) {
    if (!points_.is_wide(step->index, step->buffer)) {
      each.push_back(store(step->buffer, step->index, step->value));
      continue;
    }
    const int pack = add("out", step->dtype, points_.vector);
    each.push_back(set(pack, points_.element(), step->value));
    after.push_back(store_vector(step->buffer, points_.at_start(step->index, at.e), pack, 0,
                                 static_cast<int>(points_.vector)));
  }
  append(body, points_.each_element(at, std::move(each)));
  append(body, std::move(after));
  if (stores) body = where_all(at.conditions, std::move(body));
  append(before, std::move(body));
  return points_.each_point(std::move(before));
}

// What each element does for it, and what is done behind those of a pack.
Body ScanMoves::put_value(const ScanPoint& at, const Conditions& inside, Body& after) {
  if (!s_.shape.along) return {set(values, points_.number(), s_.scan.value)};
  const Expr place = points_.in_shared(at, pitch_) + points_.element();
  if (inside.empty() || points_.vector == 1)
    return where_all(inside, {set(shared_, place, s_.scan.value)});
  const int pack = add("staged", running_.type(), points_.vector),
            value = add_element(s_.tile, pack, points_.element());
  append(after, where_all(inside, {for_each(points_.element().name(), points_.vector, true,
                                            {define(value), set(shared_, place, value)})}));
  return {set(pack, points_.element(), s_.scan.value)};
}

Body ScanMoves::take() const {
  if (!s_.shape.along) return {};
  return copy_group(values, 0, shared_, points_.of_group(pitch_));
}

// to[..k] = from[..k] of the 16.
Body ScanMoves::copy_group(int to, const Expr& there, int from, const Expr& here) const {
  const Expr k = s_.index("k", kGroup);
  const int id = add_element(s_.tile, from, here + k);
  return {for_each(k.name(), kGroup, true, {define(id), set(to, there + k, id)})};
}

// --- to memory -----------------------------------------------------------------------------------------

Body ScanMoves::give() const {
  if (!s_.shape.along) return {};
  Body body;
  if (places < 0 || values_beside(s_.kernel, s_.scan) != nullptr)
    append(body, copy_group(shared_, points_.of_group(pitch_), values, 0));
  if (places >= 0)
    append(body, copy_group(shared_places_, points_.of_group(place_pitch_), places, 0));
  return body;
}

// An element of the results as it is stored, behind `body`.
int ScanMoves::result(Body& body, const Step& step, const Expr& place) const {
  const bool is_place = gives_places(step);
  const int array =
      s_.shape.along ? (is_place ? shared_places_ : shared_) : (is_place ? places : values);
  const int id = add_element(s_.tile, array, place);
  body.push_back(define(id));
  if (s_.tile.arrays[array].dtype == step.dtype) return id;
  return computed(s_.tile, body, Op::cast, step.dtype, {id});
}

Body ScanMoves::home(const Expr& tile, const Step& step) {
  ScanPoint at = points_.point(tile, s_.shape.stores_transposed, false);
  Body body = points_.name_place(at, false), each;
  const bool is_place = gives_places(step);
  const Expr place = s_.shape.along ? points_.in_shared(at, is_place ? place_pitch_ : pitch_) +
                                          points_.element()
                                    : points_.number();
  if (s_.shape.along && step.mask < 0 && points_.is_wide(step.index, step.buffer)) {
    const Expr start = points_.at_start(step.index, at.e);
    const int width = static_cast<int>(points_.vector);
    if (!is_place && step.dtype == running_.type()) {
      body.push_back(
          store_vector(step.buffer, start, shared_, place - points_.element(), width));
    } else {
      const int pack = add("out", step.dtype, points_.vector);
      each.push_back(set(pack, points_.element(), result(each, step, place)));
      append(body, points_.each_element(at, std::move(each)));
      body.push_back(store_vector(step.buffer, start, pack, 0, width));
    }
  } else {
    const int value = result(each, step, place);
    Body stored = {store(step.buffer, step.index, value)};
    if (step.mask >= 0) {
      std::vector<bool> known = defined;
      append(each, define_within(s_, needed_by(s_, {step.mask}), ~uint64_t{0}, known));
      stored = {if_true(step.mask, std::move(stored))};
    }
    append(each, std::move(stored));
    append(body, points_.each_element(at, std::move(each)));
  }
  body = where_all(at.conditions, std::move(body));
  body.insert(body.begin(), at.names.begin(), at.names.end());
  return points_.each_point(std::move(body));
}

}  // namespace tiny_compile
