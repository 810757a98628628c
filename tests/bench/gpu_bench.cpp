// tiny_compile's half of the GPU benchmark.
//
//   build/gpu_bench [row ...]      checks and measures them, prints a table (no Python needed)
//   build/gpu_bench --serve        a command a line on stdin, a line of JSON on stdout each: how
//                                  gpu_bench.py lets it take turns with PyTorch
//   build/gpu_bench --emit ROW     the full-size row's CUDA source, without a GPU
//   build/gpu_bench --list | --ragged | --why (no GPU can be used)
//   --cpu                          tries it out: small instances on the CPU
#include <cstdio>

#include "tests/bench/gpu_serve.h"
#include "tiny_compile/runtime/nvrtc.h"

namespace {

namespace tc = tiny_compile;
using bench::LoadedRow, bench::Machine;

// Alone -----------------------------------------------------------------------------------------

void measure_alone(const Machine& machine, const std::string& self, const std::string& name) {
  constexpr int64_t kCopied = int64_t{1} << 30;
  LoadedRow row(machine, name);
  row.check_small();
  const bool checked = row.check_full();
  const double ms = bench::median(row.time_calls(50));
  row.check_last();
  const double us = row.host_microseconds(50);
  const double copy = bench::median(bench::time_copies(machine, kCopied, 20));
  const double rate = row.row().bytes / ms * 1e-6;
  const double ceiling = 2.0 * static_cast<double>(kCopied) / copy * 1e-6;
  const bench::Startup startup = bench::measure_startup(machine, self, name, 1);
  std::printf(
      "%-18s %9.4f ms %8.1f GB/s  %.2f of copy  %3lld kernels  %7.1f MiB  cold %6.1f, again "
      "%6.1f, warm %5.1f ms  %7.2f us a call  %s\n",
      name.c_str(), ms, rate, rate / ceiling, static_cast<long long>(row.launches()),
      static_cast<double>(row.peak_bytes()) / 1048576, startup.cold, startup.again,
      startup.warm, us, checked ? "bits checked" : "not exact by contract");
  std::fflush(stdout);
}

void emit(const std::string& name) {
  const bench::GpuRow row = bench::make_gpu_row(name);
  std::vector<tc::Tensor> inputs;
  for (const bench::Input& input : row.inputs) inputs.push_back(bench::shape_only(input));
  const tc::Source source = bench::cuda_source(row.prepare({}, inputs).graph());
  std::printf("%s", source.text.c_str());
  for (const tc::KernelEntry& kernel : source.kernels)
    std::printf("// launch %s<<<%lld, %d>>>\n", kernel.function.c_str(),
                static_cast<long long>(kernel.grid.constant()), kernel.block);
}

int run(const std::vector<std::string>& arguments, const std::string& self) {
  Machine machine;
  std::vector<std::string> names;
  bool serving = false, starting = false, again = false, emitting = false;
  for (const std::string& word : arguments) {
    if (word == "--cpu") {
      machine = {tc::cpu, true};
    } else if (word == "--serve") {
      serving = true;
    } else if (word == "--start" || word == "--start-again") {
      starting = true;
      again = word == "--start-again";
    } else if (word == "--emit") {
      emitting = true;
    } else if (word == "--why") {
      std::printf("%s\n", tc::why_no_gpu().c_str());
      return tc::why_no_gpu().empty() ? 0 : 1;
    } else if (word == "--list" || word == "--ragged") {
      const auto rows = word == "--list" ? bench::gpu_row_names() : bench::gpu_ragged_names();
      std::printf("%s\n", tc::join(rows, "\n").c_str());
      return 0;
    } else if (word.rfind("-", 0) == 0) {
      tc::fail("no option ", word, ": see the top of tests/bench/gpu_bench.cpp");
    } else {
      names.push_back(word);
    }
  }
  if (emitting) {
    for (const std::string& name : names) emit(name);
    return 0;
  }
  if (serving) return bench::serve(machine, self, bench::make_gpu_row);
  if (starting) return bench::start_child(machine, names.at(0), again), 0;
  if (machine.is_gpu() && !tc::why_no_gpu().empty()) {
    std::printf("GPU rows: skipped, %s\n", tc::why_no_gpu().c_str());
    return 0;
  }
  for (const std::string& name : names.empty() ? bench::gpu_row_names() : names)
    measure_alone(machine, self, name);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
