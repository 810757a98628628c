// What is built for a graph under these options?
//
//   default        the pipeline, with the library's products on a GPU that has it
//   max-autotune   the same behind a search (compile/tune.h): once with the library's products, once with
//                  generated ones, and the faster of the two
#include "tiny_compile/compile/build_graph.h"

#include <algorithm>

#include "tiny_compile/compile/bad_index.h"
#include "tiny_compile/compile/call_record.h"
#include "tiny_compile/compile/race.h"
#include "tiny_compile/compile/tune.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/runtime/buffers.h"
#include "tiny_compile/runtime/cublaslt.h"
#include "tiny_compile/runtime/log.h"

namespace tiny_compile {
namespace {

bool searches(const CompileOptions& options) { return options.mode == "max-autotune"; }

Built built_with(const CompileOptions& options, const Graph& graph, Device device) {
  const Staged staged = recordable(run_pipeline(pipeline_for(options, device, graph), graph,
                                                options.verify, machine_on(device)));
  return build(staged.program, staged.source, device.index, index_uses(graph));
}

// Whether numbers can be drawn for its inputs that a call leaves as they are.
bool takes_drawn_inputs(const Graph& graph) {
  const std::vector<int> inputs = graph.inputs();
  return std::none_of(inputs.begin(), inputs.end(), [&](int id) {
    return graph[id].find(Key::strides) || graph[id].find(Key::donated);
  });
}

// The library's products or generated ones: the faster, by whole calls.
Built faster_products(const Built& library, const CompileOptions& options, const Graph& graph,
                      Device device) {
  CompileOptions exact = options;
  exact.deterministic = true;
  const Built generated = built_with(exact, graph, device);
  std::vector<Type> types;
  for (const int id : graph.inputs()) types.push_back(graph[id].type);
  const std::vector<Tensor> inputs = inputs_for(types, device);
  const Race result = race({{library, kClose}, {generated, 0}}, inputs, generated.run(inputs),
                           options.tune_seconds / 4);
  log("autotune", str(options.name, ": products by ",
                      result.winner == 0 ? "the library" : "generated kernels"));
  return result.winner == 0 ? library : generated;
}

}  // namespace

int64_t products_in(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes) {
    count += node.op == Op::matmul;
    if (!node.graphs.empty()) count += products_in(node.graphs[0]);
  }
  return count;
}

Pipeline pipeline_for(const CompileOptions& options, Device device, const Graph& graph) {
  if (options.backend == "eager") return {};
  const bool generates = device == cpu || options.deterministic || products_in(graph) == 0 ||
                         !symbols(graph).empty();  // whose stages would be passed over
  const Matmul library = options.tf32 ? Matmul::LibraryTf32 : Matmul::Library;
  const Pipeline pipeline =
      generates ? options.pipeline : with_library(options.pipeline, available_matmul(library));
  if (!searches(options) || !symbols(graph).empty()) return pipeline;
  return with_tuning(pipeline, device,
                     {.seconds = options.tune_seconds, .say = progress_on_terminal()});
}

Built build_graph(const CompileOptions& options, const Graph& graph, Device device) {
  const Built built = built_with(options, graph, device);
  if (!searches(options) || !symbols(graph).empty() || device == cpu || options.deterministic ||
      products_in(graph) == 0 || options.backend == "eager" || !takes_drawn_inputs(graph))
    return built;
  try {
    return faster_products(built, options, graph, device);
  } catch (const Error& error) {
    log("autotune", str(options.name, ": products by the library, since: ", error.what()));
    return built;
  }
}

}  // namespace tiny_compile
