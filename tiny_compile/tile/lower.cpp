// What does each thread do for a kernel? For every pass over the row it goes through its elements:
//
//   r0 = sum(j0: 256) load x[i0*256 + j0]     rows grid · warp 8     loop register 8 · lane 32
//   =>
//   row = min(block*8 + warp, 4094);  i0 = row
//   for r_k < 8 { k = r_k*32 + lane;  j0 = k;  $0 = load x[i0*256 + j0];  sum2[r_k] = $0 }
//   ... the sum over registers and lanes (tile/reduce.cpp) ...
//   if lane < 1 { if block*8 + warp < 4095 { store y[i0] = $1 } }
//
// Threads beyond the last row do as the last one does, and store nothing, so that all threads come
// to every shuffle and barrier.
#include "tiny_compile/tile/lower.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/asked_ahead.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/elements.h"
#include "tiny_compile/tile/exchange.h"
#include "tiny_compile/tile/exponentials.h"
#include "tiny_compile/tile/fold.h"
#include "tiny_compile/tile/highest.h"
#include "tiny_compile/tile/prefetch.h"
#include "tiny_compile/tile/reductions.h"
#include "tiny_compile/tile/registers.h"
#include "tiny_compile/tile/stage.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMany = 32;   // elements of a thread
constexpr int64_t kEarly = 32;  // of a thread, read in front of what is staged
constexpr int64_t kRoom = 64;   // that a thread may keep in as many registers

// Whether elements are divided by what divides many, or raised as a power of e.
bool has_shortcuts(const Lowering& l, const std::vector<int>& ids,
                   const std::vector<int>& inner) {
  const std::vector<int> divisors = divisors_of(l, ids, inner);
  return std::any_of(ids.begin(), ids.end(), [&](int id) {
    const Scalar& s = l.kernel.scalars[id];
    if (l.defined[id] || kept_in(l, id) >= 0 || !is_in_loops(l, id, inner)) return false;
    return s.kind == ScalarKind::Apply &&
           ((s.op == Op::exp && s.dtype == DType::f32) ||
            (s.op == Op::div &&
             std::count(divisors.begin(), divisors.end(), s.operands[1]) > 0));
  });
}

// Whether any of them takes long for an element.
bool has_costly(const Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner) {
  return std::any_of(ids.begin(), ids.end(), [&](int id) {
    return !l.defined[id] && kept_in(l, id) < 0 && is_in_loops(l, id, inner) &&
           is_costly(l.kernel.scalars[id]);
  });
}

// --- passes -------------------------------------------------------------------------------------

// Places that data chooses for each element, of a thread that has several: all are known before the
// first is read, so that a thread waits for memory twice, not twice an element.
//
//   for r_k { $0 = load i[k]; $1 = load x[at0], at0 = $0 }
//   =>   for r_k { $0 = load i[k]; chosen3[r_k] = $0 }   for r_k { $0 = chosen3[r_k]; $1 = load x[..] }
Body choose_ahead(Lowering& l, const std::vector<int>& ids, const Share& k) {
  std::vector<int> wanted;
  std::map<int, int> arrays;
  Body each;
  for (int id : ids) {
    for (int chosen : l.kernel.scalars[id].operands) {
      const bool is_place = !l.kernel.scalars[id].limits.empty();
      if (k.registers == 1 || !is_place || !is_in_loops(l, chosen, l.inner) ||
          is_known(l, chosen) || arrays.count(chosen))
        continue;
      const Scalar& place = l.kernel.scalars[chosen];
      arrays[chosen] = add_array(
          l.tile, {str("chosen", l.tile.arrays.size()), place.dtype, elements_held(l, k)});
      each.push_back(set(arrays[chosen], place_of(l, k), chosen));
      wanted.push_back(chosen);
    }
  }
  if (arrays.empty()) return {};
  wanted = evaluated_for(l.kernel, wanted, [&](int id) { return is_known(l, id); });
  Body body = over_elements(l, wanted, l.inner, k, each, {}, false);
  for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
  return body;
}

// Whether halves that do not come as words stay in registers of their own: there it takes nothing to
// put two into a word and to take them out again. Not where the schedule says how many blocks share a
// multiprocessor's registers, nor where lanes are rows, which have many elements of each.
bool has_room(const Lowering& l, const Share& k, const std::vector<int>& values) {
  const Schedule& s = *l.kernel.schedule;
  int64_t held = elements_held(l, k) * std::ssize(values);
  for (const auto& [id, kept] : l.kept) held += l.tile.arrays[kept.first].size.constant();
  return s.resident == 0 && extent_of(s.rows, Level::Lane) == 1 && held <= kRoom;
}

