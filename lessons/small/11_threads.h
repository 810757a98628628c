// What does a thread do? Its share of each loop: its registers, in turns. A row is made
// as in C++ (08), with such loops in place of its own.
//
//   i0  grid · warp 8 · lane 32 · vector 4   =>   for (q_i0 < 4) { first_i0 = (block * 256 + warp * 32
//     + lane) * 4;  i0 = least(first_i0, n - 4) + q_i0;  const float v0 = b0[i0]; .. }
//
// Adjacent lanes should read and write adjacent elements. The compiler joins a
// vector's accesses: their arrays are aligned, and no branch parts them: a thread with no row repeats
// the last one. Left out: k, which is a thread's alone until step 12.
#pragma once

#include "lessons/small/11_layouts.h"

namespace small {

struct Thread {  // what is dealt out so far
  Text blocks = Text("1");
  int64_t grid = 1, warps = 1, lanes = 1;

  Text part(Level level, int64_t extent, int64_t size, int64_t stride) {
    if (level == Grid) {
      const Text all = str("unsigned(", (size_name(size) + Text(stride - 1)) / stride, ")");
      const Text own = str("(long long)", Text("block") / blocks % all);
      blocks = blocks * all, grid *= (size + stride - 1) / stride;
      return own;
    }
    int64_t& dealt_out = level == Warp ? warps : lanes;
    const Text own = Text(level == Warp ? "warp" : "lane") / dealt_out % extent;
    dealt_out *= extent;
    return own;
  }
};
struct Bit {
  Level level;
  int64_t step;  // in its level, between halves
};
// What a thread has of a loop: an index for each of its registers q and turns s.
struct Share {
  std::string name;
  int64_t size, registers = 1, turns = 1, width = 1;
  Text first = Text("0"), own = Text("0"), chunk = Text("0");  // of a vector, and within it
  std::vector<Bit> bits = {};                                  // of the index, from the lowest

  Share(std::string loop, const Layout& layout, int64_t of, Thread& thread)
      : name(std::move(loop)), size(of) {
    int64_t stride = 1;
    for (size_t p = layout.size(); p-- > 0; stride *= layout[p].extent) {
      const auto [level, extent] = layout[p];
      if (level != Grid && extent == 1) continue;
      const int64_t steps[] = {0, thread.warps, thread.lanes, registers, registers, 0};
      for (int64_t half = 1; half < extent; half *= 2)
        bits.push_back({level, steps[static_cast<int>(level)] * half});
      Text part("");
      if (level == Register || level == Vector)
        part = Text("q_" + name) / registers % extent, registers *= extent;
      else if (level == Serial)
        part = Text("s_" + name) / turns % extent, turns *= extent;
      else
        part = thread.part(level, extent, size, stride);
      if (level == Serial && name == "k") part = str("reversed(", part, ", ", extent, ")");
      if (level == Grid && name == "k") chunk = part, part = Text("chunk");
      if (level == Vector) width = extent;
      (level == Vector ? own : first) = part * stride + (level == Vector ? own : first);
    }
  }
  // This for each of its indices; `turn` ends a turn.
  std::string all(const std::string& each, const std::string& turn = "") const {
    const std::string q = "q_" + name, s = "s_" + name;
    const Text clamped = str("least(first_", name, ", ", size_name(size), " - ", width, ")");
    std::string text = str("const long long first_", name, " = ", first, ", ", name, " = ",
                           (name == "k" ? Text("first_k") : clamped) + own, ";\n", each);
    if (registers > 1)
      text = str("#pragma unroll\nfor (", q, " = 0; ", q, " < ", registers, "; ", q, "++) {\n",
                 text, "}\n");
    if (name == "k" && registers * turns == 1) return str("{\n", text, turn, "}\n");
    if (turns == 1) return text + turn;
    return str("#pragma unroll 1\nfor (int ", s, " = 0; ", s, " < ", turns, "; ", s, "++) {\n",
               text, turn, "}\n");
  }
};

// All threads do this with their rows.
inline void add_threads(Plan& plan, const Formulas& f, const Schedule& schedule, Thread thread,
                        std::string each) {
  std::string registers = "int q_k = 0";
  for (size_t d = f.kernel.sizes.size() - 1; d-- > 0;) {
    const int64_t size = f.kernel.sizes[d];
    each = Share(str("i", d), size == 1 ? Layout{} : schedule[d], size, thread).all(each);
    registers += str(", q_i", d, " = 0");
    if (size == 0) thread.grid = 0;
  }
  add_kernel(plan, {"", f.arrays, thread.grid, static_cast<int>(32 * thread.warps)},
             str("// ", print(schedule), "\n", registers, ";\n", each), true);
}

// How many arrays each loop is contiguous in; what is stored counts twice.
inline Ids contiguous(const Kernel& kernel) {
  Ids arrays(kernel.sizes.size());
  const auto note = [&](const Place& at, int64_t weight) {
    auto last = at.along.rbegin();
    while (last != at.along.rend() && last->text.s == "0") last++;
    if (last != at.along.rend() && last->is_variable())
      arrays[std::bit_width(last->loops) - 1] += weight;
  };
  for (const Value& value : kernel.values)
    if (value.op == Op::Input) note(value.at, 1);
  for (const Store& store : kernel.stores) note(store.at, 2);
  return arrays;
}

inline Part four(int64_t size) { return {size % 4 == 0 ? Vector : Register, 4}; }

// Lanes and warps for the loop along which most is contiguous, then others; tiles, of vectors, where two are.
inline Schedule schedule_rows(const Kernel& kernel, int64_t lanes = 32, int64_t warps = 8) {
  Schedule schedule(kernel.sizes.size(), {{Grid, 1}});
  schedule.back() = {
      {Serial, power_of_two_from(kernel.sizes.back())}};  // for print: 12 shares k
  if (schedule.size() == 1) return schedule;
  Ids arrays = contiguous(kernel);
  arrays.pop_back();
  const auto largest = [&] { return std::ranges::max_element(arrays) - arrays.begin(); };
  const auto best = largest();
  arrays[best] = -1;
  const auto other = largest();
  const bool has_k = kernel.sizes.back() > 1, many = count(kernel.sizes) > 1 << 20;
  if (arrays[other] > 0 && !has_k && kernel.sizes[other] >= 64) {
    schedule[best] = {{Grid, 1}, {Warp, 4}, {Lane, 4}, four(kernel.sizes[best])};
    schedule[other] = {{Grid, 1}, {Lane, 8}, four(kernel.sizes[other])};
    return schedule;
  }
  Ids order = {best};
  for (auto d = std::ssize(arrays); d-- > 0;)
    if (d != best) order.push_back(d);
  for (const int64_t d : order) {
    const int64_t wide = many && !has_k && d == best && kernel.sizes[d] % 4 == 0 ? 4 : 1,
                  most = power_of_two_from(kernel.sizes[d]) / wide,
                  of_lanes = std::min(lanes, most), of_warps = std::min(warps, most / of_lanes);
    schedule[d] = {{Grid, 1}, {Warp, of_warps}, {Lane, of_lanes}, {Vector, wide}};
    lanes /= of_lanes, warps /= of_warps;
  }
  return schedule;
}

inline Plan in_cuda(const Program& program) {
  return plan_of(program, [](Plan& plan, const Formulas& f) {
    add_threads(plan, f, schedule_rows(f.kernel), {}, row_values(f) + all_stores(f));
  });
}

}  // namespace small
