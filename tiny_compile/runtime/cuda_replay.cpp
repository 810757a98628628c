// What does a call cost the host? Three microseconds a kernel, for which it tells the driver what
// the driver was told before: function, grid, arguments. Outputs come from a cache of blocks, so
// that a loop's calls find the same addresses again and again:
//
//   call 1   x 0x..a0, y 0x..b0   kernels started one by one
//   call 2   the same             recorded as a CUDA graph: one launch for all of them
//   call 3   the same             that launch
//
// A call with other addresses is started one by one.
#include "tiny_compile/runtime/cuda_replay.h"

#include <algorithm>

#include "tiny_compile/base/error.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {

CudaReplay::~CudaReplay() {
  try {
    const CudaScope scope(device_);
    for (const Recording& recording : recordings_) driver::destroy_graph(recording.graph);
    if (side_) destroy_with_branch(device_, side_);
  } catch (const Error&) {  // the driver is gone at exit: so are they
  }
}

// Null where it cannot be recorded; whose fault that is, its start without a recording says.
CudaGraph CudaReplay::record(const std::function<void()>& start) {
  if (!side_) side_ = driver::create_stream();
  const CudaStreamScope aside(device_, side_);
  if (!driver::begin_recording(side_)) return nullptr;
  try {
    start();
  } catch (...) {
    driver::destroy_graph(driver::end_recording(side_));
    return nullptr;
  }
  return driver::end_recording(side_);
}

void CudaReplay::run(const std::vector<void*>& addresses, const std::function<void()>& start) {
  const CudaStream stream = cuda_stream(device_);
  if (driver::is_recording(stream)) return start();  // the caller's own graph
  {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::find_if(recordings_.begin(), recordings_.end(),
                     [&](const Recording& other) { return other.addresses == addresses; });
    if (known == recordings_.end()) {
      Recording& place = recordings_[oldest_++ % kMost];
      driver::destroy_graph(place.graph);
      place = {addresses, nullptr, false};
    } else {
      if (!known->graph && !known->is_refused) {
        known->graph = record(start);
        known->is_refused = !known->graph;
      }
      if (known->graph) return driver::launch_graph(known->graph, stream);
    }
  }
  start();
}

}  // namespace tiny_compile
