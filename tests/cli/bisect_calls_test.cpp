// Faults planted in steps of a training, and in what was kept of them: tc bisect names the
// step.
#include "tiny_compile/cli/bisect_calls.h"

#include <functional>
#include <limits>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/cli/commands.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tensor/npy.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
namespace fs = std::filesystem;

namespace {

struct Ran {
  int code = 0;
  std::string out, problems;
};

Ran tc(const std::vector<std::string>& words) {
  std::istringstream in;
  std::ostringstream out, problems;
  const int code = run_tc(words, in, out, problems);
  return {code, out.str(), problems.str()};
}

struct Stepped {
  Tensor loss, weight;
};

// A step of gradient descent, compiled by this pipeline.
std::function<Stepped(const Tensor&, const Tensor&)> step_of(const Pipeline& pipeline,
                                                             bool donates) {
  CompileOptions options;
  options.pipeline = pipeline;
  options.name = "step";
  if (donates) options.donate = {0};
  return tiny_compile::compile(
      [](const Tensor& weight, const Tensor& x) {
        const auto loss = [](const Tensor& w, const Tensor& data) {
          return sum((w * floor(data)).exp() * 0.125);
        };
        const auto [value, gradient] = value_and_grad(loss)(weight, x);
        return Stepped{value, weight - gradient * 0.5};
      },
      options);
}

// After cse, the first node of this op becomes another.
Pipeline with_fault(Op from, Op to) {
  const GraphPass fault = [=](const Graph& graph) {
    Graph result = graph;
    for (Node& node : result.nodes) {
      if (node.op != from) continue;
      node.op = to;
      break;
    }
    return result;
  };
  return insert_after(default_pipeline(), "cse", {"fault", fault});
}

// Four steps of a training, written down in `directory`. Only from step 3 on data have halves.
struct Run {
  std::string directory, calls = "all", buffers = "0";
  Pipeline pipeline = default_pipeline();
  int other_data = 0;  // the step with other data; 0: none
  bool donates = false;

  void train() const {
    const Setting kept("TC_DEBUG_DIR", directory), which("TC_DEBUG_CALLS", calls),
        temporaries("TC_DEBUG_BUFFERS", buffers);
    const auto step = step_of(pipeline, donates);
    Tensor weight = from_vector<float>({0.5f, -0.25f, 0.125f});
    for (int number = 1; number <= 4; number++) {
      const float moved = number == other_data ? 9.f : 1.f;
      weight = step(weight, from_vector<float>({2, moved, number < 3 ? 3.f : 2.5f})).weight;
    }
  }
};

// The line of a call in calls.txt, from and with its words.
void edit_calls(const std::string& directory,
                const std::function<void(std::vector<std::string>& lines)>& edit) {
  std::istringstream text(text_of(directory + "/calls.txt"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  edit(lines);
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  write_text(directory + "/calls.txt", all);
}

// As if a machine had computed other bits: of a tensor of f32 in this line, the last one.
void change_last_bit(const std::string& directory, size_t line) {
  edit_calls(directory, [&](std::vector<std::string>& lines) {
    std::string& words = lines.at(line);
    const std::string key = words.substr(words.size() - 32);
    std::string bytes = text_of(directory + "/tensors/" + key);
    bytes[bytes.size() - 4] = static_cast<char>(bytes[bytes.size() - 4] ^ 1);
    const std::string other = content_key({{"tensor", bytes}});
    write_text(directory + "/tensors/" + other, bytes);
    words.replace(words.size() - 32, 32, other);
  });
}

std::string graph_text(const std::string& directory) {
  for (const auto& item : fs::directory_iterator(directory)) {
    if (item.path().string().ends_with("_0_trace.txt")) return item.path();
  }
  FAIL("no graph in " << directory);
  return "";
}

struct Pair {
  Pair() : a(scratch.path("a")), b(scratch.path("b")) {}
  Ran bisect(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"bisect", a, b});
    return tc(words);
  }
  Scratch scratch;
  std::string a, b;
};

}  // namespace

