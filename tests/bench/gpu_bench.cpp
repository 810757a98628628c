// tiny_compile's half of the GPU benchmark.
//
//   build/gpu_bench [row ...]      checks and measures them, prints a table (no Python needed)
//   build/gpu_bench --serve        a command a line on stdin, a line of JSON on stdout each: how
//                                  gpu_bench.py lets it take turns with PyTorch
//   build/gpu_bench --emit ROW     the full-size row's CUDA source, without a GPU
//   build/gpu_bench --list | --ragged | --why (no GPU can be used)
//   --cpu                          tries it out: small instances on the CPU
//
// Commands: hello | load ROW | inputs | check_small | check_full | launches | time N | host N |
// copy BYTES N | memory | startup RUNS | save DIRECTORY | check_last | drop
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "tests/bench/gpu_measure.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace {

namespace tc = tiny_compile;
using bench::LoadedRow, bench::Machine;

// JSON ------------------------------------------------------------------------------------------

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) >= 32)
      out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

template <typename Values, typename Write>
std::string list(const Values& values, Write write) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + write(value);
  return "[" + out + "]";
}

std::string numbers(const std::vector<double>& values) { return list(values, number); }
std::string integers(const std::vector<int64_t>& values) {
  return list(values, [](int64_t v) { return std::to_string(v); });
}

std::string describe(const bench::Input& input) {
  return tc::str("{\"dtype\": ", quoted(tc::name(input.dtype)), ", \"count\": ", input.count,
                 ", \"shape\": ", integers(input.shape),
                 ", \"strides\": ", integers(input.strides), ", \"start\": ", input.start,
                 ", \"seed\": ", input.seed, ", \"scale\": ", number(input.scale),
                 ", \"shift\": ", number(input.shift), ", \"classes\": ", input.classes, "}");
}

std::string describe(const tc::Tensor& output) {
  return tc::str("{\"dtype\": ", quoted(tc::name(output.dtype())),
                 ", \"shape\": ", integers(output.shape()), "}");
}

std::string describe(const LoadedRow& loaded) {
  const bench::GpuRow& row = loaded.row();
  auto write = [](const auto& value) { return describe(value); };
  return tc::str(
      "{\"name\": ", quoted(row.name), ", \"what\": ", quoted(row.what),
      ", \"bytes\": ", number(row.bytes), ", \"operations\": ", number(loaded.operations()),
      ", \"tiny\": ", row.tiny ? "true" : "false",
      ", \"exact\": ", row.exact ? "true" : "false",
      ", \"input_bytes\": ", loaded.input_bytes(), ", \"inputs\": ", list(row.inputs, write),
      ", \"outputs\": ", list(loaded.outputs(), write), "}");
}

// Serving ---------------------------------------------------------------------------------------

void save_raw(const std::string& path, const tc::Tensor& tensor) {
  const tc::Tensor flat = tensor.is_contiguous() ? tensor : tc::contiguous_copy(tensor);
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(flat.bytes()),
            flat.numel() * tc::size_of(flat.dtype()));
  out.close();
  if (!out) tc::fail("cannot write ", path);
}

class Server {
 public:
  Server(Machine machine, std::string self) : machine_(machine), self_(std::move(self)) {}

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "hello") return tc::str("{\"device\": ", quoted(machine_.name()), "}");
    if (verb == "load") return load(words);
    if (verb == "drop") return drop();
    if (verb == "copy") return copy(words);
    if (!row_) tc::fail("'", verb, "' before 'load ROW'");
    if (verb == "inputs") return field("checksums", integers(row_->input_checksums()));
    if (verb == "check_small") return row_->check_small(), field("ok", "true");
    if (verb == "check_full") return field("ok", row_->check_full() ? "true" : "null");
    if (verb == "check_last") return row_->check_last(), field("ok", "true");
    if (verb == "launches") return field("count", std::to_string(row_->launches()));
    if (verb == "time") return field("ms", numbers(row_->time_calls(count_from(words))));
    if (verb == "host") return field("us", number(row_->host_microseconds(count_from(words))));
    if (verb == "memory") return field("bytes", std::to_string(row_->peak_bytes()));
    if (verb == "startup") return startup(words);
    if (verb == "save") return save(words);
    tc::fail("no command '", verb, "'");
  }

 private:
  static std::string field(const char* name, const std::string& value) {
    return tc::str("{\"", name, "\": ", value, "}");
  }
  static int count_from(std::istream& words) {
    int count = 0;
    if (!(words >> count) || count < 1) tc::fail("a count is missing");
    return count;
  }
  std::string load(std::istream& words) {
    std::string name;
    words >> name;
    drop();
    row_ = std::make_unique<LoadedRow>(machine_, name);
    return describe(*row_);
  }
  std::string drop() {
    row_.reset();
    tc::release_cached_memory();
    if (machine_.is_gpu()) tc::release_cached_cuda_memory(machine_.device.index);
    return "{}";
  }
  std::string copy(std::istream& words) {
    int64_t bytes = 0;
    words >> bytes;
    return field("ms", numbers(bench::time_copies(machine_, bytes, count_from(words))));
  }
  std::string startup(std::istream& words) {
    const bench::Startup s =
        bench::measure_startup(machine_, self_, row_->row().name, count_from(words));
    return tc::str("{\"driver_ms\": ", number(s.driver), ", \"cold_ms\": ", number(s.cold),
                   ", \"warm_ms\": ", number(s.warm), ", \"again_ms\": ", number(s.again), "}");
  }
  std::string save(std::istream& words) {
    std::string directory;
    words >> directory;
    for (size_t k = 0; k < row_->outputs().size(); k++)
      save_raw(tc::str(directory, "/out", k), row_->outputs()[k]);
    return "{}";
  }

  Machine machine_;
  std::string self_;
  std::unique_ptr<LoadedRow> row_;
};

int serve(const Machine& machine, const std::string& self) {
  Server server(machine, self);
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    try {
      answer = server.answer(line);
    } catch (const std::exception& error) {
      answer = tc::str("{\"error\": ", quoted(error.what()), "}");
    }
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
  }
  return 0;
}

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
                static_cast<long long>(kernel.grid), kernel.block);
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
  if (serving) return serve(machine, self);
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

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc), argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
