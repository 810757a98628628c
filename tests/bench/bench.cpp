// bench [row ... | slope | startup] [--seconds=2] [--threads=1,2] [--record=FILE] [--no-torch]
// bench --alone row [--seconds=2] [--threads=2]      a line: milliseconds of a call, nothing checked
//
// How fast is the compiled code beside a loop written by hand, Eigen, OpenBLAS and PyTorch?
// Before a row is timed, its results must have the interpreter's bits, and the peers' must
// agree with them. The machine is shared and noisy, so contestants take turns: in each round
// everyone runs once unmeasured (it brings its own data and threads back) and then for about a
// millisecond. Reported are medians and minima over rounds, the median of each round's ratio to
// the hand-written loop, and the ratio of the minima. PyTorch runs in a process of its own, where
// nobody takes its caches away in between, and so does tiny_compile beside it (--alone): before
// PyTorch's eager mode, behind it and behind torch.compile, row by row, for what the machine's other
// tenants do changes within minutes; neither's threads are bound to cores there.
//
// All rows together, or --record, leave a record in tests/bench/records/cpu-DATE.json.
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "tests/bench/rows.h"
#include "tests/bench/startup.h"
#include "tiny_compile/cli/charts.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

namespace {

namespace tc = tiny_compile;
using bench::Contestant;
using bench::Row;

constexpr int kStartups = 15;  // processes

struct Options {
  std::vector<std::string> rows;
  std::vector<int> threads;
  double seconds = 2;
  std::string record;
  bool torch = true, slope = false, startup = false, alone = false;
};

struct Timing {
  std::string name;
  double median = 0, least = 0;  // seconds a call
  double to_hand = 0;            // median of the rounds' ratios
};

struct Compile {
  double trace = 0, stages = 0, cpp = 0, cached = 0;  // milliseconds
  double operations = 0;                              // of one call
  int64_t bytes = 0;                                  // the least that its kernels can move
};

struct Result {
  std::string row;
  int threads = 1;
  double bytes = 0, flops = 0;
  std::vector<Timing> timings;
  Compile compile;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void progress(const std::string& text) {
  if (isatty(2)) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

// Checking ------------------------------------------------------------------------------------

// Largest |a - b| / (1 + |b|).
double distance(const tc::Tensor& a, const tc::Tensor& b) {
  double worst = 0;
  const float *x = a.data<float>(), *y = b.data<float>();
  for (int64_t i = 0; i < a.numel(); i++)
    worst = std::max(worst, double(std::abs(x[i] - y[i])) / (1 + double(std::abs(y[i]))));
  return worst;
}

void check(const Row& row) {
  const std::vector<tc::Tensor> got = row.compute(), want = row.expect();
  for (size_t k = 0; k < want.size(); k++) {
    if (!tc::same_bits(want[k], got[k]))
      tc::fail(row.name, ": output ", k, " differs from the interpreter's at element ",
               *tc::first_difference(want[k], got[k]));
  }
  for (const Contestant& peer : row.contestants) {
    if (!peer.out.defined()) continue;
    peer.run(omp_get_max_threads());
    const double far = distance(peer.out, got[0]);
    if (!(far < 1e-3)) tc::fail(row.name, ": ", peer.name, " is off by ", far);
  }
}

// Timing --------------------------------------------------------------------------------------

double time_calls(const Contestant& contestant, int threads, int64_t calls) {
  const double start = now();
  for (int64_t call = 0; call < calls; call++) contestant.run(threads);
  return (now() - start) / static_cast<double>(calls);
}

std::vector<Timing> measure_turns(const std::vector<Contestant>& contestants, int threads,
                                  double seconds) {
  std::vector<int64_t> calls;
  for (const Contestant& contestant : contestants) {
    time_calls(contestant, threads, 3);
    calls.push_back(std::max<int64_t>(1, int64_t(1e-3 / time_calls(contestant, threads, 3))));
  }
  const size_t n = contestants.size(), hand = std::min<size_t>(1, n - 1);
  std::vector<std::vector<double>> spent(n), ratios(n);
  const double start = now();
  for (size_t round = 0; round < 9 || now() - start < seconds; round++) {
    for (size_t turn = 0; turn < n; turn++) {
      const size_t k = (turn + round) % n;
      time_calls(contestants[k], threads, 1);
      spent[k].push_back(time_calls(contestants[k], threads, calls[k]));
    }
    for (size_t k = 0; k < n; k++) ratios[k].push_back(spent[k].back() / spent[hand].back());
  }
  std::vector<Timing> timings;
  for (size_t k = 0; k < n; k++)
    timings.push_back({contestants[k].name, median(spent[k]),
                       *std::min_element(spent[k].begin(), spent[k].end()), median(ratios[k])});
  return timings;
}

// Stages and compiler once, with nothing cached; then again from the disk cache.
Compile compile_once(const Row& row) {
  const double start = now();
  const tc::Specialization specialization = row.trace();
  const double traced = now();
  const tc::Staged staged =
      tc::run_pipeline(tc::default_pipeline(), specialization.traced.graph, false);
  const double emitted = now();
  tc::build_cpp(staged.source.text, tc::default_toolchain());
  const double built = now();
  tc::build_cpp(staged.source.text, tc::default_toolchain());
  Compile result{(traced - start) * 1e3, (emitted - traced) * 1e3, (built - emitted) * 1e3,
                 (now() - built) * 1e3};
  for (const tc::Kernel& kernel : staged.program.kernels)
    result.operations += tc::operations(kernel);
  result.bytes = tc::bytes_moved(staged.program);
  return result;
}

// Printing ------------------------------------------------------------------------------------

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string time_text(double seconds) {
  if (seconds < 1e-4) return formatted("%.3f us", seconds * 1e6);
  return formatted("%.3f ms", seconds * 1e3);
}

void print_result(const Result& result) {
  progress("");
  std::printf("%-14s %d ", result.row.c_str(), result.threads);
  for (const Timing& timing : result.timings) {
    std::printf(" | %s %s", timing.name.c_str(), time_text(timing.median).c_str());
    if (timing.name != "hand" && result.timings.size() > 2)
      std::printf(" (%.2f, minima %.2f)", timing.to_hand,
                  timing.least / result.timings[1].least);
  }
  const double seconds = result.timings[0].median;
  if (result.flops > 0) std::printf(" | %.0f GFLOP/s", result.flops / seconds * 1e-9);
  if (result.bytes > 1e6) std::printf(" | %.1f GB/s", result.bytes / seconds * 1e-9);
  std::printf("\n");
  std::fflush(stdout);
}

void print_compile(const std::string& row, const Compile& c) {
  progress("");
  std::printf(
      "%-14s compile: trace %.2f + stages %.2f + C++ %.1f ms; from the disk cache %.2f ms\n",
      row.c_str(), c.trace, c.stages, c.cpp, c.cached);
}

// PyTorch -------------------------------------------------------------------------------------

struct TorchRow {
  int threads;
  std::string row, ours, eager, compiled, first_call;  // ours: tiny_compile's beside it
};

std::string command_output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return text;
  for (char part[256]; std::fgets(part, sizeof part, pipe);) text += part;
  pclose(pipe);
  return text;
}

std::vector<TorchRow> run_torch(const Options& options, const std::string& self,
                                std::string& version) {
  std::vector<TorchRow> rows;
  const char* python = std::getenv("PYTHON");
  for (int threads : options.threads) {
    progress(tc::str("PyTorch, ", threads, " threads"));
    std::istringstream lines(command_output(
        tc::str(python ? python : "python3", " tests/bench/torch_peers.py --threads ", threads,
                " --seconds ", options.seconds, " --ours ", self, " ",
                tc::join(options.rows, " "), " 2>/dev/null")));
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      TorchRow row{threads, "", "", "", "", ""};
      words >> row.row >> row.ours >> row.eager >> row.compiled >> row.first_call;
      if (row.row == "torch") version = row.ours;
      if (row.row == "torch" || row.row == "skipped:" || row.first_call.empty()) continue;
      rows.push_back(row);
      progress("");
      std::printf(
          "%-14s %d  | tiny_compile %s ms | torch eager %s ms | torch.compile %s ms, first "
          "call %s s\n",
          row.row.c_str(), threads, row.ours.c_str(), row.eager.c_str(), row.compiled.c_str(),
          row.first_call.c_str());
    }
  }
  progress("");
  if (rows.empty()) std::printf("PyTorch: not installed, or it did not run\n");
  return rows;
}

// The slope -----------------------------------------------------------------------------------

struct Slope {
  int64_t ops = 0;
  double trace = 0, stages = 0;  // milliseconds
  size_t bytes = 0;              // of source
};

// x = x*x + x until there are so many ops: linear, or the compiler copies shared values.
Slope measure_slope(int64_t ops) {
  const auto compiled = tc::compile([ops](tc::Tensor x) {
    for (int64_t k = 0; k < ops; k += 2) x = x * x + x;
    return x;
  });
  Slope best{ops, 1e9, 1e9, 0};
  for (int turn = 0; turn < 5; turn++) {
    const double start = now();
    const tc::Specialization traced = compiled.specialization(
        tc::filled_tensor(tc::Literal::of(tc::DType::f32, 0.5), {1024}));
    const double middle = now();
    const tc::Staged staged =
        tc::run_pipeline(tc::default_pipeline(), traced.traced.graph, false);
    best.trace = std::min(best.trace, (middle - start) * 1e3);
    best.stages = std::min(best.stages, (now() - middle) * 1e3);
    best.bytes = staged.source.text.size();
  }
  return best;
}

std::vector<Slope> run_slope() {
  std::vector<Slope> slopes;
  std::printf("\nCompile time before the C++ compiler, x = x*x + x:\n");
  for (int64_t ops = 250; ops <= 8000; ops *= 2) {
    slopes.push_back(measure_slope(ops));
    const Slope& s = slopes.back();
    std::printf("%6lld ops: trace %7.3f ms, stages %8.3f ms, %5.2f us an op, %7zu bytes\n",
                static_cast<long long>(s.ops), s.trace, s.stages,
                (s.trace + s.stages) * 1e3 / static_cast<double>(s.ops), s.bytes);
    std::fflush(stdout);
  }
  return slopes;
}

// The record ----------------------------------------------------------------------------------

std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  std::erase_if(text, [](char c) { return c == '"' || c == '\\'; });
  return text;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

std::string date() {
  const std::time_t seconds = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&seconds));
  return text;
}

