// A pass goes over a thread's elements one register after the other. For each it names the place, reads
// what lies side by side in vectors, and computes and stores each element:
//
//   y[i0] for rows of vectors of two        r_k < 8 { k = r_k*32 + warp; j0 = k
//                                           pack2[0 ..] = load x[i0_v + j0*5120 ..], 2
//                                           for v_row < 2 { i0 = i0_v + v_row; $0 = pack2[v_row]; ... } }
//
// What is the same for all elements of a row is computed in front of the pass: a name where the
// thread has one row, an array of one element a row where it has several.
#include "tiny_compile/tile/elements.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/tile/wanted.h"

namespace tiny_compile {

// --- scalars ------------------------------------------------------------------------------------

std::vector<int> needed(const Lowering& l, const std::vector<int>& steps) {
  return evaluated(l.kernel, steps, [&](int id) { return is_known(l, id); });
}

int64_t elements_held(const Lowering& l, const Share& k) {
  return k.registers * k.vector * l.row_registers();
}

Expr place_of(const Lowering& l, const Share& k) {
  return k.number() * l.row_registers() + l.rows.number();
}

std::vector<int> divisors_of(const Lowering& l, const std::vector<int>& ids,
                             const std::vector<int>& inner) {
  std::vector<int> divisors;
  for (int id : ids) {
    const Scalar& s = l.kernel.scalars[id];
    if (s.kind != ScalarKind::Apply || s.op != Op::div || compute_type(s.dtype) != DType::f32 ||
        kept_in(l, id) >= 0 || !is_in_loops(l, id, inner) ||
        is_in_loops(l, s.operands[1], inner) ||
        l.kernel.scalars[s.operands[1]].kind == ScalarKind::Constant ||
        std::count(divisors.begin(), divisors.end(), s.operands[1]) > 0)
      continue;
    divisors.push_back(s.operands[1]);
  }
  return divisors;
}

// --- elements -----------------------------------------------------------------------------------

namespace {

// For each of the thread's rows `each`; between `before` and `after`, which are for a vector of
// rows. `stores`: only where there is such a row.
Body over_rows(const Lowering& l, Body before, Body each, Body after, bool stores) {
  if (l.rows.vector > 1) {
    each.insert(each.begin(), element_axis(l.kernel, vector_axis(l, {}, {}), l.rows.v()));
    each = {for_each("v_" + l.rows.name, l.rows.vector, true, std::move(each))};
  }
  append(before, std::move(each));
  append(before, std::move(after));
  if (l.rows.registers == 1) return before;
  if (stores && l.rows.covers_more && !l.clamps)
    before = {if_less(l.rows.start(), l.rows.count, std::move(before))};
  Body all = row_begins(l);
  append(all, std::move(before));
  return {for_each("r_" + l.rows.name, l.rows.registers, true, std::move(all))};
}

Body define_one(const Lowering& l, int id, const Share& k) {
  const Scalar& scalar = l.kernel.scalars[id];
  if (is_read_packed(l, id, k)) return {define_from(id, l.keeping.at(id), place_of(l, k))};
  if (scalar.kind == ScalarKind::Constant) return {};
  if (scalar.kind == ScalarKind::Register)
    return {define_from(id, l.results[scalar.step], l.rows.number())};
  if (const int kept = kept_in(l, id); kept >= 0)
    return {define_from(id, kept, place_of(l, k))};
  if (const auto stage = l.staged.find(id); stage != l.staged.end())
    return {define_from(id, stage->second.array, stage->second.place)};
  if (const auto row = l.of_rows.find(id); row != l.of_rows.end())
    return {define_from(id, row->second, l.rows.number())};
  if (const auto pack = l.packs.find(id); pack != l.packs.end()) {
    const Expr element = l.rows.vector > 1 ? l.rows.v() : k.v();
    return {define_from(id, pack->second,
                        l.tile.arrays[pack->second].size.is_constant(1) ? Expr(0) : element)};
  }
  return {define(id)};
}

// In a thread's only row they are known already (define_names).
Body define_all(const Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner,
                const Share& k) {
  const std::vector<int> divisors = divisors_of(l, ids, inner);
  Body body;
  for (int id : ids) {
    if (l.defined[id]) continue;
    append(body, define_one(l, id, k));
    if (std::count(divisors.begin(), divisors.end(), id) > 0) body.push_back(divisor(id));
  }
  return body;
}

int add_pack(Lowering& l, DType dtype, int64_t width) {
  return add_array(l.tile, {str("pack", l.tile.arrays.size()), dtype, width});
}

// The vector, or the one element; where its mask is false or data chose a place that is none, what
// the load is then, and anything where nobody looks at it.
Body load_pack(Lowering& l, int id, int pack, const VectorAxis& vector) {
  const Scalar& load = l.kernel.scalars[id];
  const int64_t width = l.tile.arrays[pack].size.constant();
  const Expr place = vector.width == 1 ? load.index : at_start(l.kernel, vector, load.index);
  Statement read = load_vector(pack, 0, load.buffer, place, static_cast<int>(width));
  if (!load.operands.empty()) read.value = id;
  const std::vector<Within> conditions = wanted(l.kernel, vector, id);
  if (is_plain(load) && conditions.empty()) return {read};
  const int otherwise =
      add_constant(l.tile, is_plain(load) ? Literal::of(load.dtype, 0) : load.value);
  Body body = {for_each("v", width, true, {set(pack, Expr::index("v", width), otherwise)})};
  if (load.mask >= 0) {
    const Within within = *mask_of_vector(l.kernel, vector, load.mask);
    read = if_less(within.index, within.bound, {read});
  }
  for (const Within& within : conditions) read = if_less(within.index, within.bound, {read});
  body.push_back(std::move(read));
  return body;
}

// Elements that one load has for a vector: neighbours that are all read or all left out (where data
// chooses places, those of the row), one that is the same for all, or 0.
int64_t width_of(const Lowering& l, int id, const VectorAxis& vector) {
  const Scalar& load = l.kernel.scalars[id];
  const bool is_chosen = std::any_of(load.operands.begin(), load.operands.end(),
                                     [&](int chosen) -> bool { return !l.defined[chosen]; });
  if (vector.width == 1 || load.kind != ScalarKind::Load || is_chosen ||
      (load.mask >= 0 && !mask_of_vector(l.kernel, vector, load.mask)))
    return 0;
  if (is_wide(l.program, l.kernel, vector, load.index, load.buffer)) return vector.width;
  const Expr axis = l.kernel.axes[vector.axis].symbol();
  return load.operands.empty() && is_one_place(load.index, axis, vector.width) ? 1 : 0;
}

}  // namespace

bool is_read_packed(const Lowering& l, int id, const Share& k) {
  const auto array = l.keeping.find(id);
  if (array == l.keeping.end() || !l.tile.arrays[array->second].packed || k.vector == 1 ||
      l.row_registers() > 1 || l.defined[id] || is_known(l, id))
    return false;
  const Scalar& load = l.kernel.scalars[id];
  return load.mask < 0 && load.operands.empty() &&
         width_of(l, id, vector_axis(l, k, l.inner)) == k.vector &&
         !depends_on(k.number() - k.v(), k.v().symbol());
}

namespace {

// Loads of vectors, whose elements the pass reads.
Body load_packs(Lowering& l, const std::vector<int>& ids, const Share& k,
                const VectorAxis& vector) {
  Body body;
  for (int id : ids) {
    if (is_read_packed(l, id, k)) {
      const Scalar& load = l.kernel.scalars[id];
      body.push_back(load_vector(l.keeping[id], place_of(l, k) - k.v(), load.buffer,
                                 at_start(l.kernel, vector, load.index),
                                 static_cast<int>(vector.width)));
      continue;
    }
    if (l.defined[id] || is_known(l, id)) continue;
    const bool is_single = vector.width == 1 && !wanted(l.kernel, vector, id).empty();
    const int64_t width = is_single ? 1 : width_of(l, id, vector);
    if (width == 0) continue;
    const Scalar& load = l.kernel.scalars[id];
    l.packs[id] = add_pack(l, load.dtype, width);
    // A conversion behind a load that may be left out would wait for it before the next is asked for.
    l.tile.arrays.back().packed = !load.operands.empty() && is_half(load.dtype) && width > 1;
    append(body, load_pack(l, id, l.packs[id], vector));
  }
  return body;
}

// Places that data chooses for all of a vector: known before it is read. Adds them to `known`.
Body define_places(Lowering& l, const std::vector<int>& ids, const Share& k,
                   const VectorAxis& vector, std::vector<int>& known) {
  if (vector.width == 1) return {};
  std::vector<int> chosen;
  for (int id : ids) {
    const Scalar& load = l.kernel.scalars[id];
    if (load.kind != ScalarKind::Load || load.mask >= 0) continue;
    for (int place : load.operands)
      if (!l.defined[place] && (l.axes[place] >> vector.axis & 1) == 0) chosen.push_back(place);
  }
  const Expr element = l.rows.vector > 1 ? l.rows.v() : k.v();
  Body body;
  const auto is_there = [&](int id) { return l.defined[id] || is_known(l, id); };
  for (int id : evaluated_for(l.kernel, chosen, is_there)) {
    if (l.defined[id]) continue;
    for (Statement& s : define_one(l, id, k)) {
      s.index = substitute(s.index, {{element.name(), 0}});
      body.push_back(std::move(s));
    }
    l.defined[id] = true;
    known.push_back(id);
  }
  return body;
}

// In a thread's only row: by its name, in all passes to come.
void define_names(Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner) {
  for (int id : ids) {
    if (l.defined[id] || is_in_loops(l, id, inner)) continue;
    append(l.tile.body, define_one(l, id, {}));
    l.defined[id] = true;
  }
  for (int id : divisors_of(l, ids, inner)) l.tile.body.push_back(divisor(id));
}

// What elements of a row are made of, or are, and no loop changes.
std::vector<int> values_of_rows(const Lowering& l, const std::vector<int>& ids,
                                const std::vector<int>& steps, const std::vector<int>& inner) {
  std::vector<bool> used(l.kernel.scalars.size());
  for (int s : steps) used[l.kernel.steps[s].value] = true;
  for (int id : ids) {
    const Scalar& scalar = l.kernel.scalars[id];
    if (!is_in_loops(l, id, inner)) continue;
    for (int operand : scalar.operands) used[operand] = true;
    if (scalar.mask >= 0) used[scalar.mask] = true;
  }
  std::vector<int> values;
  for (int id : ids) {
    const ScalarKind kind = l.kernel.scalars[id].kind;
    const bool takes_work = kind == ScalarKind::Apply || kind == ScalarKind::Load;
    if (used[id] && takes_work && !is_in_loops(l, id, inner) && !is_known(l, id))
      values.push_back(id);
  }
  return values;
}

// In each of a thread's rows: as an element of an array.
void define_arrays(Lowering& l, const std::vector<int>& values) {
  if (values.empty()) return;
  const std::vector<int> ids =
      evaluated_for(l.kernel, values, [&](int id) { return is_known(l, id); });
  std::map<int, int> arrays;
  Body each;
  for (int id : values) {
    arrays[id] = add_array(l.tile, {str("row", l.tile.arrays.size()),
                                    l.kernel.scalars[id].dtype, l.row_registers()});
    each.push_back(set(arrays[id], l.rows.number(), id));
  }
  append(l.tile.body, over_elements(l, ids, {}, {}, each, {}, false));
  l.of_rows.insert(arrays.begin(), arrays.end());
}

// What a thread stores of a pass in which all go on: not what is beyond the last, nor what another has.
Body where_there_is_one(const Lowering& l, const Share& k, Statement store) {
  if (!l.clamps && !l.reduces) return {std::move(store)};
  if (l.clamps && k.covers_more) store = if_less(k.start(), k.count, {std::move(store)});
  if (l.rows.covers_more) store = if_less(l.rows.start(), l.rows.count, {std::move(store)});
  if (!l.reduces) return {std::move(store)};
  for (const Expr& bits : unused_bits(l.tile, {l.kernel.schedule->rows, k.layout}))
    store = if_less(bits, 1, {std::move(store)});
  return {std::move(store)};
}

}  // namespace

Body store_elements(Lowering& l, const std::vector<int>& steps, const Share& k, Body& after) {
  const VectorAxis vector = vector_axis(l, k, l.inner);
  const Expr element = l.rows.vector > 1 ? l.rows.v() : k.v();
  Body body;
  for (int s : steps) {
    const Step& step = l.kernel.steps[s];
    if (const auto stage = l.stored.find(s); stage != l.stored.end()) {
      body.push_back(set(stage->second.array, stage->second.place, step.value));
      continue;
    }
    if (!is_wide(l.program, l.kernel, vector, step.index, step.buffer)) {
      append(body, where_there_is_one(l, k, store(step.buffer, step.index, step.value)));
      continue;
    }
    const int pack = add_pack(l, step.dtype, vector.width);
    body.push_back(set(pack, element, step.value));
    append(after,
           where_there_is_one(l, k,
                              store_vector(step.buffer, at_start(l.kernel, vector, step.index),
                                           pack, 0, static_cast<int>(vector.width))));
  }
  return body;
}

Body over_elements(Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner,
                   const Share& k, const Body& each, const Body& after, bool stores) {
  const VectorAxis vector = vector_axis(l, k, inner);
  std::vector<int> chosen;
  Body loads = define_places(l, ids, k, vector, chosen);
  append(loads, load_packs(l, ids, k, vector));
  Body element = define_all(l, ids, inner, k);
  for (int id : chosen) l.defined[id] = false;
  append(element, each);
  if (k.vector > 1) {
    element.insert(element.begin(), element_axis(l.kernel, vector, k.v()));
    element = {for_each("v_k", k.vector, true, std::move(element))};
  }
  l.packs.clear();
  const Expr count = max(k.count, 1);
  Body rows = unpack(l.kernel, inner, Expr::index("k", count), vector);
  append(rows, over_rows(l, std::move(loads), std::move(element), after, stores));
  if (inner.empty()) return rows;
  const bool clamps = k.covers_more && l.clamps;
  Body body = {let("k", count, clamps ? min(k.start(), count - k.vector) : k.start())};
  if (k.covers_more && !clamps) rows = {if_less(k.start(), k.count, std::move(rows))};
  append(body, std::move(rows));
  return body;
}

void define_row_loads(Lowering& l) {
  const bool is_shared = extent_of(l.kernel.schedule->rows, Level::Lane) == 1;
  if (!is_shared || l.row_registers() > 1) return;
  const std::vector<Scalar>& scalars = l.kernel.scalars;
  std::vector<bool> waits(scalars.size());  // for a reduction
  std::vector<int> loads;
  for (size_t id = 0; id < scalars.size(); id++) {
    const Scalar& s = scalars[id];
    waits[id] =
        s.kind == ScalarKind::Register || (s.mask >= 0 && waits[s.mask]) ||
        std::any_of(s.operands.begin(), s.operands.end(), [&](int o) { return waits[o]; });
    if (s.kind == ScalarKind::Load && !waits[id] && l.axes[id] >> l.kernel.rows == 0)
      loads.push_back(static_cast<int>(id));
  }
  define_names(l, evaluated_for(l.kernel, loads, [](int) { return false; }), {});
}

void define_for_rows(Lowering& l, const std::vector<int>& steps,
                     const std::vector<int>& inner) {
  const std::vector<int> ids = needed(l, steps);
  if (l.row_registers() == 1) return define_names(l, ids, inner);
  if (!inner.empty()) define_arrays(l, values_of_rows(l, ids, steps, inner));
}

}  // namespace tiny_compile
