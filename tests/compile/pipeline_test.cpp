// What one may do to the pipeline: cut it, extend it, replace a stage; and what it tells of a
// broken one.
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/build.h"

#include <algorithm>
#include <map>

#include "tests/runtime/scratch.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::string> names_of(const Pipeline& pipeline) {
  std::vector<std::string> names;
  for (const Stage& stage : pipeline) names.push_back(stage.name);
  return names;
}

using Names = std::vector<std::string>;
const Names kDefault = {"simplify",     "fold",     "cse",         "dce",  "lower", "fuse",
                        "fold_columns", "schedule", "plan_memory", "tile", "emit"};

Graph softmax_graph() {
  return parse_graph(R"(graph soft(%0 x: f32[3,70]) {
  %1: f32[3,1] = max %0 {axes=[1], keepdim=1}
  %2: f32[3,70] = expand %1
  %3: f32[3,70] = sub %0, %2
  %4: f32[3,70] = exp %3
  %5: f32[3,1] = sum %4 {axes=[1], keepdim=1}
  %6: f32[3,70] = expand %5
  %7: f32[3,70] = div %4, %6
  %8: f32[3,70] = exp %0
  return %7
}
)");
}

std::vector<Tensor> run(const Staged& staged, const std::vector<Tensor>& inputs) {
  return build(staged.program, staged.source).run(inputs);
}

Program same_program(const Program& program) { return program; }
Graph same_graph(const Graph& graph) { return graph; }

}  // namespace

TEST_CASE("the default pipeline's stages, in order", "[pipeline]") {
  CHECK(names_of(default_pipeline()) == kDefault);
}

TEST_CASE("until cuts behind a stage, insert_after puts one there", "[pipeline]") {
  CHECK(names_of(until(default_pipeline(), "simplify")) == Names{"simplify"});
  CHECK(names_of(until(default_pipeline(), "emit")) == kDefault);
  CHECK(names_of(until(default_pipeline(), "lower")).back() == "lower");
  const Pipeline longer =
      insert_after(default_pipeline(), "emit", {"last", ProgramPass(same_program)});
  CHECK(longer.size() == 12);
  CHECK(longer.back().name == "last");
  CHECK(names_of(insert_after(default_pipeline(), "fold",
                              {"mine", GraphPass(same_graph)}))[2] == "mine");
}

TEST_CASE("a stage that is not there is named, with those that are", "[pipeline]") {
  const Pipeline pipeline = default_pipeline();
  const auto check = [](const std::string& message) {
    CHECK_THAT(
        message,
        ContainsSubstring("no stage 'fuze'") &&
            ContainsSubstring("simplify, fold, cse, dce, lower, fuse, fold_columns, schedule"));
  };
  check(message_of([&] { until(pipeline, "fuze"); }));
  check(message_of([&] { insert_after(pipeline, "fuze", {"x", GraphPass(same_graph)}); }));
  check(message_of([&] { replace(pipeline, "fuze", GraphPass(same_graph)); }));
  CHECK_THAT(message_of([&] { until({}, "lower"); }), ContainsSubstring("no stage 'lower'"));
}

TEST_CASE("replacing takes a lambda of the stage's kind and leaves the original",
          "[pipeline]") {
  int calls = 0;
  const Pipeline pipeline = default_pipeline();
  const Pipeline mine = replace(pipeline, "fuse", [&calls](const Program& program) {
    calls++;
    return program;
  });
  const Staged unfused = run_pipeline(mine, softmax_graph(), true);
  CHECK(calls == 1);
  CHECK(unfused.program.launches.size() == 5);  // views cost none, what nobody reads neither
  CHECK(run_pipeline(pipeline, softmax_graph(), true).program.launches.size() == 1);
  CHECK(calls == 1);
  CHECK(names_of(mine) == kDefault);
}

