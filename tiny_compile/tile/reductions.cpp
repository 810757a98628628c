// What do several reductions of a pass have in common? The elements they go through, and the barriers at
// which their threads meet:
//
//   r0 = sum(j0: 4096) $1 ; r1 = max(j0: 4096) $1      loop warp 4 · register 32 · lane 32
//   =>  for r_k < 32 { $1 = load x[..]; sum0[r_k] = $1; max1[r_k] = $1 }
//       ..; given2[warp] = sum0[0]; given3[warp] = max1[0]; barrier; ..
#include "tiny_compile/tile/reductions.h"

#include <algorithm>
#include <utility>

#include "tiny_compile/tile/elements.h"
#include "tiny_compile/tile/exponentials.h"

namespace tiny_compile {
namespace {

Accumulator add_accumulator(Lowering& l, const Step& step, int64_t size) {
  const DType dtype = accumulator(step.op, l.kernel.scalars[step.value].dtype);
  const std::string name = str(info(step.op).name, l.tile.arrays.size());
  Accumulator all{step.op, dtype, add_array(l.tile, {name, dtype, size})};
  if (is_arg(step)) all.places = add_array(l.tile, {name + "_at", DType::i64, size});
  return all;
}

void finish_row(Lowering& l, int number, const Accumulator& all) {
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

// One barrier is enough for all.
void wait(Body& waits, const Body& more) {
  for (const Statement& s : more) {
    if (std::count(waits.begin(), waits.end(), s) == 0) waits.push_back(s);
  }
}

}  // namespace

Reductions::Reductions(Lowering& l, std::vector<int> steps, const Share& k)
    : l_(l), steps_(std::move(steps)), k_(k), trees_(trees_of(l.kernel, steps_)) {
  for (int s : steps_)
    all_[s] = add_accumulator(l, l.kernel.steps[s],
                              is_found(s) ? l.row_registers() : elements_held(l, k));
}

std::vector<int> Reductions::own() const {
  std::vector<int> steps = steps_;
  std::erase_if(steps, [&](int s) { return is_found(s); });
  return steps;
}

Body Reductions::begin(int step) const {
  if (!k_.covers_more) return {};
  const int64_t size = elements_held(l_, k_);
  return {
      for_each("p", size, true, set_identity(l_.tile, all_.at(step), Expr::index("p", size)))};
}

Body Reductions::each(int step) const {
  return set_element(l_.tile, all_.at(step), place_of(l_, k_), l_.kernel.steps[step].value,
                     k_.at());
}

Body Reductions::reduce(int step) {
  const int64_t rows = l_.row_registers();
  Reduced one = all_[step].op == Op::sum_exp
                    ? reduce_exponentials(l_.tile, k_, all_[step], largest_of(step), rows)
                    : tiny_compile::reduce(l_.tile, k_, all_[step], rows);
  append(together_.before, std::move(one.before));
  together_.after.resize(std::max(together_.after.size(), one.after.size()));
  together_.waits.resize(together_.after.size() - 1);
  for (size_t n = 1; n < one.after.size(); n++)
    append(together_.after[n], std::move(one.after[n]));
  for (size_t n = 0; n < one.waits.size(); n++) wait(together_.waits[n], one.waits[n]);
  if (k_.turns > 1) {
    append(together_.after[0], std::move(one.after[0]));
    return std::move(one.in_turn);
  }
  append(one.in_turn, std::move(one.after[0]));
  return std::move(one.in_turn);
}

Body Reductions::finish(Body body) {
  Body all = std::move(together_.before);
  append(all, in_turns(std::move(body)));
  for (size_t n = 0; n < together_.after.size(); n++) {
    append(all, std::move(together_.after[n]));
    if (n < together_.waits.size()) append(all, std::move(together_.waits[n]));
  }
  return all;
}

void Reductions::finish_rows() {
  for (int s : steps_) finish_row(l_, s, all_[s]);
}

// A maximum that a sum of exponentials of the same values finds on its way.
bool Reductions::is_found(int step) const {
  return std::any_of(trees_.begin(), trees_.end(),
                     [&](const Tree& tree) { return tree.maximum == step; });
}

Accumulator Reductions::largest_of(int finder) const {
  for (const Tree& tree : trees_) {
    if (tree.step == &l_.kernel.steps[finder] && tree.maximum >= 0)
      return all_.at(tree.maximum);
  }
  return {};
}

// Turns that have no element are none, where nothing waits for them. A sum of exponentials gives
// what it has of each chunk that there may be.
Body Reductions::in_turns(Body body) const {
  const std::vector<int> steps = own();
  const bool waits =
      contains_any(body, StatementKind::Barrier) ||
      std::any_of(steps.begin(), steps.end(), [&](int s) {
        return all_.at(s).op == Op::sum_exp ? !k_.count.is_constant() : !is_exact(all_.at(s));
      });
  const Expr first = k_.chunk(0), chunks = ceil_div(k_.count, kChunk);
  if (k_.turns > 1 && !waits && first.bounds().high >= chunks.bounds().low)
    body = {if_less(first, chunks, std::move(body))};
  return tiny_compile::in_turns(k_, std::move(body));
}

}  // namespace tiny_compile
