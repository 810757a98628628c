// How do compiled kernels run? Addresses are collected in one array, kernels are called in
// launch order; a kernel with enough units is shared among OpenMP's threads, a small one runs
// right here.
#include "tiny_compile/runtime/executable.h"

#include <omp.h>

#include <algorithm>
#include <array>

#include "tiny_compile/base/error.h"
#include "tiny_compile/graph/lanes.h"

namespace tiny_compile {
namespace {

constexpr size_t kFewBuffers = 32;  // addresses that need no allocation

template <typename Function>
void run_units(Function function, void* const* buffers, int64_t units, int64_t grain) {
  const int64_t shares =
      std::min<int64_t>(units / std::max<int64_t>(grain, 1), omp_get_max_threads());
  if (shares <= 1 || omp_in_parallel()) return function(buffers, 0, units);
#pragma omp parallel num_threads(static_cast <int>(shares))
  {
    const int64_t share = omp_get_thread_num(), all = omp_get_num_threads();
    function(buffers, units * share / all, units * (share + 1) / all);
  }
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
  errors_ = static_cast<unsigned*>(built_.library->symbol("tc_error_word"));
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

std::vector<Tensor> Executable::run(std::span<const Tensor> inputs) const {
  std::vector<Tensor> made;
  made.reserve(outputs_.size());
  for (const Output& output : outputs_)
    made.push_back(empty_tensor(output.dtype, output.shape));
  std::shared_ptr<Storage> arena;
  if (arena_bytes_ > 0) arena = allocate_cpu(static_cast<size_t>(arena_bytes_));
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
  for (const Kernel& kernel : kernels_)
    run_units(kernel.function, addresses, kernel.units, kernel.grain);
  if (*errors_) throw_errors(__atomic_exchange_n(errors_, 0u, __ATOMIC_RELAXED), name_);
  std::vector<Tensor> results;
  results.reserve(output_of_.size());
  for (int slot : output_of_) results.push_back(slot < 0 ? inputs[-1 - slot] : made[slot]);
  return results;
}

}  // namespace tiny_compile
