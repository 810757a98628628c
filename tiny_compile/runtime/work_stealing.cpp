// Who does which of a kernel's units? Cores are not equally fast where other programs use them too,
// and a kernel is done when the last thread is: so a thread that is done with its share takes
// from what others have left. Its own share comes first, in order, as the caches know it.
//
//   4 threads, 64 units   0..15 | 16..31 | 32..47 | 48..63   piece by piece, one unit at a time
//   the second is slow          | 16..24 |                   25..31 go to whoever asks first
#include "tiny_compile/runtime/work_stealing.h"

#include <omp.h>  // clang has it in a package of its own: libomp-dev, libomp-16-dev
#include <unistd.h>

#include <algorithm>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPieces = 16;  // of a share
constexpr int64_t kLine = 64;    // bytes

// OpenMP's threads do not follow a fork: a child that asked for them would wait for ever.
bool has_threads() {
  static const pid_t first = getpid();
  return getpid() == first;
}

}  // namespace

int threads_for(const KernelEntry& kernel) {
  const int64_t most = std::min<int64_t>(kernel.units.constant() / kernel.grain.constant(),
                                         omp_get_max_threads());
  return most <= 1 || omp_in_parallel() || !has_threads() ? 1 : static_cast<int>(most);
}

// Pieces, and shares that are as long, are multiples of what a call does together.
WorkStealing::WorkStealing(const KernelEntry& kernel, int threads)
    : shares_(static_cast<size_t>(threads)) {
  const int64_t units = kernel.units.constant(), together = kernel.at_once;
  const int64_t least =
      std::max(kernel.grain.constant(), ceil_divide(units, threads * kPieces));
  piece_ = ceil_divide(least, together) * together;
  const int64_t step = units >= threads * together ? together : 1;
  const int64_t steps = ceil_divide(units, step);
  for (int64_t k = 0; k < threads; k++) {
    shares_[k].next = steps * k / threads * step;
    shares_[k].end = std::min(units, steps * (k + 1) / threads * step);
  }
}

std::optional<WorkStealing::Piece> WorkStealing::take(int thread) {
  for (size_t k = 0; k < shares_.size(); k++) {
    Share& share = shares_[(static_cast<size_t>(thread) + k) % shares_.size()];
    if (share.next >= share.end) continue;
    const int64_t begin = share.next.fetch_add(piece_);
    if (begin < share.end) return Piece{begin, std::min(begin + piece_, share.end)};
  }
  return {};
}

ThreadArguments::ThreadArguments(const std::vector<void*>& buffers, const KernelEntry& kernel,
                                 int threads, const std::string& name)
    : buffers_(buffers) {
  if (kernel.own_bytes.is_constant(0)) return;
  const int64_t room = ceil_divide(kernel.own_bytes.constant(), kLine) * kLine;
  try {
    own_ = allocate_cpu(static_cast<size_t>(room * threads));
  } catch (const Error& error) {
    fail(name, ", compiled: ", kernel.function, "'s memory for ", threads,
         " threads: ", error.what());
  }
  for (int thread = 0; thread < threads; thread++) {
    std::byte* const memory = own_->data() + room * thread;
    std::fill_n(memory, kernel.zeroed, std::byte{0});
    with_own_.insert(with_own_.end(), buffers.begin(), buffers.end());
    with_own_.push_back(memory);
  }
}

void* const* ThreadArguments::of(int thread) const {
  const size_t size = buffers_.size() + 1;
  return own_ ? with_own_.data() + size * static_cast<size_t>(thread) : buffers_.data();
}

}  // namespace tiny_compile
