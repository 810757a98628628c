// Which temporaries may share bytes? Those that are never alive together. Buffers are
// placed in the order in which they are first written, each in the lowest gap that is free
// for its whole life:
//
//   launch  0   1   2   3
//   t0     [=======]              t0 and t2 share offset 0
//   t1          [=======]
//   t2              [=======]
//
// Before that, kernels that may start together do (group_launches.h), launches are put in an order of
// less memory (order.h), and what may be written over another (in_place.h) is at that one's place.
#include "tiny_compile/loops/memory.h"

#include <algorithm>

#include "tiny_compile/loops/early.h"
#include "tiny_compile/loops/group_launches.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/order.h"

namespace tiny_compile {
namespace {

constexpr int64_t kAlignment = 64;

struct Placed {
  int64_t begin, end;
  int last;  // launch
};

// The lowest gap of so many bytes between those placed, which are sorted.
int64_t lowest_gap(int64_t bytes, const std::vector<Placed>& placed) {
  int64_t place = 0;
  for (const Placed& other : placed) {
    if (other.begin - place >= bytes) break;
    place = std::max(place, other.end);
  }
  return place;
}

int64_t padded_bytes(const Buffer& buffer) {
  const int64_t bytes = buffer.size.constant() * size_of(buffer.type.dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Program plan_memory(const Program& program) {
  if (!sizes(program).empty()) {  // places are found once they are numbers
    Program later = overwrite_in_place(program);
    later.arena_bytes = 0;
    return later;
  }
  return place_temporaries(
      overwrite_in_place(start_early(order_launches(group_launches(program)))));
}

Program place_temporaries(Program result) {
  result.arena_bytes = 0;
  const std::vector<Life> all = lives(result);
  std::vector<int> last(result.buffers.size());  // launch that uses the bytes
  for (const Life& life : all) {
    int& end = last[storage_of(result, life.buffer)];
    end = std::max(end, life.last);
  }
  std::vector<Placed> placed;  // those alive, by place
  for (const Life& life : all) {
    Buffer& buffer = result.buffers[life.buffer];
    if (buffer.role != Role::Temporary) continue;
    if (buffer.over >= 0) {
      buffer.place = result.buffers[buffer.over].place;
      continue;
    }
    std::erase_if(placed, [&](const Placed& other) { return other.last < life.first; });
    const int64_t bytes = padded_bytes(buffer);
    buffer.place = lowest_gap(bytes, placed);
    const Placed here = {buffer.place, buffer.place + bytes, last[life.buffer]};
    result.arena_bytes = std::max(result.arena_bytes, here.end);
    const auto before = [](const Placed& a, const Placed& b) { return a.begin < b.begin; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), here, before), here);
  }
  return result;
}

}  // namespace tiny_compile