// Where values of the pass's elements are: `each` sets them. What is kept for later passes is held
// as it is in memory.
std::map<int, int> add_arrays(Lowering& l, const Share& k, const std::vector<int>& values,
                              bool is_kept, Body& each) {
  std::map<int, int> arrays;
  for (int id : values) {
    const DType dtype = l.kernel.scalars[id].dtype;
    arrays[id] =
        add_array(l.tile, {str(is_kept ? "keep" : "value", l.tile.arrays.size()), dtype,
                           elements_held(l, k), Space::Register, is_kept && is_half(dtype)});
    if (is_kept) l.keeping[id] = arrays[id];
    if (is_read_packed(l, id, k)) continue;
    if (has_room(l, k, values)) l.tile.arrays[arrays[id]].packed = false;
    each.push_back(set(arrays[id], place_of(l, k), id));
  }
  return arrays;
}

// Whether steps read no elements beside those that are kept.
bool needs_only(const Lowering& l, const std::vector<int>& steps,
                const std::vector<int>& keep) {
  const auto is_kept = [&](int id) {
    return is_known(l, id) || std::count(keep.begin(), keep.end(), id) > 0;
  };
  const std::vector<int> ids = evaluated(l.kernel, steps, is_kept);
  return std::all_of(ids.begin(), ids.end(), [&](int id) {
    return is_kept(id) || l.kernel.scalars[id].kind != ScalarKind::Load ||
           !is_in_loops(l, id, l.inner);
  });
}

// What is not staged is read in front of what is, and of all that is computed, so that a thread
// waits for memory once. What all rows have alike comes from a cache, and takes no registers
// here.
//
//   for .. { staged0[..] = load x[..] }   barrier   for .. { $1 = load y[..]; .. }
//   =>   for .. { early1[..] = load y[..] }   for .. { staged0[..] = load x[..] }   barrier   ..
std::vector<Work> read_early(Lowering& l, const std::vector<int>& ids, const Share& k,
                             std::vector<Work> staged) {
  const uint64_t of_rows = (uint64_t{1} << l.kernel.rows) - 1;
  std::vector<int> early;
  for (int id : ids) {
    if (is_plain(l.kernel.scalars[id]) && is_in_loops(l, id, l.inner) && !is_known(l, id) &&
        (l.axes[id] & of_rows) != 0 && std::ssize(early) < kEarly / elements_held(l, k))
      early.push_back(id);
  }
  if (early.empty()) return staged;
  Body each;
  const std::map<int, int> arrays = add_arrays(l, k, early, false, each);
  std::vector<Work> all = {{over_elements(l, early, l.inner, k, each, {}, false)}};
  std::move(staged.begin(), staged.end(), std::back_inserter(all));
  for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
  return all;
}

// In front of a pass that stores, by threads without a row too: what they keep they go on with.
void keep_pass(Lowering& l, const std::vector<int>& pass, const std::vector<int>& keep) {
  if (keep.empty() || !needs_only(l, pass, keep)) return;
  const Share k = share_over(l, l.inner);
  define_for_rows(l, pass, l.inner);
  const auto evaluate = [&] {
    return evaluated_for(l.kernel, keep, [&](int id) { return is_known(l, id); });
  };
  const std::map kept = l.kept;
  Stages stages = stage_loads(l, evaluate());
  std::vector<Work> works;
  if (!stages.empty()) works = read_early(l, evaluate(), k, std::move(stages.works));
  Body each;
  const std::map<int, int> arrays = add_arrays(l, k, keep, true, each);
  const std::vector<int> ids = evaluate();
  Work work;
  work.hastens = has_shortcuts(l, ids, l.inner);
  work.is_costly = has_costly(l, ids, l.inner);
  work.body = over_elements(l, ids, l.inner, k, each, {}, false);
  works.push_back(std::move(work));
  l.kept = kept;
  l.keeping.clear();
  l.staged.clear();
  append(l.tile.body, std::move(stages.before));
  append(l.tile.body, over_registers(l, k, std::move(works), stages.pieces));
  for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
}

// Steps of a pass that go over the elements together, and what is kept of these.
struct StepGroup {
  std::vector<int> reductions, stores, keep;
};

