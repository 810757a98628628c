// Who does the next piece of work? Whichever thread is free.
#include "tiny_compile/runtime/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tiny_compile/base/first_exception.h"

namespace tiny_compile {

void side_by_side(int count, const std::function<bool(int)>& work) {
  std::atomic<int> next = 0;
  FirstException first;
  const auto take = [&] {
    for (int k; (k = next++) < count;)
      first.run([&] {
        if (!work(k)) next = count;
      });
  };
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t < std::min(cores, count); t++) threads.emplace_back(take);
    take();
  }
  first.rethrow();
}

}  // namespace tiny_compile
