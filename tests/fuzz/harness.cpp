// Does every stage keep every bit? A graph's interpreter says what the outputs are; each stage
// must agree, and compiled kernels must also keep to their buffers:
//
//   [guard][ buffer ][guard]   written before the run, looked at after it
#include "tests/fuzz/harness.h"
#include "tests/codegen/emit_programs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/codegen/cuda_clusters.h"
#include "tests/fuzz/shrink.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/inputs.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/call_plan.h"
#include "tiny_compile/runtime/cuda_executable.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tile/verify.h"

namespace tiny_compile {

size_t bytes_of(const Buffer& buffer) {
  return static_cast<size_t>(buffer.size.constant()) * size_of(buffer.type.dtype);
}

namespace {

constexpr size_t kGuard = 256;  // bytes
constexpr std::byte kGuardByte{0xa5}, kUnwritten{0xff};

// Bytes between guards. Inputs stand at addresses that suit their elements and nothing more.
class Guarded {
 public:
  Guarded(size_t bytes, size_t shift)
      : memory_(bytes + 2 * kGuard + 128, kGuardByte), bytes_(bytes) {
    const size_t start = reinterpret_cast<size_t>(memory_.data()) + kGuard;
    data_ = memory_.data() + kGuard + (64 - start % 64) % 64 + shift;
    std::memset(data_, static_cast<int>(kUnwritten), bytes);
  }
  std::byte* data() const { return data_; }
  bool intact() const {
    for (const std::byte* at = memory_.data(); at < memory_.data() + memory_.size(); at++) {
      if ((at < data_ || at >= data_ + bytes_) && *at != kGuardByte) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> memory_;
  std::byte* data_;
  size_t bytes_;
};

bool same(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < want.size(); k++) {
    if (!same_bits(want[k], got[k])) return false;
  }
  return want.size() == got.size();
}

// What the pipeline makes of a graph up to a stage, without text.
Staged staged(Pipeline pipeline, const Graph& graph, const std::string& stage,
              Target target = Target::Cpp) {
  pipeline = until(std::move(pipeline), stage);
  pipeline.push_back({"emit", Emit([](const Tiles&) { return Source{}; })});
  return run_pipeline(pipeline, graph, true, target);
}

// What `function` throws, "" if nothing.
template <typename Function>
std::string error_of(Function function) {
  try {
    function();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

using Differs = std::function<bool(const Graph&)>;

FuzzFailure shrunk(const Graph& graph, uint64_t seed, const std::string& stage,
                   const Pipeline& pipeline, const Differs& differs,
                   Target target = Target::Cpp) {
  const Graph small =
      shrink(graph, [&](const Graph& g) {  // inputs that raise errors are no fair
        return error_of([&] { interpret(g, random_inputs(g, seed)); }).empty() && differs(g);
      });
  FuzzFailure failure{seed, stage, print(small)};
  failure.text +=
      error_of([&] { failure.text += print(staged(pipeline, small, stage, target).program); });
  return failure;
}

bool loops_differ(const Pipeline& pipeline, const Graph& graph, const Stage& stage,
                  const std::vector<Tensor>& inputs, const std::vector<Tensor>& want) {
  try {
    const Staged result = staged(pipeline, graph, stage.name);
    const bool passes = std::holds_alternative<GraphPass>(stage.run);
    return !same(want,
                 passes ? interpret(result.graph, inputs) : interpret(result.program, inputs));
  } catch (const Error&) {
    return true;
  }
}

// Programs for a target, compiled together, and how to run each of them.
using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
struct Builder {
  Target target;
  std::function<std::vector<Run>(const std::vector<Program>&)> build;
};

std::vector<Run> build_cpp_unit(const std::vector<Program>& programs) {
  const std::vector<Tiles> all = lower_all_to_tiles(programs);
  for (const Tiles& tiles : all) {
    verify(tiles);
    if (!(parse_tiles(print(tiles)) == tiles)) fail("tiles' text parses to other tiles");
  }
  const std::vector<Source> sources = emit_cpp_together(all);
  const auto library =
      build_cpp(sources[0].text, default_toolchain(), sources[0].units).library;
  std::vector<Run> runs;
  for (size_t k = 0; k < programs.size(); k++)
    runs.push_back([=, program = programs[k], source = sources[k]](const auto& inputs) {
      return run_guarded(program, source, *library, inputs);
    });
  return runs;
}

// The same values, at the next address that suits an element.
Tensor one_element_on(const Tensor& tensor) {
  const auto [first, bytes] = byte_span(tensor.info());
  const int64_t width = size_of(tensor.dtype());
  const Tensor host = copy_to(tensor, cpu);
  Tensor room = empty_tensor(tensor.dtype(), {bytes / width + 1});
  std::memcpy(room.bytes() + width, host.info().storage->data() + byte_span(host.info()).first,
              static_cast<size_t>(bytes));
  return with_layout(copy_to(room, cuda), tensor.shape(), tensor.strides(),
                     tensor.info().offset - first / width + 1);
}

std::vector<Run> build_cuda_unit(const std::vector<Program>& programs) {
  const std::vector<Source> sources = emit_cuda_together(programs);
  const auto library =
      load_cubins(build_cuda(sources[0], cuda_device(0).architecture).cubins, 0);
  std::vector<Run> runs;
  for (size_t k = 0; k < programs.size(); k++)
    runs.push_back([=, program = programs[k], source = sources[k]](const auto& inputs) {
      std::vector<Tensor> there;
      for (const Tensor& input : inputs) there.push_back(copy_to(input, cuda));
      for (size_t i = 0, b = 0; i < there.size(); i++, b++) {
        while (program.buffers[b].role != Role::Input) b++;
        if (program.buffers[b].align < 16) there[i] = one_element_on(there[i]);
      }
      std::vector<Tensor> outputs = CudaExecutable(program, source, library).run(there);
      for (Tensor& output : outputs) output = copy_to(output, cpu);
      return outputs;
    });
  return runs;
}

// Both orders of threads, thread by thread on the CPU.
std::vector<Run> build_threads_unit(const std::vector<Program>& programs) {
  std::vector<Run> runs;
  for (const Program& program : programs)
    runs.push_back([program, source = emit_cuda(program)](const auto& inputs) {
      std::vector<Tensor> outputs;
      for (bool last_first : {false, true}) {
        const std::vector<Tensor> before = outputs;
        outputs = threads::run_anywhere(program, source, inputs, last_first);
        if (last_first && !same(before, outputs)) fail("the order of threads decides");
      }
      return outputs;
    });
  return runs;
}

bool compiled_differs(const Pipeline& pipeline, const Builder& builder, const Graph& graph,
                      uint64_t seed, const std::string& stage) {
  const std::vector<Tensor> inputs = random_inputs(graph, seed);
  const std::vector<Tensor> want = interpret(graph, inputs);
  try {
    const Program program = staged(pipeline, graph, stage, builder.target).program;
    return !same(want, builder.build({program})[0](inputs));
  } catch (const Error&) {
    return true;
  }
}

// The last stage before the source is emitted, and one before it that the seed draws.
std::vector<std::string> stages_of(const Pipeline& pipeline, uint64_t seed) {
  size_t last = 0;
  while (last + 1 < pipeline.size() && pipeline[last + 1].name != "emit") last++;
  std::vector<std::string> stages = {pipeline[last].name};
  if (last > 0) stages.push_back(pipeline[seed * 2654435761u / 16 % last].name);
  return stages;
}

std::vector<FuzzFailure> fuzz_compiled(uint64_t first, int count, const Pipeline& pipeline,
                                       const GraphMaker& make, const Builder& builder) {
  struct Item {
    Graph graph;
    uint64_t seed;
    std::string stage;
  };
  std::vector<FuzzFailure> failures;
  std::vector<Item> items;
  std::vector<Program> programs;
  auto fail_with = [&](const Item& item, const std::string& error) {
    const auto differs = [&](const Graph& g) {
      return compiled_differs(pipeline, builder, g, item.seed, item.stage);
    };
    failures.push_back(
        shrunk(item.graph, item.seed, item.stage, pipeline, differs, builder.target));
    failures.back().text += error.empty() ? "" : "before shrinking: " + error + "\n";
  };
  auto add = [&](const Item& item) {
    Program program;
    const std::string error = error_of(
        [&] { program = staged(pipeline, item.graph, item.stage, builder.target).program; });
    if (!error.empty()) return fail_with(item, error);
    items.push_back(item);
    programs.push_back(std::move(program));
  };
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); seed++) {
    const Graph graph = make(seed);
    for (const std::string& stage : stages_of(pipeline, seed)) add({graph, seed, stage});
  }
  if (programs.empty()) return failures;
  const std::vector<Run> runs = builder.build(programs);
  std::vector<Tensor> inputs, want;  // of one graph after another, for all its stages
  for (size_t k = 0; k < items.size(); k++) {
    if (k == 0 || items[k].seed != items[k - 1].seed) {
      inputs = random_inputs(items[k].graph, items[k].seed);
      want = interpret(items[k].graph, inputs);
    }
    bool good = false;
    const std::string error = error_of([&] { good = same(want, runs[k](inputs)); });
    if (!good) fail_with(items[k], error);
  }
  return failures;
}

}  // namespace

std::vector<FuzzFailure> fuzz_loops(uint64_t first, int count, const Pipeline& pipeline,
                                    const GraphMaker& make) {
  std::vector<FuzzFailure> failures;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); seed++) {
    const Graph graph = make(seed);
    const std::vector<Tensor> inputs = random_inputs(graph, seed);
    const std::vector<Tensor> want = interpret(graph, inputs);
    for (const Stage& stage : pipeline) {
      if (std::holds_alternative<Emit>(stage.run)) continue;
      if (!loops_differ(pipeline, graph, stage, inputs, want)) continue;
      failures.push_back(shrunk(graph, seed, stage.name, pipeline, [&](const Graph& g) {
        const std::vector<Tensor> values = random_inputs(g, seed);
        return loops_differ(pipeline, g, stage, values, interpret(g, values));
      }));
      break;
    }
  }
  return failures;
}

