// What did each stage buy? The same graph is compiled after every prefix of the pipeline
// and run:
//
//   stage        launches    bytes MB        ms     GB/s
//   eager              12       402.7     61.20      6.6
//   fuse                1        67.1      8.10      8.3
#include "tiny_compile/compile/explain.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "tiny_compile/compile/race.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/schedule/cost.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tile/facts.h"
#include "tiny_compile/trace/tracer.h"

namespace tiny_compile {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Shape exprs(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

// An input as kernels were made for it: row-major, or with the strides that are stated.
Tensor laid_out(const InputSlot& slot, const Tensor& input) {
  const Type type = {input.dtype(), exprs(input.shape())};
  if (type != slot.type)
    fail("explain: input ", slot.name, " is ", slot.type.str(), ", but was given ", type.str());
  if (slot.strides.empty()) return input.is_contiguous() ? input : row_major_copy(input);
  if (slot.strides == exprs(input.strides())) return input;
  fail("explain: input ", slot.name, " has strides [", join(slot.strides, ","),
       "], but was given [", join(input.strides(), ","),
       "]; give it the layout it was traced with");
}

std::vector<Tensor> laid_out(const std::string& name, const std::vector<InputSlot>& slots,
                             std::span<const Tensor> inputs) {
  if (slots.size() != inputs.size())
    fail("explain: ", name, " has ", slots.size(), " inputs, but ", inputs.size(),
         " were given");
  std::vector<Tensor> result;
  for (size_t k = 0; k < slots.size(); k++) result.push_back(laid_out(slots[k], inputs[k]));
  return result;
}

double median_milliseconds(const Built& built, std::span<const Tensor> inputs, double seconds) {
  const Device device = device_of(inputs);
  std::vector<double> times;
  const double stop = now() + seconds;
  do {
    const double start = now();
    built.run(inputs);
    synchronize(device);
    times.push_back((now() - start) * 1e3);
  } while (now() < stop || times.size() < 3);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

Rung counted(const std::string& stage, const Program& program) {
  Rung rung;
  rung.stage = stage;
  rung.launches = static_cast<int64_t>(program.launches.size());
  rung.bytes = bytes_moved(program);
  return rung;
}

Rung priced(const std::string& stage, const Staged& staged) {
  require_numbers(sizes(staged.program), "explain");
  Rung rung = counted(stage, staged.program);
  rung.milliseconds = estimate(staged.program) * 1e-3;
  return rung;
}

Rung climb(const std::string& stage, const Staged& staged, std::span<const Tensor> inputs,
           double seconds) {
  const Device device = device_of(inputs);
  const Built built = build(staged.program, staged.source, device.index);
  Rung rung = counted(stage, staged.program);
  rung.compile_milliseconds = built.compile_seconds * 1e3;
  rung.outputs = built.run(inputs);
  rung.milliseconds = median_milliseconds(built, inputs, seconds);
  return rung;
}

// Kernels that a vendor's library runs, each a line.
std::vector<std::string> library_calls(const Staged& staged) {
  std::vector<std::string> calls;
  for (size_t k = 0; k < staged.source.kernels.size(); k++) {
    if (staged.source.kernels[k].library)
      calls.push_back(str(staged.program.kernels[k].name, ": cuBLASLt multiplies ",
                          str(*staged.source.kernels[k].library),
                          "; deterministic = true has a kernel generated instead"));
  }
  return calls;
}

void check_bits(const Rung& first, const Rung& rung, bool exact) {
  for (size_t k = 0; k < first.outputs.size(); k++) {
    const std::optional<int64_t> at = first_difference(first.outputs[k], rung.outputs[k]);
    if (!at || (!exact && distance(rung.outputs[k], first.outputs[k]) < kClose)) continue;
    fail("after stage '", rung.stage, "' output ", k, " differs from '", first.stage,
         "' at element ", *at,
         exact ? ": a pass changed a bit" : ", and by more than a library's rounding");
  }
}

using Climb = std::function<Rung(const std::string& stage, const Staged& staged)>;

// A rung for every prefix of the pipeline; `stage` makes the program of one, `climb` its rung.
Explanation climb_all(const std::string& first, const Pipeline& pipeline,
                      const std::function<Staged(const Pipeline&)>& stage, const Climb& climb) {
  Explanation result;
  result.staged = stage({});
  result.rungs.push_back(climb(first, result.staged));
  std::vector<std::string> summed;
  for (size_t n = 1; n <= pipeline.size(); n++) {
    const int64_t products = products_in(result.staged.graph);
    result.staged = stage(Pipeline(pipeline.begin(), pipeline.begin() + std::ptrdiff_t(n)));
    const int64_t fewer = products - products_in(result.staged.graph);
    if (pipeline[n - 1].is_library && fewer > 0)
      summed.push_back(str("products of few rows that are sums in f32: ", fewer,
                           "; deterministic = true has them add up as products do"));
    Rung rung = climb(pipeline[n - 1].name, result.staged);
    rung.stage_milliseconds = result.staged.seconds.back().second * 1e3;
    result.exceptions = library_calls(result.staged);
    result.exceptions.insert(result.exceptions.begin(), summed.begin(), summed.end());
    if (!rung.outputs.empty()) check_bits(result.rungs[0], rung, result.exceptions.empty());
    result.rungs.push_back(std::move(rung));
  }
  return result;
}

Explanation climb_all(const Graph& graph, const Machine& machine, const Pipeline& pipeline,
                      const Climb& climb) {
  const auto stage = [&](const Pipeline& p) { return run_pipeline(p, graph, true, machine); };
  Explanation result = climb_all("eager", pipeline, stage, climb);
  result.name = graph.name;
  result.graph = graph;
  return result;
}

Explanation climb_all(const Program& program, Pipeline pipeline, const Climb& climb) {
  std::erase_if(pipeline, takes_graph);  // these never see a Program
  const auto stage = [&](const Pipeline& p) { return run_pipeline(p, program, true); };
  Explanation result = climb_all("as given", pipeline, stage, climb);
  result.name = program.name;
  return result;
}

Explanation climb_all(Tiles tiles, const Machine& machine, Pipeline pipeline,
                      const Climb& climb) {
  if (target_of(machine) != tiles.program.target)
    fail("tiles are for a ", tiles.program.target == Target::Cuda ? "GPU" : "CPU", ", which ",
         machine.name, " is not");
  tiles.program = for_machine(std::move(tiles.program), machine);
  std::erase_if(pipeline, [](const Stage& s) { return !std::holds_alternative<Emit>(s.run); });
  const auto stage = [&](const Pipeline& p) { return run_pipeline(p, tiles, true); };
  Explanation result = climb_all("as given", pipeline, stage, climb);
  result.name = tiles.program.name;
  result.of_tiles = true;
  return result;
}

// Runs and measures.
Climb climb_with(const std::vector<Tensor>& inputs, double seconds) {
  return [inputs, seconds](const std::string& stage, const Staged& staged) {
    return climb(stage, staged, inputs, seconds);
  };
}

std::string name_of(Device device) {
  const std::string machine = str(machine_on(device));
  return device == cpu ? machine : str(device.str(), ", ", machine);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      result += ' ';
    else
      result += c;
  }
  return result + "\"";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

struct KernelNotes {
  ScheduleFacts facts;
  std::vector<std::string> lines;
};

// Facts are of schedules: says so of a tile that was given and is another.
std::vector<KernelNotes> notes_of(const Explanation& e) {
  const Program& program = e.staged.program;
  const Tiles made = e.of_tiles ? lower_to_tiles(program) : Tiles();
  std::vector<KernelNotes> notes;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    if (!has_facts(program.kernels[k])) continue;
    const ScheduleFacts facts = facts_of(program, program.kernels[k]);
    notes.push_back({facts, lines(facts)});
    if (!e.of_tiles || e.staged.tiles.of_kernel[k] == made.of_kernel[k]) continue;
    notes.back().lines.push_back(e.staged.tiles.of_kernel[k]
                                     ? "tile: not the one that this schedule makes"
                                     : "tile: none; one thread does all rows");
  }
  return notes;
}

std::string text_of(const std::vector<KernelNotes>& notes) {
  std::string text;
  for (const KernelNotes& of_kernel : notes) {
    text += of_kernel.facts.kernel + "\n";
    for (const std::string& line : of_kernel.lines) text += "  " + line + "\n";
  }
  return text;
}

std::string json_of(const KernelNotes& notes) {
  const ScheduleFacts& f = notes.facts;
  std::string text =
      str("{\"name\": ", quoted(f.kernel), ", \"schedule\": ", quoted(str(f.schedule)),
          ", \"limit\": ", quoted(bound_of(f.estimate)),
          ", \"microseconds\": ", number(f.estimate.total()),
          ", \"floor_microseconds\": ", number(f.floor), ", \"bytes\": ", f.bytes,
          ", \"costly\": ", f.costly, ", \"quotients\": ", f.quotients);
  if (f.block)
    text += str(", \"blocks\": ", f.block->blocks, ", \"warps\": ", f.block->warps,
                ", \"shared_bytes\": ", f.block->shared,
                ", \"resident_blocks\": ", f.block->occupancy.blocks(),
                ", \"resident_by\": ", quoted(f.block->occupancy.limit()));
  std::vector<std::string> quoted_lines;
  for (const std::string& line : notes.lines) quoted_lines.push_back(quoted(line));
  return text + ", \"lines\": [" + join(quoted_lines, ", ") + "]}";
}

}  // namespace

std::vector<InputSlot> input_slots(const Graph& graph) {
  std::vector<InputSlot> slots;
  for (int id : graph.inputs()) {
    const Attr* strides = graph[id].find(Key::strides);
    slots.push_back({graph[id].name, graph[id].type, strides ? strides->values : Shape()});
  }
  return slots;
}

std::vector<InputSlot> input_slots(const Program& program) {
  std::vector<InputSlot> slots;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role == Role::Input) slots.push_back({buffer.name, buffer.type, buffer.strides});
  }
  return slots;
}