TEST_CASE("two trainings of the same bits agree in all calls", "[bisect]") {
  const Pair pair;
  Run{pair.a}.train();
  Run{pair.b}.train();
  const Ran ran = pair.bisect();
  INFO(ran.problems);
  CHECK(ran.code == 0);
  CHECK(ran.out == "the same inputs and outputs in all 4 calls\n");
  CHECK(tc({"bisect", "default", pair.a}).out ==
        "the same bits after every stage, in every call whose elements were kept\n");
  const Pair donated;
  Run{.directory = donated.a, .buffers = "1", .donates = true}.train();
  CHECK(tc({"bisect", pair.a, donated.a}).code == 0);
  CHECK(tc({"bisect", "default", donated.a}).code == 0);
  edit_calls(pair.b, [](auto& lines) { lines.resize(5); });
  const Ran shorter = pair.bisect();
  CHECK(shorter.code == 0);
  CHECK_THAT(shorter.out,
             ContainsSubstring("in the first 2 calls; " + pair.a + " goes on to call 4"));
  fs::remove(pair.b + "/calls.txt");
  CHECK_THAT(pair.bisect().out,
             ContainsSubstring("the calls were not compared, since " + pair.b + " has none"));
}

TEST_CASE("bisect finds the step from which on a pass is wrong, its node and element",
          "[bisect]") {
  const Pair pair;
  Run{pair.a}.train();
  Run{.directory = pair.b, .pipeline = with_fault(Op::floor, Op::ceil)}.train();
  const Ran ran = pair.bisect();
  INFO(ran.problems);
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out,
             StartsWith("call 3 of step: " + pair.b + ": stage 'fault' differs first, at %"));
  CHECK_THAT(ran.out, ContainsSubstring(" = ceil (bisect_calls_test.cpp:") &&
                          ContainsSubstring("): [2] is 3.0 (0x40400000), not 2.0 ("));
  CHECK_THAT(tc({"bisect", pair.b, pair.a}).out, StartsWith("call 3 of step: " + pair.b));
}

TEST_CASE("bisect finds a step's wrong gradient rule, where the graphs are others",
          "[bisect]") {
  const Pair pair;
  Run{pair.a}.train();
  Run{pair.b}.train();
  std::string text = text_of(graph_text(pair.b));
  const size_t at = text.rfind(" = mul ");  // the gradient's step
  REQUIRE(at != std::string::npos);
  write_text(graph_text(pair.b), text.replace(at, 7, " = div "));
  change_last_bit(pair.b, 4);
  const Ran ran = pair.bisect();
  INFO(ran.problems);
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out,
             StartsWith("call 2 of step: " + pair.b + ": stage 'trace' differs first, at %"));
  CHECK_THAT(ran.out, ContainsSubstring(" = div (bisect_calls_test.cpp:"));
}

TEST_CASE("bisect finds the step that got other data", "[bisect]") {
  const Pair pair;
  Run{pair.a}.train();
  Run{.directory = pair.b, .other_data = 2}.train();
  const Ran ran = pair.bisect();
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out,
             ContainsSubstring(pair.b + ": call 2 of step differs first, at its input 1 "
                                        "(f32[3]), though every call before gave the "
                                        "same: [1] is 9.0 (0x41100000), not 1.0 ("));
}

