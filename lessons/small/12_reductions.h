// Who adds what? The sum's order is given (00): the upper half onto the lower, chunk by chunk. So it
// is enough to go through the bits of k in that order, and whoever owns a bit adds: a thread its own
// registers, lanes by a shuffle, warps through shared memory, turns of a loop by holding a result
// until its other half is there, blocks of the grid by a second kernel.
//
//   k < 4096   warp 4 · register 32 · lane 32   =>  registers 16 8 4 2 1, lanes 16 .. 1 | warps 2 1
//
// Each layout gives the same bits. Left out: clusters of blocks.
#pragma once

#include "lessons/small/12_legality.h"

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
  Text first = Text("0"), own = Text("0"), chunk = Text("0");  // of a vector, and one of it
  int64_t registers = 1, turns = 1;
  std::vector<Bit> bits = {};  // of k, from the lowest

  Inner(const Layout& layout, int64_t size, Thread& thread) {
    int64_t stride = 1;
    for (size_t p = layout.size(); p-- > 0; stride *= layout[p].extent) {
      const auto [level, extent] = layout[p];
      if (level != Grid && extent == 1) continue;
      const int64_t steps[] = {0, thread.warps, thread.lanes, registers, registers, 0};
      for (int64_t half = 1; half < extent; half *= 2)
        bits.push_back({level, steps[static_cast<int>(level)] * half});
      Text part(str("reversed(s, ", extent, ")"));
      if (level == Register || level == Vector)
        part = Text("q") / registers % extent, registers *= extent;
      else if (level == Serial)
        turns = extent;
      else
        part = thread.part(layout[p], size, stride, "");
      if (level == Grid) chunk = part, part = Text("chunk");
      (level == Vector ? own : first) = part * stride + (level == Vector ? own : first);
    }
  }
  // Each k of the thread's, and what ends a turn.
  std::string all(const std::string& each, const std::string& turn = "") const {
    const std::string of_turn = str("#pragma unroll\nfor (q = 0; q < ", registers,
                                    "; q++) {\nconst long long first = ", first,
                                    ", k = first + ", own, ";\n", each, "}\n", turn);
    return turns == 1 ? of_turn
                      : str("for (int s = 0; s < ", turns, "; s++) {\n", of_turn, "}\n");
  }
};

// A part's result, bit by bit: from each digit of 1024 the highest first. What comes before a
// thread's turns is in each of them.
inline std::string reduction_over(const Formulas& f, int64_t id, const Inner& inner) {
  const bool is_max = f.kernel.values[id].op == Op::Max;
  const std::string t = str("t", id), name = str("f", id);
  std::string turn, after, *text = inner.turns > 1 ? &turn : &after;
  int64_t done = 0;
  for (size_t digit = 0; digit < inner.bits.size(); digit += 10)
    for (size_t b = std::min(digit + 10, inner.bits.size()); b-- > digit;) {
      constexpr const char* kIn[] = {
          "", "in_warps", "in_lanes", "in_registers", "in_registers", "in_turns"};
      const auto [level, step] = inner.bits[b];
      if (level == Serial && text == &after) continue;  // all its bits at once
      *text += str(kIn[static_cast<int>(level)], "<", is_max, ", ", inner.registers, ", ", done,
                   ">(", t, ", ");
      *text += level == Serial ? str("held_", t, ", s);\n") : str(step, ");\n");
      if (level == Register || level == Vector) done |= step;
      if (level == Serial) text = &after;
    }
  const std::string filler = is_max ? "tc_from_bits(0xff800000u)" : "-0.0f",
                    arrays = str("float ", t, "[", inner.registers, "], held_", t, "[12][",
                                 inner.registers, "];\n"),
                    each = str(t, "[q] = first < ", size_name(f.kernel.sizes.back()), " ? ",
                               name, "(k) : ", filler, ";\n");
  return str(function_of_k(f, name, f.kernel.values[id].operands[0]), arrays,
             inner.all(each, turn), after, "const float ", v(id), " = ", t, "[0]",
             zero_after(f, f.kernel.values[id].op), ";\n");
}

inline void add_reduced(Plan& plan, Formulas f, const Schedule& schedule) {
  if (const std::string why = why_illegal(schedule, f.kernel); !why.empty())
    throw Error(print(schedule) + ": " + why);
  Thread thread;
  const Inner inner(schedule.back(), f.kernel.sizes.back(), thread);
  if (inner.turns == 1) f.kept = worth_keeping(f, true), f.kept_at = "q";
  std::string text = str("int q = 0;\nconst long long chunk = ", inner.chunk, ";\n",
                         f.kept_arrays(inner.registers));
  for (int64_t id = 0; id < std::ssize(f.kernel.values); id++)
    if (!inside_k(f.kernel, id))
      text += info(f.kernel.values[id].op).kind == Kind::Reduction
                  ? reduction_over(f, id, inner)
                  : row_value(f, id);
  text += stores(f, false);
  if (const std::string inside = stores(f, true); !inside.empty())
    text += inner.all(
        str("if (first < ", size_name(f.kernel.sizes.back()), ") {\n", inside, "}\n"));
  add_threads(plan, f, schedule, thread, text);
}

}  // namespace small