Device device_of(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.device() != cpu) return tensor.device();
  }
  return cpu;
}

Explanation explain(const Graph& graph, std::span<const Tensor> given, const Pipeline& pipeline,
                    double seconds) {
  const std::vector<Tensor> inputs = laid_out("graph " + graph.name, input_slots(graph), given);
  const Device device = device_of(inputs);
  Explanation result =
      climb_all(graph, machine_on(device), pipeline, climb_with(inputs, seconds));
  result.ran_on = name_of(device);
  return result;
}

Explanation explain(Program program, std::span<const Tensor> given, const Pipeline& pipeline,
                    double seconds) {
  const std::vector<Tensor> inputs =
      laid_out("program " + program.name, input_slots(program), given);
  const Device device = device_of(inputs);
  Explanation result =
      climb_all(on_device(std::move(program), device), pipeline, climb_with(inputs, seconds));
  result.ran_on = name_of(device);
  return result;
}

Explanation explain(const Tiles& tiles, std::span<const Tensor> given, const Pipeline& pipeline,
                    double seconds) {
  const std::vector<Tensor> inputs =
      laid_out("program " + tiles.program.name, input_slots(tiles.program), given);
  const Device device = device_of(inputs);
  const Machine machine = on_device(tiles.program, device).machine;
  Explanation result = climb_all(tiles, machine, pipeline, climb_with(inputs, seconds));
  result.ran_on = name_of(device);
  return result;
}

