// Lesson 15: how far from the machine is a matmul?   build/lessons/15 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>

#include "lessons/tools/threads.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/cublaslt.h"
#include "tiny_compile/runtime/nvrtc.h"

extern "C" void omp_set_num_threads(int);  // clang may come without omp.h

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

constexpr int64_t kRows = 384, kDepth = 383, kColumns = 385;

// Every kernel: c[rows][columns] = a[rows][depth] b[depth][columns], k ascending from +0.
struct Numbered {
  const char* title;
  const char* text;
};

constexpr Numbered kKernels[] = {{"0: one element after another", R"(
for (long i = 0; i < rows; i++)
  for (long j = 0; j < columns; j++) {
    float sum = 0;
    for (long k = 0; k < depth; k++) sum = fma(a[i*depth + k], b[k*columns + j], sum);
    c[i*columns + j] = sum;
  }
)"},
                                 {"1: the loops over j and k swapped", R"(
for (long i = 0; i < rows; i++) {
  for (long j = 0; j < columns; j++) c[i*columns + j] = 0;
  for (long k = 0; k < depth; k++)
    for (long j = 0; j < columns; j++)
      c[i*columns + j] = fma(a[i*depth + k], b[k*columns + j], c[i*columns + j]);
}
)"},
                                 {"2: 4 rows x 32 columns in registers", R"(
const long whole = columns / 32 * 32;
for (long j = 0; j < whole; j += 32)
  for (long i = 0; i < rows; i += 4) {
    const float* row[4];
    for (long r = 0; r < 4; r++) row[r] = a + (i + r < rows ? i + r : rows - 1)*depth;
    float sum[4][32] = {};
    for (long k = 0; k < depth; k++) {
      const float x0 = row[0][k], x1 = row[1][k], x2 = row[2][k], x3 = row[3][k];
      for (long l = 0; l < 32; l++) {
        const float y = b[k*columns + j + l];
        sum[0][l] = fma(x0, y, sum[0][l]);
        sum[1][l] = fma(x1, y, sum[1][l]);
        sum[2][l] = fma(x2, y, sum[2][l]);
        sum[3][l] = fma(x3, y, sum[3][l]);
      }
    }
    for (long r = 0; r < 4 && i + r < rows; r++)
      for (long l = 0; l < 32; l++) c[(i + r)*columns + j + l] = sum[r][l];
  }
for (long i = 0; i < rows; i++)
  for (long j = whole; j < columns; j++) {
    float sum = 0;
    for (long k = 0; k < depth; k++) sum = fma(a[i*depth + k], b[k*columns + j], sum);
    c[i*columns + j] = sum;
  }
)"},
                                 {"3: and the 32 columns packed", R"(
static float packed[4096][32];
for (long j = 0; j < columns; j += 32) {
  const long width = columns - j < 32 ? columns - j : 32;
  for (long k = 0; k < depth; k++)
    for (long l = 0; l < 32; l++) packed[k][l] = l < width ? b[k*columns + j + l] : 0;
  for (long i = 0; i < rows; i += 4) {
    const float* row[4];
    for (long r = 0; r < 4; r++) row[r] = a + (i + r < rows ? i + r : rows - 1)*depth;
    float sum[4][32] = {};
    for (long k = 0; k < depth; k++) {
      const float x0 = row[0][k], x1 = row[1][k], x2 = row[2][k], x3 = row[3][k];
      for (long l = 0; l < 32; l++) {
        const float y = packed[k][l];
        sum[0][l] = fma(x0, y, sum[0][l]);
        sum[1][l] = fma(x1, y, sum[1][l]);
        sum[2][l] = fma(x2, y, sum[2][l]);
        sum[3][l] = fma(x3, y, sum[3][l]);
      }
    }
    for (long r = 0; r < 4 && i + r < rows; r++)
      for (long l = 0; l < width; l++) c[(i + r)*columns + j + l] = sum[r][l];
  }
}
)"}};

std::string function_of(const char* body) {
  return str(
      "#define fma __builtin_fmaf\nextern \"C\" void run(const float* __restrict a, const ",
      "float* __restrict b,\n  float* __restrict c, long rows, long depth, long columns) {",
      body, "}\n");
}

double best_seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int round = 0; round < 5; round++) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count());
    if (best > 0.05) break;
  }
  return best;
}

