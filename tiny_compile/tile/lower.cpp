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
#include <map>
#include <optional>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/passes_of.h"
#include "tiny_compile/tile/reduce.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kHastened = 8;  // elements of a shortcut

// What is known while the passes of a kernel are written.
struct Lowering {
  const Program& program;
  const Kernel& kernel;
  std::vector<uint64_t> axes;  // of each scalar: those it depends on, bit a for axis a
  Tile tile{};
  Share rows{};
  std::vector<int> results{};  // of each reducing step: the array of its rows' registers
  std::vector<bool>
      defined{};  // scalars that are defined for the row, above all passes to come
  std::map<int, std::pair<int, std::vector<int>>> kept{};  // scalar -> array, over which loops
  std::vector<int> inner{};                                // the loops of the pass at hand
  std::map<int, int> packs{};  // load -> the vector whose element it is
  int64_t row_registers() const { return rows.registers * rows.vector; }
};

// The array that has a scalar's values for the elements of the pass at hand; -1 where none does.
int kept_in(const Lowering& l, int scalar) {
  const auto found = l.kept.find(scalar);
  return found != l.kept.end() && found->second.second == l.inner ? found->second.first : -1;
}

bool is_in_loops(const Lowering& l, int scalar, const std::vector<int>& inner) {
  return std::any_of(inner.begin(), inner.end(),
                     [&](int axis) { return l.axes[scalar] >> axis & 1; });
}

// --- places -------------------------------------------------------------------------------------

VectorAxis vector_axis(const Lowering& l, const Share& k, const std::vector<int>& inner) {
  const auto named = [&](int axis, int64_t width) {
    return VectorAxis{axis, l.kernel.axes[axis].name + "_v", width};
  };
  if (l.rows.vector > 1) return named(l.kernel.rows - 1, l.rows.vector);
  return k.vector > 1 ? named(inner.back(), k.vector) : VectorAxis{};
}

// The row, or where a vector of rows begins, and its axes; of none beyond the last.
Body row_begins(const Lowering& l) {
  if (l.kernel.rows == 0) return {};
  const Expr last = l.rows.count - l.rows.vector, place = l.rows.start();
  Body body = {let("row", last + 1, l.rows.covers_more ? min(place, last) : place)};
  append(body, unpack(l.kernel, row_axes(l.kernel), Expr::index("row", last + 1),
                      vector_axis(l, {}, {})));
  return body;
}

// For each of the thread's rows `each`; between `before` and `after`, which are for a vector of
// rows. `stores`: only where there is such a row.
Body over_rows(const Lowering& l, Body before, Body each, Body after, bool stores) {
  if (l.rows.vector > 1) {
    each.insert(each.begin(), element_axis(l.kernel, vector_axis(l, {}, {}), l.rows.v()));
    each = {for_each("v_row", l.rows.vector, true, std::move(each))};
  }
  append(before, std::move(each));
  append(before, std::move(after));
  if (l.rows.registers == 1) return before;
  if (stores && l.rows.covers_more)
    before = {if_less(l.rows.start(), l.rows.count, std::move(before))};
  Body all = row_begins(l);
  append(all, std::move(before));
  return {for_each("r_row", l.rows.registers, true, std::move(all))};
}

// By the first of the threads that share something under `used`, and of a row that there is.
Body by_owner(const Lowering& l, const std::vector<Layout>& used, Body body) {
  if (l.rows.covers_more && l.rows.registers == 1)
    body = {if_less(l.rows.start(), l.rows.count, std::move(body))};
  for (const Expr& bits : unused_bits(l.tile, used)) body = {if_less(bits, 1, std::move(body))};
  return body;
}

Share share_over(const Lowering& l, const std::vector<int>& inner) {
  return share_of(l.tile, "k", elements_of(l.kernel, inner), layout_over(l.kernel, inner),
                  true);
}

// --- scalars ------------------------------------------------------------------------------------

std::vector<int> needed(const Lowering& l, const std::vector<int>& steps) {
  return evaluated(l.kernel, steps, [&](int id) { return kept_in(l, id) >= 0; });
}

// Of a pass, by a thread, at a time.
int64_t elements_held(const Lowering& l, const Share& k) {
  return k.registers * k.vector * l.row_registers();
}

Expr place_of(const Lowering& l, const Share& k) {
  return k.number() * l.row_registers() + l.rows.number();
}

