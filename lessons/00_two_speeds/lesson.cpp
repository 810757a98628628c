// Lesson 00: one function, two speeds; what does compiling buy?   build/lessons/00 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

extern "C" void omp_set_num_threads(int);  // clang may come without omp.h

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

constexpr int64_t kMany = 16'000'000;  // 64 MB of f32

Tensor brighten(Tensor x) {
  Tensor doubled = x * 2;
  Tensor shifted = doubled + 1;
  return relu(shifted);
}

Graph graph_of(int64_t elements) {
  return compile(brighten, {.name = "brighten"}).specialization(zeros({elements})).traced.graph;
}

void show_graph() { std::printf("%s", print(graph_of(kMany)).c_str()); }

// Kernels only, without the lines that declare buffers.
void show_kernels(const char* title, const Pipeline& stages) {
  const Program program = run_pipeline(stages, graph_of(kMany), true).program;
  std::printf("%s: %zu launches\n", title, program.launches.size());
  for (const Kernel& kernel : program.kernels)
    std::printf("%s    moves %lld MB\n", print(program, kernel).c_str(),
                static_cast<long long>(bytes_moved(program, kernel) / 1'000'000));
}

void show_bytes() {
  show_kernels("one kernel an op", {});
  show_kernels("compiled", until(pipeline(), "fuse"));
}

// Times on one thread; more threads share one memory, and the lesson is about memory.
void show_ladder() {
  const std::vector<Tensor> inputs = {full({kMany}, 0.5)};
  const Explanation explanation = explain(graph_of(kMany), inputs, pipeline(), 0.05);
  std::printf("after        launches   MB moved      ms     GB/s\n");
  for (const Rung& rung : explanation.rungs)
    std::printf("%-12s %8lld %10lld %7.2f %8.1f\n", rung.stage.c_str(),
                static_cast<long long>(rung.launches),
                static_cast<long long>(rung.bytes / 1'000'000), rung.milliseconds,
                rung.gigabytes_per_second());
}

double now_in_microseconds() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <typename Function>
double microseconds_of(const Function& function, const Tensor& x) {
  const double start = now_in_microseconds();
  function(x);
  return now_in_microseconds() - start;
}

template <typename Function>
double median_microseconds(const Function& function, const Tensor& x) {
  std::vector<double> times(x.numel() < 100'000 ? 1001 : 7);
  for (double& time : times) time = microseconds_of(function, x);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// What the first call costs, what a later one saves against one kernel an op, and how many
// calls it takes until the first is paid.
void show_calls() {
  setenv("TC_CACHE_DIR", "/dev/null", 1);  // nothing from the disk: the compiler runs
  std::printf("elements    first call  one kernel an op    compiled    paid after\n");
  for (int64_t elements : {int64_t{16}, int64_t{100'000}, kMany}) {
    const Tensor x = full({elements}, 0.5);
    const auto eager = compile(brighten, {.backend = "eager"});
    const auto compiled = compile(brighten, {.pipeline = pipeline()});
    eager(x);
    const double first = microseconds_of(compiled, x);
    const double slow = median_microseconds(eager, x), fast = median_microseconds(compiled, x);
    std::printf("%8lld %10.0f us %14.2f us %8.2f us ", static_cast<long long>(elements), first,
                slow, fast);
    if (fast < slow)
      std::printf("%11.0f calls\n", first / (slow - fast));
    else
      std::printf("      never\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(1);
  return show_parts(argc, argv,
                    {{"graph", show_graph},
                     {"bytes", show_bytes},
                     {"ladder", show_ladder},
                     {"calls", show_calls}});
}
