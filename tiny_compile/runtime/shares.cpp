// Who does which of a kernel's units? Cores are not equally fast where other programs use them too,
// and a kernel is done when the last thread is: so a thread that is done with its share takes
// from what others have left. Its own share comes first, in order, as the caches know it.
//
//   4 threads, 64 units   0..15 | 16..31 | 32..47 | 48..63   piece by piece, one unit at a time
//   the second is slow          | 16..24 |                   25..31 go to whoever asks first
#include "tiny_compile/runtime/shares.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPieces = 16;  // of a share
constexpr int64_t kLine = 64;    // bytes

}  // namespace

Shares::Shares(int64_t units, int64_t threads, int64_t least)
    : piece_(std::max(least, ceil_divide(units, threads * kPieces))),
      shares_(static_cast<size_t>(threads)) {
  for (int64_t k = 0; k < threads; k++) {
    shares_[k].next = units * k / threads;
    shares_[k].end = units * (k + 1) / threads;
  }
}

std::optional<Shares::Piece> Shares::take(int thread) {
  for (size_t k = 0; k < shares_.size(); k++) {
    Share& share = shares_[(static_cast<size_t>(thread) + k) % shares_.size()];
    if (share.next >= share.end) continue;
    const int64_t begin = share.next.fetch_add(piece_);
    if (begin < share.end) return Piece{begin, std::min(begin + piece_, share.end)};
  }
  return {};
}

Arguments::Arguments(const std::vector<void*>& buffers, int64_t own_bytes, int64_t threads)
    : buffers_(buffers) {
  if (own_bytes == 0) return;
  const int64_t room = ceil_divide(own_bytes, kLine) * kLine;
  own_ = allocate_cpu(static_cast<size_t>(room * threads));
  for (int64_t thread = 0; thread < threads; thread++) {
    std::byte* const memory = own_->data() + room * thread;
    std::fill_n(memory, kLine, std::byte{0});
    with_own_.insert(with_own_.end(), buffers.begin(), buffers.end());
    with_own_.push_back(memory);
  }
}

void* const* Arguments::of(int thread) const {
  const size_t size = buffers_.size() + 1;
  return own_ ? with_own_.data() + size * static_cast<size_t>(thread) : buffers_.data();
}

}  // namespace tiny_compile
