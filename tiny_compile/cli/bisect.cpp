// Which call, and which stage, made these two runs differ?
//
//   tc bisect default simplify,cse,fuse --graph=softmax.graph     two pipelines of this compiler
//   tc bisect here/ there/                                        dumps of two machines
//   tc bisect build/tc ../before/build/tc --graph=softmax.graph   two commits
//   tc bisect default there/                                      another machine's calls alone
//
//   ->  there/: stage 'cse' differs first, at %6 = mul: [0,3] is 2 (0x40000000), not 1 (0x3f800000)
//
// A binary is run with TC_DEBUG_DIR, so that all are lists of what each stage made, and of
// calls.
#include "tiny_compile/cli/bisect.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/cli/bisect_calls.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/npy.h"

namespace tiny_compile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    R"(tc bisect A B     the first call, stage, node and element where two runs part
  A and B are each
    default | a,b,c   all stages of this tc, or these
    a directory       that TC_DEBUG_DIR filled, here or on another machine
    a program         tc of this or another commit, which is run
  lists and programs need a graph; a list takes that of the other's directory where there is one
    --graph=FILE      the graph
    --in FILE.npy     an input of it, in order; may be repeated
    --seed=N          the others are drawn (1); so are a directory's without calls
    --calls=N         call it so often (1)
    --carry=1:0,2:1   output 1 of a call is input 0 of the next, output 2 input 1: a state
    --limit=SECONDS   for each program, and for all comparing together (60)
  exit code: 0 the same, 1 a mistake, 2 they part

What to record, of any program that calls tc::compile (of tc run too):
    TC_DEBUG_DIR=d          each stage's text
    TC_DEBUG_CALLS=0        also a line a call: hashes of all that it got and gave
    TC_DEBUG_CALLS=1-3,17   also the elements of these calls, on which stages are then compared;
                            all: of every call
    TC_DEBUG_BUFFERS=1      also, of the same calls, what each kernel left in its buffers: code
                            is compiled to return them, which takes more memory and shares none
  Every input and output is copied to the CPU and hashed at each call. Give each process a
  directory of its own. Not kept: values inside of fused kernels, what a buffer held before a
  later kernel wrote to it, ops outside of tc::compile, the order of calls of several threads.
  On a GPU cuBLASLt's products have bits of their own and are named as differing: record with
  CompileOptions::deterministic, or with --matmul=generated, tc's default.
)";

struct Request {
  std::vector<std::string> runs, in;
  std::map<std::string, std::string> options = {
      {"graph", ""}, {"seed", "1"}, {"limit", "60"}, {"calls", "1"}, {"carry", ""}};

  uint64_t number(const std::string& name) const {
    const std::string& text = options.at(name);
    const bool is_number = !text.empty() && text.size() < 10 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) fail("--", name, "=", text, " is no number");
    return std::stoull(text);
  }
  double seconds() const { return static_cast<double>(number("limit")); }
  bool has_steps() const { return number("calls") > 1; }
};

