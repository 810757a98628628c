// Faults planted in pipelines, dumps and binaries: tc bisect names where each one was put.
#include "tiny_compile/cli/bisect.h"

#include <functional>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/cli/commands.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/compile/bisect.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/passes/gradient.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tensor/npy.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

constexpr const char* kGraph = R"(graph soft(%0 x: f32[5,33]) {
  %1: f32[5,1] = max %0 {axes=[1], keepdim=1}
  %2: f32[5,33] = expand %1
  %3: f32[5,33] = sub %0, %2
  %4: f32[] = constant {value=0.5}
  %5: f32[5,33] = expand %4
  %6: f32[5,33] = mul %3, %5
  %7: f32[5,33] = exp %6
  %8: f32[5,1] = sum %7 {axes=[1], keepdim=1}
  %9: f32[5,33] = expand %8
  %10: f32[5,33] = div %7, %9
  return %10
}
)";

std::optional<Verdict> against_default(const Pipeline& other, const Graph& graph) {
  return bisect({"A", stages_of(default_pipeline(), graph), {}},
                {"B", stages_of(other, graph), {}}, seeded_inputs(graph, 1, {}));
}

// After `stage`, a stage of the same name that edits the node of this op.
Pipeline edited(const std::string& stage, Op op, const std::function<void(Graph&, int)>& edit) {
  const GraphPass fault = [=](const Graph& graph) {
    Graph result = graph;
    for (int id = 0; id < result.size(); id++) {
      if (result[id].op == op) return edit(result, id), result;
    }
    return result;
  };
  return insert_after(default_pipeline(), stage, {"fault", fault});
}

Node& node(Graph& graph, int id) { return graph.nodes[static_cast<size_t>(id)]; }

// What a run of kGraph leaves in a directory: texts, and outputs.
void dump(const std::string& directory, const std::string& graph = kGraph) {
  const Setting kept("TC_DEBUG_DIR", directory);
  const Graph parsed = parse_graph(graph);
  run_pipeline(default_pipeline(), parsed, false);
  save_npy(directory + "/0.npy", interpret(parsed, seeded_inputs(parsed, 1, {}))[0]);
}

std::string file_of(const std::string& directory, const std::string& stage) {
  for (const auto& item : fs::directory_iterator(directory)) {
    if (item.path().string().ends_with("_" + stage + ".txt")) return item.path();
  }
  FAIL("no text of " << stage);
  return "";
}

void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = text_of(path);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_text(path, text.replace(at, from.size(), to));
}

struct Ran {
  int code = 0;
  std::string out, problems;
};

Ran tc_bisect(std::vector<std::string> words) {
  words.insert(words.begin(), "bisect");
  std::istringstream in;
  std::ostringstream out, problems;
  const int code = run_tc(words, in, out, problems);
  return {code, out.str(), problems.str()};
}

// Two dumps of the same run, one of them with a fault.
std::string found(const std::function<void(const std::string&)>& plant) {
  const Scratch scratch;
  const std::string a = scratch.path("a"), b = scratch.path("b");
  dump(a);
  dump(b);
  plant(b);
  const Ran ran = tc_bisect({a, b});
  INFO(ran.problems);
  CHECK(ran.code == 2);
  CHECK(ran.out.rfind(b + ": ", 0) == 0);
  return ran.out;
}

}  // namespace

TEST_CASE("bisect finds a wrong rewrite and a changed constant of a pass", "[bisect]") {
  const Graph graph = parse_graph(kGraph);
  const auto rewrite = against_default(
      edited("fold", Op::sub, [](Graph& g, int id) { node(g, id).op = Op::add; }), graph);
  REQUIRE(rewrite);
  CHECK(rewrite->run == "B");
  CHECK(rewrite->stage == "fault");
  CHECK_THAT(rewrite->place, ContainsSubstring("= add"));
  const auto constant = against_default(
      edited("dce", Op::constant,
             [](Graph& g, int id) { node(g, id).value = Literal::of(DType::f32, 0.25); }),
      graph);
  REQUIRE(constant);
  CHECK(constant->stage == "fault");
  CHECK_THAT(constant->place, ContainsSubstring("= constant"));
  CHECK(constant->got.to_vector<float>()[0] == 0.25f);
  CHECK(constant->wanted.to_vector<float>()[0] == 0.5f);
}

TEST_CASE("bisect finds a wrong order of a sum, a step of a program and a plan of memory",
          "[bisect]") {
  const Graph graph = parse_graph(R"(graph order(%0 x: f32[8,1001]) {
  %1: f32[8,1001] = exp %0
  %2: f32[8] = sum %1 {axes=[1]}
  return %2
}
)");
  const GraphPass in_two = [](const Graph&) {
    return parse_graph(R"(graph order(%0 x: f32[8,1001]) {
  %1: f32[8,1001] = exp %0
  %2: f32[8,7,143] = reshape %1
  %3: f32[8,7] = sum %2 {axes=[2]}
  %4: f32[8] = sum %3 {axes=[1]}
  return %4
}
)");
  };
  const auto order =
      against_default(insert_after(default_pipeline(), "dce", {"in_two", in_two}), graph);
  REQUIRE(order);
  CHECK(order->stage == "in_two");
  const ProgramPass wrong = [](const Program& program) {
    Program result = program;
    for (Kernel& kernel : result.kernels) {
      for (Scalar& scalar : kernel.scalars) {
        if (scalar.op == Op::exp) scalar.op = Op::exp2;
      }
    }
    return result;
  };
  const auto step = against_default(
      insert_after(default_pipeline(), "schedule", {"wrong", wrong}), parse_graph(kGraph));
  REQUIRE(step);
  CHECK(step->stage == "wrong");
  CHECK_THAT(step->place, ContainsSubstring("buffer ") || ContainsSubstring("output 0"));
  const ProgramPass crowded = [](const Program& program) {
    Program result = plan_memory(program);
    for (Buffer& buffer : result.buffers) {
      if (buffer.place > 0) buffer.place = 0;
    }
    return result;
  };
  const Pipeline unfused = {{"lower", lower}, {"schedule", schedule}, {"crowded", crowded}};
  const auto plan = against_default(unfused, parse_graph(kGraph));
  REQUIRE(plan);
  CHECK(plan->stage == "crowded");
  CHECK(plan->place == "output 0");
}