// Those that take only what is kept go after the others, each for itself: a thread has no registers for the
// elements of many.
std::vector<StepGroup> apart(const Lowering& l, const std::vector<int>& reductions,
                             const std::vector<int>& stores, const std::vector<int>& keep,
                             const Share& k) {
  std::vector<StepGroup> groups = {{{reductions[0]}, stores, keep}};
  for (auto s = reductions.begin() + 1; s != reductions.end(); ++s) {
    if (!needs_only(l, {*s}, keep) || k.turns > 1 || elements_held(l, k) < kMany)
      groups[0].reductions.push_back(*s);
    else
      groups.push_back({{*s}, {}, {}});
  }
  return groups;
}

// Halves are rounded where they are stored, two at a time.
int before_rounding(const Kernel& kernel, int id) {
  const Scalar& scalar = kernel.scalars[id];
  const bool rounds = scalar.kind == ScalarKind::Apply && scalar.op == Op::cast &&
                      is_half(scalar.dtype) &&
                      kernel.scalars[scalar.operands[0]].dtype == DType::f32;
  return rounds ? scalar.operands[0] : id;
}

// What a pass makes of its elements, with the values that it is to store in arrays: of shortcuts none is stored
// twice. (To a kernel that does nothing else, and waits for memory, registers for more warps are worth more.)
Body compute_ahead(Lowering& l, const std::vector<int>& stores, const std::vector<int>& ids,
                   const Share& k, Body each) {
  std::vector<int> values;
  for (int s : stores) {
    const int id = before_rounding(l.kernel, l.kernel.steps[s].value);
    if (is_in_loops(l, id, l.inner) && kept_in(l, id) < 0 &&
        std::count(values.begin(), values.end(), id) == 0)
      values.push_back(id);
  }
  const std::map<int, int> arrays = add_arrays(l, k, values, false, each);
  Body body = over_elements(l, ids, l.inner, k, each, {}, false);
  for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
  return body;
}

// Behind all elements, so that no load waits for a store.
Body store_computed(Lowering& l, const std::vector<int>& stores, const Share& k) {
  l.reduces = true;
  Body after;
  const Body each = store_elements(l, stores, k, after);
  l.reduces = false;
  return over_registers(
      l, k, {{over_elements(l, needed(l, stores), l.inner, k, each, after, false)}});
}

// One group's elements, and what is stored of them.
Body elements_of_group(Lowering& l, const Reductions& reductions, const StepGroup& group,
                       std::map<int, int>& arrays, const Share& k, bool asks_ahead) {
  std::vector<int> roots = group.keep;
  for (int s : group.reductions) roots.push_back(l.kernel.steps[s].value);
  for (int s : group.stores) roots.push_back(l.kernel.steps[s].value);
  const auto evaluate = [&] {
    return evaluated_for(l.kernel, roots, [&](int id) { return is_known(l, id); });
  };
  Stages stages = stage_loads(l, evaluate());
  const std::map kept = l.kept;
  std::vector<Work> works;
  if (!stages.empty()) works = read_early(l, evaluate(), k, std::move(stages.works));
  std::vector<int> ids = evaluate();
  if (Body ahead = choose_ahead(l, ids, k); !ahead.empty()) {
    works.push_back({std::move(ahead), false});
    ids = evaluate();
  }
  Body body = std::move(stages.before), each;
  for (int s : group.reductions) {
    append(body, reductions.begin(s));
    append(each, reductions.each(s));
  }
  const std::map<int, int> kept_now = add_arrays(l, k, group.keep, true, each);
  arrays.insert(kept_now.begin(), kept_now.end());
  Work work;  // asked before what is stored counts as known
  work.hastens = has_shortcuts(l, ids, l.inner);
  if (work.hastens) work.highest = highest_exponent(l, ids, k, body);
  work.is_costly = has_costly(l, ids, l.inner);
  work.body = compute_ahead(l, group.stores, ids, k, std::move(each));
  works.push_back(std::move(work));
  append(body, over_registers(l, k, std::move(works), stages.pieces));
  if (!group.stores.empty()) append(body, store_computed(l, group.stores, k));
  l.kept = kept;
  l.keeping.clear();
  l.staged.clear();
  if (asks_ahead) append(body, ask_prefetch(l, k));
  return body;
}