Request parse_request(const std::vector<std::string>& words) {
  Request request;
  for (size_t k = 0; k < words.size(); k++) {
    const std::string& word = words[k];
    if (word.rfind("--", 0) != 0) {
      request.runs.push_back(word);
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name != "in" && !request.options.count(name))
      fail("no option ", word, " in tc bisect\n", kUsage);
    if (equals == std::string::npos && k + 1 == words.size()) fail(word, " needs a value");
    const std::string value =
        equals == std::string::npos ? words[++k] : word.substr(equals + 1);
    if (name == "in")
      request.in.push_back(value);
    else
      request.options[name] = value;
  }
  if (request.runs.size() != 2) fail(kUsage);
  if (request.number("calls") == 0) fail("--calls=0 leaves nothing to compare");
  carry_of(request.options.at("carry"));
  return request;
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

// A or B: stages of this compiler, or what was read of another's.
struct Side {
  std::string name;
  std::optional<Pipeline> pipeline;
  Dump dump;
  std::shared_ptr<const Room> room;  // of the dump, where that is not the user's

  bool has_calls() const { return !dump.calls.empty(); }
};

Graph graph_of(const Request& request) {
  const std::string& file = request.options.at("graph");
  if (file.empty())
    fail("tc bisect: lists of stages and tc binaries need --graph=FILE\n", kUsage);
  const std::string text = read_text(file);
  try {
    const Graph graph = parse_graph(text);
    require_numbers(symbols(graph), "tc bisect", file, text, 0);
    return graph;
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

std::vector<std::string> command_of(const Request& request, const std::string& binary,
                                    const std::string& room) {
  std::vector<std::string> command = {binary, "run", request.options.at("graph"),
                                      "--seed=" + request.options.at("seed"), "--out=" + room};
  for (const std::string& file : request.in) command.push_back("--in=" + file);
  if (request.has_steps()) command.push_back("--calls=" + request.options.at("calls"));
  const std::string& carry = request.options.at("carry");
  if (!carry.empty()) command.push_back("--carry=" + carry);
  return command;
}

Side run_binary(const Request& request, const std::string& binary) {
  graph_of(request);  // a clear error before any process
  const auto room = std::make_shared<const Room>();
  std::vector<std::string> settings = {"TC_DEBUG_DIR=" + room->path()};
  if (request.has_steps()) settings.push_back("TC_DEBUG_CALLS=all");
  const ProcessResult result =
      run_process(command_of(request, binary, room->path()), "", request.seconds(), settings);
  if (result.timed_out)
    fail(binary, " did not end within ", request.number("limit"), " s: --limit=SECONDS");
  if (result.signal != 0)
    fail(binary, " was ended by signal ", result.signal, ":\n", result.output);
  if (result.exit_code != 0)
    fail(binary, " failed with exit code ", result.exit_code, ":\n", result.output);
  Dump dump = read_dump(room->path());
  dump.name = binary;
  for (auto& [graph, run] : dump.graphs) run.name = binary;
  if (request.has_steps() && dump.calls.empty())
    fail(binary, " wrote down no calls: it is older than TC_DEBUG_CALLS. Leave out --calls");
  return {binary, {}, std::move(dump), room};
}

Side side_of(const Request& request, const std::string& run) {
  if (fs::is_directory(run)) return {run, {}, read_dump(run), {}};
  if (fs::is_regular_file(run) && access(run.c_str(), X_OK) == 0)
    return run_binary(request, run);
  if (run.find('/') != std::string::npos)
    fail(run, " is neither a directory nor a program: nothing to run");
  return {run, stages_named(run), {}, {}};
}

const Graph& trace_of(const RecordedRun& run) {
  return std::get<Graph>(run.stages.at(0).value);
}

// B's run of A's graph: of several, the one with the same traced text.
const RecordedRun& partner(const RecordedRun& a, const std::vector<RecordedRun>& as,
                           const std::vector<RecordedRun>& bs) {
  if (as.size() == 1 && bs.size() == 1) return bs[0];
  const std::string text = print(trace_of(a));
  const auto same = std::find_if(
      bs.begin(), bs.end(), [&](const RecordedRun& b) { return print(trace_of(b)) == text; });
  if (same == bs.end())
    fail("tc bisect: only A holds the graph of ", a.name,
         "; these dumps are of different graphs");
  return *same;
}

// The runs of a side: a list's are of --graph, or else of the other's graphs.
std::vector<RecordedRun> runs_of(const Request& request, const Side& side, const Side& other) {
  std::vector<RecordedRun> runs;
  for (const auto& [name, run] : (side.pipeline ? other : side).dump.graphs)
    runs.push_back(
        side.pipeline ? RecordedRun{side.name, stages_of(*side.pipeline, trace_of(run))} : run);
  if (side.pipeline && (runs.empty() || !request.options.at("graph").empty()))
    runs = {{side.name, stages_of(*side.pipeline, graph_of(request))}};
  return runs;
}

// Both runs' stages on this call's inputs, and on those of the calls behind it.
std::optional<std::string> first_step_apart(const Request& request, const RecordedRun& a,
                                            const RecordedRun& b, std::vector<Tensor> inputs,
                                            const TimeLimit& limit) {
  const uint64_t calls = request.number("calls");
  const Carry carry = carry_of(request.options.at("carry"));
  for (uint64_t call = 1; call <= calls; call++) {
    const auto verdict =
        limit.bisect(str("call ", call, " of ", trace_of(a).name), a, b, inputs);
    if (verdict) return (calls > 1 ? str("call ", call, ": ") : "") + said(*verdict);
    if (call < calls) inputs = carried(carry, inputs, interpret(trace_of(a), inputs));
  }
  return std::nullopt;
}

std::optional<std::string> first_graph_apart(const Request& request, const Side& a,
                                             const Side& b, const TimeLimit& limit) {
  const std::vector<RecordedRun> as = runs_of(request, a, b), bs = runs_of(request, b, a);
  if (as.size() != bs.size())
    fail("tc bisect: A holds ", as.size(), " graphs, B ", bs.size(),
         "; these are not runs of one computation");
  std::vector<Tensor> given;
  for (const std::string& file : request.in) given.push_back(load_npy(file));
  for (const RecordedRun& run : as) {
    const Graph& graph = trace_of(run);
    require_numbers(symbols(graph), "tc bisect", run.name, print(graph), 0);
    const auto found =
        first_step_apart(request, run, partner(run, as, bs),
                         seeded_inputs(graph, request.number("seed"), given), limit);
    if (found) return found;
  }
  return std::nullopt;
}

// Where calls are there, they say more than inputs that are drawn.
std::optional<std::string> first_apart(const Request& request, const Side& a, const Side& b) {
  const TimeLimit limit(request.seconds());
  if (a.has_calls() && b.has_calls()) return first_call_apart(a.dump, b.dump, limit);
  if (a.has_calls() && b.pipeline) return first_wrong_call(a.dump, b.name, *b.pipeline, limit);
  if (b.has_calls() && a.pipeline) return first_wrong_call(b.dump, a.name, *a.pipeline, limit);
  return first_graph_apart(request, a, b, limit);
}

std::string agreement(const Side& a, const Side& b) {
  if (!a.has_calls() && !b.has_calls()) return "the same bits after every stage";
  const size_t calls_a = a.dump.calls.size(), calls_b = b.dump.calls.size();
  if (a.pipeline || b.pipeline)
    return "the same bits after every stage, in every call whose elements were kept";
  if (calls_a == calls_b) return str("the same inputs and outputs in all ", calls_a, " calls");
  if (calls_a == 0 || calls_b == 0)
    return str("the same bits after every stage; the calls were not compared, since ",
               (calls_a ? b : a).name, " has none: TC_DEBUG_CALLS");
  return str("the same inputs and outputs in the first ", std::min(calls_a, calls_b),
             " calls; ", (calls_a > calls_b ? a : b).name, " goes on to call ",
             std::max(calls_a, calls_b));
}

}  // namespace

std::string bisect_usage() { return kUsage; }

int bisect_runs(const std::vector<std::string>& words, std::ostream& out) {
  const Request request = parse_request(words);
  const Side a = side_of(request, request.runs[0]), b = side_of(request, request.runs[1]);
  const std::optional<std::string> found = first_apart(request, a, b);
  out << (found ? *found : agreement(a, b)) << "\n";
  return found ? 2 : 0;
}

}  // namespace tiny_compile
