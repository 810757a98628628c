// The generated CUDA runs thread by thread on the CPU: what its tests share.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "lessons/tools/threads.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

namespace tiny_compile::threads {

using lessons::Threads;
using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Function = std::function<Out(In)>;

// The source with the prelude in its C++ form and the words that lessons do without.
inline std::string for_cpu(const Source& source) {
  const std::string kernels = source.text.substr(source.text.find("extern \"C\" __global__"));
  const std::string body = cuda_helpers_for(kernels) + kernels;
  return "#define TC_SHARED(name, bytes) alignas(16) static unsigned char name[bytes]\n"
         "#define TC_FN static inline\n#define TC_FAIL(code)\n#define __noinline__\n"
         "static inline unsigned __brev(unsigned x) {\n"
         "  unsigned r = 0;\n"
         "  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);\n"
         "  return r;\n}\n" +
         prelude_for(body, false) + body;
}

// Each once: equal kernels share a function.
inline std::vector<Threads::KernelName> names_of(const Source& source,
                                                 const std::string& prefix = "") {
  std::vector<Threads::KernelName> names;
  for (const KernelEntry& entry : source.kernels) {
    const std::string name = prefix + entry.function;
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const auto& other) { return other.name == name; });
    if (!known) names.push_back({name, static_cast<int>(entry.buffers.size())});
  }
  return names;
}

// Every kernel of the program in turn, on buffers that hold no zeros at first and end with a
// margin that nobody may touch. `machine` runs kernels as Threads does.
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
    if (program.buffers[b].role == Role::Input) addresses[b] = inputs[next++].bytes();
  }
  for (const std::vector<int>& launch : program.launches) {
    for (int kernel : launch) {
      const KernelEntry& entry = source.kernels[static_cast<size_t>(kernel)];
      std::vector<void*> arguments;
      for (int buffer : entry.buffers)
        arguments.push_back(&addresses[static_cast<size_t>(buffer)]);
      machine.run(entry.function, entry.grid, entry.block, arguments);
    }
  }
  std::vector<Tensor> results;
  for (int output : program.outputs) {
    const size_t b = static_cast<size_t>(output);
    const Type& type = program.buffers[b].type;
    Sizes shape;
    for (const Expr& size : type.shape) shape.push_back(size.constant());
    results.push_back(empty_tensor(type.dtype, shape));
    std::memcpy(results.back().bytes(), addresses[b], sizes[b]);
    const auto* end = static_cast<const std::byte*>(addresses[b]) + sizes[b];
    CHECK(std::count(end, end + kMargin / 2, kUntouched) == kMargin / 2);
  }
  return results;
}

inline std::vector<Tensor> run(const Program& program, const Source& source,
                               const std::vector<Tensor>& inputs, bool last_thread_first) {
  Threads threads(for_cpu(source), names_of(source));
  if (last_thread_first) threads.go_last_first();
  return run_on(threads, program, source, inputs);
}

// A batch of rows whose elements lie across them.
inline Tensor turned(int64_t rows, int64_t columns, DType type = float32) {
  return randn({columns, rows}).to(type).t();
}
inline Out softmax_along(In i) { return {softmax(i[0], 1)}; }

// For a GPU that has none, and 64 kB of shared memory for a block.
inline Pipeline without_clusters() {
  return insert_after(default_pipeline(), "schedule", {"small_gpu", [](const Program& program) {
                                                         Program result = program;
                                                         fit_to(result, {false, 64 << 10});
                                                         return result;
                                                       }});
}

// `strategies` are those that the kernels have, in order: "columns rows". The text.
inline std::string check(const Function& function, const std::vector<Tensor>& inputs,
                         const std::string& strategies,
                         const Pipeline& pipeline = default_pipeline()) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Staged all = run_pipeline(pipeline, graph, true, Target::Cuda);
  std::vector<std::string> chosen;
  for (const Kernel& kernel : all.program.kernels) {
    const Strategy strategy = kernel.schedule.strategy;
    chosen.push_back(strategy == Strategy::Columns ? "columns"
                     : strategy == Strategy::Rows  ? "rows"
                                                   : "pointwise");
  }
  CHECK(join(chosen, " ") == strategies);
  REQUIRE(all.source.text.find("__cluster_dims__") == std::string::npos);
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (bool last_thread_first : {false, true}) {
    const std::vector<Tensor> got = run(all.program, all.source, inputs, last_thread_first);
    INFO(print(all.program) + all.source.text.substr(all.source.text.find("extern \"C\"")));
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(got[k], wanted[k]));
  }
  return all.source.text;
}

}  // namespace tiny_compile::threads
