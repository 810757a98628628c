// What each thread gets of a kernel: units, and memory of its own.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "tiny_compile/codegen/source.h"
#include "tiny_compile/tensor/storage.h"

namespace tiny_compile {

// How many threads of OpenMP a call of the kernel is worth and may have, the calling one included.
int threads_for(const KernelEntry& kernel);

// A kernel's units for so many threads: each takes pieces of a share of its own, then of the
// others'.
class WorkStealing {
 public:
  WorkStealing(const KernelEntry& kernel, int threads);

  struct Piece {
    int64_t begin, end;
  };
  // The next for that thread; nothing when all units are taken. Safe to call from all of them.
  std::optional<Piece> take(int thread);

 private:
  struct alignas(64) Share {  // in a line of the caches of its own
    std::atomic<int64_t> next;
    int64_t end;
  };
  int64_t piece_;
  std::vector<Share> shares_;
};

// The addresses that each thread's calls get: the buffers', and where the kernel asks for it that of
// memory of its own. Throws tc::Error naming the function where there is none.
class ThreadArguments {
 public:
  ThreadArguments(const std::vector<void*>& buffers, const KernelEntry& kernel, int threads,
                  const std::string& name);
  void* const* of(int thread) const;

 private:
  const std::vector<void*>& buffers_;
  std::shared_ptr<Storage> own_;
  std::vector<void*> with_own_;
};

}  // namespace tiny_compile
