// How does one trace serve many sizes? The axes that the options name have symbols, with numbers that
// decide what the function asks about them:
//
//   dynamic = {{0, 0}}, x: f32[37,8]   =>   x: f32[n0,8], n0 = 37 in 2..16777216
//
// Another call may use it where its sizes fit, and where the function would have been told the same.
#include "tiny_compile/compile/dynamic.h"

#include <algorithm>

#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/trace/admits.h"

namespace tiny_compile {
namespace {

constexpr int kAligned = 16;              // bytes
constexpr int64_t kMostOfSize = 1 << 24;  // of a symbolic one

// What is compiled for all sizes takes a GPU's vectors wherever it is given them.
bool may_be_sized(const Tensor& tensor) {
  return tensor.device() == cpu || alignment(tensor) >= kAligned;
}

bool is_symbolic(const Type& type) {
  return !std::all_of(type.shape.begin(), type.shape.end(),
                      [](const Expr& size) { return size.is_constant(); });
}

}  // namespace

// A size of 0, of 1 or of more than a symbol stands for is a number.
std::optional<SymbolicInputs> symbolic_inputs(const CompileOptions& options,
                                              const std::vector<Tensor>& inputs) {
  if (!std::all_of(inputs.begin(), inputs.end(), may_be_sized)) return std::nullopt;
  SymbolicInputs result;
  for (const Tensor& input : inputs)
    result.types.push_back({input.dtype(), Shape(input.shape().begin(), input.shape().end())});
  for (const auto& [tensor, axis] : options.dynamic) {
    const bool exists =
        tensor >= 0 && tensor < std::ssize(inputs) && axis >= 0 && axis < inputs[tensor].rank();
    if (!exists)
      fail(options.name, ": dynamic names axis ", axis, " of tensor ", tensor, " of ",
           inputs.size(), ", which is none");
    const int64_t number = inputs[tensor].shape()[axis];
    if (number < 2 || number > kMostOfSize) continue;
    const auto same = [&](const auto& known) { return known.second == number; };
    auto known = std::find_if(result.example.begin(), result.example.end(), same);
    if (known == result.example.end()) {
      const Symbol symbol = {str("n", result.example.size()), SymbolKind::Size};
      known = result.example.insert(known, {symbol, number});
    }
    result.types[tensor].shape[axis] = Expr::symbol(known->first, 2, kMostOfSize);
  }
  if (result.example.empty()) return std::nullopt;
  return result;
}

bool SizedTrace::admits(std::span<const Tensor> inputs) const {
  for (size_t k = 0; k < inputs.size(); k++) {
    if (k >= devices.size() || inputs[k].device() != devices[k] || !may_be_sized(inputs[k]))
      return false;
  }
  return tiny_compile::admits(traced, inputs);
}

std::optional<SizedTrace> sized_trace(const Traced& traced, const std::vector<Tensor>& inputs) {
  if (std::none_of(traced.given.begin(), traced.given.end(), is_symbolic)) return std::nullopt;
  SizedTrace result;
  result.traced.given = traced.given;
  result.traced.guards = traced.guards;
  for (const Tensor& input : inputs) result.devices.push_back(input.device());
  return result;
}

}  // namespace tiny_compile
