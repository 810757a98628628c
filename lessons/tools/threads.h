// Runs CUDA C on the CPU, so that lessons about GPUs need none: blocks one after the other, the
// threads of a block as fibers that take turns where they wait for each other.
//
//   Threads threads(text, {{"k_add", 3}});            compiles; k_add has three parameters
//   threads.run("k_add", grid, block, {&x, &y, &n});  the addresses of its arguments, as in CUDA
//
// It knows threadIdx, blockIdx, blockDim, gridDim, __shared__, __syncthreads, __syncwarp, the
// shuffles, min, max and atomicAdd. Threads go on in the order of their numbers, each until it
// waits: what is right by luck on a GPU is wrong here, and the same every time. What is right by
// luck here, because a thread comes last, is wrong after go_last_first().
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

namespace tiny_compile::lessons {

inline constexpr const char* kCudaWords = R"(
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __builtin_assume(known)
#define __forceinline__ inline
#define __grid_constant__
struct tc_dim { unsigned x, y, z; };
struct tc_thread { tc_dim thread, block, block_size, grid; };
static tc_thread tc_here;
#define threadIdx tc_here.thread
static tc_dim& blockIdx = tc_here.block;  // a name that a function may have for its own
#define blockDim tc_here.block_size
#define gridDim tc_here.grid
extern "C" tc_thread* tc_place() { return &tc_here; }
typedef unsigned long long (*tc_meeting)(int of_warp, unsigned long long mine, int lane);
static tc_meeting tc_meet;
extern "C" void tc_set_meeting(tc_meeting meeting) { tc_meet = meeting; }
static inline void __syncthreads() { tc_meet(0, 0, 0); }
static inline void __syncwarp(unsigned = ~0u) { tc_meet(1, 0, 0); }
template <class T> static inline T tc_exchange(T mine, int lane) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &mine, sizeof(T));
  bits = tc_meet(1, bits, lane);
  __builtin_memcpy(&mine, &bits, sizeof(T));
  return mine;
}
static inline int tc_lane() { return threadIdx.x & 31; }
template <class T> static inline T __shfl_sync(unsigned, T v, int lane) {
  return tc_exchange(v, lane & 31);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int mask) {
  return tc_exchange(v, (tc_lane() ^ mask) & 31);
}
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned by) {
  return tc_exchange(v, tc_lane() + by < 32 ? tc_lane() + (int)by : tc_lane());
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned by) {
  return tc_exchange(v, tc_lane() >= (int)by ? tc_lane() - (int)by : tc_lane());
}
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
template <class T> static inline T atomicAdd(T* to, T v) { T old = *to; *to = old + v; return old; }
struct tc_any {
  void* address;
  template <class T> operator T() const { return *(T*)address; }
};
)";

class Threads {
 public:
  struct KernelName {
    std::string name;
    int parameters;
  };

  Threads(const std::string& text, const std::vector<KernelName>& kernels) {
    std::string all = kCudaWords + text;
    const std::string aligned = "__shared__ alignas(16)", swapped = "alignas(16) __shared__";
    for (size_t at = 0; (at = all.find(aligned, at)) != std::string::npos;)
      all.replace(at, aligned.size(), swapped);  // C++ has another order
    for (const KernelName& kernel : kernels) {
      std::vector<std::string> arguments;
      for (int a = 0; a < kernel.parameters; a++)
        arguments.push_back(str("tc_any{a[", a, "]}"));
      all += str("\nextern \"C\" void tc_call_", kernel.name, "(void** a) { ", kernel.name, "(",
                 join(arguments, ", "), "); }\n");
    }
    fibers_ =
        text.find("__sync") != std::string::npos || text.find("__shfl") != std::string::npos;
    CppToolchain toolchain = default_toolchain();
    toolchain.flags.push_back("-O1");  // a shuffle stays one instruction: see check_sites
    library_ = build_cpp(all, toolchain).library;
    place_ = reinterpret_cast<Place* (*)()>(library_->symbol("tc_place"))();
    reinterpret_cast<void (*)(Meeting)>(library_->symbol("tc_set_meeting"))(meet);
  }

  void* symbol(const std::string& name) const { return library_->symbol(name.c_str()); }
  int64_t barriers() const { return barriers_; }  // that blocks met at so far
  void go_last_first() { last_first_ = true; }    // threads of a block, from now on

  // after(block, thread): called when a thread has done its part.
  void run(const std::string& kernel, int64_t grid, int block, std::vector<void*> arguments,
           const std::function<void(int64_t, int)>& after = {}) {
    call_ = reinterpret_cast<Call>(library_->symbol(("tc_call_" + kernel).c_str()));
    arguments_ = arguments.data();
    for (int64_t b = 0; b < grid; b++) {
      place_->block = {static_cast<unsigned>(b), 0, 0};
      place_->grid = {static_cast<unsigned>(grid), 1, 1};
      place_->block_size = {static_cast<unsigned>(block), 1, 1};
      if (fibers_)
        run_block(b, block, after);
      else
        for (int turn = 0; turn < block; turn++) {
          const int t = last_first_ ? block - 1 - turn : turn;
          place_->thread = {static_cast<unsigned>(t), 0, 0};
          call_(arguments_);
          if (after) after(b, t);
        }
    }
  }

