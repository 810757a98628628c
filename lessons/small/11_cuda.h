// Who owns which bit of an index? A layout cuts a loop's variable into parts, each made by a level of
// the GPU: blocks of the grid, warps, lanes, registers of a thread (an unrolled loop), its turns, or
// vectors: registers that are read and written in one access.
//
//   i0 < 4096    grid · warp 4 · lane 8    =>  i0 = block * 32 + warp % 4 * 8 + lane % 8
//
// Lanes beside each other should read and write elements beside each other. The compiler joins a
// vector's accesses: their arrays are aligned, and no branch parts them. Left out: shared memory.
#pragma once

#include "lessons/small/10_cpp.h"

namespace small {

enum class Level { Grid, Warp, Lane, Register, Vector, Serial };
struct Part {
  Level level;
  int64_t extent;  // a power of two; the grid's is what remains, so that it stands first
};
using Layout = std::vector<Part>;      // highest bits first
using Schedule = std::vector<Layout>;  // of each loop, k last
using enum Level;

inline std::string print(const Schedule& schedule) {
  constexpr const char* kNames[] = {"grid",      "warp ",   "lane ",
                                    "register ", "vector ", "serial "};
  std::string text, between;
  for (const Layout& layout : schedule) {
    for (const auto& [level, extent] : layout) {
      if (level != Grid && extent == 1) continue;
      text += between + kNames[static_cast<int>(level)] + (level == Grid ? "" : str(extent));
      between = " · ";
    }
    between = "; ";
  }
  return text;
}

inline int64_t width(const Layout& layout) {
  return !layout.empty() && layout.back().level == Vector ? layout.back().extent : 1;
}

// What a thread was dealt out so far, and the loops that it runs through itself.
struct Thread {
  Text blocks = Text("1");
  int64_t grid = 1, warps = 1, lanes = 1;
  std::string loops = "", ends = "";

  Text part(const Part& part, int64_t size, int64_t stride, const std::string& name) {
    if (part.level == Grid) {
      const Text all = str("unsigned(", (size_name(size) + Text(stride - 1)) / stride, ")");
      const Text own = Text("block") / blocks % all;
      blocks = blocks * all, grid *= (size + stride - 1) / stride;
      return own;
    }
    if (part.level == Warp || part.level == Lane) {
      int64_t& dealt_out = part.level == Warp ? warps : lanes;
      const Text own = Text(part.level == Warp ? "warp" : "lane") / dealt_out % part.extent;
      dealt_out *= part.extent;
      return own;
    }
    loops = str("#pragma unroll ", part.level == Serial ? 1 : part.extent, "\nfor (int ", name,
                " = 0; ", name, " < ", part.extent, "; ", name, "++) {\n", loops);
    ends += "}\n";
    return name;
  }
  // "const long long first_i0 = .., i0 = ..;": of a vector, the first one and one of it.
  std::string index(const Layout& layout, int64_t size, const std::string& name) {
    Text first("0"), own("0");
    int64_t stride = 1;
    for (size_t p = layout.size(); p-- > 0; stride *= layout[p].extent) {
      if (layout[p].level != Grid && layout[p].extent == 1) continue;
      Text& sum = layout[p].level == Vector ? own : first;
      sum = part(layout[p], size, stride, str(name, "_", p)) * stride + sum;
    }
    return str("const long long first_", name, " = ", first, ", ", name, " = least(first_",
               name, ", ", size_name(size), " - ", width(layout), ") + ", own, ";\n");
  }
};

// All threads do this with their rows; who has none does what the last one does, and stores the same.
inline void add_threads(Plan& plan, const Formulas& f, const Schedule& schedule, Thread thread,
                        const std::string& each) {
  std::string indices;
  for (size_t d = f.kernel.sizes.size() - 1; d-- > 0;) {
    const int64_t size = f.kernel.sizes[d];
    indices += thread.index(size == 1 ? Layout{} : schedule[d], size, str("i", d));
    if (size == 0) thread.grid = 0;
  }
  const char* const own =
      "\nconst unsigned block = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % "
      "32;\n";
  add_kernel(plan, {"", f.arrays, thread.grid, static_cast<int>(32 * thread.warps)},
             str("// ", print(schedule), own, thread.loops, indices, each, thread.ends), true);
}

// How many arrays each loop's neighbours are neighbours in; what is stored counts twice.
inline Ids contiguous(const Kernel& kernel) {
  Ids arrays(kernel.sizes.size());
  const auto note = [&](const Place& at, int64_t weight) {
    auto last = at.along.rbegin();
    while (last != at.along.rend() && last->text.s == "0") last++;
    if (last != at.along.rend() && last->is_loop)
      arrays[std::bit_width(last->loops) - 1] += weight;
  };
  for (const Value& value : kernel.values)
    if (value.op == Op::Input) note(value.at, 1);
  for (const Store& store : kernel.stores) note(store.at, 2);
  return arrays;
}

inline Part four(int64_t size) { return {size % 4 == 0 ? Vector : Register, 4}; }

// Lanes and warps for the loop along which most is contiguous, then others; tiles where two are.
inline Schedule schedule_rows(const Kernel& kernel, int64_t lanes = 32, int64_t warps = 8) {
  Schedule schedule(kernel.sizes.size(), {{Grid, 1}});
  schedule.back() = {{Serial, padded(kernel.sizes.back())}};
  if (schedule.size() == 1) return schedule;
  Ids arrays = contiguous(kernel);
  arrays.pop_back();
  const auto largest = [&] { return std::ranges::max_element(arrays) - arrays.begin(); };
  const auto best = largest();
  arrays[best] = -1;
  const auto other = largest();
  const bool reduces = kernel.sizes.back() > 1, many = count(kernel.sizes) > 1 << 20;
  if (arrays[other] > 0 && !reduces && kernel.sizes[other] >= 64) {
    schedule[best] = {{Grid, 1}, {Warp, 4}, {Lane, 4}, four(kernel.sizes[best])};
    schedule[other] = {{Grid, 1}, {Lane, 8}, four(kernel.sizes[other])};
    return schedule;
  }
  Ids order = {best};
  for (auto d = std::ssize(arrays); d-- > 0;)
    if (d != best) order.push_back(d);
  for (const int64_t d : order) {
    const int64_t wide = many && !reduces && d == best && kernel.sizes[d] % 4 == 0 ? 4 : 1,
                  most = padded(kernel.sizes[d]) / wide, of_lanes = std::min(lanes, most),
                  of_warps = std::min(warps, most / of_lanes);
    schedule[d] = {{Grid, 1}, {Warp, of_warps}, {Lane, of_lanes}, {Vector, wide}};
    lanes /= of_lanes, warps /= of_warps;
  }
  return schedule;
}

inline Plan in_cuda(const Program& program) {
  Plan plan = plan_of(program);
  for (const Kernel& kernel : program.kernels) {
    const Formulas f{program.graph, kernel};
    std::string each;
    for (int d = -1; d + 1 < std::ssize(kernel.sizes); d++) each += values_of(f, d);
    add_threads(plan, f, schedule_rows(kernel), {}, each + all_stores(f));
  }
  return plan;
}

}  // namespace small
