// The generated CUDA runs thread by thread on the CPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "lessons/tools/threads.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/codegen/cuda_group.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/runtime/call_plan.h"
#include "tiny_compile/tiny_compile.h"

namespace tiny_compile::threads {

using lessons::Threads;

// Its kernels and what comes between them, less the one that hands errors over.
inline std::string kernels_of(const Source& source) {
  const size_t first = std::min(
      {source.text.find("// Scans:"), source.text.find("// Sorts:"),
       source.text.find("#if !defined(TC_UNIT)"), source.text.find("extern \"C\" __global__"),
       source.text.find("static __device__ void block_of_"), source.text.size()});
  std::string text = source.text.substr(first);
  const size_t begin = text.find("\n// Behind a call:");
  if (begin != std::string::npos) text.erase(begin, text.find("\n}\n", begin) + 2 - begin);
  return text;
}

// The source with the prelude in its C++ form and the words that lessons do without.
inline std::string for_cpu(const Source& source) {
  const std::string kernels = kernels_of(source);
  Calls calls = source.calls;
  const std::string body = cuda_helpers_for(calls) + kernels;
  return "#define TC_SHARED(name, bytes) alignas(16) static unsigned char name[bytes]\n"
         "#define TC_FN static inline\n#define TC_FAIL(code)\n#define __noinline__\n"
         "#define __builtin_assume(known)\n"
         "static inline unsigned __brev(unsigned x) {\n"
         "  unsigned r = 0;\n"
         "  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);\n"
         "  return r;\n}\n"
         "static inline int __popc(unsigned x) { return __builtin_popcount(x); }\n"
         "static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }\n"
         "static inline int atomicCAS(int* at, int from, int to) {\n"
         "  const int old = *at;\n"
         "  if (old == from) *at = to;\n"
         "  return old;\n}\n"
         "static inline unsigned __match_any_sync(unsigned, int value) {\n"
         "  static int values[32][32];\n"
         "  int* const all = values[threadIdx.x / 32];\n"
         "  all[threadIdx.x & 31] = value;\n"
         "  __syncwarp();\n"
         "  unsigned same = 0;\n"
         "  for (int k = 0; k < 32; k++) same |= (unsigned)(all[k] == value) << k;\n"
         "  __syncwarp();\n"
         "  return same;\n}\n"
         "static inline unsigned __ballot_sync(unsigned, bool vote) {\n"
         "  static unsigned votes[32];\n"
         "  unsigned& mine = votes[threadIdx.x / 32];\n"
         "  const unsigned bit = 1u << (threadIdx.x & 31);\n"
         "  mine = vote ? mine | bit : mine & ~bit;\n"
         "  __syncwarp();\n"
         "  const unsigned all = mine;\n"
         "  __syncwarp();\n"
         "  return all;\n}\n" +
         prelude_for(calls, false) + body;
}

// Each once: equal kernels share a function.
inline std::vector<Threads::KernelName> names_of(const Source& source,
                                                 const std::string& prefix = "") {
  std::vector<Threads::KernelName> names;
  std::vector<KernelEntry> entries = source.kernels;
  for (const KernelEntry& entry : source.kernels)
    entries.insert(entries.end(), entry.sized.begin(), entry.sized.end());
  for (const KernelEntry& entry : entries) {
    const std::string name = prefix + entry.function;
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const auto& other) { return other.name == name; });
    const size_t all = entry.buffers.size() + entry.sizes.size();
    const int parameters = entry.room > 0 ? 1 : static_cast<int>(all);
    if (!known) names.push_back({name, parameters});
  }
  return names;
}

// Source and program of these sizes.
inline Source with_numbers(Source source, const Substitution& numbers) {
  for (KernelEntry& entry : source.kernels) entry = tiny_compile::with_numbers(entry, numbers);
  return source;
}

// Every kernel of the program in turn, on buffers that hold no zeros at first and end with a
// margin; throws tc::Error where one was touched. `machine` runs kernels as Threads does.
template <typename Machine>
std::vector<Tensor> run_on(Machine& machine, const Program& program, const Source& source,
                           const std::vector<Tensor>& inputs) {
  constexpr size_t kMargin = 64;
  constexpr std::byte kUntouched{0x7f};
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> addresses;
  std::vector<size_t> sizes;
  for (const Buffer& buffer : program.buffers) {
    sizes.push_back(static_cast<size_t>(buffer.size.constant()) * size_of(buffer.type.dtype));
    memory.emplace_back(sizes.back() + 2 * kMargin, kUntouched);
    void* start = memory.back().data();
    size_t room = sizes.back() + kMargin;
    addresses.push_back(std::align(16, sizes.back(), start, room));
  }
  for (size_t next = 0, b = 0; b < program.buffers.size(); b++) {
    if (program.buffers[b].role != Role::Input) continue;
    const Tensor& input = inputs[next++];
    if (program.buffers[b].donated)
      std::memcpy(addresses[b], input.bytes(), sizes[b]);  // the caller runs it again
    else
      addresses[b] = input.bytes();
  }
  for (size_t b = 0; b < addresses.size(); b++)
    addresses[b] = addresses[static_cast<size_t>(storage_of(program, static_cast<int>(b)))];
  for (const std::vector<int>& launch : program.launches) {
    for (const Start& start : starts_of(source.kernels, launch)) {
      const KernelEntry& entry = source.kernels[static_cast<size_t>(start.kernels[0])];
      std::vector<int64_t> table;
      if (entry.room > 0) table = table_of(source.kernels, start, addresses);
      std::vector<void*> arguments;
      for (int buffer : entry.buffers)
        arguments.push_back(&addresses[static_cast<size_t>(buffer)]);
      if (entry.room > 0) arguments = {table.data()};
      std::vector<long long> numbers;
      for (const Expr& size : entry.sizes) numbers.push_back(size.constant());
      for (long long& number : numbers) arguments.push_back(&number);
      machine.run(entry.function, start.grid, entry.block, arguments);
    }
  }
  std::vector<Tensor> results;
  for (int output : program.outputs) {
    const size_t b = static_cast<size_t>(output);
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::Input) {
      const auto before =
          std::count_if(program.buffers.begin(), program.buffers.begin() + output,
                        [](const Buffer& x) { return x.role == Role::Input; });
      results.push_back(inputs[static_cast<size_t>(before)]);
      continue;
    }
    Sizes shape;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    results.push_back(empty_tensor(buffer.type.dtype, shape));
    std::memcpy(results.back().bytes(), addresses[b], sizes[b]);
    const auto* end = static_cast<const std::byte*>(addresses[b]) + sizes[b];
    if (std::count(end, end + kMargin / 2, kUntouched) != kMargin / 2)
      fail("a kernel of ", program.name, " wrote behind ", buffer.name);
  }
  return results;
}

inline std::vector<Tensor> run(const Program& program, const Source& source,
                               const std::vector<Tensor>& inputs, bool last_thread_first) {
  Threads threads(for_cpu(source), names_of(source));
  if (last_thread_first) threads.go_last_first();
  return run_on(threads, program, source, inputs);
}

}  // namespace tiny_compile::threads
