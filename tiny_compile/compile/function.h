// The part of tc::compile that needs no templates: guards, the cache of
// compiled graphs, running.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {

struct CompileOptions {
  // "cpp", "cuda", "interpreter"; "eager": one kernel an op, where the inputs are; "": where
  // the inputs are
  std::string backend = "";
  Pipeline pipeline = default_pipeline();
  // On a GPU matrix products are left to the vendor's library, outside the numeric contract,
  // unless deterministic; tf32: with f32 operands rounded to 10 bits.
  bool deterministic = false, tf32 = false;
  std::string name = "main";  // of the graph, in texts and errors
  size_t cache_limit = 64;    // kinds of input kept; the least recently used goes
#ifdef NDEBUG
  bool verify = false;  // after every stage
#else
  bool verify = true;
#endif
};

// What a call brings: its tensors in order, and the bits of every other number that is guarded
// (bits, so that 0.0 is not -0.0, NaN is NaN and 2^60 + 1 is not 2^60).
struct Signature {
  std::vector<Tensor> tensors;
  std::vector<uint64_t> extras;
};

// A traced function. live[k]: captured tensor k is read from its variable at each call.
struct Specialization {
  Traced traced;
  std::vector<bool> live;
  std::shared_ptr<const void> structure;  // the function's result, its tensors empty
  std::vector<Tensor> inputs;  // what the graph was traced for, captured ones included
};

struct Guard {
  DType dtype;
  Device device;
  Sizes shape, strides;
  int align;  // of the address, on a GPU
  bool admits(const Tensor& tensor) const;
  std::string difference(const Tensor& tensor) const;  // "shape [4] -> [8]", or ""
};

// A captured tensor whose variable is out of reach (a member of a struct captured by reference,
// say): once nobody but us holds what was seen there, the variable holds another tensor.
struct Watch {
  size_t captured;
  std::weak_ptr<const TensorData> seen;
};

struct Entry {
  std::vector<Guard> guards;  // of the arguments, then of captured tensors
  std::vector<uint64_t> extras;
  std::vector<Captured> captured;
  std::vector<bool> live;
  std::vector<Watch> watches;
  int64_t draws = 0;
  Graph graph;    // as traced
  Device device;  // of the inputs; CPU tensors without axes go along anywhere
  Built built;    // without `run` for the interpreter
  std::shared_ptr<const void> structure;
};

// The stages that these options mean for a graph whose inputs are on that device. The vendor's
// library, which takes 40 ms to open, is opened for graphs that multiply matrices.
Pipeline pipeline_for(const CompileOptions& options, Device device, const Graph& graph);

class FunctionCache {
 public:
  explicit FunctionCache(CompileOptions options);

  // The entry whose guards admit the signature, or null. Logs why not to TC_LOGS=recompiles.
  std::shared_ptr<const Entry> find(const Signature& signature) const;
  // Compiles. Throws tc::Error as the stages and the toolchain do.
  std::shared_ptr<const Entry> add(const Signature& signature, Specialization traced);
  std::vector<Tensor> run(const Entry& entry, std::vector<Tensor> inputs) const;

  const CompileOptions& options() const { return options_; }
  size_t size() const;

 private:
  CompileOptions options_;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const Entry>> entries_;  // most recently used first
};

}  // namespace tiny_compile