std::vector<FuzzFailure> fuzz_cpp(uint64_t first, int count, const Pipeline& pipeline,
                                  const GraphMaker& make) {
  return fuzz_compiled(first, count, pipeline, make, {Target::Cpp, build_cpp_unit});
}

std::vector<FuzzFailure> fuzz_cuda(uint64_t first, int count, const Pipeline& pipeline,
                                   const GraphMaker& make) {
  return fuzz_compiled(first, count, pipeline, make, {Target::Cuda, build_cuda_unit});
}

std::vector<FuzzFailure> fuzz_threads(uint64_t first, int count, const Pipeline& pipeline,
                                      const GraphMaker& make) {
  return fuzz_compiled(first, count, pipeline, make, {Target::Cuda, build_threads_unit});
}

unsigned run_launches(const Program& program, const Source& source,
                      const SharedLibrary& library, const std::vector<void*>& addresses,
                      const std::function<std::byte*(size_t bytes, size_t zeroed)>& own) {
  auto* take_errors = reinterpret_cast<unsigned (*)()>(library.symbol("tc_take_errors"));
  take_errors();
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      const KernelEntry& kernel = source.kernels[id];
      std::vector<void*> arguments;
      for (int buffer : kernel.buffers) arguments.push_back(addresses[buffer]);
      std::vector<long long> sizes;
      for (const Expr& size : kernel.sizes) sizes.push_back(size.constant());
      if (!sizes.empty()) arguments.push_back(sizes.data());
      arguments.push_back(own(static_cast<size_t>(kernel.own_bytes.constant()),
                              static_cast<size_t>(kernel.zeroed)));
      auto* run = reinterpret_cast<void (*)(void* const*, long long, long long)>(
          library.symbol(kernel.function.c_str()));
      const int64_t units = kernel.units.constant();
      if (units > 0) run(arguments.data(), units / 2, units);  // in any order
      if (units > 1) run(arguments.data(), 0, units / 2);
    }
  }
  return take_errors();
}