// Multiply-adds of registers alone, twelve chains side by side, two operations each: the most
// that this core can do.
double peak_gigaflops() {
  std::string text = R"(
#if defined(__AVX512F__)
enum { bytes = 64 };
#else
enum { bytes = 32 };
#endif
typedef float vector __attribute__((vector_size(bytes)));
#if defined(__FMA__)
#define STEP(s) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(s) : "v"(x), "v"(y))
#else
#define STEP(s) s = s * x + y
#endif
extern "C" int lanes() { return bytes / 4; }
extern "C" float run(int rounds) {
  const vector x = 0.999f - (vector){}, y = 1e-6f - (vector){};
  vector DECLARED;
  for (int r = 0; r < rounds; r++) { STEPS }
  const vector all = SUM;
  return all[0];
}
)";
  std::string declared, steps, sum;
  for (int s = 0; s < 12; s++) {
    declared += str(s ? ", s" : "s", s, " = {}");
    steps += str("STEP(s", s, "); ");
    sum += str(s ? " + s" : "s", s);
  }
  for (const auto& [key, value] :
       {std::pair("DECLARED", declared), std::pair("STEPS", steps), std::pair("SUM", sum)})
    text.replace(text.find(key), std::string(key).size(), value);
  const BuiltLibrary built = build_cpp(text, default_toolchain());
  const auto run = reinterpret_cast<float (*)(int)>(built.library->symbol("run"));
  const int lanes = reinterpret_cast<int (*)()>(built.library->symbol("lanes"))();
  volatile float keep = 0;
  constexpr int kRounds = 1'000'000;
  const double seconds = best_seconds([&] { keep = run(kRounds); });
  return 2.0 * 12 * lanes * kRounds / seconds * 1e-9;
}

Program matmul_program() {
  const auto function = compile([](Tensor a, Tensor b) { return matmul(a, b); });
  const Graph graph =
      function.specialization(zeros({kRows, kDepth}), zeros({kDepth, kColumns})).traced.graph;
  return run_pipeline(pipeline(), graph, true).program;
}

void show_kernel() {
  const Program program = matmul_program();
  std::printf("%s", print(program, program.kernels[0]).c_str());
}

template <int number>
void show_text() {
  std::printf("%s", kKernels[number].text + 1);
}

void print_rung(const char* title, bool same, double seconds, double peak) {
  const double rate = 2.0 * kRows * kDepth * kColumns / seconds * 1e-9;
  std::printf("%-36s %-10s %8.2f ms %8.1f GFLOP/s %5.1f%%\n", title,
              same ? "same bits" : "OTHER BITS", seconds * 1e3, rate, 100 * rate / peak);
}

void show_climb() {
  manual_seed(1);
  const Tensor a = randn({kRows, kDepth}), b = randn({kDepth, kColumns});
  const Program program = matmul_program();
  const std::vector<Tensor> inputs = {a, b};
  const double peak = peak_gigaflops();
  const Built built = build(program, emit(lower_to_tiles(program)));
  const Tensor generated = built.run(inputs)[0];
  for (const Numbered& kernel : kKernels) {
    const BuiltLibrary library = build_cpp(function_of(kernel.text), default_toolchain());
    const auto run =
        reinterpret_cast<void (*)(const float*, const float*, float*, long, long, long)>(
            library.library->symbol("run"));
    std::vector<float> c(static_cast<size_t>(kRows * kColumns));
    const double seconds = best_seconds(
        [&] { run(a.data<float>(), b.data<float>(), c.data(), kRows, kDepth, kColumns); });
    const Tensor got = from_vector<float>(c, Sizes{kRows, kColumns});
    print_rung(kernel.title, !first_difference(generated, got), seconds, peak);
  }
  print_rung("4: the generated kernel", true, best_seconds([&] { built.run(inputs); }), peak);
}

// A tile of r rows and v vectors of columns: loads and registers a step of k.
void show_tiles() {
  std::printf("rows vectors   loads   fmas   loads/fma   registers\n");
  for (const auto& [rows, vectors] :
       std::vector<std::pair<int, int>>{{1, 1}, {4, 2}, {8, 2}, {12, 2}, {5, 5}, {14, 2}}) {
    const int fmas = rows * vectors, loads = rows + vectors, registers = fmas + vectors + 1;
    std::printf("%4d %7d %7d %6d %11.2f %11d%s\n", rows, vectors, loads, fmas,
                static_cast<double>(loads) / fmas, registers,
                registers > 32 ? "  too many" : "");
  }
}

