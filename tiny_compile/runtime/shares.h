// What each thread gets of a kernel: units, and memory of its own.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "tiny_compile/tensor/storage.h"

namespace tiny_compile {

// Units 0..units-1 for so many threads: each takes pieces, of so many units at least, of a share of
// its own, then of the others'.
class Shares {
 public:
  Shares(int64_t units, int64_t threads, int64_t least);

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

// The addresses that each thread's calls get: the buffers', and if asked for of so many bytes of
// its own, whose first line is zeros (see KernelEntry). Throws tc::Error where memory runs out.
class Arguments {
 public:
  Arguments(const std::vector<void*>& buffers, int64_t own_bytes, int64_t threads);
  void* const* of(int thread) const;

 private:
  const std::vector<void*>& buffers_;
  std::shared_ptr<Storage> own_;
  std::vector<void*> with_own_;
};

}  // namespace tiny_compile
