// How does one text run for many sizes? What it leaves open follows from the inputs' shapes: numbers
// for its sizes, with them the bytes of each buffer, places in the arena, and units of each kernel.
//
//   program f[n: 1..4096] { input x: f32[n,3] .. }, called with x: f32[37,3]
// =>
//   sizes {37}, out: 444 bytes, kernel f: 111 units (on a GPU: a block)
//
// A later call of the same shapes finds them as they are; the plans of the last calls are kept.
#include "tiny_compile/runtime/call_plan.h"

#include <algorithm>

#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostKept = 64;

CallPlan::Kernel kernel_with(const KernelEntry& entry, const Substitution& numbers) {
  CallPlan::Kernel kernel{with_numbers(entry, numbers), {}};
  for (const Expr& size : kernel.entry.sizes) kernel.sizes.push_back(size.constant());
  return kernel;
}

CallPlan plan_with(const Program& program, const std::vector<KernelEntry>& entries,
                   const Substitution& numbers) {
  CallPlan plan{plan_buffers(program), {}, {}};
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) plan.kernels.push_back(kernel_with(entries[id], numbers));
  }
  return plan;
}

bool lies_as(const Buffer& buffer, const Tensor& input) {
  if (buffer.strides.empty()) return input.is_contiguous();
  return std::equal(buffer.strides.begin(), buffer.strides.end(), input.strides().begin(),
                    [](const Expr& a, int64_t b) { return a.is_constant(b); });
}

std::vector<int64_t> key_of(std::span<const Tensor> inputs) {
  std::vector<int64_t> key;
  for (const Tensor& input : inputs) {
    key.push_back(static_cast<int64_t>(input.dtype()));
    key.push_back(static_cast<int64_t>(input.shape().size()));
    key.insert(key.end(), input.shape().begin(), input.shape().end());
  }
  return key;
}

}  // namespace

KernelEntry with_numbers(KernelEntry entry, const Substitution& numbers) {
  for (const KernelEntry& one : entry.sized)
    if (hold(one.when, numbers)) return with_numbers(one, numbers);
  entry.units = substitute(entry.units, numbers);
  entry.grain = substitute(entry.grain, numbers);
  entry.own_bytes = substitute(entry.own_bytes, numbers);
  entry.grid = substitute(entry.grid, numbers);
  for (Expr& size : entry.sizes) size = substitute(size, numbers);
  return entry;
}

CallPlan plan_call(const Program& program, const Source& source, const Substitution& numbers) {
  if (numbers.empty()) return plan_with(program, source.kernels, {});
  const Program sized = with_buffers_for(program, numbers);
  CallPlan plan = plan_with(sized, source.kernels, numbers);
  for (const Buffer& buffer : sized.buffers) {
    if (buffer.role == Role::Input) plan.inputs.push_back(buffer);
  }
  return plan;
}

CallPlans::CallPlans(Program program, const Source& source)
    : program_(std::move(program)), entries_(source.kernels) {}

std::shared_ptr<const CallPlan> CallPlans::of(std::span<const Tensor> inputs) const {
  const Key key = key_of(inputs);
  if (auto plan = find(key)) return plan;
  const Substitution numbers = sizes_of_call(program_, inputs);
  const auto plan =
      std::make_shared<const CallPlan>(plan_call(program_, Source{"", entries_}, numbers));
  if (inputs.size() != plan->inputs.size())
    fail("program ", program_.name, " has ", plan->inputs.size(), " inputs, but was given ",
         inputs.size());
  for (size_t k = 0; k < inputs.size(); k++) check_input(plan->inputs[k], inputs[k]);
  remember(key, plan);
  return plan;
}

std::shared_ptr<const CallPlan> CallPlans::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& known) { return known.key == key; });
  if (found == known_.end()) return nullptr;
  std::rotate(found, found + 1, known_.end());
  return known_.back().plan;
}

void CallPlans::remember(const Key& key, std::shared_ptr<const CallPlan> plan) const {
  const std::lock_guard lock(mutex_);
  if (known_.size() == kMostKept) known_.erase(known_.begin());
  known_.push_back({key, std::move(plan)});
}

std::vector<Tensor> laid_out(const CallPlan& plan, std::span<const Tensor> inputs) {
  std::vector<Tensor> result(inputs.begin(), inputs.end());
  for (size_t k = 0; k < result.size(); k++) {
    const Buffer& buffer = plan.inputs[k];
    if (lies_as(buffer, result[k])) continue;
    if (!buffer.strides.empty())
      fail("input ", buffer.name, " has the strides ", join(result[k].strides(), ","),
           ", and the program is for ", join(buffer.strides, ","));
    result[k] = copy_to(contiguous_copy(result[k]), result[k].device());
  }
  return result;
}

}  // namespace tiny_compile
