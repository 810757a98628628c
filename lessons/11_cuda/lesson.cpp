// Lesson 11: who runs which iteration on a GPU?   build/lessons/11 [part]
#include "lessons/tools/lesson.h"

#include <chrono>
#include <cmath>

#include "lessons/tools/threads.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_memory.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

Tensor add_bias(Tensor x, Tensor bias) { return x + bias; }
Tensor row_sums(Tensor x) { return x.sum(-1); }

// Traced on the CPU, compiled for a GPU: nothing of that needs one.
template <typename Function, typename... Inputs>
Staged staged(const Function& function, const Inputs&... inputs) {
  const Graph graph = compile(function).specialization(inputs...).traced.graph;
  return run_pipeline(pipeline(), graph, true, Target::Cuda);
}

Staged staged_add() { return staged(add_bias, zeros({1000, 1024}), zeros({1024})); }

std::string kernels_of(const std::string& text) {
  return text.substr(text.find("extern \"C\" __global__"));
}

void show_kernel() {
  const Program program = staged_add().program;
  std::printf("%s", print(program, program.kernels[0]).c_str());
}

void show_launch(const Staged& all) {
  for (const KernelEntry& kernel : all.source.kernels)
    std::printf("launch %s<<<%lld, %d>>>\n", kernel.function.c_str(),
                static_cast<long long>(kernel.grid.constant()), kernel.block);
}

void show_text() {
  const Staged all = staged_add();
  std::printf("%s\n", kernels_of(all.source.text).c_str());
  show_launch(all);
}

// The kernels as text that the CPU can run: the prelude in its C++ form.
std::string for_cpu(const Source& source) {
  const std::string kernels = kernels_of(source.text);
  Calls calls = source.calls;
  const std::string body = cuda_helpers_for(calls) + kernels;
  return "#define TC_FN static inline\n#define TC_FAIL(code)\n" + prelude_for(calls, false) +
         body;
}

// Runs the only kernel of a program on the CPU, thread by thread.
Tensor run_threads(const Staged& all, std::vector<Tensor> inputs,
                   const std::function<void(int64_t, int, const float*)>& after = {}) {
  const KernelEntry& entry = all.source.kernels[0];
  const int count = static_cast<int>(entry.buffers.size());
  Threads threads(for_cpu(all.source), {{entry.function, count}});
  Tensor result = interpret(all.program, inputs)[0];  // room of the right shape
  std::vector<float> values(static_cast<size_t>(result.numel()), NAN);
  std::vector<void*> buffers;
  size_t next = 0;
  for (const Buffer& buffer : all.program.buffers)
    buffers.push_back(buffer.role == Role::Input ? inputs[next++].data<float>()
                                                 : values.data());
  std::vector<void*> arguments;
  for (int buffer : entry.buffers) arguments.push_back(&buffers[static_cast<size_t>(buffer)]);
  threads.run(entry.function, entry.grid.constant(), entry.block, arguments,
              [&](int64_t block, int thread) {
                if (after) after(block, thread, values.data());
              });
  return from_vector<float>(values, result.shape());
}

std::vector<Tensor> add_inputs() {
  manual_seed(1);
  return {randn({1000, 1024}), randn({1024})};
}

// Which thread writes an element? Each is watched until it stops being NaN.
void show_who() {
  struct Watched {
    int row, column;
    bool seen = false;
  };
  std::vector<Watched> all = {{0, 0}, {0, 3}, {0, 4}, {0, 1023}, {1, 0}, {3, 500}, {999, 1023}};
  run_threads(staged_add(), add_inputs(), [&](int64_t block, int thread, const float* values) {
    for (Watched& one : all) {
      if (one.seen || std::isnan(values[one.row * 1024 + one.column])) continue;
      one.seen = true;
      std::printf("y[%d, %d] is written by block %lld, thread %d\n", one.row, one.column,
                  static_cast<long long>(block), thread);
    }
  });
}

void compare(const char* title, const Staged& all, const std::vector<Tensor>& inputs) {
  const Tensor wanted = interpret(all.program, inputs)[0], got = run_threads(all, inputs);
  std::printf("%s: %lld blocks of %d threads, %s\n", title,
              static_cast<long long>(all.source.kernels[0].grid.constant()),
              all.source.kernels[0].block,
              first_difference(wanted, got) ? "other bits" : "the bits of the interpreter");
}

void show_run() {
  manual_seed(1);
  const Tensor x = randn({100, 257});
  compare("add_bias", staged_add(), add_inputs());
  compare("row_sums", staged(row_sums, x), {x});
}