Body define_one(const Lowering& l, int id, const Share& k) {
  const Scalar& scalar = l.kernel.scalars[id];
  if (scalar.kind == ScalarKind::Constant) return {};
  if (scalar.kind == ScalarKind::Register)
    return {define_from(id, l.results[scalar.step], l.rows.number())};
  if (const int kept = kept_in(l, id); kept >= 0)
    return {define_from(id, kept, place_of(l, k))};
  if (const auto pack = l.packs.find(id); pack != l.packs.end()) {
    const Expr element = l.rows.vector > 1 ? l.rows.v() : k.v();
    return {define_from(id, pack->second,
                        l.tile.arrays[pack->second].size == 1 ? Expr(0) : element)};
  }
  return {define(id)};
}

// What the elements of a pass are divided by, where they all have the same.
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

// In a thread's only row they are known already (define_for_row).
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

// What no loop changes is defined once, where the thread has one row.
void define_for_row(Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner) {
  if (l.row_registers() > 1) return;
  for (int id : ids) {
    if (l.defined[id] || is_in_loops(l, id, inner)) continue;
    append(l.tile.body, define_one(l, id, {}));
    l.defined[id] = true;
  }
  for (int id : divisors_of(l, ids, inner)) l.tile.body.push_back(divisor(id));
}

// --- elements -----------------------------------------------------------------------------------

int add_pack(Lowering& l, DType dtype, int64_t width) {
  return add_array(l.tile, {str("pack", l.tile.arrays.size()), dtype, width});
}

