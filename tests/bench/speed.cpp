// Speed fuzzing: random functions as networks have them, checked and measured against their
// floor.
//
//   build/speed --seeds=1..20               checks and measures these draws, prints a row each
//   build/speed --commit=HASH --shard=2/10  the second tenth of the 200 draws of a record
//   build/speed --patterns --shard=2/4      the second quarter of the named patterns instead
//   build/speed --patterns=softmax          those whose names have "softmax" in them
//   build/speed --seeds=7 --print           the draw as a Python function
//   build/speed --seeds=7 --graph   as a graph's text, for tc
//   build/speed --seeds=7 --emit --target=cuda   its CUDA source, without a GPU too
//   build/speed --seeds=1..200 --plan --target=cuda   launches and bytes that our kernels move, over
//                                                the floor's, worst first, without a GPU too
//   build/speed --seeds=1..200 --model --target=cuda  where the cost model would choose otherwise than
//                                                the policy does, and what it would gain by its own account
//   build/speed --list .. | --serve | --why what speed_peers.py asks for, which adds PyTorch
//
// --target=cuda (where there is a GPU) or cpp; --draws=N of a record; --class=NAME: draws of
// this class alone; --json=FILE: the rows; --seconds=0.4 of timing a draw; --check: the bits
// alone, no times; --small: a few thousand elements, as for the interpreter.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "tests/bench/gpu_serve.h"
#include "tests/bench/speed_bind.h"
#include "tests/bench/speed_patterns.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace {

namespace tc = tiny_compile;
using bench::LoadedRow, bench::Machine, bench::Scale;

constexpr int64_t kCopied = int64_t{1} << 30;

struct Options {
  std::string target, seeds, commit, shard = "1/1", family, json;
  std::optional<std::string> patterns;  // what their names have in them, "" for all of them
  int64_t draws = 200;
  double seconds = 0.4;
  bool graph = false, print = false, emit = false, plan = false, list = false, serve = false,
       check = false, small = false, model = false;

  bool on_gpu() const { return target == "cuda"; }
  Scale scale() const { return small ? Scale::Small : on_gpu() ? Scale::Gpu : Scale::Cpu; }
};

struct Row {
  std::string name, family, what;
  double ms = 0, compile_ms = 0, floor_ms = 0, bytes = 0, operations = 0;
  int64_t kernels = 0;
  std::string bits;  // what was compared, or what went wrong
  bool failed = false;
};

uint64_t number_in(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    tc::fail("'", text, "' is no number: --seeds=1..20,37, --shard=2/10");
  return value;
}

std::pair<uint64_t, uint64_t> split_at(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  const uint64_t first = number_in(text.substr(0, at));
  return {first, at == std::string::npos ? first : number_in(text.substr(at + mark.size()))};
}

// Numbers below `count` that leave shard - 1 over shards.
std::vector<uint64_t> numbers_of_shard(const std::string& text, uint64_t count) {
  const auto [shard, shards] = split_at(text, "/");
  if (shard < 1 || shard > shards) tc::fail("--shard=", text, ": from 1/N to N/N");
  std::vector<uint64_t> numbers;
  for (uint64_t k = shard - 1; k < count; k += shards) numbers.push_back(k);
  return numbers;
}

// Of the options: A..B,C, or of a commit those of the shard.
std::vector<uint64_t> seeds_of(const Options& options) {
  std::vector<uint64_t> seeds;
  if (options.commit.empty()) {
    std::istringstream parts(options.seeds.empty() ? "1..10" : options.seeds);
    for (std::string part; std::getline(parts, part, ',');) {
      const auto [first, last] = split_at(part, "..");
      for (uint64_t seed = first; seed <= last; seed++) seeds.push_back(seed);
    }
    return seeds;
  }
  for (uint64_t k : numbers_of_shard(options.shard, static_cast<uint64_t>(options.draws)))
    seeds.push_back(bench::seed_of(options.commit, k));
  return seeds;
}

std::vector<std::string> patterns_of(const Options& options) {
  std::vector<std::string> all, names;
  for (const std::string& name : bench::pattern_names()) {
    const bool asked = name.find(*options.patterns) != std::string::npos;
    if (asked && (options.family.empty() || options.family == bench::class_of_pattern(name)))
      all.push_back(name);
  }
  for (uint64_t k : numbers_of_shard(options.shard, all.size())) names.push_back(all[k]);
  return names;
}

