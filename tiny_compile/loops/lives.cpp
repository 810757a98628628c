// When is a buffer alive? From the first launch that uses it to the last:
//
//   launch  0   1   2   3
//   t0     [=======]
//   t1          [=======]
//
// Work grows with what kernels use, not with kernels times buffers: a program of 10^5 ops has as
// many of both.
#include "tiny_compile/loops/lives.h"

#include <algorithm>
#include <map>

namespace tiny_compile {
namespace {

std::vector<int> sorted(std::vector<int> buffers) {
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  return buffers;
}

// Buffers in the arena that live at one time, by place.
class Arena {
 public:
  explicit Arena(const Program& program) : program_(program) {}

  // The buffer that the new one shares bytes with, or -1.
  int add(int buffer) {
    const auto after = by_place_.upper_bound(begin(buffer));
    if (after != by_place_.end() && after->first < end(buffer)) return after->second;
    if (after != by_place_.begin() && end(std::prev(after)->second) > begin(buffer))
      return std::prev(after)->second;
    by_place_[begin(buffer)] = buffer;
    return -1;
  }
  void remove(int buffer) {
    const auto at = by_place_.find(begin(buffer));
    if (at != by_place_.end() && at->second == buffer) by_place_.erase(at);
  }

 private:
  int64_t begin(int buffer) const { return program_.buffers[buffer].place; }
  int64_t end(int buffer) const {
    const Buffer& b = program_.buffers[buffer];
    return b.place + b.size.bounds().high * size_of(b.type.dtype);
  }

  const Program& program_;
  std::map<int64_t, int> by_place_;
};

}  // namespace

bool reads(const Kernel& kernel, const Step& step, int buffer) {
  const std::vector<bool> used = reachable(kernel, step);
  for (size_t id = 0; id < used.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (used[id] && scalar.kind == ScalarKind::Load && scalar.buffer == buffer) return true;
  }
  return false;
}

std::vector<int> loaded_buffers(const Kernel& kernel) {
  std::vector<int> buffers;
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load) buffers.push_back(scalar.buffer);
  }
  return sorted(std::move(buffers));
}

std::vector<int> stored_buffers(const Kernel& kernel) {
  std::vector<int> buffers;
  for (const Step& step : kernel.steps) {
    if (!makes_register(step)) buffers.push_back(step.buffer);
  }
  return sorted(std::move(buffers));
}

std::vector<Life> lives(const Program& program) {
  std::vector<Life> all(program.buffers.size());
  for (size_t launch = 0; launch < program.launches.size(); launch++) {
    for (int id : program.launches[launch]) {
      for (const auto& used :
           {loaded_buffers(program.kernels[id]), stored_buffers(program.kernels[id])}) {
        for (int buffer : used) {
          Life& life = all[buffer];
          if (life.buffer < 0) life = {buffer, static_cast<int>(launch), 0};
          life.last = static_cast<int>(launch);
        }
      }
    }
  }
  std::erase_if(all, [](const Life& life) { return life.buffer < 0; });
  std::stable_sort(all.begin(), all.end(),
                   [](const Life& a, const Life& b) { return a.first < b.first; });
  return all;
}

std::pair<int, int> find_overlap(const Program& program) {
  Arena arena(program);
  std::multimap<int, int> ends;  // last launch -> buffer, of those in the arena
  for (const Life& life : lives(program)) {
    const Buffer& buffer = program.buffers[life.buffer];
    if (buffer.place < 0 || buffer.size.bounds().high == 0) continue;
    while (!ends.empty() && ends.begin()->first < life.first) {
      arena.remove(ends.begin()->second);
      ends.erase(ends.begin());
    }
    if (buffer.over >= 0) arena.remove(buffer.over);
    const int other = arena.add(life.buffer);
    if (other >= 0) return {std::min(other, life.buffer), std::max(other, life.buffer)};
    ends.insert({life.last, life.buffer});
  }
  return {-1, -1};
}

}  // namespace tiny_compile
