// Whose mistake was it? Kernels of a module share a word on the GPU; behind each call it is copied
// to a word of that call's in the host's memory, and cleared:
//
//   look(t, i)   k_embedding sets bit 0   word -> 0x..10   0 -> word
//   look(t, j)   k_embedding              word -> 0x..14   0 -> word
//
// Nobody waits: until the copy has come, the call's word says "not yet". Results carry their
// call's word, and those of the inputs they were made of.
#include "tiny_compile/runtime/cuda_errors.h"

#include <algorithm>
#include <deque>

#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

constexpr unsigned kNotYet = ~0u;
constexpr size_t kPage = 1024;  // words allocated at once

using Word = volatile unsigned;  // the GPU writes it

// Words in memory of the host that stays where it is. They are never given back to the system.
struct Words {
  std::mutex mutex;
  std::deque<Word*> free;

  // One that no copy is under way to: the one that has been free for longest, or a new one.
  Word* take() {
    const std::lock_guard lock(mutex);
    if (free.empty() || *free.front() == kNotYet) add_page();
    Word* const word = free.front();
    free.pop_front();
    return word;
  }
  void give(Word* word) {
    const std::lock_guard lock(mutex);
    free.push_back(word);
  }

 private:
  void add_page() {
    auto* page = static_cast<unsigned*>(driver::allocate_host(kPage * sizeof(unsigned)));
    std::fill_n(page, kPage, 0u);
    for (size_t k = 0; k < kPage; k++) free.push_front(page + k);
  }
};

Words& words() {
  static Words* instance = new Words;  // outlives every thread and every static tensor
  return *instance;
}

class CallErrors : public Outcome {
 public:
  explicit CallErrors(std::shared_ptr<const CalledProgram> program)
      : program_(std::move(program)) {
    *word_ = kNotYet;
  }
  ~CallErrors() override { words().give(word_); }
  CallErrors(const CallErrors&) = delete;
  CallErrors& operator=(const CallErrors&) = delete;

  bool is_good() const override { return *word_ == 0; }
  void throw_if_bad() const override {
    const unsigned bits = *word_;
    if (bits == kNotYet) fail(program_->name, ": read before its kernels have ended");
    if (bits != 0) throw_errors(bits, program_->name, program_->suspects);
  }
  void* word() const { return const_cast<unsigned*>(word_); }

 private:
  std::shared_ptr<const CalledProgram> program_;
  Word* word_ = words().take();
};

}  // namespace

std::unique_lock<std::mutex> CudaErrors::turn(CudaQueue* queue) {
  std::unique_lock lock(mutex_);
  if (last_) come_after(queue, last_);
  last_ = queue;
  return lock;
}

std::shared_ptr<const Outcome> CudaErrors::outcome(
    const std::shared_ptr<const CalledProgram>& program) {
  const CudaStream stream = cuda_stream(device_);
  auto errors = std::make_shared<CallErrors>(program);
  driver::start_copy_to_host(errors->word(), word_, sizeof(unsigned), stream);
  driver::fill_bytes(word_, 0, sizeof(unsigned), stream);
  return errors;
}

void CudaErrors::forget() noexcept {
  try {
    driver::fill_bytes(word_, 0, sizeof(unsigned), cuda_stream(device_));
  } catch (const Error&) {  // then all later calls fail as well
  }
}

void add_outcomes(Outcomes& outcomes, const Outcomes& more) {
  const size_t before = outcomes.size();
  for (const auto& outcome : more) {
    const auto end = outcomes.begin() + static_cast<std::ptrdiff_t>(before);
    if (!outcome->is_good() && std::find(outcomes.begin(), end, outcome) == end)
      outcomes.push_back(outcome);
  }
}

}  // namespace tiny_compile