std::vector<std::string> names_of(const Options& options) {
  if (options.patterns) return patterns_of(options);
  std::vector<std::string> names;
  for (uint64_t seed : seeds_of(options))
    names.push_back(options.family.empty() ? tc::str(seed)
                                           : tc::str(options.family, ":", seed));
  return names;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void tell(const std::string& text) {
  if (isatty(2)) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

// Measuring -----------------------------------------------------------------------------------

double time_row(LoadedRow& loaded, double seconds) {
  std::vector<double> times = loaded.time_calls(3);
  const double each = std::max(bench::median(times), 1e-4);
  const int count = std::clamp(static_cast<int>(10 / each), 1, 50);
  const double stop = now() + seconds;
  while (now() < stop) {
    const auto more = loaded.time_calls(count);
    times.insert(times.end(), more.begin(), more.end());
  }
  return bench::median(times);
}

std::string check(LoadedRow& loaded, const Machine& machine) {
  loaded.check_small();
  if (!loaded.row().exact) return "small, near";
  // The interpreter on a CPU: some 100 ns an element and operation.
  if (!machine.is_gpu() && loaded.row().bytes > 16e6) return "small";
  return loaded.check_full() ? "full" : "small";
}

Row measure(const Machine& machine, const Options& options, const std::string& name,
            double copy) {
  Row row;
  row.name = name;
  try {
    LoadedRow loaded(machine, name, bench::draws_at(options.scale(), options.on_gpu()));
    row.family = loaded.row().family;
    row.what = loaded.row().what;
    row.bytes = loaded.row().bytes;
    row.operations = loaded.operations();
    row.compile_ms = loaded.compile_ms();
    row.kernels = loaded.launches();
    row.floor_ms = row.bytes / copy * 1e-6;
    row.bits = check(loaded, machine);
    if (!options.check) row.ms = time_row(loaded, options.seconds);
  } catch (const std::exception& error) {
    row.bits = error.what();
    row.failed = true;
  }
  tc::release_cached_memory();
  if (machine.is_gpu()) tc::release_cached_cuda_memory(machine.device.index);
  return row;
}

std::string json_of(const Row& row) {
  using bench::number, bench::quoted;
  return tc::str("{\"seed\": ", quoted(row.name), ", \"class\": ", quoted(row.family),
                 ", \"text\": ", quoted(row.what), ", \"ms\": ", number(row.ms),
                 ", \"compile_ms\": ", number(row.compile_ms),
                 ", \"floor_ms\": ", number(row.floor_ms), ", \"bytes\": ", number(row.bytes),
                 ", \"operations\": ", number(row.operations), ", \"kernels\": ", row.kernels,
                 ", \"bits\": ", quoted(row.bits), "}");
}

void print_row(const Row& row) {
  tell("");
  if (row.failed)
    std::printf("%15s %-19s FAILED: %s\n", row.name.c_str(), row.family.c_str(),
                row.bits.c_str());
  else
    std::printf(
        "%15s %-19s %9.4f ms  floor %8.4f  %4.2f of it  %3lld k  compile %5.0f ms  %5.1f "
        "ops/byte  bits: %s | %s\n",
        row.name.c_str(), row.family.c_str(), row.ms, row.floor_ms,
        row.ms > 0 ? row.floor_ms / row.ms : 0, static_cast<long long>(row.kernels),
        row.compile_ms, row.operations / row.bytes, row.bits.c_str(), row.what.c_str());
  std::fflush(stdout);
}

// Medians of floor / time by class, of draws whose floor is 20 us at least and no product.
void print_summary(const std::vector<Row>& rows) {
  std::map<std::string, std::vector<double>> shares;
  size_t failed = 0;
  for (const Row& row : rows) {
    failed += row.failed;
    if (row.failed || row.ms <= 0 || row.floor_ms < 0.02 || row.family.ends_with("product"))
      continue;
    shares[row.family].push_back(row.floor_ms / row.ms);
    shares["all"].push_back(row.floor_ms / row.ms);
  }
  std::printf(
      "\n%zu draws, %zu failed; medians of floor / time where the floor is 20 us or more:\n",
      rows.size(), failed);
  for (const auto& [family, values] : shares)
    std::printf("  %-19s %4.2f of %zu\n", family.c_str(), bench::median(values), values.size());
}

int measure_all(const Machine& machine, const Options& options) {
  const int64_t copied = machine.is_gpu() ? kCopied : kCopied / 8;
  const double copy = 2.0 * static_cast<double>(copied) * 1e-6 /
                      bench::median(bench::time_copies(machine, copied, 10));
  std::printf("%s, copy %.0f GB/s\n", machine.name().c_str(), copy);
  std::vector<Row> rows;
  const auto names = names_of(options);
  for (const std::string& name : names) {
    tell(tc::str(rows.size() + 1, " of ", names.size(), ": ", name));
    rows.push_back(measure(machine, options, name, copy));
    print_row(rows.back());
  }
  print_summary(rows);
  if (!options.json.empty()) {
    std::ofstream out(options.json);
    for (const Row& row : rows) out << json_of(row) << "\n";
  }
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.failed; });
}

