// Which stage made these two runs differ?
//
//   tc bisect default simplify,cse,fuse --graph=softmax.graph     two pipelines of this compiler
//   tc bisect here/ there/                                        dumps of two machines
//   tc bisect build/tc ../before/build/tc --graph=softmax.graph   two commits
//
//   ->  there/: stage 'cse' differs first, at %6 = mul: [0,3] is 2 (0x40000000), not 1 (0x3f800000)
//
// A binary is run with TC_DEBUG_DIR, so that all three are lists of what each stage made.
#include "tiny_compile/cli/bisect.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/npy.h"

namespace tiny_compile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHow =
    "tc bisect A B: each a list of stages (or 'default'), a TC_DEBUG_DIR or a tc binary; lists "
    "and "
    "binaries need --graph=FILE, and --seed=N draws the inputs (1), --limit=SECONDS ends a "
    "binary (60)";

struct Request {
  std::vector<std::string> runs;
  std::map<std::string, std::string> options = {{"graph", ""}, {"seed", "1"}, {"limit", "60"}};

  uint64_t number(const std::string& name) const {
    const std::string& text = options.at(name);
    const bool is_number = !text.empty() && text.size() < 10 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) fail("--", name, "=", text, " is no number");
    return std::stoull(text);
  }
};

Request parse_request(const std::vector<std::string>& words) {
  Request request;
  for (const std::string& word : words) {
    if (word.rfind("--", 0) != 0) {
      request.runs.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (!request.options.count(name) || equals == std::string::npos)
      fail("no option ", word, " in tc bisect\n", kHow);
    request.options[name] = word.substr(equals + 1);
  }
  if (request.runs.size() != 2) fail(kHow);
  return request;
}

Made parse_made(const std::string& path, const std::string& stage) {
  const std::string text = read_text(path);
  try {
    if (text.rfind("graph ", 0) == 0) return {stage, parse_graph(text)};
    if (text.rfind("program ", 0) == 0) return {stage, parse_program(text)};
  } catch (const Error& error) {
    fail(path, ":", error.what());
  }
  if (stage != "emit")
    fail(path, " holds neither a graph nor a program: it was cut or changed");
  return {stage, text};
}

// A directory of its own, which goes with this.
class Room {
 public:
  Room() {
    if (!mkdtemp(path_)) fail("tc bisect: cannot make a directory in /tmp");
  }
  ~Room() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/tc-bisect-XXXXXX";
};

Graph graph_of(const Request& request, const std::string& run) {
  const std::string& file = request.options.at("graph");
  if (file.empty())
    fail("'", run, "' is no directory, so it is a list of stages or a tc binary, which need ",
         "--graph=FILE\n", kHow);
  try {
    return parse_graph(read_text(file));
  } catch (const Error& error) {
    fail(file, ":", error.what());
  }
}

Pipeline stages_named(const std::string& list) {
  if (list == "default") return default_pipeline();
  Pipeline chosen;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');)
    chosen.push_back(until(default_pipeline(), name).back());
  return chosen;
}

std::vector<RecordedRun> run_binary(const Request& request, const std::string& binary) {
  graph_of(request, binary);  // a clear error before any process
  const Room room;
  const std::string& graph = request.options.at("graph");
  const std::vector<std::string> command = {
      binary, "run", graph, "--seed=" + request.options.at("seed"), "--out=" + room.path()};
  const ProcessResult result =
      run_process(command, "", static_cast<double>(request.number("limit")),
                  {"TC_DEBUG_DIR=" + room.path()});
  if (result.timed_out)
    fail(binary, " did not end within ", request.number("limit"), " s: --limit=SECONDS");
  if (result.signal != 0)
    fail(binary, " was ended by signal ", result.signal, ":\n", result.output);
  if (result.exit_code != 0)
    fail(binary, " failed with exit code ", result.exit_code, ":\n", result.output);
  std::vector<RecordedRun> runs = read_dump(room.path());
  for (RecordedRun& run : runs) run.name = binary;
  return runs;
}

std::vector<RecordedRun> runs_of(const Request& request, const std::string& run) {
  if (fs::is_directory(run)) return read_dump(run);
  if (fs::is_regular_file(run) && access(run.c_str(), X_OK) == 0)
    return run_binary(request, run);
  if (run.find('/') != std::string::npos)
    fail(run, " is neither a directory nor a program: nothing to run");
  return {{run, stages_of(stages_named(run), graph_of(request, run)), {}}};
}

std::string said(const Verdict& verdict) {
  const std::string place =
      str(verdict.run, ": stage '", verdict.stage, "' differs first, at ", verdict.place, ": ");
  if (!verdict.got.defined()) return place + verdict.text;
  if (!verdict.wanted.defined()) return place + "its value is nowhere in the stage before";
  return place + element_difference(verdict.wanted, verdict.got, verdict.at);
}

std::string trace_of(const RecordedRun& run) {
  return print(std::get<Graph>(run.stages.at(0).value));
}

// B's run of A's graph: of several, the one with the same traced text.
const RecordedRun& partner(const RecordedRun& a, const std::vector<RecordedRun>& as,
                           const std::vector<RecordedRun>& bs) {
  if (as.size() == 1 && bs.size() == 1) return bs[0];
  const auto same = std::find_if(
      bs.begin(), bs.end(), [&](const RecordedRun& b) { return trace_of(a) == trace_of(b); });
  if (same == bs.end())
    fail("tc bisect: only A holds the graph of ", a.name,
         "; these dumps are "
         "of different graphs");
  return *same;
}

}  // namespace

