// An exception that leaves an OpenMP region ends the process; here it waits until the region
// is over.
//
//   FirstException first;
//   #pragma omp parallel for
//   for (int64_t b = 0; b < blocks; b++) first.run([&] { body(b); });
//   first.rethrow();
#pragma once

#include <atomic>
#include <exception>

namespace tiny_compile {

class FirstException {
 public:
  // Safe to call from many threads; what comes after an exception is left out.
  template <typename Body>
  void run(Body body) noexcept {
    if (caught_.load(std::memory_order_relaxed)) return;
    try {
      body();
    } catch (...) {
      if (!caught_.exchange(true)) exception_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic<bool> caught_ = false;
  std::exception_ptr exception_;
};

}  // namespace tiny_compile
