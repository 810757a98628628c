// Running a function to write it down: the graph of the ops it called.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tiny_compile/graph/graph.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

// A tensor that the function used but was not given. It became an input of the graph.
struct Captured {
  Tensor tensor;
  std::optional<Variable> variable;  // that it was read from; none: the function made it
};

struct Traced {
  Graph graph;  // inputs: the function's, then captured ones, then the random key
  std::vector<Captured> captured;
  int64_t draws = 0;              // random draws; > 0: the last input is the key u64[2]
  std::vector<Type> given;        // the function's inputs, their sizes as they were given
  std::vector<SizeGuard> guards;  // what the trace assumed of symbolic ones
};

// Calls `function` with tensors that record. `inputs` give dtype, shape and strides. Throws
// what the function throws; tc::Error where it returns a tensor of another trace, assigns to a
// variable that it captured, or while tracing. Each variable from which a tensor was captured is
// an input of its own, for it may hold another one later.
using TensorFunction = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
Traced trace(const TensorFunction& function, std::span<const Tensor> inputs,
             const std::string& name);

// The same with inputs of symbolic sizes, row-major. `example` names a value for each size: what
// code asks for as a number, or compares, is decided by it and noted in `guards`; the sizes that
// it pins are numbers in the graph. Without an example such code is a tc::Error at its line.
//
// Either may be called while a function is traced: what the inner one uses of the outer one's is
// captured, and their symbolic sizes are the same.
Traced trace_symbolic(const TensorFunction& function, const std::vector<Type>& inputs,
                      const std::string& name, const std::optional<SymbolValues>& example = {});

// The one door of every op: records it where a function is traced on this thread, else runs it
// at once. Throws tc::Error at `where` for operands that do not fit.
Tensor apply(Node node, std::span<const Tensor> operands, const Location& where);
inline Tensor apply(Node node, std::initializer_list<Tensor> operands, const Location& where) {
  return apply(std::move(node), std::span<const Tensor>(operands.begin(), operands.size()),
               where);
}

// A new row-major tensor with the values of this one, on its device.
Tensor row_major_copy(const Tensor& tensor);

// compile/eager.cpp: the op of a node whose type is known, at once, on a GPU. CPU operands of
// one element go along. Throws where there is no driver, device or NVRTC.
Tensor apply_on_device(const Node& node, std::span<const Tensor> operands, Device device);

bool is_tracing();
Location recorded_at(const Tensor& traced);  // the line of its op; unknown for an input

// The user's tensor as an operand: while tracing, one with values is captured.
Tensor seen(const Tensor& tensor, const Location& where);

// u64[2]: {seed, number of the first draw}. In a trace: the key input; `draw` counts up
// from 0 there.
struct RandomKey {
  Tensor key;
  int64_t draw = 0;
};
RandomKey next_draw();
std::pair<uint64_t, uint64_t> reserve_draws(
    int64_t count);               // seed, first draw; advances the counter
void manual_seed(uint64_t seed);  // and the counter starts at 0 again

// All ops called while a Scope lives belong to the user's line `where`; the
// outermost scope wins.
class Scope {
 public:
  explicit Scope(const Location& where);  // which must live as long
  explicit Scope(Location&&) = delete;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool outermost_;
};
Location current_place(const Location& fallback);  // the scope's, or the fallback

Location location_of(const Here& here);

}  // namespace tiny_compile