std::vector<RecordedRun> read_dump(const std::string& directory) {
  static const std::regex kName("(.*_[0-9a-f]{6})_([0-9]+)_(.+)\\.txt");
  std::map<std::string, std::map<size_t, std::string>> files;  // by graph, then stage
  for (const auto& item : fs::directory_iterator(directory)) {
    const std::string file = item.path().filename();
    std::smatch parts;
    if (std::regex_match(file, parts, kName) && parts[2].length() < 6)
      files[parts[1]][std::stoul(parts[2])] = parts[3];
  }
  if (files.empty())
    fail(directory, " holds no texts of stages: run with TC_DEBUG_DIR=", directory);
  std::vector<RecordedRun> runs;
  for (const auto& [graph, stages] : files) {
    RecordedRun run{files.size() == 1 ? directory : directory + " " + graph, {}, {}};
    for (const auto& [number, stage] : stages) {
      if (number != run.stages.size() || (number == 0 && stage != "trace"))
        fail(directory, " lacks the text of stage ", run.stages.size(), " of ", graph,
             ", which begins with 0_trace");
      run.stages.push_back(
          parse_made(str(directory, "/", graph, "_", number, "_", stage, ".txt"), stage));
    }
    runs.push_back(std::move(run));
  }
  for (size_t k = 0; runs.size() == 1; k++) {
    const std::string file = str(directory, "/", k, ".npy");
    if (!fs::exists(file)) break;
    runs[0].outputs.push_back(load_npy(file));
  }
  return runs;
}

int bisect_runs(const std::vector<std::string>& words, std::ostream& out) {
  const Request request = parse_request(words);
  const std::vector<RecordedRun> as = runs_of(request, request.runs[0]),
                                 bs = runs_of(request, request.runs[1]);
  if (as.size() != bs.size())
    fail("tc bisect: A holds ", as.size(), " graphs, B ", bs.size(),
         "; these are not runs of one computation");
  for (const RecordedRun& a : as) {
    const RecordedRun& b = partner(a, as, bs);
    const Graph& graph = std::get<Graph>(a.stages.at(0).value);
    require_numbers(symbols(graph), "tc bisect", a.name, print(graph), 0);
    const std::vector<Tensor> inputs = seeded_inputs(graph, request.number("seed"), {});
    const std::optional<Verdict> verdict = bisect(a, b, inputs);
    if (!verdict) continue;
    out << said(*verdict) << "\n";
    return 2;
  }
  out << "the same bits after every stage\n";
  return 0;
}

}  // namespace tiny_compile
