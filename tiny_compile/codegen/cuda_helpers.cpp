// How do 32 threads add 1024 numbers in the order that the contract fixes? Position p of a
// chunk sits in lane (p / V) % 32: the upper halves 512, 256, ... are the same thread's later
// values, 64 .. V are other lanes' (a shuffle each), the last ones again the same thread's.
//
//   tc_tree<tc_sum_float, 32, 4>(t)   t[k*4 + v] is position 128*k + 4*lane + v
//
// A row of several chunks folds the chunks' results by the same rule.
#include "tiny_compile/codegen/cuda_helpers.h"

#include <sstream>
#include <vector>

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cuda_memory_helpers.h"
#include "tiny_compile/codegen/scalar.h"

namespace tiny_compile {
namespace {

// What computes; it may use cuda_memory_helpers. In an order in which later ones use earlier ones.
constexpr CudaHelper kHelpers[] = {
    {"tc_tree", "", R"(
// t[j] += t[j + Half] for the halves Half, Half / 2, ... Least. Recursion, because registers need
// indices that the compiler knows.
template <class R, int Half, int Least, int N, class T>
__device__ inline void tc_halve(T (&t)[N]) {
  if constexpr (Half >= Least) {
#pragma unroll
    for (int j = 0; j < Half; j++) t[j] = R::of(t[j], t[j + Half]);
    tc_halve<R, Half / 2, Least>(t);
  }
}

// The halves that other lanes hold. Of several values a lane keeps the even or the odd ones and
// sends the others, so that V values of a lane cost V + 4 exchanges, not 5 V; even and odd, the
// tree's last halves, meet at the end.
template <class R, int Lane, int V, int N, class T>
__device__ inline T tc_across(T (&t)[N]) {
  constexpr unsigned kAll = 0xffffffffu;
  if constexpr (V > 1 && Lane >= 1) {
    const bool upper = threadIdx.x & Lane;
#pragma unroll
    for (int v = 0; v < V / 2; v++) {
      const T sent = upper ? t[2 * v] : t[2 * v + 1], kept = upper ? t[2 * v + 1] : t[2 * v];
      t[v] = R::of(kept, __shfl_xor_sync(kAll, sent, Lane));
    }
    const T half = tc_across<R, Lane / 2, V / 2>(t);
    return R::of(half, __shfl_xor_sync(kAll, half, Lane));
  } else if constexpr (V > 1) {
    tc_halve<R, V / 2, 1>(t);
    return t[0];
  } else if constexpr (Lane >= 1) {
    t[0] = R::of(t[0], __shfl_xor_sync(kAll, t[0], Lane));
    return tc_across<R, Lane / 2, 1>(t);
  } else {
    return t[0];
  }
}

// Reduces the Lanes * N values that Lanes neighbouring threads hold; each gets the result.
template <class R, int Lanes, int V, int N, class T>
__device__ inline T tc_tree(T (&t)[N]) {
  tc_halve<R, N / 2, V>(t);
  return tc_across<R, Lanes / 2, V>(t);
}
)"},
    {"tc_fold", "tc_tree", R"(
// Reduces the results of Count <= 1024 chunks; every warp does it for itself.
template <class R, int Count, class T>
__device__ inline T tc_fold(const T* parts) {
  constexpr int kEach = Count <= 32 ? 1 : Count <= 64 ? 2 : Count <= 128 ? 4
                      : Count <= 256 ? 8 : Count <= 512 ? 16 : 32;
  T t[kEach];
#pragma unroll
  for (int k = 0; k < kEach; k++) {
    const int p = 32 * k + (int)(threadIdx.x & 31u);
    t[k] = p < Count ? parts[p] : R::identity();
  }
  return tc_tree<R, 32, 1>(t);
}
)"},
    {"tc_strided", "", R"(
// The tree over element(0), ... of 2^Bits, in bit-reversed order, so that few results wait:
// level[h] holds one of 2^h elements. Unrolled.
template <class R, int Bits, class T, class F>
__device__ inline T tc_strided(const F& element) {
  T level[Bits + 1];
#pragma unroll
  for (int i = 0; i < 1 << Bits; i++) {
    T result = element((int)(__brev((unsigned)i) >> (32 - Bits & 31)));
    int h = 0;
#pragma unroll
    for (; i >> h & 1; h++) result = R::of(level[h], result);
    level[h] = result;
  }
  return level[Bits];
}
)"},
    {"tc_each", "tc_pack", R"(
// The reduction R on each element of a pack.
template <class R, class T, int N>
struct tc_each {
  using Pack = tc_pack<T, N>;
  static __device__ inline Pack identity() {
    Pack all;
    for (int v = 0; v < N; v++) all.at[v] = R::identity();
    return all;
  }
  static __device__ inline Pack of(const Pack& a, const Pack& b) {
    Pack all;
    for (int v = 0; v < N; v++) all.at[v] = R::of(a.at[v], b.at[v]);
    return all;
  }
};
)"},
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
__device__ inline void tc_expect(unsigned long long (&meeting)[N], const unsigned (&bytes)[N]) {
  if (threadIdx.x == 0) {
    for (int m = 0; m < N; m++)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(tc_shared(&meeting[m])));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();  // nvcc may set a barrier up for a warp as one; racecheck then looks for this
  if (threadIdx.x == 0) {
    for (int m = 0; m < N; m++)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                       tc_shared(&meeting[m])),
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
__device__ inline void tc_send(T* mine, T value, unsigned long long* meeting, int rank) {
  unsigned to, there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(tc_shared(mine)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(tc_shared(meeting)), "r"(rank));
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

__device__ inline void tc_await(unsigned long long* meeting) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(tc_shared(meeting))
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
    {"tc_clamp", "tc_maximum tc_minimum", R"(
__device__ inline float tc_clamp(float m) {
  return tc_minimum(tc_maximum(m, -0x1.fffffep+127f), 0x1.fffffep+127f);
}
)"},
    {"tc_clamp", "tc_maximum tc_minimum", R"(
__device__ inline double tc_clamp(double m) {
  return tc_minimum(tc_maximum(m, -0x1.fffffffffffffp+1023), 0x1.fffffffffffffp+1023);
}
)",
     true},
    {"tc_fold_exp", "tc_exp tc_fold tc_tree", R"(
// Sums of exponentials against the chunks' own maxima, brought to the largest of these.
template <class Sum, class Max, int Count, class T>
__device__ inline T tc_fold_exp(T* parts, const T* most) {
  const T m = tc_fold<Max, Count>(most);
  T scaled[(Count + 31) / 32];
#pragma unroll
  for (int k = 0; k < (Count + 31) / 32; k++) {
    const int p = 32 * k + (int)(threadIdx.x & 31u);
    scaled[k] = p < Count ? parts[p] * tc_exp(most[p] - m) : Sum::identity();
  }
  constexpr int kEach = Count <= 32 ? 1 : Count <= 64 ? 2 : Count <= 128 ? 4
                      : Count <= 256 ? 8 : Count <= 512 ? 16 : 32;
  T t[kEach];
#pragma unroll
  for (int k = 0; k < kEach; k++) t[k] = k < (Count + 31) / 32 ? scaled[k] : Sum::identity();
  return tc_tree<Sum, 32, 1>(t);
}
)"},
    {"tc_combined", "", R"(
// Of values of a scan, one after the other: what stands before number `me`, and all of them.
template <class Op>
struct tc_stood {
  typename Op::T before, total;
};
template <class Op, int Count>
__device__ inline tc_stood<Op> tc_combined(const typename Op::T* values, int stride, int me) {
  tc_stood<Op> parts = {Op::identity(), Op::identity()};
#pragma unroll
  for (int k = 0; k < Count; k++) {
    if (k == me) parts.before = parts.total;
    parts.total = Op::of(parts.total, values[k * stride]);
  }
  return parts;
}
)"},
    {"tc_exclusive_scan", "", R"(
// Each value becomes what stands before it; all of them.
template <class Op, int Count>
__device__ inline typename Op::T tc_exclusive_scan(typename Op::T* values, int stride) {
  typename Op::T total = values[0];
  values[0] = Op::identity();
#pragma unroll 1
  for (int k = 1; k < Count; k++) {
    const typename Op::T value = values[k * stride];
    values[k * stride] = total;
    total = Op::of(total, value);
  }
  return total;
}
)"},
    {"tc_best", "", R"(
// A value and where it stands; the better of two, and of equals the first (NaN beats all).
template <class T>
struct tc_best {
  T value;
  long long index;
};

template <bool Max, class T>
__device__ inline tc_best<T> tc_better(tc_best<T> a, tc_best<T> b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool same = a_nan ? b_nan : a.value == b.value;
  const bool b_wins = !a_nan && (b_nan || (Max ? b.value > a.value : b.value < a.value));
  if (b.index < 0) return a;
  if (a.index < 0) return b;
  return b_wins || (same && b.index < a.index) ? b : a;
}

template <bool Max, int Lanes, class T>
__device__ inline tc_best<T> tc_best_of_lanes(tc_best<T> best) {
#pragma unroll
  for (int lane = Lanes / 2; lane >= 1; lane /= 2) {
    tc_best<T> other;
    other.value = __shfl_xor_sync(0xffffffffu, best.value, lane);
    other.index = __shfl_xor_sync(0xffffffffu, best.index, lane);
    best = tc_better<Max>(best, other);
  }
  return best;
}
)"},
    {"tc_node", "", R"(
// One thread alone: the tree over elements 1024^Level * index and on, visited in bit-reversed
// order so that a stack of ten partial results is enough.
template <class R, int Level, class T, class F>
struct tc_node {
  static __device__ T of(const F& element, long long index, long long n) {
    long long count = n, size = 1;
    for (int l = 1; l < Level; l++) count = (count + 1023) / 1024;
    count -= 1024 * index;
    if (count > 1024) count = 1024;
    int bits = 0;
    while (size < count) size *= 2, bits++;
    T stack[12];
    int height = 0;
    for (int turn = 0; turn < size; turn++) {
      const int p = bits == 0 ? 0 : (int)(__brev((unsigned)turn) >> (32 - bits));
      stack[height++] = p < count
                            ? tc_node<R, Level - 1, T, F>::of(element, 1024 * index + p, n)
                            : R::identity();
      for (int done = turn; done & 1; done >>= 1) {
        height--;
        stack[height - 1] = R::of(stack[height - 1], stack[height]);
      }
    }
    return stack[0];
  }
};

template <class R, class T, class F>
struct tc_node<R, 0, T, F> {
  static __device__ T of(const F& element, long long index, long long) { return element(index); }
};
)"},
};

constexpr Op kOps[] = {Op::sum, Op::prod, Op::max, Op::min, Op::any, Op::all};
constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i8,  DType::u8,     DType::i32,
                            DType::i64, DType::u32, DType::u64, DType::boolean};

std::string identifier(std::string type) {  // "unsigned char" => "unsigned_char"
  for (char& c : type) {
    if (c == ' ') c = '_';
  }
  return type;
}

std::string op_struct(Calls& calls, Op op, DType type) {
  const std::string t = c_type(type);
  return str("\nstruct ", cuda_op(calls, op, type), " {\n  static __device__ ", t,
             " identity() { return ", literal_text(calls, identity(op, type)), "; }\n",
             "  static __device__ ", t, " of(", t, " a, ", t, " b) { return ",
             combine(calls, op, type, "a", "b"), "; }\n};\n");
}

// "tc_sum_float"
std::string op_name(Op op, DType type) {
  return str("tc_", info(op).name, "_", identifier(c_type(type)));
}

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

std::string cuda_op(Calls& calls, Op reduction, DType type) {
  return calls(op_name(reduction == Op::sum_exp ? Op::sum : reduction, type));
}

std::string cuda_helpers_for(Calls& calls) {
  std::vector<std::string> chosen;  // last first: what a helper uses stands above it
  add_called(kHelpers, calls, chosen);
  add_called(cuda_memory_helpers(), calls, chosen);
  for (Op op : kOps) {
    for (DType type : kTypes) {
      if (calls.has(op_name(op, type))) chosen.push_back(op_struct(calls, op, type));
    }
  }
  std::string text;
  for (size_t h = chosen.size(); h-- > 0;) text += chosen[h];
  return text;
}

}  // namespace tiny_compile
