// 13-2 ★ A bound on the cache
//
// Each kind of input costs memory: code, a graph, guards. A server that meets a new length with
// every request would keep all of them. So a cache has a limit, and beyond it the entry goes that
// was used least recently: found or added, both are uses.
//
// Write find() and add(). The list has the entry used last at its front; FunctionCache of the
// lesson does it in the same way, with std::list::splice, which moves an element and copies
// nothing. add() of a key that is there replaces its code.
#pragma once

#include <list>
#include <optional>
#include <string>

namespace exercise {

struct Kept {
  std::string key;
  int code = 0;  // stands for what was compiled
};

struct BoundedCache {
  size_t limit = 64;  // at least 1
  std::list<Kept> entries;

  std::optional<int> find(const std::string& key);
  void add(const std::string& key, int code);
};

}  // namespace exercise
