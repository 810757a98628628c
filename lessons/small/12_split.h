// Which layout is a good one, and when should all blocks share out one row? Here is what decides; it
// is no more than advice, for each layout gives the same bits.
//
//   sum of [16384,4096] along axis 0    =>  chunks: k  grid · register 32 · warp 32    i1  grid · lane 32
//                                           rest:   k  register 16                     i1  grid · warp 8 · lane 32
//
// Left out: asking the machine what it has.
#pragma once

#include "lessons/small/12_reductions.h"

namespace small {

// Lanes for k where it is contiguous, a row's warps where it has more than 1024; registers and warps
// where the rows are.
inline Schedule schedule_k(const Kernel& kernel) {
  if (reductions_of(kernel).empty() || is_product(kernel)) return schedule_rows(kernel);
  const Ids arrays = contiguous(kernel);
  const bool in_chunks = kernel.in_chunks;
  const auto best = std::max_element(arrays.begin(), arrays.end() - 1);
  const bool across = *best > arrays.back() && kernel.sizes[best - arrays.begin()] >= 32;
  int64_t rest = in_chunks ? 1024 : power_of_two_from(kernel.sizes.back());
  const auto deal = [&](int64_t most) {
    const int64_t part = std::min(most, rest);
    rest /= part;
    return part;
  };
  const int64_t wide = across || kernel.sizes.back() % 4 != 0 ? 1 : deal(4),
                lanes = across ? 1 : deal(32), registers = deal(32 / wide), warps = deal(32);
  Layout k = {
      {Serial, rest}, {Warp, warps}, {Register, registers}, {Lane, lanes}, {Vector, wide}};
  if (across) std::swap(k[1], k[2]);
  if (in_chunks) k.insert(k.begin(), {Grid, 1});
  Schedule schedule = schedule_rows(kernel, 32 / lanes, std::max<int64_t>(1, 8 / warps));
  schedule.back() = k;
  return schedule;
}

// Whether the grid's blocks should share out k: over 1024, rows few or very long, and all that they
// wait for is one sweep.
inline bool is_worth_splitting(const Kernel& kernel) {
  std::vector<bool> waits;  // for a reduction
  bool is_one_sweep = stored_inside(kernel).empty() && !reductions_of(kernel).empty();
  for (const Value& value : kernel.values) {
    bool later = false;
    for (const int64_t operand : value.operands)
      later = later || waits[operand] || reduces(kernel.values[operand].op);
    waits.push_back(later);
    is_one_sweep = is_one_sweep && value.op != Op::Matmul &&
                   !(later && (value.loops & k_of(kernel) || reduces(value.op)));
  }
  const int64_t k = kernel.sizes.back(), rows = count(kernel.sizes) / std::max<int64_t>(1, k);
  const size_t arrays = arrays_of(kernel).size() + reductions_of(kernel).size();
  return is_one_sweep && !kernel.in_chunks && arrays <= 64 && k > 1024 &&
         (rows < 1 << 14 || k > kMostKept);
}

// Such a kernel as two: of chunks of 1024, whose results are arrays, and of these.
inline Program split(const Program& program) {
  Program result{program.graph};
  for (const Kernel& kernel : program.kernels) {
    if (!is_worth_splitting(kernel)) {
      result.kernels.push_back(kernel);
      continue;
    }
    Kernel chunks = {kernel.sizes, true, kernel.values, {}},
           rest = {kernel.sizes, false, {}, kernel.stores};
    rest.sizes.back() = (kernel.sizes.back() + 1023) / 1024;
    Ids now(kernel.values.size());
    for (int64_t id = 0; id < std::ssize(kernel.values); id++) {
      Value value = kernel.values[id];
      if (inside_k(kernel, id)) continue;
      for (int64_t& operand : value.operands) operand = now[operand];
      if (reduces(value.op)) {
        Place at = value.at;
        at.along.push_back({Text("chunk")});
        const int64_t array = result.graph.add({Op::Sum, {}, rest.sizes});  // the chunks'
        chunks.stores.push_back({id, array, at});
        at.along.back() = variable(kernel.sizes.size() - 1, kernel.sizes.size());
        value.operands = {std::ssize(rest.values)};
        rest.values.push_back({Op::Input, {}, array, at, 2 * k_of(kernel) - 1});
      }
      now[id] = std::ssize(rest.values);
      rest.values.push_back(value);
    }
    for (Store& store : rest.stores) store.value = now[store.value];
    result.kernels.push_back(chunks);
    result.kernels.push_back(rest);
  }
  return result.kernels.size() == program.kernels.size() ? result : split(result);
}

inline Plan in_layouts(const Program& program) {
  const auto add = [](Plan& plan, const Formulas& f) {
    add_reduced(plan, f, schedule_k(f.kernel));
  };
  return plan_of(split(program), add, kHalves);
}

}  // namespace small