std::string json(const Result& r) {
  std::vector<std::string> parts;
  for (const Timing& t : r.timings)
    parts.push_back(tc::str("\"", t.name,
                            "\": {\"median_us\": ", formatted("%.4f", t.median * 1e6),
                            ", \"min_us\": ", formatted("%.4f", t.least * 1e6),
                            ", \"to_hand\": ", formatted("%.4f", t.to_hand), "}"));
  return tc::str("  {\"row\": \"", r.row, "\", \"threads\": ", r.threads,
                 ", \"gbps\": ", formatted("%.2f", r.bytes / r.timings[0].median * 1e-9),
                 ", \"gflops\": ", formatted("%.2f", r.flops / r.timings[0].median * 1e-9),
                 ", \"bytes\": ", r.compile.bytes,
                 ", \"operations\": ", formatted("%.0f", r.compile.operations),
                 ",\n   \"trace_ms\": ", formatted("%.3f", r.compile.trace),
                 ", \"stages_ms\": ", formatted("%.3f", r.compile.stages),
                 ", \"cpp_ms\": ", formatted("%.1f", r.compile.cpp),
                 ", \"from_disk_ms\": ", formatted("%.3f", r.compile.cached), ",\n   ",
                 tc::join(parts, ",\n   "), "}");
}

