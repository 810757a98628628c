// What a memory plan is made from: when each temporary lives, and how large it is.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile::lessons {

struct Life {
  int buffer = -1;
  int first = 0, last = 0;  // launches in which it is written first, touched last
  int64_t bytes = 0;        // a multiple of 64
  int64_t place = -1;       // in the arena
};

inline bool meet(const Life& a, const Life& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Of each temporary that some kernel touches, in the order in which they are born.
inline std::vector<Life> lives_of(const Program& program) {
  std::vector<Life> lives;
  for (size_t b = 0; b < program.buffers.size(); b++) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::Temporary) continue;
    const int64_t bytes = buffer.size.constant() * size_of(buffer.type.dtype);
    Life life{static_cast<int>(b), -1, -1, (bytes + 63) / 64 * 64, -1};
    for (size_t launch = 0; launch < program.launches.size(); launch++) {
      for (int k : program.launches[launch]) {
        const Kernel& kernel = program.kernels[k];
        if (!buffers_read(program, kernel)[b] && !buffers_written(program, kernel)[b]) continue;
        if (life.first < 0) life.first = static_cast<int>(launch);
        life.last = static_cast<int>(launch);
      }
    }
    if (life.first >= 0) lives.push_back(life);
  }
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.first < b.first; });
  return lives;
}

// The program with its temporaries at these places.
inline Program with_places(Program program, const std::vector<Life>& lives) {
  program.arena_bytes = 0;
  for (const Life& life : lives) {
    program.buffers[life.buffer].place = life.place;
    program.arena_bytes = std::max(program.arena_bytes, life.place + life.bytes);
  }
  return program;
}

// Bytes that are alive in a launch, and the most of any: no arena can be smaller.
inline int64_t alive_in(const std::vector<Life>& lives, int launch) {
  int64_t bytes = 0;
  for (const Life& life : lives) {
    if (life.first <= launch && launch <= life.last) bytes += life.bytes;
  }
  return bytes;
}
inline int64_t peak_of(const std::vector<Life>& lives) {
  int64_t peak = 0;
  for (const Life& life : lives) peak = std::max(peak, alive_in(lives, life.first));
  return peak;
}

// Two lives that meet and share bytes, in words; "" where there are none.
inline std::string clash(const Program& program, const std::vector<Life>& lives) {
  for (size_t a = 0; a < lives.size(); a++) {
    for (size_t b = a + 1; b < lives.size(); b++) {
      const Life &x = lives[a], &y = lives[b];
      if (!meet(x, y) || x.place + x.bytes <= y.place || y.place + y.bytes <= x.place) continue;
      return str(program.buffers[x.buffer].name, " (bytes ", x.place, " to ", x.place + x.bytes,
                 ", launches ", x.first, " to ", x.last, ") and ",
                 program.buffers[y.buffer].name, " (bytes ", y.place, " to ", y.place + y.bytes,
                 ", launches ", y.first, " to ", y.last, ") share bytes");
    }
  }
  return "";
}

// Each at the lowest place that is free for its whole life.
inline Program lowest_places(const Program& program, std::vector<Life> lives) {
  std::vector<Life> placed;
  for (Life& life : lives) {
    life.place = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Life& other : placed) {
        if (!meet(life, other) || life.place + life.bytes <= other.place ||
            other.place + other.bytes <= life.place)
          continue;
        life.place = other.place + other.bytes;
        moved = true;
      }
    }
    placed.push_back(life);
  }
  Program apart = program;  // nothing over anything
  for (Buffer& buffer : apart.buffers) buffer.over = -1;
  return with_places(apart, placed);
}

}  // namespace tiny_compile::lessons
