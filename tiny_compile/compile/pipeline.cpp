// Which functions make kernels of a graph, and in which order? default_pipeline() is the
// answer, and run_pipeline() the loop over it: Graph passes, lower, Program passes, tile, emit.
#include "tiny_compile/compile/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/epilogues.h"
#include "tiny_compile/loops/fold_columns.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"
#include "tiny_compile/loops/pad_rows.h"
#include "tiny_compile/loops/parts_moved.h"
#include "tiny_compile/loops/use_library.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tile/verify.h"

namespace tiny_compile {
namespace {

Pipeline::iterator find_stage(Pipeline& pipeline, const std::string& name) {
  const auto at = std::find_if(pipeline.begin(), pipeline.end(),
                               [&](const Stage& s) { return s.name == name; });
  if (at != pipeline.end()) return at;
  std::vector<std::string> names;
  for (const Stage& stage : pipeline) names.push_back(stage.name);
  fail("no stage '", name, "' in this pipeline: it has ", join(names, ", "));
}

const char* channel_of(const std::string& stage) {
  if (stage == "lower") return "loops";
  if (stage == "fuse") return "fusion";
  if (stage == "schedule") return "schedule";
  if (stage == "plan_memory") return "memory";
  return "passes";
}

// Runs stages in order; what a prefix leaves out is added at the end.
class Runner {
 public:
  Runner(bool checked, const Machine& machine) : checked_(checked), machine_(machine) {}

  Staged run(const Pipeline& pipeline) {
    for (const Stage& stage : pipeline) {
      const auto start = std::chrono::steady_clock::now();
      if (!stage.is_library || !has_symbols())
        std::visit([&](const auto& function) { step(stage.name, function); }, stage.run);
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      result_.seconds.push_back({stage.name, spent.count()});
    }
    if (!lowered_) step("lower", Lower(lower));
    if (!tiled_) step("tile", Tiling(lower_to_tiles));
    if (!emitted_) step("emit", Emit(emit));
    return std::move(result_);
  }

  void start(const Graph& graph) {
    result_.graph = graph;
    if (checked_) verify(graph);
    if (!texts()) return;
    name_texts(graph.name, print(graph));
    show("trace", print(graph), "graph");
  }
  void start(const Program& program) {
    result_.program = program;
    lowered_ = true;
    if (checked_) verify(program);
    if (texts()) name_texts(program.name, print(program));
  }
  void start(const Tiles& tiles) {
    start(tiles.program);
    if (checked_) verify(tiles);
    result_.tiles = tiles;
    tiled_ = true;
  }

 private:
  static bool texts() { return std::getenv("TC_LOGS") || std::getenv("TC_DEBUG_DIR"); }
  // Files are named "main_3fa2c1_5_lower.txt".
  void name_texts(const std::string& name, const std::string& text) {
    prefix_ = kept_name(name, text) + "_";
  }
  void show(const std::string& stage, const std::string& text, const char* channel) {
    log(channel, str("after ", stage, ":\n", text));
    keep_text(str(prefix_, number_++, "_", stage, ".txt"), text);
  }

  bool has_symbols() const {
    return lowered_ ? !sizes(result_.program).empty() : !symbols(result_.graph).empty();
  }

  // Names the stage that made it, before a later one trips over it.
  template <typename Value>
  void check(const std::string& stage, const Value& made) const {
    if (!checked_) return;
    try {
      verify(made);
    } catch (const Error& error) {
      fail("what stage '", stage, "' made is not sound: ", error.what());
    }
  }

  void step(const std::string& name, const GraphPass& pass) {
    if (lowered_) return;
    result_.graph = with_graphs_inside(pass, result_.graph);
    check(name, result_.graph);
    if (texts()) show(name, print(result_.graph), channel_of(name));
  }
  void step(const std::string& name, const Lower& pass) {
    if (lowered_) return;
    result_.program = for_machine(pass(result_.graph), machine_);
    lowered_ = true;
    finish_program(name);
  }
  void step(const std::string& name, const ProgramPass& pass) {
    if (tiled_) return;
    if (!lowered_) step("lower", Lower(lower));
    Program made = pass(result_.program);
    if (name == "fuse") tell_of_fusion(made);
    result_.program = std::move(made);
    finish_program(name);
  }
  void step(const std::string& name, const Tiling& pass) {
    if (tiled_) return;
    if (!lowered_) step("lower", Lower(lower));
    result_.tiles = pass(result_.program);
    tiled_ = true;
    check(name, result_.tiles);
    if (texts()) show(name, print(result_.tiles), "tile");
  }
  void step(const std::string& name, const Emit& pass) {
    if (!tiled_) step("tile", Tiling(lower_to_tiles));
    result_.source = pass(result_.tiles);
    emitted_ = true;
    if (texts()) show(name, result_.source.text, "code");
  }
  // Who was kept apart; and that no kernel moves more than what it was made of.
  void tell_of_fusion(const Program& fused) const {
    for (const std::string& refusal : fused.refusals) log("fusion", "kept apart: " + refusal);
    if (!checked_) return;
    const std::string more = why_moves_more(result_.program, fused);
    if (!more.empty()) fail("what stage 'fuse' made is not sound: ", more);
  }
  void finish_program(const std::string& name) {
    check(name, result_.program);
    if (texts()) show(name, print(result_.program), channel_of(name));
  }