void show_rows() {
  const Staged all = staged(row_sums, zeros({1000, 257}));
  std::printf("%s\n", kernels_of(all.source.text).c_str());
  show_launch(all);
}

void show_shapes() {
  for (int64_t length : {7, 257, 1000, 4096, 50257}) {
    const Staged all = staged(row_sums, zeros({1000, length}));
    std::printf("1000 rows of %-6lld", static_cast<long long>(length));
    show_launch(all);
  }
}

// Which lanes' values lane 0 has added up after each shuffle.
void show_shuffle() {
  Threads threads(R"(
__global__ void lanes(unsigned* out) {
  unsigned have = 1u << threadIdx.x;
  for (int mask = 16, step = 0; mask > 0; mask /= 2, step++) {
    have |= __shfl_xor_sync(0xffffffffu, have, mask);
    if (threadIdx.x == 0) out[step] = have;
  }
}
)",
                  {{"lanes", 1}});
  unsigned have[5] = {};
  void* out = have;
  threads.run("lanes", 1, 32, {&out});
  for (int step = 0; step < 5; step++) {
    std::printf("exchange with lane ^ %-2d  lane 0 has", 16 >> step);
    for (int lane = 0; lane < 32; lane++)
      if (have[step] >> lane & 1) std::printf(" %d", lane);
    std::printf("\n");
  }
}

// 256 numbers a block, added by 8 warps that meet in shared memory.
constexpr const char* kBlockSum = R"(
__global__ void block_sum(const float* x, float* out) {
  __shared__ float part[8];
  float v = x[blockIdx.x * 256 + threadIdx.x];
  for (int mask = 16; mask > 0; mask /= 2) v += __shfl_xor_sync(0xffffffffu, v, mask);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int warp = 0; warp < 8; warp++) sum += part[warp];
    out[blockIdx.x] = sum;
  }
  __syncthreads();
}
)";

void sum_blocks(const char* title, const std::string& text) {
  std::vector<float> x, out(3);
  for (int i = 0; i < 3 * 256; i++) x.push_back(static_cast<float>(1 + i / 256));
  Threads threads(text, {{"block_sum", 2}});
  void *from = x.data(), *to = out.data();
  threads.run("block_sum", 3, 256, {&from, &to});
  std::printf("%-24s %5.0f %5.0f %5.0f\n", title, static_cast<double>(out[0]),
              static_cast<double>(out[1]), static_cast<double>(out[2]));
}

void show_break() {
  std::string without = kBlockSum;
  const std::string barrier = "  __syncthreads();\n";
  without.erase(without.find(barrier), barrier.size());
  std::printf("%s", kBlockSum + 1);
  std::printf("\nblock                        0     1     2\n");
  sum_blocks("with __syncthreads", kBlockSum);
  sum_blocks("without", without);
}

// Where there is a GPU: the kernel, and the same with one element a thread.
void measure(const char* title, const Program& program, const Source& source) {
  std::vector<Tensor> inputs;
  for (const Buffer& buffer : program.buffers)
    if (buffer.role == Role::Input) {
      Sizes shape;
      for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
      inputs.push_back(copy_to(full(shape, 1.0), cuda));
    }
  const Built built = build(program, source);
  constexpr int kRuns = 50;
  for (int run = 0; run < kRuns; run++) built.run(inputs);
  synchronize(cuda);
  const auto start = std::chrono::steady_clock::now();
  for (int run = 0; run < kRuns; run++) built.run(inputs);
  synchronize(cuda);
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
          .count() /
      kRuns;
  std::printf("%-28s %8.1f us %8.1f GB/s\n", title, us,
              static_cast<double>(bytes_moved(program)) / us * 1e-3);
}

void show_gpu() {
  if (const std::string why = why_no_gpu(); !why.empty()) {
    std::printf("no GPU here: %s\n", why.c_str());
    return;
  }
  const Staged packs = staged(add_bias, zeros({16384, 4096}), zeros({4096}));
  measure("4 elements a thread", packs.program, packs.source);
  const Staged single = staged(add_bias, zeros({16384, 4095}), zeros({4095}));
  measure("1 element a thread", single.program, single.source);
  const Staged rows = staged(row_sums, zeros({16384, 4096}));
  measure("sums of rows", rows.program, rows.source);
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"kernel", show_kernel},
                     {"text", show_text},
                     {"who", show_who},
                     {"run", show_run},
                     {"rows", show_rows},
                     {"shuffle", show_shuffle},
                     {"shapes", show_shapes},
                     {"break", show_break},
                     {"gpu", show_gpu}});
}
