// How do compiled kernels run? Kernels are called in launch order, each with the addresses of
// its own buffers; one with enough units is shared among OpenMP's threads, a small one runs right here.
#include "tiny_compile/runtime/executable.h"

#include <omp.h>  // clang has it in a package of its own: libomp-dev, libomp-16-dev

#include "tiny_compile/base/error.h"
#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/runtime/shares.h"

namespace tiny_compile {

Executable::Executable(const Program& program, const Source& source, BuiltLibrary built)
    : name_(program.name),
      suspects_(kernels_with_chosen_places(program)),
      built_(std::move(built)),
      plan_(plan_buffers(program)) {
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      void* address = built_.library->symbol(source.kernels[id].function.c_str());
      kernels_.push_back({reinterpret_cast<Function>(address), source.kernels[id]});
    }
  }
  take_errors_ = reinterpret_cast<TakeErrors>(built_.library->symbol("tc_take_errors"));
}

// Error bits of the threads that ran it; those of one alone are still to be taken. The team is always
// all of OpenMP's threads, though some may have nothing to do: GNU's library ends those that a
// smaller team leaves over, and begins them anew for the next larger one.
unsigned Executable::run_kernel(const Kernel& kernel, const std::vector<void*>& buffers) const {
  const int threads = threads_for(kernel.entry);
  const Arguments arguments(buffers, kernel.entry, threads, name_);
  unsigned errors = 0;
  if (threads == 1) {
    kernel.function(arguments.of(0), 0, kernel.entry.units);
    return errors;
  }
  Shares shares(kernel.entry, threads);
#pragma omp parallel num_threads(omp_get_max_threads()) reduction(| : errors)
  if (const int thread = omp_get_thread_num(); thread < threads) {
    while (const auto piece = shares.take(thread))
      kernel.function(arguments.of(thread), piece->begin, piece->end);
    errors |= take_errors_();
  }
  return errors;
}

std::vector<Tensor> Executable::run(std::span<const Tensor> inputs) const {
  BufferSet buffers = make_buffers(plan_, inputs, allocate_cpu, name_);
  Overwriting overwriting(plan_, inputs, name_);
  unsigned errors = 0;
  std::vector<void*> addresses;
  for (const Kernel& kernel : kernels_) {
    addresses.clear();
    for (int buffer : kernel.entry.buffers) addresses.push_back(buffers.addresses[buffer]);
    errors |= run_kernel(kernel, addresses);
  }
  if ((errors |= take_errors_())) throw_errors(errors, name_, suspects_);
  overwriting.ended_well();
  return results_of(plan_, inputs, std::move(buffers));
}

}  // namespace tiny_compile