std::vector<Tensor> outputs_at(const Program& program, const std::vector<void*>& addresses) {
  std::vector<Tensor> outputs;
  for (int b : program.outputs) {
    const Buffer& buffer = program.buffers[b];
    Sizes shape, strides;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    for (const Expr& stride : buffer.strides) strides.push_back(stride.constant());
    Tensor flat = empty_tensor(buffer.type.dtype, {buffer.size.constant()});
    std::memcpy(flat.bytes(), addresses[b], bytes_of(buffer));
    outputs.push_back(with_layout(flat, shape,
                                  strides.empty() ? contiguous_strides(shape) : strides,
                                  buffer.offset.constant()));
  }
  return outputs;
}

namespace {

// Of a program whose buffers have numbers for sizes.
std::vector<Tensor> guarded(const Program& program, const Source& source,
                            const SharedLibrary& library, const std::vector<Tensor>& inputs) {
  std::vector<std::unique_ptr<Guarded>> memory;
  const Guarded arena(static_cast<size_t>(program.arena_bytes), 0);
  std::vector<void*> addresses;
  std::map<size_t, const std::byte*> originals;  // of input buffers
  size_t next = 0;
  for (const Buffer& buffer : program.buffers) {
    const int64_t width = size_of(buffer.type.dtype);
    const size_t bytes = bytes_of(buffer);
    const bool input = buffer.role == Role::Input;
    memory.push_back(std::make_unique<Guarded>(bytes, input ? width : 0));
    if (input) {
      const auto offset = buffer.offset.constant() * width;
      const std::byte* original = inputs.at(next++).bytes() - offset;
      originals[addresses.size()] = original;
      std::memcpy(memory.back()->data(), original, bytes);
    }
    addresses.push_back(buffer.place >= 0 ? arena.data() + buffer.place
                                          : memory.back()->data());
  }
  for (size_t b = 0; b < addresses.size(); b++) {
    const int storage = storage_of(program, static_cast<int>(b));
    addresses[b] = addresses[storage];
    if (program.buffers[b].over >= 0) originals.erase(storage);  // to be written over
  }
  std::vector<std::unique_ptr<Guarded>> owned;
  const auto own = [&](size_t bytes, size_t zeroed) {
    owned.push_back(std::make_unique<Guarded>(bytes, 0));
    std::fill_n(owned.back()->data(), zeroed, std::byte{0});
    return owned.back()->data();
  };
  const unsigned errors = run_launches(program, source, library, addresses, own);
  for (const auto& one : owned) {
    if (!one->intact()) fail("a kernel of ", program.name, " wrote outside its own memory");
  }
  if (errors) fail("the kernels of ", program.name, " raised errors ", errors);
  if (!arena.intact()) fail("a kernel of ", program.name, " wrote outside the arena");
  for (size_t b = 0; b < memory.size(); b++) {
    const std::string& name = program.buffers[b].name;
    if (!memory[b]->intact()) fail("a kernel of ", program.name, " wrote outside ", name);
    if (originals.count(b) &&
        std::memcmp(originals[b], memory[b]->data(), bytes_of(program.buffers[b])) != 0)
      fail("a kernel of ", program.name, " wrote to the input ", name);
  }
  return outputs_at(program, addresses);
}

}  // namespace

std::vector<Tensor> run_guarded(const Program& program, const Source& source,
                                const SharedLibrary& library,
                                const std::vector<Tensor>& inputs) {
  const Substitution numbers = sizes_of_call(program, inputs);
  if (numbers.empty()) return guarded(program, source, library, inputs);
  Source sized = source;
  for (KernelEntry& kernel : sized.kernels) kernel = with_numbers(kernel, numbers);
  return guarded(with_buffers_for(program, numbers), sized, library, inputs);
}

void use_no_cache() { setenv("TC_CACHE_DIR", "/dev/null", 1); }

}  // namespace tiny_compile