TEST_CASE("bisect finds what one machine computed otherwise, and in which buffer", "[bisect]") {
  const Pair pair;
  const Pipeline unfused = {
      {"lower", lower}, {"schedule", schedule}, {"plan_memory", plan_memory}};
  Run{.directory = pair.a, .buffers = "1", .pipeline = unfused}.train();
  Run{.directory = pair.b, .buffers = "1", .pipeline = unfused}.train();
  CHECK(pair.bisect().code == 0);
  const size_t lines_a_call = 3;  // in, temporaries, out
  edit_calls(pair.b, [&](auto& lines) {
    REQUIRE(lines.size() == 1 + 4 * lines_a_call);
    CHECK_THAT(lines[5], StartsWith("2 step_") && ContainsSubstring(" temporaries f32["));
  });
  change_last_bit(pair.b, 6);
  CHECK_THAT(pair.bisect().out,
             StartsWith("call 2 of step: " + pair.b + ": stage 'run' differs first, at ") &&
                 ContainsSubstring(": [2] is "));
  change_last_bit(pair.b, 5);
  CHECK_THAT(
      pair.bisect().out,
      StartsWith("call 2 of step: " + pair.b + ": stage 'run' differs first, at buffer ") &&
          ContainsSubstring(" of kernel ") && ContainsSubstring(".cpp:"));
  const Ran alone = tc({"bisect", "default", pair.b});
  CHECK(alone.code == 2);
  CHECK_THAT(alone.out, StartsWith("call 2 of step: " + pair.b + ": stage 'run'"));
}

TEST_CASE("bisect finds the call in which a run ended", "[bisect]") {
  const Pair pair;
  Run{pair.a}.train();
  Run{pair.b}.train();
  edit_calls(pair.b, [](auto& lines) { lines.pop_back(); });
  const Ran ran = pair.bisect();
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out, StartsWith(pair.b + ": call 4 of step gave nothing"));
  CHECK_THAT(tc({"bisect", "default", pair.b}).out, ContainsSubstring("call 4 of step gave"));
}

TEST_CASE("of hashes alone bisect names the call, and what to keep of it", "[bisect]") {
  const Pair pair;
  Run{.directory = pair.a, .calls = "0"}.train();
  const Run other{
      .directory = pair.b, .calls = "0", .pipeline = with_fault(Op::floor, Op::ceil)};
  other.train();
  CHECK_FALSE(fs::exists(pair.a + "/tensors"));
  const Ran ran = pair.bisect();
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out,
             ContainsSubstring("call 3 of step differs first, at output 0 (f32[]) of the "
                               "same inputs; to see more of it, run both again with "
                               "TC_DEBUG_CALLS=3"));
  const Pair again;
  Run{.directory = again.a, .calls = "3"}.train();
  Run next = other;
  next.directory = again.b;
  next.calls = "3-3,7";
  next.train();
  CHECK_THAT(again.bisect().out, StartsWith("call 3 of step: " + again.b + ": stage 'fault'"));
  CHECK_THAT(tc({"bisect", "default", pair.a}).problems,
             ContainsSubstring("keeps the elements of no call"));
}