TEST_CASE("bisect finds a wrong gradient rule", "[bisect]") {
  const Graph right = vjp(parse_graph("graph wave(%0 x: f32[7]) {\n  %1: f32[7] = sin %0\n"
                                      "  return %1\n}\n"),
                          {0});
  Graph wrong = right;
  for (Node& each : wrong.nodes) {
    if (each.op == Op::cos) each.op = Op::sin;
  }
  const auto verdict =
      bisect({"A", stages_of(default_pipeline(), right), {}},
             {"B", stages_of(default_pipeline(), wrong), {}}, seeded_inputs(right, 1, {}));
  REQUIRE(verdict);
  CHECK(verdict->run == "B");
  CHECK(verdict->stage == "trace");
  CHECK_THAT(verdict->place, ContainsSubstring("= sin"));
}

TEST_CASE("tc bisect finds what was changed in a dump", "[bisect]") {
  CHECK_THAT(found([](const std::string& b) {
               replace_in(file_of(b, "0_trace"), "value=0.5", "value=0.75");
             }),
             ContainsSubstring("stage 'trace' differs first, at %4 = constant: [] is 0.75"));
  CHECK_THAT(found([](const std::string& b) {
               replace_in(file_of(b, "3_cse"), "sub %0, %2", "sub %2, %0");
             }),
             ContainsSubstring("stage 'cse' differs first, at %3 = sub: ["));
  CHECK_THAT(found([](const std::string& b) {
               const std::string path = file_of(b, "11_emit");
               const size_t end = text_of(path).rfind("}");
               write_text(path, text_of(path).substr(0, end) + "return;\n}\n");
             }),
             ContainsSubstring("stage 'emit' differs first, at line "));
  CHECK_THAT(found([](const std::string& b) {
               std::string bytes = text_of(b + "/0.npy");
               bytes[bytes.size() - 4] = static_cast<char>(bytes[bytes.size() - 4] ^ 1);
               write_text(b + "/0.npy", bytes);
             }),
             ContainsSubstring("stage 'run' differs first, at output 0: [4,32] is "));
}

TEST_CASE("tc bisect runs binaries, and says how one failed", "[bisect]") {
  const Scratch scratch;
  const std::string graph = scratch.path("soft.graph"), tc = scratch.path("tc");
  write_text(graph, kGraph);
  dump(scratch.path("right"));
  dump(scratch.path("wrong"));
  replace_in(file_of(scratch.path("wrong"), "4_dce"), "div %6", "mul %6");
  write_program(tc, "cp " + scratch.path("wrong") + "/* $TC_DEBUG_DIR\n");
  const Ran ran = tc_bisect({"default", tc, "--graph=" + graph});
  INFO(ran.problems);
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out, ContainsSubstring(tc + ": stage 'dce' differs first, at %9 = mul: ["));
  write_program(tc, "cp " + scratch.path("right") + "/* $TC_DEBUG_DIR\n");
  CHECK(tc_bisect({"default", tc, "--graph=" + graph}).out ==
        "the same bits after every stage\n");
  write_program(tc, "kill -SEGV $$\n");
  CHECK_THAT(tc_bisect({"default", tc, "--graph=" + graph}).problems,
             ContainsSubstring("was ended by signal 11"));
  write_program(tc, "sleep 9\n");
  CHECK_THAT(tc_bisect({"default", tc, "--limit=1", "--graph=" + graph}).problems,
             ContainsSubstring("did not end within 1 s"));
  write_program(tc, "exit 3\n");
  CHECK_THAT(tc_bisect({"default", tc, "--graph=" + graph}).problems,
             ContainsSubstring("failed with exit code 3"));
}

TEST_CASE("tc bisect says what is wrong with its arguments and dumps", "[bisect]") {
  const Scratch scratch;
  const std::string a = scratch.path("a"), b = scratch.path("b");
  dump(a);
  CHECK_THAT(tc_bisect({a}).problems, ContainsSubstring("tc bisect A B"));
  CHECK_THAT(tc_bisect({a, b}).problems,
             ContainsSubstring("neither a directory nor a program"));
  CHECK_THAT(tc_bisect({"default", "cse"}).problems, ContainsSubstring("--graph=FILE"));
  CHECK_THAT(tc_bisect({a, a, "--seed=x"}).problems, ContainsSubstring("is no number"));
  CHECK_THAT(tc_bisect({a, a, "--sed=1"}).problems, ContainsSubstring("no option --sed=1"));
  fs::create_directory(b);
  CHECK_THAT(tc_bisect({a, b}).problems, ContainsSubstring("holds no texts of stages"));
  dump(b, "graph other(%0 x: f32[3]) {\n  %1: f32[3] = exp %0\n  return %1\n}\n");
  CHECK(tc_bisect({a, b}).code == 1);
  fs::remove(file_of(a, "3_cse"));
  CHECK_THAT(tc_bisect({a, b}).problems, ContainsSubstring("lacks the text of stage 3"));
  dump(a);
  write_text(file_of(a, "4_dce"), text_of(file_of(a, "4_dce")).substr(0, 60));
  CHECK_THAT(tc_bisect({a, a}).problems, ContainsSubstring("4_dce.txt:"));
}