// The vector, or the one element; where its mask is false or data chose a place that is none, what
// the load is then.
Body load_pack(Lowering& l, int id, int pack, const VectorAxis& vector) {
  const Scalar& load = l.kernel.scalars[id];
  const int64_t width = l.tile.arrays[pack].size;
  Statement read = load_vector(pack, 0, load.buffer, at_start(l.kernel, vector, load.index),
                               static_cast<int>(width));
  if (!load.operands.empty()) read.value = id;
  if (load.mask < 0 && load.operands.empty()) return {read};
  const int otherwise = add_constant(l.tile, load.value);
  Body body = {for_each("v", width, true, {set(pack, Expr::index("v", width), otherwise)})};
  if (load.mask >= 0) {
    const Within within = *mask_of_vector(l.kernel, vector, load.mask);
    read = if_less(within.index, within.bound, {read});
  }
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

// Loads of vectors, whose elements the pass reads.
Body load_packs(Lowering& l, const std::vector<int>& ids, const VectorAxis& vector) {
  Body body;
  for (int id : ids) {
    const int64_t width = l.defined[id] || kept_in(l, id) >= 0 ? 0 : width_of(l, id, vector);
    if (width == 0) continue;
    l.packs[id] = add_pack(l, l.kernel.scalars[id].dtype, width);
    append(body, load_pack(l, id, l.packs[id], vector));
  }
  return body;
}

// Stores an element of each step, or puts it into a vector that `after` stores.
Body store_elements(Lowering& l, const std::vector<int>& steps, const VectorAxis& vector,
                    const Expr& element, Body& after) {
  Body body;
  for (int s : steps) {
    const Step& step = l.kernel.steps[s];
    if (!is_wide(l.program, l.kernel, vector, step.index, step.buffer)) {
      body.push_back(store(step.buffer, step.index, step.value));
      continue;
    }
    const int pack = add_pack(l, step.dtype, vector.width);
    body.push_back(set(pack, element, step.value));
    after.push_back(store_vector(step.buffer, at_start(l.kernel, vector, step.index), pack, 0,
                                 static_cast<int>(vector.width)));
  }
  return body;
}

// A pass, for one register: what a thread has of the loops there, all its rows in each.
Body over_elements(Lowering& l, const std::vector<int>& ids, const std::vector<int>& inner,
                   const Share& k, const Body& each, const Body& after, bool stores) {
  const VectorAxis vector = vector_axis(l, k, inner);
  Body loads = load_packs(l, ids, vector), element = define_all(l, ids, inner, k);
  append(element, each);
  if (k.vector > 1) {
    element.insert(element.begin(), element_axis(l.kernel, vector, k.v()));
    element = {for_each("v_k", k.vector, true, std::move(element))};
  }
  l.packs.clear();
  const Expr count = std::max<int64_t>(k.count, 1);
  Body rows = unpack(l.kernel, inner, Expr::index("k", count), vector);
  append(rows, over_rows(l, std::move(loads), std::move(element), after, stores));
  if (inner.empty()) return rows;
  Body body = {let("k", count, k.start())};
  if (k.covers_more) rows = {if_less(k.start(), k.count, std::move(rows))};
  append(body, std::move(rows));
  return body;
}

// What is done for each of a thread's registers.
struct Work {
  Body body;
  bool hastens = false;  // by shortcuts
};

// One work after the other for all registers; where one hastens, for some at a time: enough for
// their instructions to overlap, few enough for what the long way would need once more. A loop even
// over one register: what it names is named in other passes too.
Body over_registers(const Lowering& l, const Share& k, std::vector<Work> works) {
  const bool hastens =
      std::any_of(works.begin(), works.end(), [](const Work& w) { return w.hastens; });
  const int64_t some = std::max<int64_t>(1, kHastened / (k.vector * l.row_registers())),
                at_a_time = hastens ? std::min(some, k.registers) : k.registers;
  const bool in_parts = at_a_time < k.registers;
  Body all;
  for (Work& work : works) {
    Body body = std::move(work.body);
    if (in_parts) {
      const Expr part = Expr::index("s_k", k.registers / at_a_time),
                 own = Expr::index("g_k", at_a_time);
      body.insert(body.begin(), let("r_k", k.registers, part * at_a_time + own));
    }
    if (!l.inner.empty())
      body = {for_each(in_parts ? "g_k" : "r_k", at_a_time, true, std::move(body))};
    if (work.hastens) body = {shortcut(std::move(body))};
    append(all, std::move(body));
  }
  return in_parts ? Body{for_each("s_k", k.registers / at_a_time, true, std::move(all))} : all;
}

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

Body in_turns(const Share& k, Body body) {
  return k.turns == 1 ? body : Body{for_each("turn", k.turns, false, std::move(body))};
}

// --- passes -------------------------------------------------------------------------------------

Accumulator accumulator_of(Lowering& l, const Step& step, const Share& k) {
  const DType dtype = accumulator(step.op, l.kernel.scalars[step.value].dtype);
  const std::string name = str(info(step.op).name, l.tile.arrays.size());
  const int64_t size = elements_held(l, k);
  Accumulator all{step.op, dtype, add_array(l.tile, {name, dtype, size})};
  if (is_arg(step)) all.places = add_array(l.tile, {name + "_at", DType::i64, size});
  return all;
}

// Each row's results, where later passes read them.
void finish(Lowering& l, int number, const Accumulator& all) {
  const Step& step = l.kernel.steps[number];
  const int64_t rows = l.row_registers();
  l.results[number] = add_array(l.tile, {str("r", number, "_of_row"), step.dtype, rows});
  Body body;
  const Expr row = rows == 1 ? Expr(0) : Expr::index("p", rows);
  const int value = finished(l.tile, body, step, all, row);
  body.push_back(set(l.results[number], row, value));
  if (rows > 1) body = {for_each("p", rows, true, std::move(body))};
  append(l.tile.body, std::move(body));
}

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
          kept_in(l, chosen) >= 0 || arrays.count(chosen))
        continue;
      const Scalar& place = l.kernel.scalars[chosen];
      arrays[chosen] = add_array(
          l.tile, {str("chosen", l.tile.arrays.size()), place.dtype, elements_held(l, k)});
      each.push_back(set(arrays[chosen], place_of(l, k), chosen));
      wanted.push_back(chosen);
    }
  }
  if (arrays.empty()) return {};
  wanted = evaluated_for(l.kernel, wanted, [&](int id) { return kept_in(l, id) >= 0; });
  Body body = over_elements(l, wanted, l.inner, k, each, {}, false);
  for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
  return body;
}