Explanation explain_for(const Graph& graph, const Machine& machine, const Pipeline& pipeline) {
  return climb_all(graph, machine, pipeline, priced);
}

Explanation explain_for(const Program& program, const Machine& machine,
                        const Pipeline& pipeline) {
  return climb_all(for_machine(program, machine), pipeline, priced);
}

Explanation explain_for(const Tiles& tiles, const Machine& machine, const Pipeline& pipeline) {
  return climb_all(tiles, machine, pipeline, priced);
}

std::string Explanation::machine() const {
  const std::string made_for = tiny_compile::str(staged.program.machine);
  if (ran_on.ends_with(made_for)) return "made for and run on " + ran_on;
  return "made for " + made_for +
         (ran_on.empty() ? "; nothing was run, times are the model's" : ", run on " + ran_on);
}

std::string Explanation::ladder() const {
  char line[160];
  std::string text = "stage          launches    bytes MB         ms      GB/s   compile ms\n";
  for (const Rung& rung : rungs) {
    std::snprintf(line, sizeof line, "%-14s %8lld %11.3f %10.4f %9.2f %12.1f\n",
                  rung.stage.c_str(), static_cast<long long>(rung.launches),
                  static_cast<double>(rung.bytes) * 1e-6, rung.milliseconds,
                  rung.gigabytes_per_second(), rung.compile_milliseconds);
    text += line;
  }
  return text;
}

