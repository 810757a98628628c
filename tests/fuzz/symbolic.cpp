// Which graphs may have any number of rows?
//
//   graph g(%0 x: f32[7,3]) { %1: f32[21] = reshape %0 ; return %1 }                size 7
// =>
//   graph g[n: 1..4096](%0 x: f32[n,3]) { %1: f32[n*3] = reshape %0 ; return %1 }
//
// The sizes that a node has of its own (a constant's, an expand's, where a slice ends) become n
// where they are 7; the others are inferred. What does not fit together then was no 7 of ours.
#include "tests/fuzz/symbolic.h"

#include <algorithm>
#include <set>

#include "tests/codegen/cuda_on_cpu.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/cuda_executable.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostElements = 1 << 15;  // of a tensor of a call

class Generaliser {
 public:
  Generaliser(int64_t size, int64_t least)
      : size_(size),
        n_(Expr::symbol({"n", SymbolKind::Size}, least, std::max<int64_t>(size, 4096))) {}

  // Throws where sizes do not fit together.
  Graph run(const Graph& graph, const std::vector<Type>& inputs) const {
    Graph result = graph;
    result.nodes.clear();
    size_t next = 0;
    for (Node node : graph.nodes) {
      std::vector<Type> operands;
      for (const int input : node.inputs) operands.push_back(result[input].type);
      for (Graph& inner : node.graphs) inner = run(inner, operands);
      for (Attr& attr : node.attrs) general(attr.values, attr.key == Key::strides);
      general(node.type.shape, false);
      if (node.op == Op::input && !inputs.empty()) node.type = inputs[next++];
      if (node.op == Op::reshape) fit(node.type.shape, product(operands[0].shape));
      node.type = infer(node, operands);
      result.append(std::move(node));
    }
    return result;
  }

 private:
  // Of strides, multiples too.
  void general(std::vector<Expr>& values, bool multiples) const {
    for (Expr& value : values) {
      const int64_t number = value.constant();
      if (number == size_ || (multiples && number > 0 && number % size_ == 0))
        value = n_ * (number / size_);
    }
  }

  // The shape of a reshape of so many elements, one axis of it a multiple of n.
  void fit(Shape& shape, const Expr& elements) const {
    if (product(shape) == elements) return;
    for (Expr& size : shape) {
      const Expr given = size;
      if (!size.is_constant() || size.constant() % size_ != 0) continue;
      size = n_ * (size.constant() / size_);
      if (product(shape) == elements) return;
      size = given;
    }
    fail("no axis of the reshape is a multiple of n");
  }

  int64_t size_;
  Expr n_;
};

std::set<int64_t> sizes_of_inputs(const Graph& graph) {
  std::set<int64_t> result;
  for (const int id : graph.inputs()) {
    for (const Expr& size : graph[id].type.shape)
      if (size.constant() > 1) result.insert(size.constant());
  }
  return result;
}