void reduce_pass(Lowering& l, const std::vector<int>& pass, const std::vector<int>& keep) {
  const Share k = share_over(l, l.inner);
  define_for_rows(l, pass, l.inner);
  Reductions reductions(l, reductions_of(l.kernel, pass), k);
  std::map<int, int> arrays;  // of what is kept
  Body body;
  bool is_first = true;
  for (const StepGroup& group :
       apart(l, reductions.own(), stores_of(l.kernel, pass), keep, k)) {
    append(body, elements_of_group(l, reductions, group, arrays, k, is_first && pass[0] == 0));
    for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
    for (int s : group.reductions) append(body, reductions.reduce(s));
    is_first = false;
  }
  append(l.tile.body, reductions.finish(std::move(body)));
  reductions.finish_rows();
}

void store_pass(Lowering& l, const std::vector<int>& pass) {
  const std::vector<int>& inner = l.inner;
  const Share k = share_over(l, inner);
  define_for_rows(l, pass, inner);
  const std::map kept = l.kept;
  Stages loads = stage_loads(l, needed(l, pass)), stores = stage_stores(l, pass);
  const bool waits = !loads.empty() || !stores.empty();
  l.clamps = waits && clamps_elements(k.layout);
  const auto owned = [&](Body body) {
    return by_owner(l, {l.kernel.schedule->rows, k.layout}, std::move(body));
  };
  std::vector<Work> works;
  if (waits) works = read_early(l, needed(l, pass), k, std::move(loads.works));
  std::vector<int> ids = needed(l, pass);
  if (!only_stores(l.kernel) && has_shortcuts(l, ids, inner)) {
    const bool costly = has_costly(l, ids, inner);
    works.push_back({compute_ahead(l, pass, ids, k, {}), true});
    works.back().is_costly = costly;
    ids = needed(l, pass);
  }
  Body after;
  const Body each = store_elements(l, pass, k, after);
  Body body = over_elements(l, ids, inner, k, each, after, true);
  works.push_back({waits ? owned(std::move(body)) : std::move(body)});
  if (!stores.empty()) works.back().after = {barrier()};
  for (Work& work : stores.works) works.push_back(std::move(work));
  l.kept = kept;
  l.clamps = false;
  l.staged.clear();
  l.stored.clear();
  body = std::move(loads.before);
  if (body.empty()) body = std::move(stores.before);
  append(body, over_registers(l, k, std::move(works), std::max(loads.pieces, stores.pieces)));
  body = in_turns(k, std::move(body));
  append(l.tile.body, waits ? std::move(body) : owned(std::move(body)));
}

}  // namespace

Tile lower_to_tile(const Program& program, const Kernel& kernel) {
  Lowering l{program, kernel, axes_of_scalars(kernel)};
  l.tile.kernel = kernel;
  l.tile.cluster = cluster_of(*kernel.schedule);
  l.tile.warps = warps_of(*kernel.schedule);
  l.tile.resident = kernel.schedule->resident;
  const Layout& rows = kernel.schedule->rows;
  l.tile.grid = grid_of(kernel).all();
  l.rows = share_of_rows(l, "row", rows);
  l.results.assign(kernel.steps.size(), -1);
  l.defined.assign(kernel.scalars.size(), false);
  append(l.tile.body, outer_axes(l));
  const size_t outside = l.tile.body.size();  // of turns of rows
  if (l.rows.registers == 1) append(l.tile.body, row_begins(l));
  define_row_loads(l);
  const std::vector<std::vector<int>> passes = gathered_sweeps_of(kernel);
  const std::vector<AskedOfRow> asked = asked_of_rows(kernel, passes);
  bool asks = !asked.empty();
  if (asks) append(l.tile.body, ask_for_later_passes(l, asked));
  const std::vector<std::vector<int>> kept = kept_by(l, passes);
  size_t reduced = 0;  // statements up to the end of the last reduction
  for (size_t p = 0; p < passes.size(); p++) {
    const Step& first = kernel.steps[passes[p][0]];
    l.inner = first.inner;
    if (makes_register(first)) {
      reduce_pass(l, passes[p], kept[p]);
      reduced = l.tile.body.size();
      continue;
    }
    if (std::exchange(asks, false)) append(l.tile.body, ask_for_next_turn(l, asked[0]));
    keep_pass(l, passes[p], kept[p]);
    if (first.kind == StepKind::Fold)
      fold_pass(l, passes[p][0]);
    else
      store_pass(l, passes[p]);
  }
  bound_cluster(l.tile.body, reduced);
  if (l.rows.turns > 1) repeat_rows(l.tile.body, outside, l.rows);
  return numbered(std::move(l.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
