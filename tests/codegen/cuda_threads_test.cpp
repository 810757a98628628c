// The generated CUDA on a machine without a GPU: its text runs thread by thread on the CPU and has
// the interpreter's bits. Clusters are for GPUs alone.
#include <cstring>

#include "lessons/tools/threads.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using lessons::Threads;

namespace {

using Out = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Function = std::function<Out(In)>;

// The source with the prelude in its C++ form and the words that lessons do without.
std::string for_cpu(const Source& source) {
  const std::string kernels = source.text.substr(source.text.find("extern \"C\" __global__"));
  const std::string body = cuda_helpers_for(kernels) + kernels;
  return "#define TC_FN static inline\n#define TC_FAIL(code)\n#define __noinline__\n"
         "static inline unsigned __brev(unsigned x) {\n"
         "  unsigned r = 0;\n"
         "  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);\n"
         "  return r;\n}\n" +
         prelude_for(body, false) + body;
}

Threads threads_of(const Source& source) {
  std::vector<Threads::KernelName> names;
  for (const KernelEntry& entry : source.kernels)
    names.push_back({entry.function, static_cast<int>(entry.buffers.size())});
  return Threads(for_cpu(source), names);
}

// Every kernel of the program in turn, on buffers that hold no zeros at first.
void run(const Program& program, const Source& source, const std::vector<void*>& inputs,
         std::vector<std::vector<std::byte>>& memory) {
  Threads threads = threads_of(source);
  std::vector<void*> addresses;
  size_t next = 0;
  for (const Buffer& buffer : program.buffers) {
    const size_t bytes =
        static_cast<size_t>(buffer.size.constant()) * size_of(buffer.type.dtype);
    memory.emplace_back(bytes + 32, std::byte{0x7f});
    void* start = memory.back().data();
    size_t room = bytes + 32;
    addresses.push_back(buffer.role == Role::Input ? inputs[next++]
                                                   : std::align(16, bytes, start, room));
  }
  for (const std::vector<int>& launch : program.launches) {
    for (int kernel : launch) {
      const KernelEntry& entry = source.kernels[static_cast<size_t>(kernel)];
      std::vector<void*> arguments;
      for (int buffer : entry.buffers)
        arguments.push_back(&addresses[static_cast<size_t>(buffer)]);
      threads.run(entry.function, entry.grid, entry.block, arguments);
    }
  }
  for (int output : program.outputs) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(output)];
    const size_t bytes =
        static_cast<size_t>(buffer.size.constant()) * size_of(buffer.type.dtype);
    std::memmove(memory[static_cast<size_t>(output)].data(),
                 addresses[static_cast<size_t>(output)], bytes);
  }
}

// `strategies` are those that the kernels have, in order: "columns rows".
void check(const Function& function, const std::vector<Tensor>& inputs,
           const std::string& strategies, const Pipeline& pipeline = default_pipeline()) {
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
  std::vector<void*> addresses;
  for (const Tensor& input : inputs) addresses.push_back(input.bytes());
  std::vector<std::vector<std::byte>> memory;
  run(all.program, all.source, addresses, memory);
  const std::vector<Tensor> wanted = interpret(graph, inputs);
  for (size_t k = 0; k < wanted.size(); k++) {
    const size_t bytes = static_cast<size_t>(wanted[k].numel()) * size_of(wanted[k].dtype());
    INFO(print(all.program));
    CHECK(std::memcmp(memory[static_cast<size_t>(all.program.outputs[k])].data(),
                      wanted[k].bytes(), bytes) == 0);
  }
}

Tensor every(int64_t step, const Tensor& x) { return x.slice(1, 0, x.size(1), step); }
Out sum_down(In i) { return {i[0].sum(0)}; }
Out softmax_along(In i) { return {softmax(i[0], 1)}; }

}  // namespace

TEST_CASE("columns thread by thread, strided ones, and chunks of a few", "[codegen][threads]") {
  manual_seed(3);
  check(sum_down, {every(2, randn({900, 80}))}, "columns");
  check(sum_down, {every(3, randn({70, 150}))}, "columns");
  check(sum_down, {randn({17000, 127})}, "columns rows");
  check(sum_down, {randn({17000, 7})}, "rows rows");
  check(sum_down, {randn({17000, 131})}, "columns rows");
  check(sum_down, {every(2, randn({17000, 262}))}, "columns rows");
}

TEST_CASE("rows thread by thread: whole chunks, partial ones, divisors out of range",
          "[codegen][threads]") {
  manual_seed(4);
  check(softmax_along, {randn({9, 1000})}, "rows");
  check(softmax_along, {every(2, randn({5, 2002}))}, "rows");
  check([](In i) { return Out{softmax(i[0] * 40.0, 1)}; }, {randn({3, 4097})}, "rows");
  check([](In i) { return Out{i[0] / (i[0].sum(1, true) * 1e-25)}; }, {randn({3, 1025})},
        "rows");
}

TEST_CASE("rows thread by thread with as many warps as the schedule asks for",
          "[codegen][threads]") {
  manual_seed(6);
  const Pipeline two_warps =
      insert_after(default_pipeline(), "schedule", {"two_warps", [](const Program& program) {
                                                      Program result = program;
                                                      for (Kernel& kernel : result.kernels)
                                                        kernel.schedule.warps_per_row = 2;
                                                      return result;
                                                    }});
  for (int64_t length : {1000, 4097, 9001})  // by default a cluster shares the last
    check(softmax_along, {randn({2, length})}, "rows", two_warps);
}

TEST_CASE("points thread by thread: packs across rows, operands turned in tiles",
          "[codegen][threads]") {
  manual_seed(5);
  check([](In i) { return Out{gelu(i[0] + i[1])}; }, {randn({33, 1023}), randn({1023})},
        "pointwise");
  check([](In i) { return Out{gelu(i[0] + i[1])}; },
        {randn({33, 127}).to(bfloat16), randn({127}).to(bfloat16)}, "pointwise");
  check([](In i) { return Out{tanh(i[0] * i[1] + i[2])}; },
        {randn({70, 45}).t(), randn({70, 45}).t(), randn({45, 70})}, "pointwise");
}

TEST_CASE("an index is compared with integers that no index can be", "[codegen][threads]") {
  const Tensor labels =
      from_vector<int64_t>({3, -1, 0, (int64_t{1} << 32) + 3, 69, -(int64_t{1} << 40)});
  const auto one_hot = [](In i) {
    return Out{where(arange(70).unsqueeze(0) == i[0].unsqueeze(1), i[1], -i[1])};
  };
  check(one_hot, {labels, ones({6, 70})}, "pointwise");
}

TEST_CASE("folds thread by thread: columns summed while a block goes over its rows",
          "[codegen][threads]") {
  manual_seed(7);
  const auto gradients = [](In i) {
    const Tensor h = i[0] * rsqrt((i[0] * i[0]).mean(-1, true) + 1e-5);
    return Out{h + i[1], (i[1] * h).sum(0), i[1].sum(0)};
  };
  check(gradients, {randn({4096, 128}), randn({4096, 128})}, "rows columns");
  check(gradients, {randn({5120, 129}), randn({5120, 129})}, "rows columns");
}
