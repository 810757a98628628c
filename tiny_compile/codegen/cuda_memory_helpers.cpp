// How does a thread move several neighbouring elements at once? As a tc_pack, an aligned array
// of at most 16 bytes, that one instruction loads or stores:
//
//   const tc_pack<float, 4> pack_0 = *(const tc_pack<float, 4>*)(in_x + e);
//
// Beside it stands what else a kernel says of memory: a row may end within a pack, a row is
// wanted in the L2 cache soon, an index that data gives is out of range.
#include "tiny_compile/codegen/cuda_memory_helpers.h"

namespace tiny_compile {
namespace {

constexpr CudaHelper kHelpers[] = {
    {"tc_block", "", R"(
struct tc_block {
  unsigned x;
};
)"},
    {"tc_table", "", R"(
// Kernels that start together: the points and buffers of each, and apart from them its first block, so
// that a search stays within few lines of memory. What is left of the table begins beyond all blocks.
template <int Buffers>
struct tc_member {
  long long points;
  void* at[Buffers];
};
template <int Members, int Buffers>
struct tc_table {
  unsigned first[Members];
  tc_member<Buffers> members[Members];
};
// Of the last that begins at the block or before.
template <int Members, int Buffers>
__device__ inline int tc_member_of(const tc_table<Members, Buffers>& table, unsigned block) {
  int low = 0;
#pragma unroll
  for (int step = 1 << 12; step > 0; step /= 2)
    if (low + step < Members && table.first[low + step] <= block) low += step;
  return low;
}
)"},
    {"tc_pack", "", R"(
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) tc_pack {
  T at[N];
};
)"},
    {kElementOfPack, "tc_bf16 tc_from_bits tc_pack tc_to_f32", R"(
// Element v of a pack: halves are not taken out of their word first.
template <class T, int N>
__device__ inline float tc_to_f32(const tc_pack<T, N>& pack, int v) {
  return tc_to_f32(pack.at[v]);
}
template <int N>
__device__ inline float tc_to_f32(const tc_pack<tc_bf16, N>& pack, int v) {
  union {
    tc_pack<tc_bf16, N> halves;
    unsigned words[(N + 1) / 2];
  } both = {pack};
  const unsigned word = both.words[v / 2];
  return tc_from_bits(v % 2 ? word & 0xffff0000u : word << 16);
}
)"},
    {"tc_has_waited", "", R"(
// True once all that was started before this kernel has ended: it may have been started while that ran. The
// compiler does not know that it is true, and so loads nothing before.
__device__ inline bool tc_has_waited() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  return gridDim.y == 1;
}
)"},
    {"tc_let_next", "", R"(
// What is started behind this kernel may be so once each of its blocks has been here.
__device__ inline void tc_let_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
)"},
    {"tc_kept", "tc_bf16 tc_f16 tc_from_bits tc_pack tc_to_f32", R"(
// A half of a word, which is not taken out of it first.
__device__ inline float tc_half_of(unsigned word, bool high, tc_bf16) {
  return tc_from_bits(high ? word & 0xffff0000u : word << 16);
}
__device__ inline float tc_half_of(unsigned word, bool high, tc_f16) {
  return tc_to_f32(tc_f16{(unsigned short)(high ? word >> 16 : word)});
}
// Registers of halves, two to a word.
template <class T, int N>
struct tc_kept {
  unsigned words[(N + 1) / 2];
  __device__ void keep(int e, T x) {
    const unsigned half = x.bits, word = words[e / 2];
    words[e / 2] = e % 2 ? (word & 0xffffu) | half << 16 : (word & 0xffff0000u) | half;
  }
  template <int M>
  __device__ void read(int e, const T* from) {
    const tc_pack<unsigned, M / 2> pairs = *(const tc_pack<unsigned, M / 2>*)from;
#pragma unroll
    for (int v = 0; v < M / 2; v++) words[e / 2 + v] = pairs.at[v];
  }
  __device__ float at(int e) const { return tc_half_of(words[e / 2], e % 2, T()); }
};
)"},
    {"tc_pairs", "tc_pack tc_pair", R"(
// Neighbours are rounded two at a time.
template <class T, int N>
__device__ inline tc_pack<unsigned, N / 2> tc_pairs(const tc_pack<float, N>& wide) {
  tc_pack<unsigned, N / 2> pairs;
#pragma unroll
  for (int v = 0; v < N; v += 2) pairs.at[v / 2] = tc_pair(wide.at[v], wide.at[v + 1], T());
  return pairs;
}
)"},
    {"tc_halves", "tc_pack tc_pairs", R"(
template <class T, int N>
__device__ inline tc_pack<T, N> tc_halves(const tc_pack<float, N>& wide) {
  union {
    tc_pack<unsigned, N / 2> pairs;
    tc_pack<T, N> halves;
  } both = {tc_pairs<T>(wide)};
  return both.halves;
}
)"},
    {"tc_read", "tc_pack", R"(
// N neighbours in one access, or what a store of them is.
template <int N, class T>
__device__ inline void tc_read(T* to, const T* from) {
  const tc_pack<T, N> pack = *(const tc_pack<T, N>*)from;
#pragma unroll
  for (int v = 0; v < N; v++) to[v] = pack.at[v];
}
)"},
    {"tc_read_halves", "tc_pack tc_to_f32", R"(
template <int N, class T>
__device__ inline void tc_read_halves(float* to, const T* from) {
  const tc_pack<T, N> pack = *(const tc_pack<T, N>*)from;
#pragma unroll
  for (int v = 0; v < N; v++) to[v] = tc_to_f32(pack, v);
}
)"},
    {"tc_write", "tc_pack", R"(
template <int N, class T>
__device__ inline void tc_write(T* to, const T* from) {
  tc_pack<T, N> pack;
#pragma unroll
  for (int v = 0; v < N; v++) pack.at[v] = from[v];
  *(tc_pack<T, N>*)to = pack;
}
)"},
    {"tc_write_halves", "tc_pack tc_pairs", R"(
template <int N, class T>
__device__ inline void tc_write_halves(T* to, const float* from) {
  tc_pack<float, N> pack;
#pragma unroll
  for (int v = 0; v < N; v++) pack.at[v] = from[v];
  *(tc_pack<unsigned, N / 2>*)to = tc_pairs<T>(pack);
}
)"},
    {"TC_SHARED", "", R"(
// Shared memory of a size that the launch says: it may be more than what a kernel may declare.
#ifndef TC_SHARED
#define TC_SHARED(name, bytes) extern __shared__ __align__(16) unsigned char name[]
#endif
)"},
    {"tc_load", "tc_pack", R"(
// A pack that may end beyond the last of `left` elements.
template <int N, class T>
__device__ inline tc_pack<T, N> tc_load(const T* from, long long left) {
  if (left >= N) return *(const tc_pack<T, N>*)from;
  tc_pack<T, N> pack = {};
#pragma unroll
  for (int v = 0; v < N; v++)
    if (v < left) pack.at[v] = from[v];
  return pack;
}
)"},
    {"tc_store", "tc_pack", R"(
template <class T, int N>
__device__ inline void tc_store(T* to, const tc_pack<T, N>& pack, long long left) {
  if (left >= N) {
    *(tc_pack<T, N>*)to = pack;
    return;
  }
#pragma unroll
  for (int v = 0; v < N; v++)
    if (v < left) to[v] = pack.at[v];
}
)"},
    {"tc_read_left", "tc_load tc_pack", R"(
// N neighbours, or the first `left` of them, in one access where all are there.
template <int N, class T>
__device__ inline void tc_read_left(T* to, const T* from, long long left) {
  const tc_pack<T, N> pack = tc_load<N>(from, left);
#pragma unroll
  for (int v = 0; v < N; v++) to[v] = pack.at[v];
}
)"},
    {"tc_read_halves_left", "tc_load tc_pack tc_to_f32", R"(
template <int N, class T>
__device__ inline void tc_read_halves_left(float* to, const T* from, long long left) {
  const tc_pack<T, N> pack = tc_load<N>(from, left);
#pragma unroll
  for (int v = 0; v < N; v++) to[v] = tc_to_f32(pack, v);
}
)"},
    {"tc_write_left", "tc_pack tc_store", R"(
template <int N, class T>
__device__ inline void tc_write_left(T* to, const T* from, long long left) {
  tc_pack<T, N> pack;
#pragma unroll
  for (int v = 0; v < N; v++) pack.at[v] = from[v];
  tc_store(to, pack, left);
}
)"},
    {"tc_write_halves_left", "tc_halves tc_pack tc_store", R"(
template <int N, class T>
__device__ inline void tc_write_halves_left(T* to, const float* from, long long left) {
  tc_pack<float, N> pack;
#pragma unroll
  for (int v = 0; v < N; v++) pack.at[v] = from[v];
  tc_store(to, tc_halves<T>(pack), left);
}
)"},
    {"tc_narrow", "", R"(
// As an int where it is one that an index can be, else -1.
__device__ inline int tc_narrow(long long value) {
  return value >= 0 && value < 0x7fffffff ? (int)value : -1;
}
)"},
    {"tc_ahead", "", R"(
// Asks for `count` elements, which come to the L2 cache: sixteen bytes at a time, none beyond.
// Older GPUs than sm_90 cannot be asked.
template <class T>
__device__ inline void tc_ahead(const T* from, int count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const size_t first = __cvta_generic_to_global(from) & ~15ull,
               end = __cvta_generic_to_global(from + count) & ~15ull;
  if (first < end)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first),
                 "r"((unsigned)(end - first)));
#endif
}
)"},
    {"tc_in_range", "", R"(
#ifndef TC_BAD_INDEX
#define TC_BAD_INDEX(i, limit) TC_FAIL(1u)
#endif
// The first that is not is told with its value.
__device__ inline bool tc_in_range(long long index, long long limit) {
  if ((unsigned long long)index < (unsigned long long)limit) return true;
  TC_BAD_INDEX(index, limit);
  return false;
}
)"},
    {"tc_is_place", "tc_in_range", R"(
// The same where it is told at the end, so that no branch stands between the loads.
struct tc_wrong {
  long long index, size;  // of none: -1
};
__device__ inline bool tc_is_place(long long index, long long limit, tc_wrong& wrong) {
  const bool is_place = (unsigned long long)index < (unsigned long long)limit;
  wrong.index = is_place ? wrong.index : index;
  wrong.size = is_place ? wrong.size : limit;
  return is_place;
}
__device__ inline void tc_tell(const tc_wrong& wrong) {
  if (wrong.size >= 0) tc_in_range(wrong.index, wrong.size);
}
)"},
};

}  // namespace

std::span<const CudaHelper> cuda_memory_helpers() { return kHelpers; }

}  // namespace tiny_compile