std::string Explanation::str() const {
  const char* const title = ran_on.empty() ? "by the model" : "same bits on every rung";
  std::string text =
      "== " + name + ": the ladder (" + title + ")\n" + ladder() + "\n" + machine() + "\n";
  text += "\n== kernels kept apart\n";
  for (const std::string& refusal : staged.program.refusals) text += refusal + "\n";
  if (staged.program.refusals.empty()) text += "none\n";
  text += "\n== schedules\n";
  for (const std::string& line : explain_schedules(staged.program)) text += line + "\n";
  text += "\n== who owns what, and the limit\n" + text_of(notes_of(*this));
  text += "\n== exceptions to the numeric contract\n";
  for (const std::string& exception : exceptions) text += exception + "\n";
  if (exceptions.empty()) text += "none\n";
  if (!graph.nodes.empty())
    text += "\n== graph, as traced\n" + print(graph) + "\n== graph, after the passes\n" +
            print(staged.graph);
  text += "\n== program\n" + (of_tiles ? print(staged.tiles) : print(staged.program));
  return text + "\n== source\n" + staged.source.text;
}

std::string Explanation::json() const {
  std::string text = "{\"name\": " + quoted(name) +
                     ", \"machine\": " + quoted(tiny_compile::str(staged.program.machine)) +
                     ", \"ran_on\": " + quoted(ran_on) + ", \"stages\": [";
  for (size_t k = 0; k < rungs.size(); k++) {
    const Rung& r = rungs[k];
    text += tiny_compile::str(
        k ? ", " : "", "{\"stage\": ", quoted(r.stage), ", \"launches\": ", r.launches,
        ", \"bytes\": ", r.bytes, ", \"milliseconds\": ", number(r.milliseconds),
        ", \"stage_milliseconds\": ", number(r.stage_milliseconds),
        ", \"compile_milliseconds\": ", number(r.compile_milliseconds), "}");
  }
  text += "], \"refusals\": [";
  for (size_t k = 0; k < staged.program.refusals.size(); k++)
    text += (k ? ", " : "") + quoted(staged.program.refusals[k]);
  text += "], \"schedules\": [";
  const std::vector<std::string> schedules = explain_schedules(staged.program);
  for (size_t k = 0; k < schedules.size(); k++) text += (k ? ", " : "") + quoted(schedules[k]);
  text += "], \"kernels\": [";
  std::vector<std::string> kernels;
  for (const KernelNotes& notes : notes_of(*this)) kernels.push_back(json_of(notes));
  text += join(kernels, ", ") + "], \"exceptions\": [";
  for (size_t k = 0; k < exceptions.size(); k++)
    text += (k ? ", " : "") + quoted(exceptions[k]);
  return text + "]}\n";
}

}  // namespace tiny_compile
