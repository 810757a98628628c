// Who owns which bit of an index? A layout cuts a loop's variable into parts and says which level of
// the GPU makes each: blocks of the grid, warps of a block, lanes of a warp, registers of a thread (a
// loop that is unrolled) or a loop that is not. Text follows from it.
//
//   i0 < 4096    grid · warp 4 · lane 8    =>  i0 = block * 32 + warp % 4 * 8 + lane % 8
//
// Lanes beside each other should read, and write, elements beside each other: the lowest bits of the
// loop along which arrays are contiguous are the lanes'. Left out: several elements in one access.
#pragma once

#include "lessons/small/10_cpp.h"

namespace small {

enum class Level { Grid, Warp, Lane, Register, Serial };
struct Part {
  Level level;
  int64_t extent;  // a power of two; the grid's is what remains, so that it stands first
};
using Layout = std::vector<Part>;      // highest bits first
using Schedule = std::vector<Layout>;  // of each loop of a kernel, k last

inline std::string print(const Schedule& schedule) {
  constexpr const char* kNames[] = {"grid", "warp", "lane", "register", "serial"};
  std::string text;
  for (const Layout& layout : schedule) {
    if (!text.empty()) text += "; ";
    for (const auto& [level, extent] : layout) {
      if (level != Level::Grid && extent == 1) continue;
      text += (text.empty() || text.ends_with(' ') ? "" : " · ") +
              std::string(kNames[static_cast<int>(level)]);
      if (level != Level::Grid) text += " " + std::to_string(extent);
    }
  }
  return text;
}

// What a thread was dealt out so far, and the loops that it runs through itself.
struct Thread {
  Text blocks = Text("1");
  int64_t grid = 1, warps = 1, lanes = 1;
  std::string loops = "", ends = "";

