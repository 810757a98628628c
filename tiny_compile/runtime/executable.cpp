// How do compiled kernels run? Kernels are called in launch order, each with the addresses of
// its own buffers; one with enough units is shared among OpenMP's threads, a small one runs right here.
#include "tiny_compile/runtime/executable.h"

#include <omp.h>  // clang has it in a package of its own: libomp-dev, libomp-16-dev

#include "tiny_compile/base/error.h"
#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/runtime/work_stealing.h"

namespace tiny_compile {

Executable::Executable(const Program& program, const Source& source, BuiltLibrary built)
    : name_(program.name),
      suspects_(kernels_with_chosen_places(program)),
      built_(std::move(built)) {
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      void* address = built_.library->symbol(source.kernels[id].function.c_str());
      functions_.push_back(reinterpret_cast<Function>(address));
    }
  }
  if (sizes(program).empty())
    plan_ = plan_call(program, source);
  else
    plans_ = std::make_unique<const CallPlans>(program, source);
  take_errors_ = reinterpret_cast<TakeErrors>(built_.library->symbol("tc_take_errors"));
}

// Error bits of the threads that ran it; those of one alone are still to be taken. The team is always
// all of OpenMP's threads, though some may have nothing to do: GNU's library ends those that a
// smaller team leaves over, and begins them anew for the next larger one.
unsigned Executable::run_kernel(Function function, const KernelEntry& kernel,
                                const std::vector<void*>& buffers) const {
  if (kernel.units.is_constant(0)) return 0;  // of no points: not even what these share
  const int threads = threads_for(kernel);
  const ThreadArguments arguments(buffers, kernel, threads, name_);
  unsigned errors = 0;
  if (threads == 1) {
    function(arguments.of(0), 0, kernel.units.constant());
    return errors;
  }
  WorkStealing work(kernel, threads);
#pragma omp parallel num_threads(omp_get_max_threads()) reduction(| : errors)
  if (const int thread = omp_get_thread_num(); thread < threads) {
    while (const auto piece = work.take(thread))
      function(arguments.of(thread), piece->begin, piece->end);
    errors |= take_errors_();
  }
  return errors;
}

std::vector<Tensor> Executable::run(std::span<const Tensor> inputs) const {
  if (!plans_) return run(plan_, inputs);
  const std::shared_ptr<const CallPlan> plan = plans_->of(inputs);
  return run(*plan, laid_out(*plan, inputs));
}

std::vector<Tensor> Executable::run(const CallPlan& plan,
                                    std::span<const Tensor> inputs) const {
  BufferSet buffers = make_buffers(plan.buffers, inputs, allocate_cpu, name_);
  Overwriting overwriting(plan.buffers, inputs, name_);
  unsigned errors = 0;
  std::vector<void*> addresses;
  for (size_t k = 0; k < functions_.size(); k++) {
    const CallPlan::Kernel& kernel = plan.kernels[k];
    addresses.clear();
    for (int buffer : kernel.entry.buffers) addresses.push_back(buffers.addresses[buffer]);
    if (!kernel.sizes.empty()) addresses.push_back(const_cast<long long*>(kernel.sizes.data()));
    errors |= run_kernel(functions_[k], kernel.entry, addresses);
  }
  if ((errors |= take_errors_())) throw_errors(errors, name_, suspects_);
  overwriting.ended_well();
  return results_of(plan.buffers, inputs, std::move(buffers));
}

}  // namespace tiny_compile
