#include "tests/bench/startup.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tiny_compile.h"

namespace bench {
namespace {

namespace tc = tiny_compile;

double milliseconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  const std::chrono::duration<double, std::milli> spent =
      std::chrono::steady_clock::now() - start;
  return spent.count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

auto one_kernel() {
  return tc::compile([](std::vector<tc::Tensor> x) {
    return std::vector<tc::Tensor>{tc::tanh(x[0] * x[0] + 1.0) * tc::sigmoid(x[0])};
  });
}

// Inputs differ in size, so that nothing can be fused.
auto ten_kernels() {
  return tc::compile([](std::vector<tc::Tensor> x) {
    return std::vector<tc::Tensor>{tc::exp(x[0]) + 1.0,
                                   tc::tanh(x[1]) * x[1],
                                   tc::sigmoid(x[2] + 2.0),
                                   tc::relu(x[3]) * 3.0,
                                   tc::sqrt(tc::abs(x[4])),
                                   x[5] * x[5] * x[5] - x[5],
                                   tc::maximum(x[6], x[6] * x[6]),
                                   tc::log(x[7] + 2.0),
                                   1.0 / (x[8] + 3.0),
                                   tc::abs(x[9]) - 0.5};
  });
}

std::vector<tc::Tensor> inputs(int count) {
  std::vector<tc::Tensor> result;
  for (int i = 0; i < count; i++)
    result.push_back(tc::filled_tensor(tc::Literal::of(tc::DType::f32, 0.5), {64 + i, 16}));
  return result;
}

// What the function's first call gives to the compiler.
template <typename Function>
tc::Source source_of(const Function& function, int count) {
  const tc::Specialization traced = function.specialization(inputs(count));
  return tc::run_pipeline(tc::default_pipeline(), traced.traced.graph, false).source;
}

double time_compiler(const std::string& source, const std::string& directory) {
  const tc::CppToolchain toolchain = tc::default_toolchain();
  std::vector<std::string> argv = {toolchain.compiler};
  argv.insert(argv.end(), toolchain.flags.begin(), toolchain.flags.end());
  argv.insert(argv.end(), {"-o", directory + "/alone.so", "-"});
  return milliseconds_of([&] { tc::run_process(argv, source, 60); });
}

StartupRow measure(const std::string& self, const std::string& name, int runs,
                   const tc::Source& source, const std::string& directory) {
  const std::vector<std::string> child = {self, "--startup", name};
  const std::vector<std::string> cache = {"TC_CACHE_DIR=" + directory + "/cache"};
  std::vector<double> cold, compiler, warm, process;
  for (int i = 0; i < runs; i++) {
    std::filesystem::remove_all(directory + "/cache");
    cold.push_back(std::atof(tc::run_process(child, "", 60, cache).output.c_str()));
    compiler.push_back(time_compiler(source.text, directory));
    std::string said;
    process.push_back(
        milliseconds_of([&] { said = tc::run_process(child, "", 60, cache).output; }));
    warm.push_back(std::atof(said.c_str()));
  }
  return {name,         median(cold),    median(compiler),
          median(warm), median(process), static_cast<int>(source.kernels.size())};
}

}  // namespace

std::vector<StartupRow> measure_startup(const std::string& self, int runs) {
  const tc::TemporaryDirectory directory("/tmp");
  const std::vector<StartupRow> rows = {
      measure(self, "one", runs, source_of(one_kernel(), 1), directory.path()),
      measure(self, "ten", runs, source_of(ten_kernels(), 10), directory.path())};
  std::filesystem::remove_all(directory.path() + "/cache");
  return rows;
}

int startup_child(const std::string& name) {
  const bool one = name == "one";
  const std::vector<tc::Tensor> x = inputs(one ? 1 : 10);
  std::vector<tc::Tensor> y;
  const double spent = milliseconds_of([&] { y = one ? one_kernel()(x) : ten_kernels()(x); });
  std::printf("%f\n", spent);
  return y.empty() ? 1 : 0;
}

}  // namespace bench
