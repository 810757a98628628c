// What a program runs on, as a value: a GPU or a CPU and the numbers that schedules and generated
// texts depend on. Read from a driver or the running CPU, or a preset by name.
//
//   h200                              =>  132 multiprocessors, 227 kB of shared memory a block, ...
//   cpu:16                            =>  16 cores, 32 kB of L1, ...
//   mine multiprocessors=46 ...       =>  each number as it is given
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tiny_compile {

// Where kernels run. Stages may choose other schedules for it; a kernel's meaning is the same.
enum class Target : uint8_t { Cpp, Cuda };

struct Machine {
  std::string name;  // a preset's, or letters, digits and '_'
  // A GPU's; 0 of a CPU.
  int64_t multiprocessors = 0;
  int64_t threads = 0, registers = 0;  // of a multiprocessor
  int64_t blocks = 0;                  // that it holds at most; 16 where a text does not say
  int64_t thread_registers = 0;        // that a thread may have
  int64_t block_shared = 0;            // bytes of shared memory that a block may have
  int64_t shared = 0;                  // bytes of it that a multiprocessor has
  int64_t cluster = 0;                 // blocks of the largest cluster; 1: it has none
  int64_t bandwidth = 0;  // of its memory: GB a second; 0: not known, as the next two
  int64_t clock = 0;      // MHz
  int64_t products = 0;   // of halves, that a multiprocessor's tensor cores add a clock
  // A CPU's; 0 of a GPU. What a text or the system does not say of a core is as in cpu:16.
  int64_t cores = 0, vector = 0;  // vector: bytes
  int64_t l1 = 0, l3 = 0;         // bytes: a core's, and all cores'
  // Both have one: bytes.
  int64_t l2 = 0;
  bool operator==(const Machine&) const = default;
};

inline Target target_of(const Machine& machine) {
  return machine.multiprocessors > 0 ? Target::Cuda : Target::Cpp;
}

// What programs are for where nobody says: h200, cpu:16. The same on every machine, so that texts
// are too.
Machine default_machine(Target target);

// The CPU that this process runs on.
Machine this_cpu();

// The preset that has the same of everything but speed, which differs between cards of a kind; else
// the machine.
Machine as_preset(Machine machine);

// "h200", or the name and all numbers that are not 0; parse_machine reads both. It throws
// tc::Error, with the presets, for what is neither, and for a machine that lacks what every one has.
std::string str(const Machine& machine);
Machine parse_machine(std::string_view text);

inline constexpr int64_t kLanes = 32;  // threads of a GPU's warp, on every one there is

// How much work keeps a machine busy? A GPU counts as full when 32 of 33 of its multiprocessors have
// work: most grids are powers of two, and 128 blocks fill an H200's 132.
int64_t blocks_to_fill(const Machine& machine);   // a block for each: 128
int64_t threads_to_fill(const Machine& machine);  // as many as it holds at a time: 128 * 2048
int64_t rows_to_fill(const Machine& machine);  // several for each: 512; a CPU's too, cpu:16 512

// Scalar operations of a CPU that are worth a hand-off to a thread: 32768 of eight floats a vector.
int64_t work_of_thread(const Machine& machine);

// Bytes of shared memory that a kernel may declare, on every GPU; more is asked for at the launch.
inline constexpr int64_t kDeclaredShared = 48 << 10;

// Blocks whose rows are asked for ahead: those of three eighths of the multiprocessors. With 16, 32, 48 of an
// H200's 132, 1320 rows of 50257 took 0.152, 0.150, 0.148 ms; all would be more than the cache holds.
int64_t blocks_ahead(const Machine& machine);

// Blocks of so many threads, with so many registers each, that a multiprocessor holds at a time.
int64_t blocks_held(const Machine& machine, int64_t threads, int64_t registers);

// Bytes of shared memory, whole 4 kB, for each of so many blocks of a multiprocessor; CUDA has 1 kB of each.
int64_t shared_of_each(const Machine& machine, int64_t blocks);

// Bytes that a core of a CPU has near: its L2, and its share of L3 up to as much again.
int64_t near_bytes(const Machine& machine);

}  // namespace tiny_compile
