// How do two compiled functions share one gradient? Where the forward part is traced, the graph of
// function and gradient is split (passes/partition.h); its forward half is recorded there, and the
// backward half is put into a list, for the pullback to be traced from.
//
//   vjp(f)(x)  =>  forward: (x) -> y, kept, 0       backward number 0: (x, kept, dy) -> dx
#include "tiny_compile/compile/vjp.h"

#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/passes/partition.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/trace/creation.h"
#include "tiny_compile/trace/custom_vjp.h"
#include "tiny_compile/trace/replay.h"

namespace tiny_compile::detail {
namespace {

std::vector<int> numbers_of_floats(const std::vector<Tensor>& inputs) {
  std::vector<int> result;
  for (size_t k = 0; k < inputs.size(); k++)
    if (is_float(inputs[k].dtype())) result.push_back(static_cast<int>(k));
  return result;
}

// Nothing kept: backward computes all of it from the inputs. What is differentiated in its turn
// needs the custom derivatives, which a split does without.
Halves unsplit(const Graph& function, Graph joint) {
  Halves halves{function, {}, {}};
  joint.outputs.erase(joint.outputs.begin(),
                      joint.outputs.begin() + static_cast<long>(function.outputs.size()));
  halves.backward = dce(joint);
  for (size_t k = 0; k < function.inputs().size(); k++)
    halves.inputs.push_back(static_cast<int>(k));
  return halves;
}

std::string described(const Tensor& x) {
  return x.defined() ? str(x.dtype(), "[", join(x.sizes(), ","), "]") : "undefined";
}

}  // namespace

size_t BackwardList::add(Backwards one) {
  const std::lock_guard lock(mutex_);
  list_.push_back(std::make_shared<const Backwards>(std::move(one)));
  return list_.size() - 1;
}

std::shared_ptr<const Backwards> BackwardList::at(size_t number) const {
  const std::lock_guard lock(mutex_);
  return list_.at(number);
}

Linearized linearize(const TensorFunction& function, const std::vector<Tensor>& inputs) {
  const std::vector<int> wrt = numbers_of_floats(inputs);
  if (wrt.empty()) fail_at(current_place({}), "vjp: no argument has a tensor of floats");
  const auto [graph, operands] = call(function, inputs);
  if (graph.outputs.empty()) fail_at(current_place({}), "vjp: the function returns no tensor");
  const Graph joint = tiny_compile::vjp(graph, wrt);
  const size_t results = graph.outputs.size();
  Halves halves =
      is_differentiated() ? unsplit(graph, joint) : split(joint, results, memory_budget());
  std::vector<Tensor> made = replay(halves.forward, operands);
  Linearized result{{made.begin(), made.begin() + static_cast<long>(results)}, {}, {}};
  for (const int number : halves.inputs) {
    if (number < static_cast<int>(inputs.size()))
      result.backwards.arguments.push_back(number);
    else
      result.kept.push_back(operands[static_cast<size_t>(number)]);
  }
  result.kept.insert(result.kept.end(), made.begin() + static_cast<long>(results), made.end());
  for (const int output : graph.outputs) result.backwards.outputs.push_back(graph[output].type);
  result.backwards.graph = std::move(halves.backward);
  return result;
}

std::vector<Tensor> backward_operands(const Backwards& backwards,
                                      const std::vector<Tensor>& arguments,
                                      const std::vector<Tensor>& kept,
                                      const std::vector<Tensor>& cotangents) {
  const std::vector<Type>& outputs = backwards.outputs;
  if (cotangents.size() != outputs.size())
    fail("pullback: ", cotangents.size(), " cotangents, but the function returned ",
         outputs.size(), " tensors: pass one for each");
  std::vector<Tensor> operands;
  for (const int number : backwards.arguments)
    operands.push_back(arguments[static_cast<size_t>(number)]);
  operands.insert(operands.end(), kept.begin(), kept.end());
  for (size_t k = 0; k < outputs.size(); k++) {
    if (!is_float(outputs[k].dtype)) continue;
    const Tensor& given = cotangents[k];
    const bool fits = given.defined() && given.dtype() == outputs[k].dtype &&
                      given.sizes().exprs() == outputs[k].shape;
    if (!fits)
      fail("pullback: cotangent ", k, " is ", described(given), ", but the function returned ",
           outputs[k].str(), ": pass a cotangent like the result");
    operands.push_back(given);
  }
  return operands;
}

std::vector<Tensor> with_zeros(const std::vector<Tensor>& arguments,
                               const std::vector<Tensor>& gradients) {
  std::vector<Tensor> result;
  size_t next = 0;
  for (const Tensor& argument : arguments)
    result.push_back(is_float(argument.dtype()) ? gradients[next++] : zeros_like(argument));
  return result;
}

std::vector<Tensor> BackwardPart::operator()(const std::vector<Tensor>& operands,
                                             int64_t number) const {
  return replay(backwards->at(static_cast<size_t>(number))->graph, operands);
}

}  // namespace tiny_compile::detail
