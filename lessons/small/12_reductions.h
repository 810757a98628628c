// Who adds what? The sum's order is given (00): the upper half onto the lower, chunk by chunk. So it
// is enough to go through the bits of k in that order, and whoever owns a bit adds: a thread its own
// registers, lanes by a shuffle, warps through shared memory, turns of a loop by holding a result
// until its other half is there, blocks of the grid by a second kernel.
//
//   k < 4096   warp 4 · register 32 · lane 32   =>  registers 16 8 4 2 1, lanes 16 .. 1 | warps 2 1
//
// Each layout gives the same bits. Left out: clusters of blocks.
#pragma once

#include "lessons/small/11_cuda.h"

namespace small {

constexpr const char* kHalves = R"(
template <bool M> TC_FN float both(float a, float b) { return M ? tc_maximum(a, b) : a + b; }
template <bool M, int R, int Done> TC_FN void in_registers(float (&t)[R], int step) {
#pragma unroll
  for (int q = 0; q < R; q++)
    if (!(q & (Done | step))) t[q] = both<M>(t[q], t[q | step]);
}
template <bool M, int R, int Done> TC_FN void in_lanes(float (&t)[R], int step) {
#pragma unroll
  for (int q = 0; q < R; q++)
    if (!(q & Done)) t[q] = both<M>(t[q], __shfl_xor_sync(~0u, t[q], step));
}
template <bool M, int R, int Done> TC_FN void in_warps(float (&t)[R], int step) {
  __shared__ float given[1024];
  for (int q = 0; q < R; q++) {
    if (q & Done) continue;
    given[threadIdx.x] = t[q];
    __syncthreads();
    t[q] = both<M>(t[q], given[threadIdx.x ^ 32 * step]);
    __syncthreads();
  }
}
// Turn s of a loop that visits its parts in the order of their numbers' bits reversed.
template <bool M, int R, int Done, int L> TC_FN void in_turns(float (&t)[R], float (&held)[L][R], int s) {
  for (int q = 0; q < R; q++) {
    if (q & Done) continue;
    int level = 0;
    for (; s >> level & 1; level++) t[q] = both<M>(held[level][q], t[q]);
    if (level < L) held[level][q] = t[q];
  }
}
TC_FN long long reversed(int s, int turns) {
  long long r = 0;
  for (int bit = 1; bit < turns; bit *= 2) r = 2 * r + (s / bit & 1);
  return r;
}
)";

struct Bit {
  Level level;
  int64_t step;  // between its two halves, there
};
// A thread's part of k, from q (its register's number) and s (its turn).
struct Inner {
  Text k = Text("0"), chunk = Text("0");
  int64_t registers = 1, turns = 1;
  std::vector<Bit> bits = {};  // of k, from the lowest

  Inner(const Layout& layout, int64_t size, Thread& thread) {
    int64_t stride = 1;
    for (size_t p = layout.size(); p-- > 0; stride *= layout[p].extent) {
      const auto [level, extent] = layout[p];
      if (level != Level::Grid && extent == 1) continue;
      const int64_t steps[] = {0, thread.warps, thread.lanes, registers, 0};
      for (int64_t half = 1; half < extent; half *= 2)
        bits.push_back({level, steps[static_cast<int>(level)] * half});
      Text own("reversed(s, " + std::to_string(extent) + ")");
      if (level == Level::Register)
        own = Text("q") / registers % extent, registers *= extent;
      else if (level == Level::Serial)
        turns = extent;
      else
        own = thread.part(layout[p], size, stride, "");
      if (level == Level::Grid) chunk = own, own = Text("chunk");
      k = own * stride + k;
    }
  }
  // Each k of the thread's, and what ends a turn.
  std::string all(const std::string& each, const std::string& turn = "") const {
    const std::string of_turn = "#pragma unroll\nfor (q = 0; q < " + std::to_string(registers) +
                                "; q++) {\nconst long long k = " + k.s + ";\n" + each + "}\n" +
                                turn;
    if (turns == 1) return of_turn;
    return "for (int s = 0; s < " + std::to_string(turns) + "; s++) {\n" + of_turn + "}\n";
  }
};

inline std::string reduction_over(const Formulas& f, int64_t id, const Inner& inner) {
  const bool is_max = f.kernel.values[id].op == Op::Max;
  const std::string t = "t" + std::to_string(id), name = "f" + std::to_string(id),
                    registers = std::to_string(inner.registers);
  std::string turn, after, *text = inner.turns > 1 ? &turn : &after;
  int64_t done = 0;
  for (size_t digit = 0; digit < inner.bits.size(); digit += 10)
    for (size_t b = std::min(digit + 10, inner.bits.size()); b-- > digit;) {
      constexpr const char* kIn[] = {"", "in_warps<", "in_lanes<", "in_registers<",
                                     "in_turns<"};
      const auto [level, step] = inner.bits[b];
      if (level == Level::Serial && text == &after) continue;
      *text += kIn[static_cast<int>(level)] + std::to_string(is_max) + ", " + registers + ", " +
               std::to_string(done) + ">(" + t + ", ";
      *text += (level == Level::Serial ? "held_" + t + ", s" : std::to_string(step)) + ");\n";
      if (level == Level::Register) done |= step;
      if (level == Level::Serial) text = &after;
    }
  const std::string filler = is_max ? "tc_from_bits(0xff800000u)" : "-0.0f",
                    zero = is_max || f.kernel.sizes.back() == 0 ? " + 0.0f" : "";
  return function_of_k(f, name, f.kernel.values[id].operands[0]) + "float " + t + "[" +
         registers + "]" + (inner.turns > 1 ? ", held_" + t + "[12][" + registers + "]" : "") +
         ";\n" +
         inner.all(t + "[q] = k < " + size_name(f.kernel.sizes.back()).s + " ? " + name +
                       "(k) : " + filler + ";\n",
                   turn) +
         after + "const float " + v(id) + " = " + t + "[0]" + zero + ";\n";
}

