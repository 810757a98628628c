#include "exercise.h"

namespace exercise {

std::vector<Life> place_all(std::vector<Life> lives) {
  // TODO: let buffers share bytes. Here each has a place of its own.
  int64_t end = 0;
  for (Life& life : lives) {
    life.place = end;
    end += life.bytes;
  }
  return lives;
}

}  // namespace exercise