  bool checked_;
  Machine machine_;
  bool lowered_ = false, tiled_ = false, emitted_ = false;
  size_t number_ = 0;
  std::string prefix_;
  Staged result_;
};

}  // namespace

Pipeline default_pipeline() {
  return {{"simplify", simplify},
          {"fold", fold},
          {"cse", merge_equal},
          {"dce", dce},
          {"lower", lower},
          {"fuse", fuse},
          {"fold_columns", fold_columns},
          {"schedule", schedule},
          {"plan_memory", plan_memory},
          {"tile", lower_to_tiles},
          {"emit", emit}};
}

Pipeline with_library(Pipeline pipeline, Matmul matmul) {
  if (matmul == Matmul::Generated) return pipeline;
  const auto at = std::find_if_not(pipeline.begin(), pipeline.end(), takes_graph);
  const auto leave = [matmul](const Program& p) { return use_library_matmul(p, matmul); };
  pipeline.insert(at, Stage{"library", ProgramPass(leave), true});
  const auto lowers = std::find_if(pipeline.begin(), pipeline.end(),
                                   [](const Stage& s) { return s.name == "lower"; });
  if (lowers != pipeline.end()) {
    const auto pad = [](const Graph& g) { return pad_products(g); };
    const auto at = pipeline.insert(lowers, Stage{"pad_products", GraphPass(pad), true});
    pipeline.insert(at, Stage{"thin_products", GraphPass(thin_products), true});
  }
  const bool fuses = std::any_of(pipeline.begin(), pipeline.end(),
                                 [](const Stage& stage) { return stage.name == "fuse"; });
  if (!fuses) return pipeline;
  pipeline = insert_after(std::move(pipeline), "fuse", {"epilogues", add_epilogues, true});
  return insert_after(std::move(pipeline), "epilogues", {"pad_rows", pad_rows, true});
}

bool takes_graph(const Stage& stage) {
  return std::holds_alternative<GraphPass>(stage.run) ||
         std::holds_alternative<Lower>(stage.run);
}

Source emit(const Tiles& tiles) {
  return tiles.program.target == Target::Cpp ? emit_cpp(tiles) : emit_cuda(tiles);
}

Pipeline replace(Pipeline pipeline, const std::string& name, decltype(Stage::run) run) {
  const auto at = find_stage(pipeline, name);
  if (at->run.index() != run.index())
    fail("stage '", name,
         "' cannot be replaced by a function of another kind (Graph pass, lower, Program pass, "
         "tile, emit)");
  at->run = std::move(run);
  at->is_library = false;
  return pipeline;
}

Pipeline insert_after(Pipeline pipeline, const std::string& name, Stage stage) {
  pipeline.insert(find_stage(pipeline, name) + 1, std::move(stage));
  return pipeline;
}

Pipeline until(Pipeline pipeline, const std::string& name) {
  pipeline.erase(find_stage(pipeline, name) + 1, pipeline.end());
  return pipeline;
}

Staged run_pipeline(const Pipeline& pipeline, const Graph& graph, bool checked,
                    const Machine& machine) {
  Runner runner(checked, machine);
  runner.start(graph);
  return runner.run(pipeline);
}

Staged run_pipeline(const Pipeline& pipeline, const Graph& graph, bool checked, Target target) {
  return run_pipeline(pipeline, graph, checked, default_machine(target));
}

Staged run_pipeline(const Pipeline& pipeline, const Program& program, bool checked) {
  Runner runner(checked, program.machine);
  runner.start(program);
  return runner.run(pipeline);
}

Staged run_pipeline(const Pipeline& pipeline, const Tiles& tiles, bool checked) {
  Runner runner(checked, tiles.program.machine);
  runner.start(tiles);
  return runner.run(pipeline);
}

}  // namespace tiny_compile
