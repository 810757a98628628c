// Whose mistake was it? Kernels of a module share a place on the GPU for what they find; behind each
// call a kernel copies it to one of that call's in the host's memory, and clears its bits:
//
//   look(t, i)   k_embedding sets bit 0, 7, 3   tc_hand_over(0x..20)
//   look(t, j)   k_embedding                    tc_hand_over(0x..38)
//
// Nobody waits: until the copy has come, the call's says "not yet". Results carry their
// call's, and those of the inputs they were made of.
#include "tiny_compile/runtime/cuda_errors.h"

#include <algorithm>
#include <deque>

#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

constexpr unsigned kNotYet = ~0u;
constexpr size_t kPage = 1024;  // places allocated at once

using Place = volatile DeviceErrors;  // the GPU writes it

// Places in memory of the host that stays where it is. They are never given back to the system.
struct Places {
  std::mutex mutex;
  std::deque<Place*> free;

  // One that no copy is under way to: the one that has been free for longest, or a new one.
  Place* take() {
    const std::lock_guard lock(mutex);
    if (free.empty() || free.front()->bits == kNotYet) add_page();
    Place* const place = free.front();
    free.pop_front();
    return place;
  }
  void give(Place* place) {
    const std::lock_guard lock(mutex);
    free.push_back(place);
  }

 private:
  void add_page() {
    auto* page = static_cast<DeviceErrors*>(driver::allocate_host(kPage * sizeof(Place)));
    std::fill_n(page, kPage, DeviceErrors{});
    for (size_t k = 0; k < kPage; k++) free.push_front(page + k);
  }
};

Places& places() {
  static Places* instance = new Places;  // outlives every thread and every static tensor
  return *instance;
}

class CallErrors : public Outcome {
 public:
  explicit CallErrors(std::shared_ptr<const CalledProgram> program)
      : program_(std::move(program)) {
    found_->bits = kNotYet;
  }
  ~CallErrors() override { places().give(found_); }
  CallErrors(const CallErrors&) = delete;
  CallErrors& operator=(const CallErrors&) = delete;

  bool is_good() const override { return found_->bits == 0; }
  void throw_if_bad() const override {
    const unsigned bits = found_->bits;
    if (bits == kNotYet) fail(program_->name, ": read before its kernels have ended");
    if (bits & 1) throw IndexError(bad_index_in_words(*program_, found_->index, found_->size));
    if (bits != 0) throw_errors(bits, program_->name);
  }
  void* place() const { return const_cast<DeviceErrors*>(found_); }

 private:
  std::shared_ptr<const CalledProgram> program_;
  Place* found_ = places().take();
};

}  // namespace

std::string bad_index_in_words(const CalledProgram& program, int64_t index, int64_t size) {
  std::vector<std::string> ops;
  for (const IndexUse& use : program.uses) {
    if (use.size == size && std::find(ops.begin(), ops.end(), use.op) == ops.end())
      ops.push_back(use.op);
  }
  const std::string kernels =
      !ops.empty() || program.suspects.empty() ? "" : ": in " + program.suspects;
  return str(program.name, ": ", join(ops, " or "), ops.empty() ? "" : ": ",
             "an index is out of range: ", index, " for size ", size, kernels,
             "; check the values of the index tensor");
}

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
  if (hand_over_) {
    void* place = errors->place();  // which a GPU writes by the host's address
    void* arguments[] = {&place};
    driver::launch(hand_over_, 1, 1, 0, stream, arguments, cuda_device(device_).clusters);
  } else {
    driver::start_copy_to_host(errors->place(), found_, sizeof(DeviceErrors), stream);
    driver::fill_bytes(found_, 0, sizeof(unsigned), stream);
  }
  return errors;
}

void CudaErrors::forget() noexcept {
  try {
    driver::fill_bytes(found_, 0, sizeof(unsigned), cuda_stream(device_));
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