std::string json_number(const std::string& text) { return text == "-" ? "null" : text; }

// Of the working tree, or what $TC_BENCH_COMMIT says where the tree came without git.
std::string commit() {
  const char* given = std::getenv("TC_BENCH_COMMIT");
  return given ? given
               : first_line(command_output("git describe --always --dirty 2>/dev/null"));
}

void write_record(const std::string& path, const std::string& command,
                  const std::vector<Result>& results, const std::vector<TorchRow>& torch,
                  const std::string& torch_version, const std::vector<Slope>& slopes,
                  const std::vector<bench::StartupRow>& startups, double load) {
  std::vector<std::string> rows, peers, slope, startup;
  for (const bench::StartupRow& s : startups)
    startup.push_back(tc::str("  {\"kernels\": ", s.kernels,
                              ", \"cold_ms\": ", formatted("%.1f", s.cold),
                              ", \"compiler_alone_ms\": ", formatted("%.1f", s.compiler),
                              ", \"warm_ms\": ", formatted("%.2f", s.warm),
                              ", \"warm_process_ms\": ", formatted("%.2f", s.process), "}"));
  for (const Result& result : results) rows.push_back(json(result));
  for (const TorchRow& t : torch)
    peers.push_back(tc::str("  {\"row\": \"", t.row, "\", \"threads\": ", t.threads,
                            ", \"tiny_compile_ms\": ", json_number(t.ours),
                            ", \"eager_ms\": ", json_number(t.eager),
                            ", \"compiled_ms\": ", json_number(t.compiled),
                            ", \"first_call_s\": ", json_number(t.first_call), "}"));
  for (const Slope& s : slopes)
    slope.push_back(tc::str(
        "  {\"ops\": ", s.ops, ", \"trace_ms\": ", formatted("%.3f", s.trace),
        ", \"stages_ms\": ", formatted("%.3f", s.stages), ", \"bytes\": ", s.bytes, "}"));
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::ofstream out(path);
  out << tc::str("{\"date\": \"", date(), "\",\n \"commit\": \"", commit(),
                 "\",\n \"command\": \"", command, "\",\n \"cpu\": \"", cpu_name(),
                 "\", \"cores\": ", std::thread::hardware_concurrency(),
                 ", \"load_before\": ", load, ",\n \"compiler\": \"",
                 first_line(command_output(tc::default_toolchain().compiler + " --version")),
                 "\",\n \"rows\": [\n", tc::join(rows, ",\n"), "\n ],\n \"torch\": \"",
                 torch_version, "\", \"torch_rows\": [\n", tc::join(peers, ",\n"),
                 "\n ],\n \"slope\": [\n", tc::join(slope, ",\n"), "\n ],\n \"startup\": [\n",
                 tc::join(startup, ",\n"), "\n ]\n}\n");
  if (!out.flush()) tc::fail("cannot write the record ", path);
  std::printf("\nwritten: %s\n", path.c_str());
}

