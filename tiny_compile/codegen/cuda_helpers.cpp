// What do kernels call that is no op of one element? Messages between the blocks of a cluster, quotients and
// exponentials that are quick for most arguments.
//
//   tc_send(&sums[3], r0, &barriers[0], 2)   to the cluster's block number 2
#include "tiny_compile/codegen/cuda_helpers.h"

#include <sstream>
#include <vector>

#include "tiny_compile/codegen/cuda_memory_helpers.h"
#include "tiny_compile/codegen/scalar.h"

namespace tiny_compile {
namespace {

// What computes; it may use cuda_memory_helpers. In an order in which later ones use earlier ones.
constexpr CudaHelper kHelpers[] = {
    {"tc_cluster_barrier", "", R"(
// All threads of the cluster's blocks; what they wrote to shared memory is seen behind it.
__device__ inline void tc_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

// The shared variable of the cluster's block number `rank` that stands where `mine` does here.
template <class T>
__device__ inline T* tc_cluster_at(T* mine, int rank) {
  T* theirs;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank));
  return theirs;
}
)"},
    {"tc_expect", "", R"(
// Blocks of a cluster exchange results: one sends values into the others' shared memory, and
// each arrival counts its bytes at the barrier there. Who has all that it expects goes on, and
// nobody waits for blocks that are further behind. Each barrier is met at once.
__device__ inline unsigned tc_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

template <int N>
__device__ inline void tc_expect(unsigned long long (&barriers)[N], const unsigned (&bytes)[N]) {
  if (threadIdx.x == 0) {
    for (int m = 0; m < N; m++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(tc_shared(&barriers[m])));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();  // nvcc may set a barrier up for a warp as one; racecheck then looks for this
  if (threadIdx.x == 0) {
    for (int m = 0; m < N; m++)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                       tc_shared(&barriers[m])),
                   "r"(bytes[m])
                   : "memory");
  }
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

// Behind it, every block of the cluster has its barriers: once for each thread, before it sends.
__device__ inline void tc_blocks_are_there() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

// value to the variable of block `rank` that stands where `mine` does here.
template <class T>
__device__ inline void tc_send(T* mine, T value, unsigned long long* barrier, int rank) {
  unsigned to, there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(tc_shared(mine)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(tc_shared(barrier)), "r"(rank));
  if constexpr (sizeof(T) == 8)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(
                     to),
                 "l"(*(const unsigned long long*)&value), "r"(there)
                 : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     to),
                 "r"(*(const unsigned*)&value), "r"(there)
                 : "memory");
}

__device__ inline void tc_await(unsigned long long* barrier) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(tc_shared(barrier))
        : "memory");
}
)"},
    {"tc_divided", "tc_divides tc_divisor tc_quotient", R"(
__device__ __noinline__ float tc_divided_slowly(float a, float b) { return a / b; }

__device__ inline float tc_divided(float a, const tc_divisor& by) {
  const float quotient = tc_quotient(a, by);
  return tc_divides(a, by) ? quotient : tc_divided_slowly(a, by.value);
}

// Without a branch: `exact` says whether a's quotient and all before it are IEEE's.
__device__ inline float tc_divided(float a, const tc_divisor& by, bool& exact) {
  exact &= tc_divides(a, by);
  return tc_quotient(a, by);
}
)"},
    {"tc_slowly", "", R"(
// A call, not its text: what hardly ever runs shall not take the compiler's time.
template <float (*function)(float)>
__device__ __noinline__ float tc_slowly(float x) { return function(x); }
)"},
    {"tc_exp_below", "tc_exp_below", R"(
// `exact` says whether x and all before it are low enough.
__device__ inline float tc_exp_below(float x, bool& exact) {
  exact &= x < 43.0f;
  return tc_exp_below(x);
}
)"},
};

void add_called(std::span<const CudaHelper> helpers, Calls& calls,
                std::vector<std::string>& chosen) {
  for (size_t h = helpers.size(); h-- > 0;) {
    const CudaHelper& helper = helpers[h];
    if (!calls.has(helper.name) || (helper.for_doubles && !calls.doubles)) continue;
    chosen.push_back(helper.text);
    std::istringstream called(helper.calls);
    for (std::string name; called >> name;) calls(name);
  }
}

}  // namespace

std::span<const CudaHelper> cuda_compute_helpers() { return kHelpers; }

std::string cuda_helpers_for(Calls& calls) {
  std::vector<std::string> chosen;  // last first: what a helper uses stands above it
  add_called(kHelpers, calls, chosen);
  add_called(cuda_memory_helpers(), calls, chosen);
  std::string text;
  for (size_t h = chosen.size(); h-- > 0;) text += chosen[h];
  return text;
}

}  // namespace tiny_compile
