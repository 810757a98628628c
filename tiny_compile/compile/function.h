// The part of tc::compile that needs no templates: guards, the cache of
// compiled graphs, running.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tiny_compile/compile/dynamic.h"
#include "tiny_compile/compile/options.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

// That of the compiled function that is traced on this thread; 1 where none is.
double memory_budget();

class MemoryBudget {  // while one lives
 public:
  explicit MemoryBudget(double budget);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

 private:
  double before_;
};

// What a call brings: its tensors in order, and the bits of every other number that is guarded
// (bits, so that 0.0 is not -0.0, NaN is NaN and 2^60 + 1 is not 2^60).
struct Signature {
  std::vector<Tensor> tensors;
  std::vector<uint64_t> extras;
};

// A traced function. live[k]: the variable that captured tensor k was read from is the
// closure's own or itself captured by reference, so that each call may read it without asking
// how the function comes to it.
struct Specialization {
  Traced traced;
  std::vector<bool> live;
  std::shared_ptr<const void> structure;  // the function's result, its tensors empty
  std::vector<Tensor> inputs;  // what the graph was traced for, captured ones included
};

struct Guard {
  bool operator==(const Guard& other) const;
  DType dtype;
  Device device;
  LayoutPointer layout;  // mostly the very one of the tensor that comes again
  int align;             // of the address, on a GPU
  const Sizes& shape() const { return layout->shape; }
  const Sizes& strides() const { return layout->strides; }
  bool admits(const Tensor& tensor) const;
  std::string difference(const Tensor& tensor) const;  // "shape [4] -> [8]", or ""
};

// A captured tensor of an entry.
struct Reading {
  Tensor fixed;                      // held of what the function made itself
  std::optional<Variable> variable;  // otherwise
  bool live = false;                 // else the variable must hold what it held, `seen`
  std::weak_ptr<const TensorData> seen;

  const Tensor* now() const;  // null: the function must be traced to see what it captures now
};

struct Entry {
  std::vector<Guard> guards;  // of the arguments, then of captured tensors
  std::vector<uint64_t> extras;
  std::vector<Reading> captured;
  int64_t draws = 0;
  Graph graph;                      // as traced
  std::optional<SizedTrace> sized;  // where sizes are symbolic
  Device device;                    // of the inputs; CPU tensors without axes go along anywhere
  Built built;                      // without `run` for the interpreter
  std::shared_ptr<const void> structure;
  std::vector<int> donated;  // numbers of inputs
  std::vector<int> copied;   // likewise: elsewhere, or with reversed axes
};

// Of a call's arguments: what calls must share to share an entry.
struct Kind {
  std::vector<Guard> guards;
  std::vector<uint64_t> extras;
  bool operator==(const Kind&) const = default;
};

class FunctionCache {
 public:
  explicit FunctionCache(CompileOptions options);

  // The entry whose guards admit the signature, or null: also where what it captured must be
  // looked at again. Logs why not to TC_LOGS=recompiles.
  std::shared_ptr<const Entry> find(const Signature& signature) const;
  // Compiles, unless the graph is one that is there; entries whose captured tensors changed go.
  // Throws tc::Error as the stages and the toolchain do.
  std::shared_ptr<const Entry> add(const Signature& signature, Specialization traced);
  std::vector<Tensor> run(const Entry& entry, std::vector<Tensor> inputs) const;

  // The right to compile for a kind of call, which one thread has at a time. `made`: by the
  // thread that had it before; null where it is this one's to make.
  class Turn {
   public:
    Turn(FunctionCache& cache, const Signature& signature);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    std::shared_ptr<const Entry> made;

   private:
    FunctionCache& cache_;
    std::list<Kind>::iterator mine_;
  };

  const CompileOptions& options() const { return options_; }
  size_t size() const;

 private:
  std::shared_ptr<const Entry> known(const Signature& signature) const;  // under the mutex
  Built built_for(const Graph& graph, Device device) const;
  std::vector<Tensor> run_built(const Entry& entry, std::vector<Tensor> inputs) const;

  CompileOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable turn_ended_;
  std::list<Kind> being_compiled_;
  mutable std::list<std::shared_ptr<const Entry>> entries_;  // most recently used first
};

}  // namespace tiny_compile
