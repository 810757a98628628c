// Small models on the CPU, tiny_compile's half: models.py puts PyTorch beside it.
//
//   build/models [--seconds=0.5] [resnet/forward ..]   checks and measures them, a line each
//   build/models --graph ROW ..   as a graph's text, for tc
//   build/models --list | --serve   what models.py asks for
//
// Threads are OpenMP's: OMP_NUM_THREADS=1 build/models
#include <algorithm>
#include <cstdio>

#include "tests/bench/gpu_serve.h"
#include "tests/bench/models_rows.h"

namespace {

namespace tc = tiny_compile;
using bench::LoadedRow, bench::Machine;

const Machine kMachine{tc::cpu, false};

// The median of the calls of so many seconds.
double time_row(LoadedRow& row, double seconds) {
  const double each = std::max(bench::median(row.time_calls(3)), 1e-3);
  return bench::median(row.time_calls(std::max(9, static_cast<int>(seconds * 1e3 / each))));
}

void measure(const std::string& name, double seconds) {
  LoadedRow row(kMachine, name, bench::make_model_row);
  row.check_small();
  const double ms = time_row(row, seconds);
  row.check_last();
  std::printf("%-20s %9.4f ms  compiled in %6.0f ms  %8.1f MFLOP  bits checked small | %s\n",
              name.c_str(), ms, row.compile_ms(), row.operations() * 1e-6,
              row.row().what.c_str());
  std::fflush(stdout);
}

void print_graph(const std::string& name) {
  const bench::GpuRow row = bench::make_model_row(name, false);
  std::vector<tc::Tensor> inputs;
  for (const bench::Input& input : row.inputs) inputs.push_back(bench::shape_only(input));
  std::printf("%s", tc::print(row.prepare({}, inputs).graph()).c_str());
}

int run(const std::vector<std::string>& arguments, const std::string& self) {
  std::vector<std::string> names;
  double seconds = 0.5;
  bool graphs = false;
  for (const std::string& word : arguments) {
    if (word == "--serve") return bench::serve(kMachine, self, bench::make_model_row);
    if (word == "--list")
      return std::printf("%s\n", tc::join(bench::model_row_names(), "\n").c_str()), 0;
    if (word == "--graph")
      graphs = true;
    else if (word.starts_with("--seconds="))
      seconds = std::stod(word.substr(10));
    else if (word.starts_with("-"))
      tc::fail("no option ", word, ": see the top of tests/bench/models.cpp");
    else
      names.push_back(word);
  }
  for (const std::string& name : names.empty() ? bench::model_row_names() : names)
    graphs ? print_graph(name) : measure(name, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