inline void add_reduced(Plan& plan, Formulas f, const Schedule& schedule) {
  Thread thread;
  const Inner inner(schedule.back(), f.kernel.sizes.back(), thread);
  std::string text = "int q = 0;\nconst long long chunk = " + inner.chunk.s + ";\n";
  if (inner.turns == 1) f.kept = worth_keeping(f, true), f.kept_at = "q";
  for (const auto& [id, result] : f.kept)
    text += "float kept_" + v(id) + "[" + std::to_string(inner.registers) + "];\n";
  for (int64_t id = 0; id < std::ssize(f.kernel.values); id++) {
    const Op op = f.kernel.values[id].op;
    if (inside_k(f.kernel, id)) continue;
    text += info(op).kind == Kind::Reduction ? reduction_over(f, id, inner) : row_value(f, id);
  }
  if (const std::string rows = stores(f, false); !rows.empty())
    text += "if (in) {\n" + rows + "}\n";
  if (const std::string inside = stores(f, true); !inside.empty())
    text += inner.all("if (in && k < " + size_name(f.kernel.sizes.back()).s + ") {\n" + inside +
                      "}\n");
  add_threads(plan, f, schedule, thread, text);
}

// Lanes for k where it is contiguous, a row's warps where it has more than 1024; registers and warps
// where the rows are.
inline Schedule schedule_k(const Kernel& kernel) {
  const Ids reductions = reductions_of(kernel), arrays = contiguous(kernel);
  if (reductions.empty() || kernel.values[reductions[0]].op == Op::Matmul)
    return schedule_rows(kernel);
  const bool in_chunks = kernel.stores[0].at.along.back().text.s == "chunk";
  const auto best = std::max_element(arrays.begin(), arrays.end() - 1);
  const bool across = *best > arrays.back() && kernel.sizes[best - arrays.begin()] >= 32;
  int64_t rest = in_chunks ? 1024 : padded(kernel.sizes.back());
  const auto deal = [&](int64_t most) {
    const int64_t part = std::min(most, rest);
    rest /= part;
    return part;
  };
  const int64_t lanes = across ? 1 : deal(32), registers = deal(32), warps = deal(32);
  Layout k = {{Level::Serial, rest},
              {Level::Warp, warps},
              {Level::Register, registers},
              {Level::Lane, lanes}};
  if (across) std::swap(k[1], k[2]);
  if (in_chunks) k.insert(k.begin(), {Level::Grid, 1});
  Schedule schedule = schedule_rows(kernel, 32 / lanes, std::max<int64_t>(1, 8 / warps));
  schedule.back() = k;
  return schedule;
}

// Whether the blocks of the grid had better share out k: rows are few or very long, and all that
// they wait for is one sweep.
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
  return is_one_sweep && k > 1024 && (rows < 1 << 14 || k > kMostKept);
}

// Such a kernel as two: of chunks of 1024, whose results are arrays, and of these.
inline Program split(const Program& program) {
  Program result{program.graph, {}};
  for (const Kernel& kernel : program.kernels) {
    if (!is_worth_splitting(kernel)) {
      result.kernels.push_back(kernel);
      continue;
    }
    Kernel chunks = kernel, rest = {kernel.sizes, {}, kernel.stores};
    chunks.stores.clear();
    rest.sizes.back() = (kernel.sizes.back() + 1023) / 1024;
    Ids now(kernel.values.size());
    for (int64_t id = 0; id < std::ssize(kernel.values); id++) {
      Value value = kernel.values[id];
      if (inside_k(kernel, id)) continue;
      for (int64_t& operand : value.operands) operand = now[operand];
      if (reduces(value.op)) {
        Place at;
        for (size_t d = 0; d + 1 < kernel.sizes.size(); d++)
          at.along.push_back(kernel.sizes[d] == 1 ? Coordinate{}
                                                  : variable(d, kernel.sizes.size()));
        at.along.push_back({Text("chunk")});
        const int64_t array = result.graph.add({Op::Sum, {}, rest.sizes});
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
  return result;
}

inline Plan in_layouts(const Program& program) {
  const Program two = split(program);
  Plan plan = plan_of(two);
  plan.code.text = kHalves;
  for (const Kernel& kernel : two.kernels)
    add_reduced(plan, {two.graph, kernel}, schedule_k(kernel));
  return plan;
}

}  // namespace small
