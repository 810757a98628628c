#include "exercise.h"

namespace exercise {

std::optional<int> BoundedCache::find(const std::string& key) {
  for (auto it = entries.begin(); it != entries.end(); ++it) {
    if (it->key == key) return it->code;
  }
  return {};
}

void BoundedCache::add(const std::string& key, int code) {
  // TODO: what if the key is there, what if there are too many, and what does find() do?
  entries.push_front({key, code});
}

}  // namespace exercise
