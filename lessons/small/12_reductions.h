// Who adds what? The sum's order is given (00): the upper half onto the lower, chunk by chunk. So it
// is enough to go through the bits of k in that order, and whoever owns a bit adds: a thread its own
// registers, lanes by a shuffle, warps through shared memory, turns of a loop by holding a result
// until its other half is there, blocks of the grid by a second kernel.
//
//   k < 4096   warp 4 · register 32 · lane 32   =>  registers 16 8 4 2 1, lanes 16 .. 1 | warps 2 1
//
// Each layout gives the same bits. Left out: clusters of blocks.
#pragma once

#include "lessons/small/11_threads.h"

namespace small {

constexpr const char* kHalves = R"(
template <bool M> TC_FN float both(float a, float b) { return M ? tc_maximum(a, b) : a + b; }
TC_FN float of_lane(float own, int step) { return __shfl_xor_sync(~0u, own, step); }
TC_FN float of_warp(float own, int step) {
  __shared__ float given[1024];
  given[threadIdx.x] = own;
  __syncthreads();
  const float other = given[threadIdx.x ^ 32 * step];
  __syncthreads();
  return other;
}
// Turn s of a loop that visits its parts in bit-reversed order.
template <bool M, int R> TC_FN void in_turns(float (&t)[R], float (&held)[12][R], int s, int done) {
  for (int q = 0; q < R; q++) {
    if (q & done) continue;
    int level = 0;
    for (; s >> level & 1; level++) t[q] = both<M>(held[level][q], t[q]);
    held[level][q] = t[q];
  }
}
TC_FN long long reversed(int s, int turns) {
  long long r = 0;
  for (int bit = 1; bit < turns; bit *= 2) r = 2 * r + (s / bit & 1);
  return r;
}
)";

// A part's result, bit by bit: in each digit of 1024 the highest first. What comes before the bits
// of the turns is done in each turn, what comes later, after them.
inline std::string reduction_over(const Formulas& f, int64_t id, const Share& share) {
  const bool is_max = f.kernel.values[id].op == Op::Max;
  const std::string t = str("t", id), name = str("f", id),
                    filler = is_max ? "tc_from_bits(0xff800000u)" : "-0.0f";
  std::string turn, after, *text = share.turns > 1 ? &turn : &after;
  int64_t done = 0;  // bits of q that are already summed over
  for (size_t digit = 0; digit < share.bits.size(); digit += 10)
    for (size_t b = std::min(digit + 10, share.bits.size()); b-- > digit;) {
      const auto [level, step] = share.bits[b];
      if (level == Serial && text == &turn)
        *text += str("in_turns<", is_max, ">(", t, ", held_", t, ", s_k, ", done, ");\n");
      if (level == Serial) text = &after;  // all its bits at once
      if (level == Serial) continue;
      const bool own = level == Register || level == Vector;
      const char* const call = level == Lane ? "of_lane(" : "of_warp(";
      if (own) done |= step;
      *text +=
          str("#pragma unroll\nfor (int q = 0; q < ", share.registers, "; q++) {\nif (!(q & ",
              done, ")) ", t, "[q] = both<", is_max, ">(", t, "[q], ", own ? "" : call, t, "[q",
              own ? " | " : "], ", step, own ? "]" : ")", ");\n}\n");
    }
  const std::string each = str(t, "[q_k] = first_k < ", size_name(f.kernel.sizes.back()), " ? ",
                               name, "(k) : ", filler, ";\n");
  const bool zero = is_max || f.kernel.sizes.back() == 0;
  return str(function_of_k(f, name, f.kernel.values[id].operands[0], id), "float ", t, "[",
             share.registers, "], held_", t, "[12][", share.registers, "];\n",
             share.all(each, turn), after, "const float ", v(id), " = ", t, "[0]",
             zero ? " + 0.0f" : "", ";\n");
}

inline void add_reduced(Plan& plan, Formulas f, const Schedule& schedule) {
  if (const std::string why = why_illegal(schedule, f.kernel); !why.empty())
    throw Error(print(schedule) + ": " + why);
  Thread thread;
  const bool product = is_product(f.kernel);
  const Share share("k", product ? Layout{} : schedule.back(), f.kernel.sizes.back(), thread);
  if (share.turns == 1) f.kept = worth_keeping(f, true), f.kept_at = "q_k";
  std::string text =
      str("const long long chunk = ", share.chunk, ";\n", f.kept_arrays(share.registers));
  for (int64_t id = 0; id < std::ssize(f.kernel.values); id++)
    if (!inside_k(f.kernel, id))
      text += reduces(f.kernel.values[id].op) && !product ? reduction_over(f, id, share)
                                                          : row_value(f, id);
  text += stores(f, false);
  if (const std::string inside = stores(f, true); !inside.empty())
    text += share.all(
        str("if (first_k < ", size_name(f.kernel.sizes.back()), ") {\n", inside, "}\n"));
  add_threads(plan, f, schedule, thread, text);
}

}  // namespace small