// Bytes a second from memory to a core, as adding two large arrays moves them.
double gigabytes_per_second() {
  const Tensor x = full({8'000'000}, 0.5), y = full({8'000'000}, 0.25);
  const auto add = compile([](Tensor a, Tensor b) { return a + b; });
  add(x, y);
  return 3 * 4 * 8e6 / best_seconds([&] { add(x, y); }) * 1e-9;
}

// The same weights, multiplied with more and more columns.
void show_roofline() {
  const double peak = peak_gigaflops(), bandwidth = gigabytes_per_second();
  std::printf("peak %.0f GFLOP/s, memory %.0f GB/s: they meet at %.0f flop/byte\n", peak,
              bandwidth, peak / bandwidth);
  std::printf("columns   flop/byte   roof GFLOP/s   reached\n");
  constexpr int64_t kSide = 2560;
  const Tensor weights = full({kSide, kSide}, 0.5);
  for (int64_t columns : {1, 4, 16, 64}) {
    const auto product = compile([](Tensor a, Tensor b) { return matmul(a, b); });
    const Tensor x = full({kSide, columns}, 0.5);
    product(weights, x);
    const double flops = 2.0 * kSide * kSide * static_cast<double>(columns);
    const double bytes = 4.0 * (kSide * kSide + 2 * kSide * columns);
    const double roof = std::min(peak, flops / bytes * bandwidth);
    const double seconds = best_seconds([&] { product(weights, x); });
    std::printf("%7lld %11.2f %14.0f %9.0f\n", static_cast<long long>(columns), flops / bytes,
                roof, flops / seconds * 1e-9);
  }
}

std::string section(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from);
  return text.substr(begin, text.find(to, begin) - begin);
}

void show_generated() {
  const std::string text = emit(lower_to_tiles(matmul_program())).text;
  std::printf("%s", section(text, "extern \"C\" void k_", "\x01").c_str());
}

void show_tile() {
  const std::string text = emit(lower_to_tiles(matmul_program())).text;
  const std::string tile =
      section(text, "template <int rows, int vectors,", "\n#if defined(__AVX512F__)");
  std::printf("%s", tile.c_str());
}

Staged cuda_matmul(int64_t rows, int64_t depth, int64_t columns,
                   const Pipeline& stages = pipeline()) {
  const auto function = compile([](Tensor a, Tensor b) { return matmul(a, b); });
  const Graph graph =
      function.specialization(zeros({rows, depth}), zeros({depth, columns})).traced.graph;
  return run_pipeline(stages, graph, true, Target::Cuda);
}

// By the plain schedule a thread has a row: here, an element of the result.
Pipeline plainly_scheduled() {
  return replace(pipeline(), "schedule", [](const Program& fused) {
    Program result = fused;
    for (Kernel& kernel : result.kernels) kernel.schedule = Schedule{};
    return result;
  });
}

void show_cuda_kernel(const Staged& all) {
  const std::string& text = all.source.text;
  std::printf("%s\n", text.substr(text.find("extern \"C\" __global__")).c_str());
  std::printf("launch <<<%lld, %d>>>\n",
              static_cast<long long>(all.source.kernels[0].grid.constant()),
              all.source.kernels[0].block);
}

void show_cuda_naive() {
  show_cuda_kernel(cuda_matmul(kRows, kDepth, kColumns, plainly_scheduled()));
}
void show_cuda() { show_cuda_kernel(cuda_matmul(kRows, kDepth, kColumns)); }

// Milliseconds of a call on a GPU; its result is left in `result`.
double time_on_gpu(const Staged& all, const std::vector<Tensor>& inputs, Tensor& result) {
  constexpr int kRuns = 20;
  const Built built = build(all.program, all.source);
  for (int run = 0; run < kRuns; run++) result = built.run(inputs)[0];
  synchronize(cuda);
  const auto start = std::chrono::steady_clock::now();
  for (int run = 0; run < kRuns; run++) built.run(inputs);
  synchronize(cuda);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
             .count() /
         kRuns;
}

