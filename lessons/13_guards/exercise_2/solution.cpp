#include "exercise.h"

namespace exercise {

std::optional<int> BoundedCache::find(const std::string& key) {
  for (auto it = entries.begin(); it != entries.end(); ++it) {
    if (it->key != key) continue;
    entries.splice(entries.begin(), entries, it);
    return it->code;
  }
  return {};
}

void BoundedCache::add(const std::string& key, int code) {
  entries.remove_if([&](const Kept& kept) { return kept.key == key; });
  entries.push_front({key, code});
  if (entries.size() > limit) entries.pop_back();
}

}  // namespace exercise
