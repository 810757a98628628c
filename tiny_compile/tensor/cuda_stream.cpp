// How do streams wait for each other, when one of them may be gone? While a scope has a stream,
// an event can be recorded there at any time. When the scope ends, one is recorded for good:
//
//   { CudaStreamScope scope(0, s);  y = f(x); }   s waits for what made x;  at }: event of s
//   y.to(cpu)                                     our stream waits for that event
#include "tiny_compile/tensor/cuda_stream.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

struct CudaQueue {
  int device;
  CudaStream stream;
  int scopes = 0;            // that have it; our own stream is in one for ever
  CudaEvent last = nullptr;  // behind all its work, where no scope has it
  CudaStream beside = nullptr;
};

namespace {

// By stream: one that has a destroyed stream's handle goes on in its queue, behind it.
struct Queues {
  std::mutex mutex;
  std::map<std::pair<int, CudaStream>, std::unique_ptr<CudaQueue>> all;
  std::map<int, CudaQueue*> own;  // of a device

  // The caller has the lock.
  CudaQueue* enter(int device, CudaStream stream) {
    std::unique_ptr<CudaQueue>& queue = all[{device, stream}];
    if (!queue) queue = std::make_unique<CudaQueue>(CudaQueue{device, stream});
    if (queue->scopes++ == 0 && queue->last && !driver::is_recording(stream))
      driver::wait_for_event(stream, queue->last);
    return queue.get();
  }
  CudaQueue* own_of(int device) {
    CudaQueue*& queue = own[device];
    if (queue) return queue;
    const CudaScope scope(device);
    return queue = enter(device, driver::create_stream());
  }
};

Queues& queues() {
  static Queues* instance = new Queues;  // outlives every thread and every static tensor
  return *instance;
}

std::map<int, CudaQueue*>& chosen_queues() {
  thread_local std::map<int, CudaQueue*> chosen;
  return chosen;
}

// The event behind what is in the queue now; null where there is none. Not of a stream that
// records the user's graph: what is in there has not begun.
CudaEvent event_of(CudaQueue* queue) {
  if (queue->scopes > 0 && !driver::is_recording(queue->stream)) {
    if (!queue->last) queue->last = driver::create_event(false);
    driver::record_event(queue->last, queue->stream);
  }
  return queue->last;
}

// From here on one comes after all that the other has.
void let_wait(CudaStream later, CudaStream earlier) {
  const CudaEvent event = driver::create_event(false);
  try {
    driver::record_event(event, earlier);
    driver::wait_for_event(later, event);
  } catch (...) {
    driver::destroy_event(event);
    throw;
  }
  driver::destroy_event(event);  // once nothing waits for it
}

void order(CudaQueue* later, CudaQueue* earlier) {
  if (later == earlier || driver::is_recording(later->stream)) return;
  if (const CudaEvent event = event_of(earlier)) driver::wait_for_event(later->stream, event);
}

}  // namespace

CudaQueue* cuda_queue(int device) {
  const auto chosen = chosen_queues().find(device);
  if (chosen != chosen_queues().end()) return chosen->second;
  const std::lock_guard lock(queues().mutex);
  return queues().own_of(device);
}

CudaStream cuda_stream(int device) { return cuda_queue(device)->stream; }

CudaStreamScope::CudaStreamScope(int device, CudaStream stream)
    : device_(device), before_(cuda_queue(device)) {
  const CudaScope scope(device);
  const std::lock_guard lock(queues().mutex);
  chosen_queues()[device] = queues().enter(device, stream);
}

CudaStreamScope::~CudaStreamScope() {
  CudaQueue* const mine = std::exchange(chosen_queues()[device_], before_);
  const std::lock_guard lock(queues().mutex);
  try {
    const CudaScope scope(device_);
    if (mine->scopes == 1) event_of(mine);
  } catch (const Error&) {  // the stream is gone already, or the driver
  }
  mine->scopes--;
}

CudaBranch::CudaBranch(int device) : main_(cuda_stream(device)) {
  CudaQueue* const queue = cuda_queue(device);
  {
    const std::lock_guard lock(queues().mutex);
    if (!queue->beside) queue->beside = driver::create_stream();
    stream_ = queue->beside;
  }
  let_wait(stream_, main_);
}

CudaBranch::~CudaBranch() {
  try {
    join();
  } catch (const Error&) {  // an error of the device's, which who comes next is told of
  }
}

void CudaBranch::join() {
  if (!joined_) let_wait(main_, stream_);
  joined_ = true;
}

void destroy_with_branch(int device, CudaStream stream) noexcept {
  {
    const std::lock_guard lock(queues().mutex);
    const auto queue = queues().all.find({device, stream});
    if (queue != queues().all.end() && queue->second->beside)
      driver::destroy_stream(std::exchange(queue->second->beside, nullptr));
  }
  driver::destroy_stream(stream);
}

void come_after(CudaQueue* later, CudaQueue* earlier) {
  if (later == earlier) return;
  const CudaScope scope(later->device);
  const std::lock_guard lock(queues().mutex);
  order(later, earlier);
}

CudaQueue* queue_after(int device, const std::vector<CudaQueue*>& all) {
  const CudaScope scope(device);
  const std::lock_guard lock(queues().mutex);
  CudaQueue* const later = all[0]->scopes > 0 ? all[0] : queues().own_of(device);
  for (CudaQueue* queue : all) order(later, queue);
  return later;
}

void wait_for(CudaQueue* queue) {
  const CudaScope scope(queue->device);
  std::unique_lock lock(queues().mutex);
  const CudaEvent event = event_of(queue);
  lock.unlock();  // others need not wait
  if (event) driver::synchronize_event(event);
}

void synchronize(Device device) {
  if (device.kind != DeviceKind::Cuda) return;
  const CudaScope scope(device.index);
  driver::synchronize(cuda_stream(device.index));
}

}  // namespace tiny_compile