std::vector<bench::StartupRow> run_startup(const std::string& self) {
  progress("startup");
  const std::vector<bench::StartupRow> rows = bench::measure_startup(self, kStartups);
  for (const bench::StartupRow& row : rows)
    std::printf(
        "startup, %2d kernels | first result %.1f ms | the compiler alone %.1f ms | from the "
        "disk "
        "cache %.2f ms (the whole process %.2f ms)\n",
        row.kernels, row.cold, row.compiler, row.warm, row.process);
  return rows;
}

// Running -------------------------------------------------------------------------------------

Options parse(int argc, char** argv) {
  Options options;
  options.threads = {1};
  if (omp_get_num_procs() > 1) options.threads.push_back(omp_get_num_procs());
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i], value = word.substr(word.find('=') + 1);
    if (word.rfind("--seconds=", 0) == 0)
      options.seconds = std::stod(value);
    else if (word.rfind("--record=", 0) == 0)
      options.record = value;
    else if (word == "--no-torch")
      options.torch = false;
    else if (word == "--alone")
      options.alone = true;
    else if (word.rfind("--threads=", 0) == 0) {
      options.threads.clear();
      std::istringstream list(value);
      for (std::string item; std::getline(list, item, ',');)
        options.threads.push_back(std::stoi(item));
    } else if (word[0] == '-') {
      tc::fail("no option ", word, ": see the top of tests/bench/bench.cpp");
    } else if (word == "slope") {
      options.slope = true;
    } else if (word == "startup") {
      options.startup = true;
    } else {
      options.rows.push_back(word);
    }
  }
  if (options.rows.empty() && !options.slope && !options.startup) {
    options.rows = bench::row_names();
    options.slope = options.startup = true;
    if (options.record.empty()) options.record = "tests/bench/records/cpu-" + date() + ".json";
  }
  return options;
}

