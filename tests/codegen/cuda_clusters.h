// Clusters of blocks on the CPU: generated kernels whose blocks send each other results.
//
//   Clusters clusters(source);
//   clusters.run("k_softmax", grid, block, {&x, &y});  its text has __cluster_dims__
//
// All threads of a cluster go as one block of Threads does; each of its blocks has shared memory
// of its own, and each barrier counts the bytes that it expects. What a GPU might forgive is an
// error: to send before all blocks are known to be there, or to one that has left, or bytes that
// it does not expect; to wait for ever. Values arrive at once; after go_last_first() as late as
// they may, when somebody has awaited them.
#pragma once

#include <regex>

#include "tests/codegen/cuda_on_cpu.h"

namespace tiny_compile::threads {

// The words of clusters, behind those of Threads. A thread waits with its warp, lane 0 says how
// long; who learns of an error leaves the kernel, so that all come to an end.
inline constexpr const char* kClusterWords = R"(
#define __cluster_dims__(...)
#define __syncthreads cpu_syncthreads
#undef threadIdx
#define blockIdx cpu_blocks  // a name that a function may have for its own
#undef blockDim
#undef gridDim
#define threadIdx tc_dim{cpu_self() % cpu.block, 0, 0}
#define blockDim tc_dim{cpu.block, 1, 1}
#define gridDim tc_dim{cpu.grid, 1, 1}
struct cpu_thread {
  unsigned arrived, waited;  // how often, at the cluster's barrier
  void* end[5];              // where it leaves the kernel
};
struct cpu_barrier { unsigned left, is_set_up; };  // an mbarrier: bytes that are to come
struct cpu_sent { void* to; unsigned long long bits; unsigned size; cpu_barrier* barrier; };
struct cpu_state {
  unsigned first, cluster, block, grid;  // the cluster's first block, its blocks, their threads
  unsigned idle, arrived, under_way, at_barrier[16], gone[16];  // the last two by block
  const char* error;
};
static cpu_state cpu;
static cpu_thread cpu_threads[16 << 10];
static cpu_sent cpu_under_way[64 << 10];
alignas(16) static unsigned char cpu_memory[16][232 << 10];
static unsigned cpu_memory_used;
extern "C" { bool cpu_is_late; }
extern "C" void cpu_begin(unsigned first, unsigned cluster, unsigned block, unsigned grid) {
  cpu = {first, cluster, block, grid};
  __builtin_memset(cpu_threads, 0, sizeof cpu_threads);
  __builtin_memset(cpu_memory, 0x7f, sizeof cpu_memory);
}
extern "C" const char* cpu_error() { return cpu.error; }
static inline unsigned cpu_self() { return tc_here.thread.x; }
static inline unsigned cpu_rank() { return cpu_self() / cpu.block; }
static struct {
  struct {
    operator unsigned() const { return cpu.first + cpu_rank(); }
  } x;
} cpu_blocks;
static void __attribute__((noinline)) cpu_leave() {
  __builtin_longjmp(cpu_threads[cpu_self()].end, 1);
}
static void cpu_require(bool right, const char* error) {
  if (!right && !cpu.error) cpu.error = error;
  if (cpu.error) cpu_leave();
}
template <class F> static void cpu_wait(const F& is_over, const char* error) {
  while (!tc_exchange(is_over(), 0))
    cpu_require(++cpu.idle < 200 * cpu.cluster * cpu.block, error);
  cpu.idle = 0;
}
static unsigned cpu_place(unsigned bytes) {
  const unsigned place = cpu_memory_used;
  cpu_memory_used += (bytes + 15) / 16 * 16;
  return place;
}
template <class T, int Number> static T& cpu_shared() {
  static unsigned place = ~0u;  // not initialised by a call: that needs the C++ runtime
  if (place == ~0u) place = cpu_place(sizeof(T));
  cpu_require(place + sizeof(T) <= sizeof cpu_memory[0], "has no room for shared variables");
  return *(T*)&cpu_memory[cpu_rank()][place];
}
static void cpu_syncthreads() {
  unsigned& count = cpu.at_barrier[cpu_rank()];
  const unsigned all = (count++ / cpu.block + 1) * cpu.block;
  cpu_wait([&] { return count >= all; }, "waits for ever for threads of its block");
}
static void cpu_arrive() {
  cpu_thread& self = cpu_threads[cpu_self()];
  cpu_require(self.arrived++ == self.waited, "arrives twice");
  cpu.arrived++;
}
static void cpu_blocks_are_there() {
  cpu_thread& self = cpu_threads[cpu_self()];
  cpu_require(++self.waited == self.arrived, "waits for the cluster and has not arrived");
  cpu_wait([&] { return cpu.arrived >= self.waited * cpu.cluster * cpu.block; },
           "waits for ever for blocks of its cluster");
}
static void cpu_cluster_barrier() {
  cpu_arrive();
  cpu_blocks_are_there();
}
template <int N>
static void cpu_expect(unsigned long long (&barriers)[N], const unsigned (&bytes)[N]) {
  for (int m = 0; m < N && threadIdx.x == 0; m++) *(cpu_barrier*)&barriers[m] = {bytes[m], 1};
  cpu_arrive();
}
template <class T> static T* cpu_cluster_at(T* mine, unsigned rank) {
  cpu_require(cpu_threads[cpu_self()].waited, "does not know yet whether blocks are there");
  cpu_require(rank < cpu.cluster, "goes to a block that is none of its cluster");
  cpu_require(cpu.gone[rank] < cpu.block, "goes to a block that has left");
  return (T*)((char*)mine + ((long)rank - (long)cpu_rank()) * (long)sizeof cpu_memory[0]);
}
static void cpu_arrives(const cpu_sent& sent) {
  __builtin_memcpy(sent.to, &sent.bits, sent.size);
}
template <class T>
static void cpu_send(T* mine, T value, unsigned long long* barrier, unsigned rank) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "as st.async has them");
  cpu_sent sent{cpu_cluster_at(mine, rank), 0, sizeof(T),
                (cpu_barrier*)cpu_cluster_at(barrier, rank)};
  __builtin_memcpy(&sent.bits, &value, sizeof(T));
  cpu_require(sent.barrier->is_set_up == 1, "sends to what is no barrier");
  cpu_require(sent.barrier->left >= sizeof(T), "sends more bytes than the block expects");
  sent.barrier->left -= sizeof(T);
  cpu_require(cpu.under_way < 64 << 10, "has no room for what is under way");
  if (cpu_is_late) cpu_under_way[cpu.under_way++] = sent;
  else cpu_arrives(sent);
}
static void cpu_await(unsigned long long* word) {
  cpu_barrier* barrier = (cpu_barrier*)word;
  cpu_require(barrier->is_set_up == 1, "awaits what is no barrier");
  cpu_wait([&] { return barrier->left == 0; }, "waits for ever for bytes that nobody sends");
  unsigned kept = 0;
  for (unsigned k = 0; k < cpu.under_way; k++) {
    if (cpu_under_way[k].barrier == barrier) cpu_arrives(cpu_under_way[k]);
    else cpu_under_way[kept++] = cpu_under_way[k];
  }
  cpu.under_way = kept;
}
template <class F> static void cpu_run(const F& kernel) {
  cpu_thread& self = cpu_threads[cpu_self()];
  if (!__builtin_setjmp(self.end)) {
    kernel();
    cpu_require(self.arrived == self.waited, "leaves before all blocks are there");
  }
  cpu.gone[cpu_rank()]++;
}
)";