TEST_CASE("every NaN is one NaN in what is kept, and -0 is not 0", "[bisect]") {
  const Pair pair;
  const auto call = [](const std::string& directory, float value) {
    const Setting kept("TC_DEBUG_DIR", directory), calls("TC_DEBUG_CALLS", "all");
    tiny_compile::compile([](const Tensor& x) { return x * 2; },
                          {.backend = "interpreter"})(from_vector<float>({1, value}));
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  call(pair.a, nan);
  call(pair.b, -nan);
  CHECK(pair.bisect().code == 0);
  const Pair zeros;
  call(zeros.a, 0.f);
  call(zeros.b, -0.f);
  CHECK_THAT(zeros.bisect().out, ContainsSubstring("at its input 0 (f32[2])"));
}

TEST_CASE("tc run and tc bisect hand a step's outputs to the next step", "[bisect][tc]") {
  const Scratch scratch;
  const std::string graph = scratch.path("step.graph"), two = scratch.path("two.npy");
  write_text(graph,
             "graph step(%0 w: f32[2], %1 x: f32[2]) {\n  %2: f32[2] = mul %0, %1\n"
             "  %3: f32[] = sum %2 {axes=[0]}\n  return %3, %2\n}\n");
  save_npy(two, from_vector<float>({2, 0.5f}));
  const std::vector<std::string> given = {"--calls=3", "--carry=1:0"};
  std::vector<std::string> run = {
      "run", graph, "--in", two, "--in", two, "--against=interpreter"};
  run.insert(run.end(), given.begin(), given.end());
  const Ran ran = tc(run);
  INFO(ran.problems);
  CHECK(ran.code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("first 16.0 0.0625"));
  CHECK(tc({"bisect", "default", "simplify,cse", "--graph=" + graph, given[0], given[1],
            "--in=" + two})
            .code == 0);
  write_text(scratch.path("donated"),
             "graph step(%0 w: f32[2048] {donated=1}, %1 x: f32[2048]) {\n"
             "  %2: f32[2048] = mul %0, %1\n  return %2\n}\n");
  for (const char* carry : {"--carry=0:0", "--carry="}) {
    const Ran donated =
        tc({"run", scratch.path("donated"), given[0], carry, "--against=interpreter"});
    INFO(donated.problems);
    CHECK(donated.code == 0);
  }
  CHECK_THAT(tc({"run", graph, "--calls=2", "--carry=0:0"}).problems,
             ContainsSubstring("output 0 is f32[], but input 0 is f32[2]"));
  CHECK_THAT(tc({"run", graph, "--calls=2", "--carry=7:0"}).problems,
             ContainsSubstring("there are 2 outputs and 2 inputs"));
  for (const char* carry : {"--carry=x", "--carry=1", "--carry=1:0:2", "--carry=1:0,"})
    CHECK_THAT(tc({"run", graph, std::string(carry) + ",:"}).problems,
               ContainsSubstring("written --carry="));
}

TEST_CASE("tc bisect runs steps of two binaries, and of one that is too old", "[bisect]") {
  const Pair pair;
  const std::string graph = pair.scratch.path("g"), program = pair.scratch.path("tc");
  write_text(graph, "graph step(%0 w: f32[3]) {\n  %1: f32[3] = exp %0\n  return %1\n}\n");
  const auto recorded = [&](const std::string& directory) {
    const Setting kept("TC_DEBUG_DIR", directory), calls("TC_DEBUG_CALLS", "all");
    CHECK(tc({"run", graph, "--calls=3", "--carry=0:0"}).code == 0);
  };
  recorded(pair.a);
  write_program(program, "cp -r " + pair.a + "/* $TC_DEBUG_DIR\n");
  const std::vector<std::string> words = {"bisect",           "default",   program,
                                          "--graph=" + graph, "--calls=3", "--carry=0:0"};
  CHECK(tc(words).code == 0);
  change_last_bit(pair.a, 4);
  CHECK_THAT(tc(words).out, StartsWith("call 2 of step: " + program + ": stage 'run'"));
  fs::remove(pair.a + "/calls.txt");
  CHECK_THAT(tc(words).problems, ContainsSubstring("older than TC_DEBUG_CALLS"));
}

TEST_CASE("what is kept of calls and was cut, changed or taken from elsewhere is an error",
          "[bisect]") {
  const Pair pair;
  Run{pair.a}.train();
  const std::string calls = pair.a + "/calls.txt", text = text_of(calls);
  fs::copy(pair.a, pair.b, fs::copy_options::recursive);
  const auto problem = [&](const std::string& changed) {
    write_text(calls, changed);
    const Ran ran = pair.bisect();
    CHECK(ran.code == 1);
    return ran.problems;
  };
  CHECK_THAT(problem(text.substr(0, text.size() - 9)),
             ContainsSubstring("calls.txt:9: was cut or changed"));
  CHECK_THAT(problem(text.substr(0, text.size() - 1)), ContainsSubstring("has no end"));
  CHECK_THAT(problem("tiny_compile calls 2\n"), ContainsSubstring("one of another version"));
  CHECK_THAT(problem(""), ContainsSubstring("one of another version"));
  std::string other = text;
  other.replace(other.find(" in f32"), 7, " in q99");
  CHECK_THAT(problem(other), ContainsSubstring("' is no tensor"));
  other = text;
  other.replace(other.find(" in f32"), 7, " to f32");
  CHECK_THAT(problem(other), ContainsSubstring("calls.txt:2"));
  other = text;
  other.replace(other.find("f32[3]"), 6, "f32[4]");
  CHECK_THAT(problem(other), ContainsSubstring("not runs of one computation"));
  other = text;
  other.replace(other.find("[3]"), 3, "[9999999999,99999999999]");
  write_text(calls, other);
  CHECK_THAT(tc({"bisect", "default", pair.a}).problems,
             ContainsSubstring("no tensor is so large"));
  write_text(calls, text);
  for (const auto& item : fs::directory_iterator(pair.a + "/tensors"))
    write_text(item.path(), text_of(item.path()).substr(1));
  CHECK_THAT(tc({"bisect", "default", pair.a}).problems,
             ContainsSubstring("was cut or changed: its elements are not"));
  write_text(pair.b + "/other_000000_0_trace.txt", text_of(graph_text(pair.b)));
  write_text(pair.b + "/other_000000_0_program.txt", text);
  CHECK_THAT(tc({"bisect", "default", pair.b}).problems,
             ContainsSubstring("holds two texts of stage 0 of other_000000"));
  fs::remove(pair.b + "/other_000000_0_program.txt");
  for (const auto& item : fs::directory_iterator(pair.b)) {
    if (item.path().string().ends_with(".txt") && item.path().filename() != "calls.txt")
      fs::rename(item.path(),
                 pair.b + "/else_000000" + item.path().filename().string().substr(11));
  }
  CHECK_THAT(tc({"bisect", "default", pair.b}).problems,
             ContainsSubstring("lacks the texts of step_"));
}

TEST_CASE("TC_DEBUG_CALLS that is no list of calls is an error, before anything is written",
          "[bisect]") {
  const Scratch scratch;
  for (const char* wrong : {"some", "1-", "-3", "1..3", "1,,x"}) {
    const Setting kept("TC_DEBUG_DIR", scratch.path("d")), calls("TC_DEBUG_CALLS", wrong);
    const auto f =
        tiny_compile::compile([](const Tensor& x) { return x; }, {.backend = "interpreter"});
    CHECK_THAT(message_of([&] { f(ones({2})); }),
               ContainsSubstring(std::string("TC_DEBUG_CALLS=") + wrong + ": write all, or"));
    CHECK_FALSE(fs::exists(scratch.path("d")));
  }
}

TEST_CASE("a comparison that takes too long says what was compared and what was not",
          "[bisect]") {
  const Scratch scratch;
  const std::string graph = scratch.path("g");
  write_text(graph, "graph long(%0 x: f32[3]) {\n  %1: f32[3] = exp %0\n  return %1\n}\n");
  CHECK_THAT(
      tc({"bisect", "default", "cse,lower", "--limit=0", "--graph=" + graph}).problems,
      ContainsSubstring("--limit=0 s were not enough: call 1 of long; the time is over at ") &&
          ContainsSubstring(
              "not compared: trace simplify fold cse dce lower fuse fold_columns schedule "
              "plan_memory tile emit of default, trace cse lower of cse,lower"));
}

TEST_CASE("tc bisect --help says what A and B are, what to record and what is not kept",
          "[bisect]") {
  const Ran ran = tc({"bisect", "--help"});
  CHECK(ran.code == 0);
  for (const char* word : {"TC_DEBUG_CALLS=1-3,17", "TC_DEBUG_BUFFERS=1", "--carry",
                           "--in FILE", "--limit=SECONDS", "Not kept:", "exit code"})
    CHECK_THAT(ran.out, ContainsSubstring(word));
}