 private:
  struct Dim {
    unsigned x, y, z;
  };
  struct Place {
    Dim thread, block, block_size, grid;
  };
  using Call = void (*)(void**);
  using Meeting = unsigned long long (*)(int, unsigned long long, int);
  using Resume = void* [5];  // __builtin_setjmp's
  enum class State { Ready, AtBlock, AtWarp, Done };
  struct Fiber {
    ucontext_t context;  // where it begins
    Resume resume;       // where it goes on
    bool has_begun = false;
    std::unique_ptr<char[]> stack;
    State state = State::Ready;
    unsigned long long gives = 0;  // to the lanes of its warp
    const void* site = nullptr;    // in the kernel's code: where it waits
  };
  static constexpr size_t kStack = 64 << 10;

  static Threads*& running() {
    static Threads* threads = nullptr;
    return threads;
  }
  static void begin() {
    Threads& all = *running();
    all.call_(all.arguments_);
    all.leave(State::Done);
  }
  // A value is read after all lanes have given theirs, and kept until all have read.
  [[gnu::noinline]] static unsigned long long meet(int of_warp, unsigned long long mine,
                                                   int lane) {
    Threads& all = *running();
    const size_t self = all.current_;
    all.fiber_[self].gives = mine;
    all.fiber_[self].site = __builtin_return_address(0);
    all.leave(of_warp ? State::AtWarp : State::AtBlock);
    if (!of_warp) return 0;
    const size_t from = self / 32 * 32 + static_cast<size_t>(lane);
    const unsigned long long got = all.fiber_[from < all.fiber_.size() ? from : self].gives;
    all.leave(State::AtWarp);
    return got;
  }

  // Fibers take turns by these jumps: swapcontext() asks the kernel for the signals' mask each time.
  // Sanitizers would take a jump for the end of all frames below; those of fibers live on.
  [[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] static void jump(
      Resume& to) {
    __builtin_longjmp(to, 1);
  }

  [[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] void enter(
      Fiber& fiber) {
    if (__builtin_setjmp(main_)) return;
    if (fiber.has_begun) jump(fiber.resume);
    fiber.has_begun = true;
    setcontext(&fiber.context);
  }

  [[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] void leave(State state) {
    Fiber& self = fiber_[current_];
    self.state = state;
    if (__builtin_setjmp(self.resume) == 0) jump(main_);
  }

  // A GPU's lanes meet at one instruction; whoever waits at another one is not there.
  void check_sites(size_t first, size_t last) const {
    const void* site = nullptr;
    for (size_t t = first; t < last; t++) {
      if (fiber_[t].state != State::AtWarp) continue;
      if (site && fiber_[t].site != site)
        fail("thread ", t,
             " shuffles elsewhere than others of its warp: in a branch that not all of them "
             "take");
      site = fiber_[t].site;
    }
  }

  // Lets those go on that met; false where nobody can.
  bool release() {
    bool any = false;
    const auto all_at = [&](size_t first, size_t last, State state) {
      for (size_t t = first; t < last; t++) {
        const bool gone = state == State::AtWarp && fiber_[t].state == State::Done;
        if (fiber_[t].state != state && !gone) return false;
      }
      return true;
    };
    const auto let_go = [&](size_t first, size_t last, State state) {
      if (!all_at(first, last, state)) return;
      if (state == State::AtWarp) check_sites(first, last);
      for (size_t t = first; t < last; t++) {
        if (fiber_[t].state != state) continue;
        fiber_[t].state = State::Ready;
        any = true;
      }
    };
    for (size_t warp = 0; warp < fiber_.size(); warp += 32)
      let_go(warp, std::min(warp + 32, fiber_.size()), State::AtWarp);
    if (all_at(0, fiber_.size(), State::AtBlock)) barriers_++;
    let_go(0, fiber_.size(), State::AtBlock);
    return any;
  }

  void run_block(int64_t b, int block, const std::function<void(int64_t, int)>& after) {
    running() = this;
    fiber_.resize(static_cast<size_t>(block));
    for (Fiber& fiber : fiber_) {
      if (!fiber.stack) fiber.stack = std::make_unique<char[]>(kStack);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, begin, 0);
      fiber.has_begun = false;
      fiber.state = State::Ready;
    }
    do {
      for (size_t turn = 0; turn < fiber_.size(); turn++) {
        current_ = last_first_ ? fiber_.size() - 1 - turn : turn;
        if (fiber_[current_].state != State::Ready) continue;
        place_->thread = {static_cast<unsigned>(current_), 0, 0};
        enter(fiber_[current_]);
        if (fiber_[current_].state == State::Done && after)
          after(b, static_cast<int>(current_));
      }
    } while (release());
    for (size_t t = 0; t < fiber_.size(); t++)
      if (fiber_[t].state != State::Done)
        fail("block ", b, ": thread ", t,
             " waits for threads that never come: a __syncthreads or a shuffle stands in a "
             "branch that not all of them take");
  }

  std::shared_ptr<SharedLibrary> library_;
  Place* place_ = nullptr;
  Call call_ = nullptr;
  void** arguments_ = nullptr;
  bool fibers_ = false, last_first_ = false;
  std::vector<Fiber> fiber_;
  size_t current_ = 0;
  int64_t barriers_ = 0;
  Resume main_;
};

}  // namespace tiny_compile::lessons