// tc_send(...) => cpu_send(...), so that the helper in PTX stays away, and shared variables:
//   __shared__ float part_0[4];  =>  auto& part_0 = cpu_shared<float[4], __COUNTER__>();
inline std::string for_cpu_clusters(Source source) {
  const auto replace = [&](const char* pattern, const char* by) {
    source.text = std::regex_replace(source.text, std::regex(pattern), by);
  };
  source.text = threads::kernels_of(source);
  Calls calls(true);  // those of clusters have words of their own here
  for (const std::string& name : source.calls.names()) {
    static const std::regex of_clusters(
        "tc_(expect|blocks_are_there|send|await|cluster_barrier|cluster_at|shared)");
    if (!std::regex_match(name, of_clusters)) calls(name);
  }
  calls.doubles = source.calls.doubles;
  source.calls = calls;
  replace("\\btc_(expect|blocks_are_there|send|await|cluster_barrier|cluster_at)\\(",
          "cpu_$1(");
  replace("TC_SHARED\\((\\w+), (\\d+)\\);", "__shared__ unsigned char $1[$2];");
  replace("__shared__ ([^;[]+) (\\w+(?:\\[\\d+\\])+), ", "__shared__ $1 $2; __shared__ $1 ");
  replace("__shared__ (?:alignas\\(16\\) )?([^;[]+) (\\w+)((?:\\[\\d+\\])+);",
          "auto& $2 = cpu_shared<$1$3, __COUNTER__>();");
  if (source.text.find("__shared__") != std::string::npos)
    fail("shared memory that blocks would have together");
  std::string text = kClusterWords + for_cpu(source);
  for (const Threads::KernelName& kernel : names_of(source))
    text += str("template <class... A> static void cpu_", kernel.name,
                "(A... a) { cpu_run([&] { ", kernel.name, "(a...); }); }\n");
  return text;
}

// __cluster_dims__(8, 1, 1) before the kernel's name => 8
inline unsigned cluster_of(const std::string& text, const std::string& kernel) {
  const std::string dims = "__cluster_dims__(";
  const size_t name = text.find(" " + kernel + "("),
               at = text.find(dims, text.rfind('\n', name));
  return at < name ? static_cast<unsigned>(std::stoi(text.substr(at + dims.size()))) : 1;
}

class Clusters {
 public:
  explicit Clusters(const Source& source)
      : text_(source.text), threads_(for_cpu_clusters(source), names_of(source, "cpu_")) {}

  void go_last_first() {
    threads_.go_last_first();
    *static_cast<bool*>(threads_.symbol("cpu_is_late")) = true;
  }

  void run(const std::string& kernel, int64_t grid, int block, std::vector<void*> arguments) {
    using Begin = void (*)(unsigned, unsigned, unsigned, unsigned);
    const auto begin = reinterpret_cast<Begin>(threads_.symbol("cpu_begin"));
    const auto error = reinterpret_cast<const char* (*)()>(threads_.symbol("cpu_error"));
    const unsigned cluster = cluster_of(text_, kernel), blocks = static_cast<unsigned>(grid),
                   threads = static_cast<unsigned>(block);
    for (unsigned first = 0; first < blocks; first += cluster) {
      begin(first, cluster, threads, blocks);
      threads_.run("cpu_" + kernel, 1, static_cast<int>(cluster * threads), arguments);
      if (error())
        fail(kernel, ": a thread of the cluster from block ", first, " on ", error());
    }
  }

 private:
  std::string text_;
  Threads threads_;
};

// On Clusters where there are any.
inline std::vector<Tensor> run_anywhere(const Program& program, const Source& source,
                                        const std::vector<Tensor>& inputs,
                                        bool last_thread_first) {
  if (source.text.find("__cluster_dims__") == std::string::npos)
    return run(program, source, inputs, last_thread_first);
  Clusters clusters(source);
  if (last_thread_first) clusters.go_last_first();
  return run_on(clusters, program, source, inputs);
}

}  // namespace tiny_compile::threads
