// How does a script drive the benchmark? A command a line on standard input, a line of JSON
// each.
//
//   load softmax => {"name": "softmax", "bytes": 536870912, .., "inputs": [..], "outputs": [..]}
//   time 3       => {"ms": [0.133, 0.133, 0.134]}
#include "tests/bench/gpu_serve.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "tiny_compile/tensor/cuda_memory.h"

namespace bench {
namespace {

namespace tc = tiny_compile;

// JSON ----------------------------------------------------------------------------------------

}  // namespace

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

namespace {

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

std::string describe(const Input& input) {
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
  const GpuRow& row = loaded.row();
  auto write = [](const auto& value) { return describe(value); };
  return tc::str("{\"name\": ", quoted(row.name), ", \"what\": ", quoted(row.what),
                 ", \"family\": ", quoted(row.family), ", \"python\": ", quoted(row.python),
                 ", \"bytes\": ", number(row.bytes),
                 ", \"operations\": ", number(loaded.operations()),
                 ", \"tiny\": ", row.tiny ? "true" : "false",
                 ", \"exact\": ", row.exact ? "true" : "false",
                 ", \"input_bytes\": ", loaded.input_bytes(),
                 ", \"compile_ms\": ", number(loaded.compile_ms()),
                 ", \"inputs\": ", list(row.inputs, write),
                 ", \"outputs\": ", list(loaded.outputs(), write), "}");
}

// Serving -------------------------------------------------------------------------------------

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
  Server(Machine machine, std::string self, RowMaker make)
      : machine_(machine), self_(std::move(self)), make_(std::move(make)) {}

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
    row_ = std::make_unique<LoadedRow>(machine_, name, make_);
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
    return field("ms", numbers(time_copies(machine_, bytes, count_from(words))));
  }
  std::string startup(std::istream& words) {
    const Startup s = measure_startup(machine_, self_, row_->row().name, count_from(words));
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
  RowMaker make_;
  std::unique_ptr<LoadedRow> row_;
};

}  // namespace

int serve(const Machine& machine, const std::string& self, const RowMaker& make) {
  Server server(machine, self, make);
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

int run_program(int argc, char** argv,
                int (*run)(const std::vector<std::string>& arguments,
                           const std::string& self)) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc), argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace bench
