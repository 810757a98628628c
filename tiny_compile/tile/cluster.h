// What the threads of a cluster know while a tile runs, and how they meet.
#pragma once

#include <map>
#include <vector>

#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/tile/access.h"
#include "tiny_compile/tile/integers.h"

namespace tiny_compile {

// Bytes of a value.
inline size_t width_of(DType dtype) { return size_of(compute_type(dtype)); }

// What is sent of an array, and whether all of it has been waited for.
struct Message {
  std::vector<bool> sent;
  bool has_come = false;
};

// What a CPU's thread has in memory while it is handed units: of each array, none where it lies elsewhere.
struct OwnMemory {
  explicit OwnMemory(const Tile& tile);
  std::vector<std::vector<uint64_t>> arrays;
};

// What the threads of a cluster know: integers by name, scalars and arrays.
class Cluster {
 public:
  Cluster(const Tile& tile, int64_t number);
  Cluster(const Tile& tile, int64_t begin, int64_t end);  // on a CPU

  ThreadIntegers integers;
  void pass_barrier(const Threads& threads);
  void pass_cluster_barrier(const Threads& threads);
  void start(const Threads& threads);
  // A block's memory is there from its start to its end, and blocks start and end by themselves.
  void end() const;

  int64_t barriers(int thread) const { return stretch_[rank_of(thread)]; }  // so far

  // On a CPU: the first of turns that are done side by side know what was known before them. After
  // them, all is there that they wrote.
  void spread(int turns);
  void end_turns() { stretch_[0]++; }
  // Before its units and behind them.
  void exchange(OwnMemory& own);

  // --- values ---

  // Values of a scalar in `n` threads from number `from` on.
  void gather(int id, const Threads& threads, size_t from, int n, Lanes& lanes) const;
  uint64_t value(int id, int thread) const;
  // An integer scalar in each thread, or the nearest of 0 .. last.
  Integers nearest(int id, int64_t last, const Threads& threads) const;
  void set_value(int id, int thread, uint64_t bits);
  void scatter(int id, const Threads& threads, size_t from, int n, const Lanes& lanes);

  // --- arrays ---

  uint64_t element_read(int array, int64_t index, int thread);
  void forget(int array);  // what it holds
  uint64_t& element_to_add(int array, int64_t index, int thread);
  void element_write(int array, int64_t index, int thread, uint64_t bits);
  void send(int array, int64_t index, int thread, uint64_t bits);
  void await(int array, const Threads& threads);
  void vote(int id, const Threads& threads);
  void read_element(int id, int array, const Expr& place, const Expr& lane_xor,
                    const Threads& threads);

 private:
  Cluster(const Tile& tile, ThreadIntegers integers, int block);
  [[noreturn]] void fail_race(const char* does, int array, int64_t index, int thread) const;
  int rank_of(int thread) const { return thread / block_; }

  void require_all(int come, int all) const;
  size_t place(int array, int64_t index, int thread) const;

  // The stretch between barriers in which a thread uses a shared element.
  int64_t stretch_of(int array, int64_t index, int thread);

  const Tile& tile_;
  const int block_, threads_;                  // threads of a block, of a cluster
  std::vector<std::vector<uint64_t>> values_;  // of each scalar, for each thread
  std::vector<std::vector<uint64_t>> arrays_;
  std::vector<std::vector<Access>> accesses_;
  std::vector<int64_t> stretch_;     // barriers of each block so far
  int64_t of_cluster_ = 0;           // of all of them
  std::map<int, Message> messages_;  // of arrays
  bool has_started_ = false;         // all blocks are there
  bool is_elsewhere_ = false;        // what another block holds has been used since
};

}  // namespace tiny_compile