// The graph of a number, if there is one and it is small.
std::optional<Graph> with_number(const Graph& graph, int64_t number) {
  try {
    const Graph result = substitute(graph, bind_sizes(symbols(graph), {{"n", number}}));
    verify(result);
    for (const Node& node : result.nodes) {
      if (product(node.type.shape).constant() > kMostElements) return std::nullopt;
    }
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct Call {
  int64_t number;
  std::vector<Tensor> inputs, wanted;
};

// Where the interpreter raises an error (an index of 7 in 3 rows), there is nothing to compare.
std::optional<Call> call_of(const Graph& graph, int64_t number, uint64_t seed) {
  const std::optional<Graph> small = with_number(graph, number);
  if (!small) return std::nullopt;
  try {
    Call call{number, random_inputs(*small, seed), {}};
    call.wanted = interpret(*small, call.inputs);
    return call;
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <typename Code>
std::string differs(const Code& code, const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    const std::vector<Tensor> got = interpret(code, call.inputs);
    for (size_t k = 0; k < got.size(); k++)
      if (!same_bits(call.wanted[k], got[k]))
        return str("other bits of output ", k, " for n = ", call.number);
  }
  return "";
}

std::string wrong_graph(const Graph& graph, const std::vector<Call>& calls) {
  if (parse_graph(print(graph)) != graph) return "another graph is parsed back";
  return differs(graph, calls);
}

std::string wrong_program(const Program& program, const std::vector<Call>& calls) {
  if (parse_program(print(program)) != program) return "another program is parsed back";
  bytes_moved(program);
  for (const Call& call : calls) {
    if (sizes(program).empty()) continue;
    verify(substitute(program, {{{"n", SymbolKind::Size}, call.number}}));
  }
  return differs(program, calls);
}

// What is wrong after a stage; "" if nothing is.
std::string wrong_after(const std::string& stage, const Graph& graph, Target target,
                        const std::vector<Call>& calls) {
  Pipeline pipeline = until(default_pipeline(), stage);
  const bool passes = std::holds_alternative<GraphPass>(pipeline.back().run);
  pipeline.push_back({"emit", Emit([](const Tiles&) { return Source{}; })});
  try {
    const Staged result = run_pipeline(pipeline, graph, true, target);
    return passes ? wrong_graph(result.graph, calls) : wrong_program(result.program, calls);
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<Call> calls_of(const Graph& graph, int64_t size, uint64_t seed) {
  std::vector<Call> calls;
  for (const int64_t number : std::set<int64_t>{size, 0, 1, 2, size + 1, 37})
    if (auto call = call_of(graph, number, seed)) calls.push_back(std::move(*call));
  return calls;
}

struct BuiltProgram {
  uint64_t seed;
  Program program;
  Tiles tiles;
  std::vector<Call> calls;
};

// Planned programs of a graph of numbers, for each of its sizes in turn.
std::vector<BuiltProgram> programs_of(const Graph& numbers, uint64_t seed,
                                      const Machine& machine, SymbolicCounts& counts) {
  std::vector<BuiltProgram> result;
  for (const int64_t size : sizes_of_inputs(numbers)) {
    const auto graph = with_symbol(numbers, size, static_cast<int64_t>(seed % 2));
    if (!graph) continue;
    try {  // a stage that fails is symbolic_failures' to tell
      Pipeline pipeline = until(default_pipeline(), "tile");
      pipeline.push_back({"emit", Emit([](const Tiles&) { return Source{}; })});
      const Staged staged = run_pipeline(pipeline, *graph, true, machine);
      result.push_back({seed, staged.program, staged.tiles, calls_of(*graph, size, seed)});
    } catch (const Error&) {
      continue;
    }
    counts.graphs++, counts.calls += static_cast<int>(result.back().calls.size());
  }
  return result;
}

std::vector<BuiltProgram> all_programs_of(uint64_t first, int count, const Machine& machine,
                                          SymbolicCounts& counts) {
  std::vector<BuiltProgram> all;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); seed++) {
    for (BuiltProgram& one : programs_of(random_graph(seed), seed, machine, counts))
      all.push_back(std::move(one));
  }
  return all;
}

using Run = std::function<std::vector<Tensor>(const BuiltProgram&, const Source&, const Call&)>;

std::string wrong_code(const BuiltProgram& one, const Source& source, const Run& run) {
  for (const Call& call : one.calls) {
    try {
      const std::vector<Tensor> got = run(one, source, call);
      for (size_t k = 0; k < got.size(); k++)
        if (!same_bits(call.wanted[k], got[k]))
          return str("other bits of output ", k, " for n = ", call.number);
    } catch (const std::exception& error) {
      return str("for n = ", call.number, ": ", error.what());
    }
  }
  return "";
}

std::vector<FuzzFailure> failures_of(const std::vector<BuiltProgram>& all,
                                     const std::vector<Source>& sources, const Run& run) {
  std::vector<FuzzFailure> failures;
  for (size_t k = 0; k < all.size(); k++) {
    const std::string wrong = wrong_code(all[k], sources[k], run);
    if (!wrong.empty())
      failures.push_back({all[k].seed, "emit", str(wrong, "\n", print(all[k].tiles))});
  }
  return failures;
}

std::vector<Source> cuda_of(const std::vector<BuiltProgram>& all) {
  std::vector<Tiles> tiles;
  for (const BuiltProgram& one : all) tiles.push_back(one.tiles);
  return emit_cuda_together(tiles);
}

}  // namespace

std::optional<Graph> with_symbol(const Graph& graph, int64_t size, int64_t least) {
  try {
    const Graph result = Generaliser(size, least).run(graph, {});
    verify(result);
    if (substitute(result, {{{"n", SymbolKind::Size}, size}}) == graph) return result;
  } catch (const Error&) {
  }
  return std::nullopt;
}

std::vector<FuzzFailure> symbolic_failures(const Graph& numbers, uint64_t seed,
                                           SymbolicCounts& counts) {
  std::vector<FuzzFailure> failures;
  for (const int64_t size : sizes_of_inputs(numbers)) {
    const auto graph = with_symbol(numbers, size, static_cast<int64_t>(seed % 2));
    if (!graph) continue;
    const std::vector<Call> calls = calls_of(*graph, size, seed);
    counts.graphs++, counts.calls += static_cast<int>(calls.size());
    for (const Stage& stage : until(default_pipeline(), "plan_memory")) {
      std::string wrong = wrong_after(stage.name, *graph, Target::Cpp, calls);
      if (wrong.empty() && stage.name == "plan_memory")
        wrong = wrong_after(stage.name, *graph, Target::Cuda, calls);
      if (wrong.empty()) continue;
      failures.push_back({seed, stage.name, str(wrong, "\n", print(*graph))});
      break;
    }
  }
  return failures;
}

std::vector<FuzzFailure> fuzz_symbolic_cpp(uint64_t first, int count, SymbolicCounts& counts) {
  const std::vector<BuiltProgram> all =
      all_programs_of(first, count, default_machine(Target::Cpp), counts);
  if (all.empty()) return {};
  std::vector<Program> programs;
  for (const BuiltProgram& one : all) programs.push_back(one.program);
  const std::vector<Source> sources = emit_cpp_together(lower_all_to_tiles(programs));
  const auto library =
      build_cpp(sources[0].text, default_toolchain(), sources[0].units).library;
  return failures_of(all, sources,
                     [&](const BuiltProgram& one, const Source& source, const Call& call) {
                       return run_guarded(one.program, source, *library, call.inputs);
                     });
}

std::vector<FuzzFailure> fuzz_symbolic_cuda(uint64_t first, int count, SymbolicCounts& counts) {
  const std::vector<BuiltProgram> all = all_programs_of(first, count, machine_on(cuda), counts);
  if (all.empty()) return {};
  const std::vector<Source> sources = cuda_of(all);
  const auto library =
      load_cubins(build_cuda(sources[0], cuda_device(0).architecture).cubins, 0);
  return failures_of(
      all, sources, [&](const BuiltProgram& one, const Source& source, const Call& call) {
        std::vector<Tensor> there;
        for (const Tensor& input : call.inputs) there.push_back(copy_to(input, cuda));
        std::vector<Tensor> outputs = CudaExecutable(one.program, source, library).run(there);
        for (Tensor& output : outputs) output = copy_to(output, cpu);
        return outputs;
      });
}

std::vector<FuzzFailure> fuzz_symbolic_threads(uint64_t first, int count,
                                               SymbolicCounts& counts) {
  Machine plain = default_machine(Target::Cuda);
  plain.name = "plain", plain.cluster = 1;  // one block at a time runs on a CPU
  const std::vector<BuiltProgram> all = all_programs_of(first, count, plain, counts);
  if (all.empty()) return {};
  const std::vector<Source> sources = cuda_of(all);
  Source together = sources[0];
  for (size_t k = 1; k < sources.size(); k++)
    together.kernels.insert(together.kernels.end(), sources[k].kernels.begin(),
                            sources[k].kernels.end());
  lessons::Threads all_threads(threads::for_cpu(together), threads::names_of(together));
  return failures_of(
      all, sources, [&](const BuiltProgram& one, const Source& source, const Call& call) {
        const Substitution numbers = sizes_of_call(one.program, call.inputs);
        return threads::run_on(all_threads, with_buffers_for(one.program, numbers),
                               threads::with_numbers(source, numbers), call.inputs);
      });
}

std::vector<FuzzFailure> fuzz_symbolic(uint64_t first, int count, SymbolicCounts& counts) {
  std::vector<FuzzFailure> failures;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); seed++) {
    for (FuzzFailure& failure : symbolic_failures(random_graph(seed), seed, counts))
      failures.push_back(std::move(failure));
  }
  return failures;
}

}  // namespace tiny_compile