void reduce_pass(Lowering& l, const std::vector<int>& pass, const std::vector<int>& keep) {
  const std::vector<int>& inner = l.inner;
  const Share k = share_over(l, inner);
  std::vector<int> ids = needed(l, pass);
  define_for_row(l, ids, inner);
  const std::map kept = l.kept;
  std::vector<Work> works;
  if (Body ahead = choose_ahead(l, ids, k); !ahead.empty()) {
    works.push_back({std::move(ahead), false});
    ids = needed(l, pass);
  }
  std::vector<Accumulator> all;
  Body each, begin, in_turn, after;
  for (int s : pass) {
    const Step& step = l.kernel.steps[s];
    all.push_back(accumulator_of(l, step, k));
    const int64_t size = elements_held(l, k);
    if (k.covers_more)
      begin.push_back(
          for_each("p", size, true, set_identity(l.tile, all.back(), Expr::index("p", size))));
    append(each, set_element(l.tile, all.back(), place_of(l, k), step.value, k.at()));
  }
  std::map<int, int> arrays;
  for (int id : keep) {
    const DType dtype = l.kernel.scalars[id].dtype;
    const int64_t size = elements_held(l, k);
    arrays[id] = add_array(l.tile, {str("keep", l.tile.arrays.size()), dtype, size});
    each.push_back(set(arrays[id], place_of(l, k), id));
  }
  const bool hastens = has_shortcuts(l, ids, inner);
  works.push_back({over_elements(l, ids, inner, k, each, {}, false), hastens});
  l.kept = kept;
  append(begin, over_registers(l, k, std::move(works)));
  for (const Accumulator& one : all) {
    Reduced reduced = reduce(l.tile, k, one, l.row_registers());
    append(l.tile.body, std::move(reduced.before));
    append(in_turn, std::move(reduced.in_turn));
    append(after, std::move(reduced.after));
  }
  append(begin, std::move(in_turn));
  append(l.tile.body, in_turns(k, std::move(begin)));
  append(l.tile.body, std::move(after));
  for (size_t n = 0; n < pass.size(); n++) finish(l, pass[n], all[n]);
  for (const auto& [id, array] : arrays) l.kept[id] = {array, inner};
}

// What shortcuts make of the values that a pass stores, in arrays: none is stored twice.
Body compute_ahead(Lowering& l, const std::vector<int>& pass, const std::vector<int>& ids,
                   const Share& k) {
  const int64_t size = elements_held(l, k);
  std::map<int, int> arrays;
  Body each;
  for (int s : pass) {
    const int id = l.kernel.steps[s].value;
    if (!is_in_loops(l, id, l.inner) || kept_in(l, id) >= 0 || arrays.count(id)) continue;
    arrays[id] = add_array(
        l.tile, {str("value", l.tile.arrays.size()), l.kernel.scalars[id].dtype, size});
    each.push_back(set(arrays[id], place_of(l, k), id));
  }
  Body body = over_elements(l, ids, l.inner, k, each, {}, false);
  for (const auto& [id, array] : arrays) l.kept[id] = {array, l.inner};
  return body;
}

void store_pass(Lowering& l, const std::vector<int>& pass) {
  const std::vector<int>& inner = l.inner;
  const Share k = share_over(l, inner);
  std::vector<int> ids = needed(l, pass);
  define_for_row(l, ids, inner);
  const std::map kept = l.kept;
  std::vector<Work> works;
  if (has_shortcuts(l, ids, inner)) {
    works.push_back({compute_ahead(l, pass, ids, k), true});
    ids = needed(l, pass);
  }
  Body after;
  const Expr element = l.rows.vector > 1 ? l.rows.v() : k.v();
  const Body each = store_elements(l, pass, vector_axis(l, k, inner), element, after);
  works.push_back({over_elements(l, ids, inner, k, each, after, true)});
  l.kept = kept;
  Body body = in_turns(k, over_registers(l, k, std::move(works)));
  append(l.tile.body, by_owner(l, {l.kernel.schedule->rows, k.layout}, std::move(body)));
}

}  // namespace

Tile lower_to_tile(const Program& program, const Kernel& kernel) {
  Lowering l{program, kernel, axes_of_scalars(kernel)};
  l.tile.kernel = kernel;
  l.tile.cluster = cluster_of(*kernel.schedule);
  l.tile.warps = warps_of(*kernel.schedule);
  l.tile.resident = kernel.schedule->resident;
  const Layout& rows = kernel.schedule->rows;
  const int64_t count = row_count(kernel).constant();
  l.tile.grid = ceil_divide(count, covered_by(rows));
  l.rows = share_of(l.tile, "row", count, rows, false);
  l.results.assign(kernel.steps.size(), -1);
  l.defined.assign(kernel.scalars.size(), false);
  if (l.rows.registers == 1) append(l.tile.body, row_begins(l));
  const std::vector<std::vector<int>> passes = gathered_passes_of(kernel);
  const std::vector<std::vector<int>> kept =
      kept_values(kernel, passes, [&](const auto& inner) {
        return kernel.schedule->keep &&
               extent_of(layout_over(kernel, inner), Level::Serial) == 1;
      });
  for (size_t p = 0; p < passes.size(); p++) {
    l.inner = kernel.steps[passes[p][0]].inner;
    if (makes_register(kernel.steps[passes[p][0]]))
      reduce_pass(l, passes[p], kept[p]);
    else
      store_pass(l, passes[p]);
  }
  return numbered(std::move(l.tile), kernel.scalars.size());
}

}  // namespace tiny_compile
