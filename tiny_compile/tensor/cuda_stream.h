// Streams: where a thread's work on a GPU goes, and what waits for what.
#pragma once

#include <vector>

#include "tiny_compile/tensor/cuda_driver.h"
#include "tiny_compile/tensor/storage.h"

namespace tiny_compile {

// The stream that work of this thread on the device goes to: the innermost CudaStreamScope's,
// or else one of our own a device.
CudaStream cuda_stream(int device);

// Work of this thread goes to the user's stream while this lives. Results may be read, and used
// in other streams, inside and outside: who needs them waits for them. Afterwards the stream may
// be destroyed. A recording (cuStreamBeginCapture) should begin and end inside: while it lasts,
// nobody waits for this stream.
class CudaStreamScope {
 public:
  CudaStreamScope(int device, CudaStream stream);
  ~CudaStreamScope();
  CudaStreamScope(const CudaStreamScope&) = delete;
  CudaStreamScope& operator=(const CudaStreamScope&) = delete;

 private:
  int device_;
  struct CudaQueue* before_;
};

// A second stream for work in any order. What is put there comes after all that cuda_stream(device), whose
// CudaScope is open, has when the branch begins; what that is given from join() on comes after both. So it
// is in a graph that is being recorded too. Threads that share a stream share its branch, and may wait
// for each other.
class CudaBranch {
 public:
  explicit CudaBranch(int device);
  ~CudaBranch();  // joins, if nobody has
  CudaBranch(const CudaBranch&) = delete;
  CudaBranch& operator=(const CudaBranch&) = delete;

  CudaStream stream() const { return stream_; }
  void join();

 private:
  CudaStream main_, stream_;
  bool joined_ = false;
};

// A stream that nobody will use again, and the branch that it may have. The device's CudaScope is open.
void destroy_with_branch(int device, CudaStream stream) noexcept;

void synchronize(Device device);  // waits for all work of cuda_stream(device)

// What was put into one stream, in order. Lives as long as the process, so that a tensor can name
// the work that made it also when the user's stream is gone.
struct CudaQueue;
CudaQueue* cuda_queue(int device);  // of cuda_stream(device)

// What is put into `later`, the queue of a stream in use, from now on starts when all that is in
// `earlier` now has ended. Nobody waits here.
void come_after(CudaQueue* later, CudaQueue* earlier);

// A queue in use whose further work comes after all of these: the first where it is in use still,
// else that of the device's own stream.
CudaQueue* queue_after(int device, const std::vector<CudaQueue*>& queues);

void wait_for(CudaQueue* queue);  // until all that is in it has ended

}  // namespace tiny_compile
