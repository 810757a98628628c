// How do compiled kernels run? Addresses are collected in one array, kernels are called in
// launch order; a kernel with enough units is shared among OpenMP's threads, a small one runs
// right here.
#include "tiny_compile/runtime/executable.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tiny_compile/base/error.h"
#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

constexpr size_t kFewBuffers = 32;  // addresses that need no allocation

// OpenMP's threads do not follow a fork: a child that asked for them would wait for ever.
bool has_threads() {
  static const pid_t first = getpid();
  return getpid() == first;
}

}  // namespace

Executable::Executable(const Program& program, const CppSource& source, BuiltLibrary built)
    : name_(program.name), built_(std::move(built)), arena_bytes_(program.arena_bytes) {
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      const CppKernel& kernel = source.kernels[id];
      void* address = built_.library->symbol(kernel.function.c_str());
      kernels_.push_back({reinterpret_cast<Function>(address), kernel.units, kernel.grain});
    }
  }
  take_errors_ = reinterpret_cast<TakeErrors>(built_.library->symbol("tc_take_errors"));
  int inputs = 0;
  for (const Buffer& buffer : program.buffers) {
    const int64_t width = static_cast<int64_t>(size_of(buffer.type.dtype));
    Place place{buffer.role, 0, 0};
    if (buffer.role == Role::Input)
      place = {Role::Input, inputs++, buffer.offset.constant() * width};
    if (buffer.role == Role::Temporary && buffer.place >= 0) place.bytes = buffer.place;
    if (buffer.role == Role::Temporary && buffer.place < 0) {  // unplanned: each its own bytes
      place.bytes = arena_bytes_;
      arena_bytes_ += (buffer.size.constant() * width + 63) / 64 * 64;
    }
    if (buffer.role == Role::Output) {
      Output output;
      output.dtype = buffer.type.dtype;
      for (const Expr& size : buffer.type.shape) output.shape.push_back(size.constant());
      place.slot = static_cast<int>(outputs_.size());
      outputs_.push_back(std::move(output));
    }
    places_.push_back(place);
  }
  for (int buffer : program.outputs) {
    const Place& place = places_[buffer];
    output_of_.push_back(place.role == Role::Input ? -1 - place.slot : place.slot);
  }
}

// Error bits of the threads that ran it, the calling one left out.
unsigned Executable::run_kernel(const Kernel& kernel, void* const* buffers) const {
  const int64_t units = kernel.units;
  const int64_t shares =
      std::min<int64_t>(units / std::max<int64_t>(kernel.grain, 1), omp_get_max_threads());
  unsigned errors = 0;
  if (shares <= 1 || omp_in_parallel() || !has_threads()) {
    kernel.function(buffers, 0, units);
    return errors;
  }
#pragma omp parallel num_threads(static_cast <int>(shares)) reduction(| : errors)
  {
    const int64_t share = omp_get_thread_num(), all = omp_get_num_threads();
    kernel.function(buffers, units * share / all, units * (share + 1) / all);
    errors |= take_errors_();
  }
  return errors;
}

// The arena for temporaries (null where there are none) and, in `made`, the outputs.
std::shared_ptr<Storage> Executable::allocate_outputs(std::vector<Tensor>& made) const {
  try {
    for (const Output& output : outputs_)
      made.push_back(empty_tensor(output.dtype, output.shape));
    return arena_bytes_ > 0 ? allocate_cpu(static_cast<size_t>(arena_bytes_)) : nullptr;
  } catch (const Error& error) {
    fail(name_, ", compiled: ", error.what());
  }
}

std::vector<Tensor> Executable::run(std::span<const Tensor> inputs) const {
  std::vector<Tensor> made;
  made.reserve(outputs_.size());
  const std::shared_ptr<Storage> arena = allocate_outputs(made);
  std::array<void*, kFewBuffers> few;
  std::vector<void*> many(places_.size() > kFewBuffers ? places_.size() : 0);
  void** addresses = many.empty() ? few.data() : many.data();
  for (size_t b = 0; b < places_.size(); b++) {
    const Place& place = places_[b];
    addresses[b] = place.role == Role::Input    ? inputs[place.slot].bytes() - place.bytes
                   : place.role == Role::Output ? made[place.slot].bytes()
                   : arena                      ? arena->data() + place.bytes
                                                : nullptr;  // a temporary without elements
  }
  unsigned errors = 0;
  for (const Kernel& kernel : kernels_) errors |= run_kernel(kernel, addresses);
  if ((errors |= take_errors_())) throw_errors(errors, name_);
  std::vector<Tensor> results;
  results.reserve(output_of_.size());
  for (int slot : output_of_) results.push_back(slot < 0 ? inputs[-1 - slot] : made[slot]);
  return results;
}

}  // namespace tiny_compile