TEST_CASE("a replacement of another kind is refused", "[pipeline]") {
  const auto refused = [](const std::string& stage, decltype(Stage::run) run) {
    CHECK_THAT(message_of([&] { replace(default_pipeline(), stage, std::move(run)); }),
               ContainsSubstring("stage '" + stage + "'") && ContainsSubstring("another kind"));
  };
  for (const char* stage : {"simplify", "fold", "cse", "dce", "lower", "tile", "emit"})
    refused(stage, ProgramPass(same_program));
  for (const char* stage : {"lower", "fuse", "schedule", "plan_memory", "tile", "emit"})
    refused(stage, GraphPass(same_graph));
  refused("fuse", Lower(lower));
  refused("fuse", Emit(emit));
  refused("lower", Emit(emit));
  refused("tile", Emit(emit));
  refused("emit", Tiling(lower_to_tiles));
  CHECK_NOTHROW(replace(default_pipeline(), "lower", Lower(lower)));
  CHECK_NOTHROW(replace(default_pipeline(), "tile", Tiling(lower_to_tiles)));
  CHECK_NOTHROW(replace(default_pipeline(), "emit", Emit(emit)));
}

TEST_CASE("every prefix compiles, runs and gives the same bits", "[pipeline]") {
  const Scratch scratch;
  const Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  const Graph graph = softmax_graph();
  const std::vector<Tensor> inputs = {randn({3, 70})};
  const Tensor want = interpret(graph, inputs)[0];
  CHECK(same_bits(run(run_pipeline({}, graph, true), inputs)[0], want));
  for (const std::string& stage : kDefault) {
    INFO(stage);
    const Staged staged = run_pipeline(until(default_pipeline(), stage), graph, true);
    CHECK(same_bits(run(staged, inputs)[0], want));
    CHECK(staged.seconds.back().first == stage);
    CHECK(staged.seconds.back().second >= 0);
  }
}

TEST_CASE("a Program goes through the stages behind lower alone", "[pipeline]") {
  const Program lowered = lower(dce(softmax_graph()));
  int graph_passes = 0;
  const Pipeline pipeline =
      replace(default_pipeline(), "cse", [&](const Graph& g) { return graph_passes++, g; });
  const Staged staged = run_pipeline(pipeline, lowered, true);
  CHECK(graph_passes == 0);
  CHECK(staged.program.launches.size() == 1);
  CHECK(staged.graph.size() == 0);
  CHECK_FALSE(staged.source.text.empty());
  CHECK(print(run_pipeline(until(pipeline, "lower"), lowered, true).program) == print(lowered));
}

TEST_CASE("a stage inserted sees and makes what it says", "[pipeline]") {
  std::vector<size_t> kernels;
  const auto count = [&kernels](const Program& program) {
    kernels.push_back(program.kernels.size());
    return program;
  };
  Pipeline pipeline = insert_after(default_pipeline(), "lower", {"count", ProgramPass(count)});
  pipeline = insert_after(pipeline, "fuse", {"count again", ProgramPass(count)});
  const Staged staged = run_pipeline(pipeline, softmax_graph(), true);
  CHECK(kernels == std::vector<size_t>{5, 1});
  CHECK(staged.seconds.size() == 13);
}

TEST_CASE("tiles replaced are what is emitted, and nothing goes back behind them",
          "[pipeline][tile]") {
  const Graph graph = parse_graph(
      "graph f(%0 x: f32[64,128,512]) {\n  %1: f32[64,1,512] = sum %0 {axes=[1], keepdim=1}\n"
      "  return %1\n}\n");
  const auto without_barriers = [](const Program& program) {
    Tiles tiles = lower_to_tiles(program);
    for (std::optional<Tile>& tile : tiles.of_kernel) {
      if (tile) std::erase_if(tile->body, [](const Statement& s) { return s == barrier(); });
    }
    return tiles;
  };
  const Staged whole = run_pipeline(default_pipeline(), graph, true, Target::Cuda);
  CHECK(has_tile(whole.tiles));
  CHECK(run_pipeline({}, whole.tiles, true).source.text == whole.source.text);
  const Pipeline pipeline = replace(default_pipeline(), "tile", without_barriers);
  const Staged staged = run_pipeline(pipeline, graph, false, Target::Cuda);
  CHECK(whole.source.text.find("__syncthreads") != std::string::npos);
  CHECK(staged.source.text.find("__syncthreads") == std::string::npos);
  int calls = 0;
  const auto count = [&](const Program& program) { return calls++, program; };
  run_pipeline(insert_after(pipeline, "tile", {"late", ProgramPass(count)}), graph, false);
  CHECK(calls == 0);
}