std::vector<Result> run_row(const std::string& name, const Options& options) {
  progress(name + ": inputs");
  Row row = bench::make_row(name);
  const Compile compile = compile_once(row);
  progress(name + ": checking against the interpreter");
  check(row);
  print_compile(name, compile);
  std::vector<Result> results;
  for (int threads : options.threads) {
    if (!row.threaded && threads > 1) continue;
    progress(tc::str(name, ": ", threads, " threads"));
    omp_set_num_threads(threads);
    results.push_back({name, threads, row.bytes, row.flops,
                       measure_turns(row.contestants, threads, options.seconds), compile});
    print_result(results.back());
  }
  return results;
}

// tiny_compile is the first of a row's contestants.
int run_alone(const Options& options) {
  if (options.rows.size() != 1) tc::fail("--alone wants one row");
  const Row row = bench::make_row(options.rows[0]);
  const int threads = options.threads.back();
  omp_set_num_threads(threads);
  const Timing alone = measure_turns({row.contestants[0]}, threads, options.seconds)[0];
  std::printf("%.6f\n", alone.median * 1e3);
  return 0;
}

// A cache of this process's own, so that compile times are cold.
struct FreshCache {
  std::string path = "/tmp/tc_bench_XXXXXX";
  FreshCache() {
    if (!mkdtemp(path.data())) tc::fail("cannot make a directory in /tmp");
    setenv("TC_CACHE_DIR", path.c_str(), 1);
  }
  ~FreshCache() { std::filesystem::remove_all(path); }
};

int run(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--startup") return bench::startup_child(argv[2]);
  const Options options = parse(argc, argv);
  if (options.alone) return run_alone(options);
  const FreshCache cache;
  const double load = load_average();
  if (load > 1)
    std::printf(
        "the load average is %.1f: others use these cores, medians on all threads mean "
        "little (see the minima)\n",
        load);
  std::string command = "bench", version;
  for (int i = 1; i < argc; i++) command += std::string(" ") + argv[i];
  std::vector<Result> results;
  for (const std::string& name : options.rows) {
    for (Result& result : run_row(name, options)) results.push_back(std::move(result));
    tc::release_cached_memory();
  }
  std::vector<TorchRow> torch;
  if (options.torch && !options.rows.empty()) torch = run_torch(options, argv[0], version);
  std::vector<Slope> slopes;
  if (options.slope) slopes = run_slope();
  std::vector<bench::StartupRow> startups;
  if (options.startup) startups = run_startup(argv[0]);
  if (!options.record.empty())
    write_record(options.record, command, results, torch, version, slopes, startups, load);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const tc::Error& error) {
    std::fprintf(stderr, "\n%s\n", error.what());
    return 1;
  }
}