  Text part(const Part& part, int64_t size, int64_t stride, const std::string& name) {
    const std::string extent = std::to_string(part.extent);
    if (part.level == Level::Grid) {
      const Text all = (size_name(size) + Text(stride - 1)) / stride, known = blocks;
      blocks = blocks * Text("unsigned(" + all.s + ")");
      grid *= (size + stride - 1) / stride;
      return Text("block") / known % Text("unsigned(" + all.s + ")");
    }
    if (part.level == Level::Warp || part.level == Level::Lane) {
      int64_t& dealt_out = part.level == Level::Warp ? warps : lanes;
      const Text known(dealt_out);
      dealt_out *= part.extent;
      return Text(part.level == Level::Warp ? "warp" : "lane") / known % extent;
    }
    loops += part.level == Level::Register ? "#pragma unroll\n" : "#pragma unroll 1\n";
    loops += "for (int " + name + " = 0; " + name + " < " + extent + "; " + name + "++) {\n";
    ends += "}\n";
    return Text(name);
  }
  // A loop's variable: the sum of its parts.
  Text index(const Layout& layout, int64_t size, const std::string& name) {
    Text sum("0");
    int64_t stride = 1;
    for (size_t p = layout.size(); p-- > 0; stride *= layout[p].extent)
      if (layout[p].level == Level::Grid || layout[p].extent > 1)
        sum = part(layout[p], size, stride, name + "_" + std::to_string(p)) * stride + sum;
    return sum;
  }
};

// What all threads do with their rows. Who has a row that is none does as if it had the last one,
// but stores nothing.
inline std::string on_threads(const Kernel& kernel, const Schedule& schedule, Thread& thread,
                              const std::string& each) {
  std::string indices, in = "const bool in = true";
  for (size_t d = kernel.sizes.size() - 1; d-- > 0;) {
    const std::string i = "i" + std::to_string(d), n = size_name(kernel.sizes[d]).s;
    const Text at =
        kernel.sizes[d] == 1 ? Text("0") : thread.index(schedule[d], kernel.sizes[d], i);
    indices += "const long long any_" + i + " = " + at.s + ", " + i + " = least(any_" + i +
               ", " + n + " - 1);\n";
    in += " && any_" + i + " < " + n;
  }
  return "// " + print(schedule) +
         "\nconst unsigned block = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % "
         "32;\n" +
         thread.loops + indices + in + ";\n" + each + thread.ends;
}

// Whether neighbours along this loop are neighbours in memory.
inline bool is_contiguous(const Place& at, size_t loop) {
  auto last = at.along.rbegin();
  while (last != at.along.rend() && last->text.s == "0") last++;
  return last != at.along.rend() && last->is_loop && last->loops == 1u << loop;
}
// How many arrays are contiguous along each loop; what is stored counts twice.
inline Ids contiguous(const Kernel& kernel) {
  Ids arrays(kernel.sizes.size());
  for (size_t d = 0; d < arrays.size(); d++) {
    for (const Value& value : kernel.values)
      arrays[d] += value.op == Op::Input && is_contiguous(value.at, d);
    for (const Store& store : kernel.stores) arrays[d] += 2 * is_contiguous(store.at, d);
  }
  return arrays;
}

inline int64_t padded(int64_t n) { return n <= 1 ? 1 : 2 * padded((n + 1) / 2); }

// Lanes and warps for the loop along which most is contiguous, what is left of them for the others;
// tiles where a second loop is contiguous, too. k is a thread's own.
inline Schedule schedule_rows(const Kernel& kernel, int64_t lanes = 32, int64_t warps = 8) {
  Schedule schedule(kernel.sizes.size(), {{Level::Grid, 1}});
  schedule.back() = {{Level::Serial, 1}};
  Ids arrays = contiguous(kernel);
  arrays.pop_back();
  if (arrays.empty()) return schedule;
  const auto largest = [&] { return std::ranges::max_element(arrays) - arrays.begin(); };
  const auto best = largest();
  arrays[best] = -1;
  if (const auto other = largest();
      arrays[other] > 0 && kernel.sizes.back() == 1 && kernel.sizes[other] >= 64) {
    schedule[best] = {{Level::Grid, 1}, {Level::Warp, 4}, {Level::Lane, 8}};
    schedule[other] = {
        {Level::Grid, 1}, {Level::Warp, 2}, {Level::Register, 8}, {Level::Lane, 4}};
    return schedule;
  }
  for (auto d = std::ssize(arrays); d >= 0; d--) {
    const auto loop = d == std::ssize(arrays) ? best : d;  // the best one first
    if (d == best) continue;
    const int64_t most = padded(kernel.sizes[loop]), of_lanes = std::min(lanes, most),
                  of_warps = std::min(warps, most / of_lanes),
                  registers = std::min<int64_t>(
                      kernel.sizes.back() == 1 && count(kernel.sizes) > 1 << 20 ? 4 : 1,
                      most / of_lanes / of_warps);
    schedule[loop] = {{Level::Grid, 1},
                      {Level::Register, registers},
                      {Level::Warp, of_warps},
                      {Level::Lane, of_lanes}};
    lanes /= of_lanes, warps /= of_warps;
  }
  return schedule;
}

inline void add_threads(Plan& plan, const Formulas& f, const Schedule& schedule, Thread thread,
                        const std::string& each) {
  const std::string text = on_threads(f.kernel, schedule, thread, each);
  const int threads = static_cast<int>(32 * thread.warps);
  add_kernel(plan, {"", f.arrays, thread.grid, threads}, text, true);
}
inline Plan in_cuda(const Program& program) {
  Plan plan = plan_of(program);
  for (const Kernel& kernel : program.kernels) {
    const Formulas f{program.graph, kernel};
    std::string each;
    for (int d = -1; d + 1 < std::ssize(kernel.sizes); d++) each += values_of(f, d);
    add_threads(plan, f, schedule_rows(kernel), {},
                each + "if (in) {\n" + all_stores(f) + "}\n");
  }
  return plan;
}

}  // namespace small