// Options -------------------------------------------------------------------------------------

void set(Options& options, const std::string& name, const std::string& value) {
  static const std::map<std::string, std::string Options::*> kTexts = {
      {"--target", &Options::target}, {"--seeds", &Options::seeds},
      {"--commit", &Options::commit}, {"--shard", &Options::shard},
      {"--class", &Options::family},  {"--json", &Options::json}};
  static const std::map<std::string, bool Options::*> kFlags = {
      {"--print", &Options::print}, {"--graph", &Options::graph}, {"--emit", &Options::emit},
      {"--plan", &Options::plan},   {"--list", &Options::list},   {"--serve", &Options::serve},
      {"--small", &Options::small}, {"--check", &Options::check}, {"--model", &Options::model}};
  if (const auto text = kTexts.find(name); text != kTexts.end())
    options.*text->second = value;
  else if (name == "--patterns")
    options.patterns = value;
  else if (const auto flag = kFlags.find(name); flag != kFlags.end())
    options.*flag->second = true;
  else if (name == "--draws")
    options.draws = static_cast<int64_t>(number_in(value));
  else if (name == "--seconds")
    options.seconds = std::stod(value);
  else
    tc::fail("no option ", name, ": see the top of tests/bench/speed.cpp");
  if (options.target != "cuda" && options.target != "cpp")
    tc::fail("--target=", options.target, ": cuda or cpp");
}

// Names, and whether max-autotune is asked for them too.
void list_draws(const Options& options) {
  for (const std::string& name : names_of(options)) {
    const uint64_t seed = options.patterns ? bench::seed_of_pattern(name)
                                           : number_in(name.substr(name.find(':') + 1));
    std::printf("%s %d\n", name.c_str(), bench::has_max_autotune(seed));
  }
}

void print_draws(const Options& options) {
  const auto make = bench::draws_at(options.scale(), options.on_gpu());
  for (const std::string& name : names_of(options)) {
    const bench::GpuRow row = make(name, false);
    std::printf("# %s, %s: %s\n%s\n", name.c_str(), row.family.c_str(), row.what.c_str(),
                row.python.c_str());
  }
}

tc::Graph graph_of(const bench::GpuRow& row) {
  std::vector<tc::Tensor> inputs;
  for (const bench::Input& input : row.inputs) inputs.push_back(bench::shape_only(input));
  return row.prepare({}, inputs).graph();
}

void print_graphs(const Options& options) {
  const auto make = bench::draws_at(options.scale(), true);
  for (const std::string& name : names_of(options))
    std::printf("%s", tc::print(graph_of(make(name, false))).c_str());
}

void emit_draws(const Options& options) {
  const auto make = bench::draws_at(options.scale(), true);
  for (const std::string& name : names_of(options)) {
    const bench::GpuRow row = make(name, false);
    const tc::Source source = bench::cuda_source(graph_of(row));
    std::printf("// %s, %s: %s\n%s", name.c_str(), row.family.c_str(), row.what.c_str(),
                source.text.c_str());
    for (const tc::KernelEntry& kernel : source.kernels)
      std::printf("// %s %s<<<%lld, %d>>>\n", kernel.room > 0 ? "in a launch of" : "launch",
                  kernel.function.c_str(), static_cast<long long>(kernel.grid.constant()),
                  kernel.block);
  }
}

// A GPU's kernels alone: a vendor's products are planned as kernels too.
tc::Program planned(const bench::GpuRow& row) {
  const tc::Pipeline pipeline = tc::until(tc::default_pipeline(), "plan_memory");
  return tc::run_pipeline(pipeline, graph_of(row), false, tc::Target::Cuda).program;
}

