// What did every call of a compiled function get and give? TC_DEBUG_CALLS writes it down, tc
// bisect reads it.
//
//   TC_DEBUG_DIR=d TC_DEBUG_CALLS=1-3 build/train   ->   d/calls.txt, two lines a call:
//     1 train_step_3fa2c1 in f32[256,128]:9c41... i64[8,128]:07fe...
//     1 train_step_3fa2c1 out f32[]:e5b0... f32[256,128]:11d4...
//   and d/tensors/9c41...: the elements, row-major, of calls 1 to 3; what calls share is there once
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// A tensor's type and a hash of its elements, in which every NaN is one NaN.
struct RecordedTensor {
  DType dtype = DType::f32;
  Sizes shape;
  std::string key;
  bool operator==(const RecordedTensor&) const = default;
};

struct RecordedCall {
  size_t number = 0;  // from 1 on, of the process
  std::string graph;  // what the names of its texts begin with: "train_step_3fa2c1"
  std::vector<RecordedTensor> inputs, outputs, temporaries;
  bool ended = false;  // it returned: there are outputs

  std::string name() const;  // "train_step"
};

// The same Program, which also returns its temporaries: in their order, behind its outputs.
Program with_temporaries_out(const Program& program);

// What is to be built: with the temporaries out where TC_DEBUG_BUFFERS=1 asks for it.
Staged recordable(Staged staged);

// A call while it lasts. Does nothing unless both TC_DEBUG_DIR and TC_DEBUG_CALLS are set;
// throws tc::Error where the latter is neither "all", nor numbers of calls as in "1-3,17", nor
// 0: hashes alone. What cannot be written is told on stderr and changes no result.
class CallRecord {
 public:
  CallRecord(const Graph& graph, std::span<const Tensor> inputs);
  // The graph's outputs of what the code returned: temporaries stand behind them.
  std::vector<Tensor> end(std::vector<Tensor> returned);

 private:
  void write(const char* what, std::span<const Tensor> tensors) const;

  size_t outputs_;
  size_t number_ = 0;  // 0: is not recorded
  std::string graph_;
  bool whole_ = false;  // keeps elements too
};

// calls.txt of a directory; none where there is no such file. Throws tc::Error where it was
// cut, changed or written by another version.
std::vector<RecordedCall> read_calls(const std::string& directory);

// The elements of a recorded tensor, where they were kept. Throws tc::Error where they are not
// what was written.
std::optional<Tensor> kept_tensor(const std::string& directory, const RecordedTensor& tensor);

}  // namespace tiny_compile
