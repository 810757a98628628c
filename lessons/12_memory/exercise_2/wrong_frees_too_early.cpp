// fails: a value that is read in a launch is not overwritten in it
#include "exercise.h"

namespace exercise {
namespace {

// The lowest place that no placed life takes while this one lives.
int64_t lowest_place(const Life& life, const std::vector<Life>& placed) {
  std::vector<Life> taken;
  for (const Life& other : placed) {
    if (life.first < other.last && other.first < life.last) taken.push_back(other);
  }
  std::sort(taken.begin(), taken.end(),
            [](const Life& a, const Life& b) { return a.place < b.place; });
  int64_t end = 0;
  for (const Life& other : taken) {
    if (other.place - end >= life.bytes) break;
    end = std::max(end, other.place + other.bytes);
  }
  return end;
}

}  // namespace

// The large ones first: the small ones fit into what is left between them.
std::vector<Life> place_all(std::vector<Life> lives) {
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<Life> placed;
  for (Life& life : lives) {
    life.place = lowest_place(life, placed);
    placed.push_back(life);
  }
  return placed;
}

}  // namespace exercise