TEST_CASE("a pass that breaks the graph is found behind it and named", "[pipeline]") {
  const auto wrong_type = [](const Graph& graph) {
    Graph broken = graph;
    broken.nodes.back().type.dtype = DType::f64;
    return broken;
  };
  const Pipeline pipeline =
      insert_after(default_pipeline(), "fold", {"learner", GraphPass(wrong_type)});
  const std::string message =
      message_of([&] { run_pipeline(pipeline, softmax_graph(), true); });
  CHECK_THAT(message, ContainsSubstring("'learner'") && ContainsSubstring("f64"));
  CHECK(message.find("'cse'") == std::string::npos);
}

TEST_CASE("a pass that breaks the program is found behind it and named", "[pipeline]") {
  const auto forget = [](const Program& program) {
    Program broken = program;
    broken.launches.pop_back();
    return broken;
  };
  const Pipeline pipeline = replace(default_pipeline(), "fuse",
                                    [&](const Program& program) { return forget(program); });
  CHECK_THAT(message_of([&] { run_pipeline(pipeline, softmax_graph(), true); }),
             ContainsSubstring("'fuse'"));
  const Pipeline lowering = replace(default_pipeline(), "lower",
                                    [&](const Graph& graph) { return forget(lower(graph)); });
  CHECK_THAT(message_of([&] { run_pipeline(lowering, softmax_graph(), true); }),
             ContainsSubstring("'lower'"));
}

TEST_CASE("a broken graph given is not blamed on a stage", "[pipeline]") {
  Graph broken = softmax_graph();
  broken.nodes[3].inputs[0] = 7;
  const std::string message =
      message_of([&] { run_pipeline(default_pipeline(), broken, true); });
  CHECK_THAT(message, ContainsSubstring("%7"));
  CHECK(message.find("stage") == std::string::npos);
}

TEST_CASE("an error that a stage throws passes through", "[pipeline]") {
  const Pipeline pipeline = replace(default_pipeline(), "cse", [](const Graph&) -> Graph {
    throw Error("exercise 3 is not done yet");
  });
  CHECK(message_of([&] {
          run_pipeline(pipeline, softmax_graph(), true);
        }).find("exercise 3 is not done yet") != std::string::npos);
  CHECK_THROWS_WITH(
      run_pipeline(replace(default_pipeline(), "cse",
                           [](const Graph&) -> Graph { throw std::runtime_error("mine"); }),
                   softmax_graph(), true),
      "mine");
}

TEST_CASE("tc::compile runs the pipeline it was given", "[pipeline]") {
  const Scratch scratch;
  const Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  Names ran;
  CompileOptions options;
  options.verify = true;
  options.pipeline =
      insert_after(options.pipeline, "simplify", {"spy", [&ran](const Graph& graph) {
                                                    ran.push_back(graph.name);
                                                    return graph;
                                                  }});
  options.name = "spied";
  const auto f = compile([](Tensor x) { return x + 1; }, options);
  CHECK(same_bits(f(zeros({2})), ones({2})));
  f(zeros({2}));
  CHECK(ran == Names{"spied"});
  options.pipeline = until(default_pipeline(), "cse");
  CHECK(same_bits(compile([](Tensor x) { return x + 1; }, options)(zeros({2})), ones({2})));
}

TEST_CASE("TC_DEBUG_DIR's texts are the stages' and read back", "[pipeline]") {
  const Scratch scratch;
  const Setting texts("TC_DEBUG_DIR", scratch.path("debug"));
  const Staged staged = run_pipeline(default_pipeline(), softmax_graph(), false);
  std::map<std::string, std::string> kept;  // "5_lower.txt" -> its text
  for (const auto& item : std::filesystem::directory_iterator(scratch.path("debug"))) {
    const std::string name = item.path().filename();
    CHECK(name.rfind("soft_", 0) == 0);
    kept[name.substr(name.find('_', 5) + 1)] = text_of(item.path());
  }
  REQUIRE(kept.size() == 12);
  CHECK(print(parse_graph(kept["0_trace.txt"])) == print(softmax_graph()));
  CHECK(kept["4_dce.txt"] == print(staged.graph));
  CHECK(parse_graph(kept["4_dce.txt"]) == dce(softmax_graph()));
  CHECK(kept["9_plan_memory.txt"] == print(staged.program));
  CHECK(print(parse_program(kept["5_lower.txt"])) == print(lower(dce(softmax_graph()))));
  CHECK(parse_tiles(kept["10_tile.txt"]) == staged.tiles);
  CHECK(kept["11_emit.txt"] == staged.source.text);
}