void print_plans(const Options& options) {
  const auto make = bench::draws_at(options.scale(), true);
  std::multimap<double, std::string, std::greater<>> lines;
  for (const std::string& name : names_of(options)) {
    const bench::GpuRow row = make(name, false);
    const tc::Program program = planned(row);
    const double share = static_cast<double>(tc::bytes_moved(program)) / row.bytes;
    char text[80];
    std::snprintf(text, sizeof text, "%5.2f of its floor's bytes, %3zu launches, %7.1f MB",
                  share, program.launches.size(), row.bytes / 1e6);
    lines.emplace(share, tc::str(text, " | ", row.family, " ", name, ": ", row.what));
  }
  for (const auto& [share, line] : lines) std::printf("%s\n", line.c_str());
}

// What the model says of the policy's choices; of no product, whose tiles it does not tell apart.
struct Opinion {
  size_t kernels = 0, others = 0;  // where it would choose what is 2 % cheaper at least
  double policy = 0, model = 0;    // microseconds
  std::vector<double> gains;       // of the others
};

Opinion& operator+=(Opinion& sum, const Opinion& one) {
  sum.kernels += one.kernels, sum.others += one.others;
  sum.policy += one.policy, sum.model += one.model;
  sum.gains.insert(sum.gains.end(), one.gains.begin(), one.gains.end());
  return sum;
}

Opinion opinion_of(const tc::Program& program, const tc::Kernel& kernel) {
  const std::vector<tc::Priced> all = tc::ranked(program, kernel);
  if (kernel.schedule->strategy == tc::Strategy::Tiles || all.empty()) return {};
  const double own = tc::estimate(program, kernel).total(),
               least = std::min(all[0].microseconds, own);
  Opinion one{1, own > 1.02 * least, own, least, {}};
  if (one.others) one.gains = {own / least};
  return one;
}

void print_opinions(const Options& options) {
  const auto make = bench::draws_at(options.scale(), true);
  const tc::Pipeline pipeline = tc::until(tc::default_pipeline(), "plan_memory");
  std::map<std::string, Opinion> opinions;  // by strategy
  for (const std::string& name : names_of(options)) {
    tell(name);
    const tc::Target target = options.on_gpu() ? tc::Target::Cuda : tc::Target::Cpp;
    const tc::Program program =
        tc::run_pipeline(pipeline, graph_of(make(name, false)), false, target).program;
    for (const tc::Kernel& kernel : program.kernels) {
      const Opinion one = opinion_of(program, kernel);
      opinions[tc::name_of(kernel.schedule->strategy)] += one;
      opinions["all"] += one;
    }
  }
  tell("");
  for (auto& [strategy, o] : opinions) {
    std::sort(o.gains.begin(), o.gains.end());
    std::printf(
        "%-10s %5zu kernels, %4zu otherwise by the model: median %4.2f, most %4.2f times as "
        "fast; all of them %.0f us, %.0f by the model's choice\n",
        strategy.c_str(), o.kernels, o.others, o.gains.empty() ? 1 : bench::median(o.gains),
        o.gains.empty() ? 1 : o.gains.back(), o.policy, o.model);
  }
}

int run(const std::vector<std::string>& arguments, const std::string& self) {
  setenv("TC_CACHE_DIR", "/dev/null", 1);  // each draw is compiled anew
  Options options;
  options.target = tc::why_no_gpu().empty() ? "cuda" : "cpp";
  for (const std::string& word : arguments) {
    if (word == "--why") return std::printf("%s\n", tc::why_no_gpu().c_str()), 0;
    const size_t equals = std::min(word.find('='), word.size());
    set(options, word.substr(0, equals), word.substr(std::min(equals + 1, word.size())));
  }
  if (options.list) return list_draws(options), 0;
  if (options.print) return print_draws(options), 0;
  if (options.graph) return print_graphs(options), 0;
  if (options.plan) return print_plans(options), 0;
  if (options.model) return print_opinions(options), 0;
  if (options.emit) return emit_draws(options), 0;
  const Machine machine = options.on_gpu() ? Machine{} : Machine{tc::cpu, false};
  if (options.on_gpu() && !tc::why_no_gpu().empty())
    return std::printf("speed: skipped, %s\n", tc::why_no_gpu().c_str()), 0;
  if (options.serve)
    return bench::serve(machine, self, bench::draws_at(options.scale(), options.on_gpu()));
  return measure_all(machine, options);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, run); }
