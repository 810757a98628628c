// Where a Program's buffers lie at a call: inputs, new outputs, places in one arena.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tiny_compile/loops/program.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct BufferPlan {
  struct Place {
    Role role = Role::Temporary;
    int slot = 0;       // the input or output it is
    int64_t bytes = 0;  // inputs: from element [0,...,0] down to the lowest; temporaries: place
    int64_t width = 0;  // of an element
  };
  struct Output {
    DType dtype = DType::f32;
    LayoutPointer layout;
    size_t bytes = 0;
    int over = -1;  // the donated input whose memory it takes
  };
  std::vector<Place> places;      // of each buffer
  std::vector<Output> outputs;    // tensors to make
  std::vector<size_t> new_bytes;  // of those of them that take no input's memory
  std::vector<int> returned;      // of each returned value: an output, or -1 - an input
  bool returns_once = true;       // each output at most
  int64_t arena_bytes = 0;
};

// Temporaries without a place get one of their own.
BufferPlan plan_buffers(const Program& program);

// What the plan needs at one call.
struct BufferSet {
  std::vector<Tensor> made;
  std::shared_ptr<Storage> arena;
  std::vector<void*> addresses;  // of each buffer's lowest element
};

// Takes a tensor's values away, views of which keep theirs: whoever uses it is told why.
void take_away(const Tensor& tensor, const std::string& why);

// While kernels write over donated inputs: what these hold is lost if a kernel fails. Then their
// tensors say so to whoever uses them; after a good end, that they were donated.
class Overwriting {
 public:
  // The name is to live as long.
  Overwriting(const BufferPlan& plan, std::span<const Tensor> inputs, const std::string& name);
  ~Overwriting();
  Overwriting(const Overwriting&) = delete;
  Overwriting& operator=(const Overwriting&) = delete;
  void ended_well() { is_good_ = true; }

 private:
  std::vector<Tensor> inputs_;
  const std::string& name_;
  bool is_good_ = false;
};

using Allocate = std::function<std::shared_ptr<Storage>(size_t bytes)>;

// Throws what `allocate` throws, with the function's name before it. `spare`: memory that is at
// hand for plan.new_bytes, in order; null where there was none.
BufferSet make_buffers(const BufferPlan& plan, std::span<const Tensor> inputs,
                       const Allocate& allocate, const std::string& name,
                       std::vector<std::shared_ptr<Storage>> spare = {});

// The returned values: tensors just made, or inputs that the function returns as they are.
std::vector<Tensor> results_of(const BufferPlan& plan, std::span<const Tensor> inputs,
                               BufferSet buffers);

}  // namespace tiny_compile
