// Whose mistake was it? Kernels of a module share a place on the GPU for what they find; behind each
// call a kernel copies it to the next of the module's places in the host's memory, and clears its bits:
//
//   look(t, i)   k_embedding sets bit 0, 7, 3   tc_hand_over   places[0] = 1, 7, 3
//   look(t, j)   k_embedding                    tc_hand_over   places[1] = 0
//
// Nobody waits, but where 256 calls are under way: until the copy has come, the call's says "not yet".
// Results carry their call's, and those of the inputs they were made of. Both sides count, so that a
// call that is recorded and replayed goes to another place each time.
#include "tiny_compile/runtime/cuda_errors.h"

#include <algorithm>
#include <array>
#include <functional>

#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

constexpr unsigned kNotYet = ~0u;
constexpr size_t kPage = 8;  // modules whose places are allocated at once

class CallErrors;

}  // namespace

// A module's places, in memory of the host that stays where it is; the GPU writes them.
class OutcomePlaces {
 public:
  static constexpr unsigned kCount = 256;  // calls that are under way at a time, at most

  OutcomePlaces() : places_(take()) { std::fill_n(places_, kCount, DeviceErrors{}); }
  ~OutcomePlaces() { give(places_); }
  OutcomePlaces(const OutcomePlaces&) = delete;
  OutcomePlaces& operator=(const OutcomePlaces&) = delete;

  void* address() const { return places_; }
  void* place(unsigned call) const { return places_ + call % kCount; }
  DeviceErrors of(const CallErrors* owner, unsigned call, const DeviceErrors& kept) const;

  // Before a call: its place is free, what was found there is kept by whose it is. `wait`: for all calls before.
  void prepare(unsigned call, const std::function<void()>& wait);
  void own(unsigned call, CallErrors* owner);
  void disown(unsigned call, const CallErrors* owner);

 private:
  static DeviceErrors* take();
  static void give(DeviceErrors* places);
  static DeviceErrors read(const volatile DeviceErrors& place) {
    return {place.bits, place.index, place.size};
  }

  DeviceErrors* const places_;
  mutable std::mutex mutex_;
  std::array<CallErrors*, kCount> owners_ = {};
};

namespace {

class CallErrors : public Outcome {
 public:
  CallErrors(std::shared_ptr<const CalledProgram> program,
             std::shared_ptr<OutcomePlaces> places, unsigned call)
      : program_(std::move(program)), places_(std::move(places)), call_(call) {
    places_->own(call_, this);
  }
  ~CallErrors() override { places_->disown(call_, this); }
  CallErrors(const CallErrors&) = delete;
  CallErrors& operator=(const CallErrors&) = delete;

  bool is_good() const override { return found().bits == 0; }
  void throw_if_bad() const override {
    const DeviceErrors errors = found();
    if (errors.bits == kNotYet) fail(program_->name, ": read before its kernels have ended");
    if (errors.bits & 1)
      throw IndexError(bad_index_in_words(*program_, errors.index, errors.size));
    if (errors.bits != 0) throw_errors(errors.bits, program_->name);
  }
  void keep(const DeviceErrors& errors) { kept_ = errors; }  // its place is another call's now

 private:
  DeviceErrors found() const { return places_->of(this, call_, kept_); }

  std::shared_ptr<const CalledProgram> program_;
  std::shared_ptr<OutcomePlaces> places_;
  unsigned call_;
  DeviceErrors kept_ = {};
};

// Places that no module has; they are never given back to the system.
struct FreePlaces {
  std::mutex mutex;
  std::vector<DeviceErrors*> list;
};

FreePlaces& free_places() {
  static FreePlaces* instance =
      new FreePlaces;  // outlives every thread and every static tensor
  return *instance;
}

}  // namespace

// Those to which no copy is under way, or new ones.
DeviceErrors* OutcomePlaces::take() {
  const auto are_quiet = [](const DeviceErrors* places) {
    return std::all_of(places, places + kCount,
                       [](const DeviceErrors& place) { return read(place).bits != kNotYet; });
  };
  FreePlaces& free = free_places();
  const std::lock_guard lock(free.mutex);
  auto at = std::find_if(free.list.begin(), free.list.end(), are_quiet);
  if (at == free.list.end()) {
    auto* page = static_cast<DeviceErrors*>(
        driver::allocate_host(kPage * kCount * sizeof(DeviceErrors)));
    std::fill_n(page, kPage * kCount, DeviceErrors{});
    for (size_t k = 0; k < kPage; k++) free.list.push_back(page + k * kCount);
    at = free.list.end() - 1;
  }
  DeviceErrors* const places = *at;
  free.list.erase(at);
  return places;
}

void OutcomePlaces::give(DeviceErrors* places) {
  FreePlaces& free = free_places();
  const std::lock_guard lock(free.mutex);
  free.list.push_back(places);
}

DeviceErrors OutcomePlaces::of(const CallErrors* owner, unsigned call,
                               const DeviceErrors& kept) const {
  const std::lock_guard lock(mutex_);
  return owners_[call % kCount] == owner ? read(places_[call % kCount]) : kept;
}

void OutcomePlaces::prepare(unsigned call, const std::function<void()>& wait) {
  volatile DeviceErrors& place = places_[call % kCount];
  if (place.bits == kNotYet) wait();
  const std::lock_guard lock(mutex_);
  CallErrors*& owner = owners_[call % kCount];
  if (owner) owner->keep(read(place));
  owner = nullptr;
  place.bits = kNotYet;
}

void OutcomePlaces::own(unsigned call, CallErrors* owner) {
  const std::lock_guard lock(mutex_);
  owners_[call % kCount] = owner;
}

void OutcomePlaces::disown(unsigned call, const CallErrors* owner) {
  const std::lock_guard lock(mutex_);
  if (owners_[call % kCount] == owner) owners_[call % kCount] = nullptr;
}

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

CudaErrors::CudaErrors(CudaAddress found, CudaFunction hand_over, int device)
    : found_(found),
      hand_over_(hand_over),
      device_(device),
      places_(std::make_shared<OutcomePlaces>()) {}

CudaErrors::~CudaErrors() = default;

std::unique_lock<std::mutex> CudaErrors::turn(CudaQueue* queue) {
  std::unique_lock lock(mutex_);
  if (last_) come_after(queue, last_);
  last_ = queue;
  return lock;
}

void CudaErrors::prepare() {
  places_->prepare(calls_, [&] { driver::synchronize(cuda_stream(device_)); });
}

void CudaErrors::hand_over() const {
  if (!hand_over_) return;
  void* places = places_->address();  // which a GPU writes by the host's address
  unsigned count = OutcomePlaces::kCount;
  void* arguments[] = {&places, &count};
  driver::launch(hand_over_, 1, 1, 0, cuda_stream(device_), arguments,
                 cuda_device(device_).clusters);
}

std::shared_ptr<const Outcome> CudaErrors::outcome(
    const std::shared_ptr<const CalledProgram>& program) {
  const unsigned call = calls_++;
  if (!hand_over_) {
    const CudaStream stream = cuda_stream(device_);
    driver::start_copy_to_host(places_->place(call), found_, sizeof(DeviceErrors), stream);
    driver::fill_bytes(found_, 0, sizeof(unsigned), stream);
  }
  return std::make_shared<CallErrors>(program, places_, call);
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