// Where there is a GPU: kernels 5 and 6, and the vendor's library.
void show_gpu() {
  if (const std::string why = why_no_gpu(); !why.empty()) {
    std::printf("no GPU here: %s\n", why.c_str());
    return;
  }
  constexpr int64_t kSize = 2048;
  manual_seed(3);
  const std::vector<Tensor> inputs = {randn({kSize, kSize}).to(cuda),
                                      randn({kSize, kSize}).to(cuda)};
  const Matmul library = available_matmul(Matmul::Library);
  Tensor first, result;
  for (const auto& [title, stages] :
       {std::pair("5: a thread for each sum", plainly_scheduled()),
        std::pair("6: tiles in shared memory", pipeline()),
        std::pair(library == Matmul::Library ? "   the vendor's library" : "   (no library)",
                  with_library(pipeline(), library))}) {
    const double ms = time_on_gpu(cuda_matmul(kSize, kSize, kSize, stages), inputs, result);
    if (!first.defined()) first = result;
    const bool same = !first_difference(on_host(first), on_host(result));
    std::printf("%-28s %-10s %8.3f ms %9.0f GFLOP/s\n", title,
                same ? "same bits" : "other bits", ms, 2e-6 * kSize * kSize * kSize / ms);
  }
}

// The GPU's kernel on the CPU, thread by thread (lesson 11).
void show_cuda_run() {
  const Staged all = cuda_matmul(70, 37, 130);
  const KernelEntry& entry = all.source.kernels[0];
  const std::string kernels =
      all.source.text.substr(all.source.text.find("extern \"C\" __global__"));
  Calls calls = all.source.calls;
  const std::string body = cuda_helpers_for(calls) + kernels;
  Threads threads(
      "#define TC_FN static inline\n#define TC_FAIL(code)\n" + prelude_for(calls, false) + body,
      {{entry.function, 3}});
  manual_seed(2);
  const std::vector<Tensor> inputs = {randn({70, 37}), randn({37, 130})};
  const Tensor wanted = interpret(all.program, inputs)[0];
  std::vector<float> c(70 * 130, NAN);
  void* buffers[] = {inputs[0].data<float>(), inputs[1].data<float>(), c.data()};
  std::vector<void*> arguments;
  for (int buffer : entry.buffers) arguments.push_back(&buffers[buffer]);
  threads.run(entry.function, entry.grid.constant(), entry.block, arguments);
  const Tensor got = from_vector<float>(c, wanted.shape());
  std::printf("%lld blocks of %d threads, %lld barriers: %s\n",
              static_cast<long long>(entry.grid.constant()), entry.block,
              static_cast<long long>(threads.barriers()),
              first_difference(wanted, got) ? "other bits" : "the bits of the interpreter");
}

// A thread stands for the GPU: work is handed over, and the caller goes on.
void show_break() {
  const Tensor a = full({kRows, kDepth}, 0.5), b = full({kDepth, kColumns}, 0.5);
  const Program program = matmul_program();
  const Built built = build(program, emit(lower_to_tiles(program)));
  const std::vector<Tensor> inputs = {a, b};
  built.run(inputs);
  const auto start = std::chrono::steady_clock::now();
  const auto microseconds = [&] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
  };
  std::future<void> queue = std::async(std::launch::async, [&] {
    omp_set_num_threads(1);
    for (int call = 0; call < 10; call++) built.run(inputs);
  });
  const double launched = microseconds();
  queue.wait();
  const double done = microseconds();
  for (const auto& [title, us] : {std::pair("the clock after the launch", launched),
                                  std::pair("the clock after the wait", done)})
    std::printf("%-28s %8.0f us   %10.1f GFLOP/s\n", title, us,
                10 * 2.0 * kRows * kDepth * kColumns / us * 1e-3);
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  return show_parts(argc, argv,
                    {{"kernel", show_kernel},
                     {"text0", show_text<0>},
                     {"text1", show_text<1>},
                     {"text2", show_text<2>},
                     {"text3", show_text<3>},
                     {"climb", show_climb},
                     {"tiles", show_tiles},
                     {"roofline", show_roofline},
                     {"generated", show_generated},
                     {"tile", show_tile},
                     {"cuda_naive", show_cuda_naive},
                     {"cuda", show_cuda},
                     {"cuda_run", show_cuda_run},
                     {"break", show_break},
                     {"gpu", show_gpu}});
}
