// Which temporaries may share bytes? Those that are never alive together. Buffers are
// placed in the order in which they are first written, each in the lowest gap that is free
// for its whole life:
//
//   launch  0   1   2   3
//   t0     [=======]              t0 and t2 share offset 0
//   t1          [=======]
//   t2              [=======]
#include <algorithm>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAlignment = 64;

struct Life {
  int buffer;
  int first, last;  // launches
  int64_t bytes, place = 0;
};

std::vector<Life> lives(const Program& program) {
  std::vector<Life> result;
  std::vector<int> first(program.buffers.size(), -1), last(program.buffers.size(), -1);
  for (size_t launch = 0; launch < program.launches.size(); launch++) {
    for (int id : program.launches[launch]) {
      const Kernel& kernel = program.kernels[id];
      const std::vector<bool> read = buffers_read(program, kernel),
                              written = buffers_written(program, kernel);
      for (size_t b = 0; b < read.size(); b++) {
        if (!read[b] && !written[b]) continue;
        if (first[b] < 0) first[b] = static_cast<int>(launch);
        last[b] = static_cast<int>(launch);
      }
    }
  }
  for (size_t b = 0; b < program.buffers.size(); b++) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::Temporary || first[b] < 0) continue;
    const int64_t bytes = buffer.size.constant() * size_of(buffer.type.dtype);
    result.push_back({static_cast<int>(b), first[b], last[b],
                      (bytes + kAlignment - 1) / kAlignment * kAlignment});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Life& a, const Life& b) { return a.first < b.first; });
  return result;
}

// The lowest place where `life` meets no placed buffer that lives at the same time.
int64_t lowest_gap(const Life& life, const std::vector<Life>& placed) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Life& other : placed) {
    if (other.last >= life.first && life.last >= other.first)
      taken.push_back({other.place, other.place + other.bytes});
  }
  std::sort(taken.begin(), taken.end());
  int64_t place = 0;
  for (const auto& [start, end] : taken) {
    if (start - place >= life.bytes) break;
    place = std::max(place, end);
  }
  return place;
}

}  // namespace

Program plan_memory(const Program& program) {
  Program result = program;
  result.arena_bytes = 0;
  if (!sizes(program).empty()) return result;  // planned once they are numbers
  std::vector<Life> placed;
  for (Life& life : lives(program)) {
    life.place = lowest_gap(life, placed);
    result.buffers[life.buffer].place = life.place;
    result.arena_bytes = std::max(result.arena_bytes, life.place + life.bytes);
    placed.push_back(life);
  }
  return result;
}

}  // namespace tiny_compile
