// How does the compiler look from the command line? As commands on the text of
// graphs and programs.
//
//   tc run softmax.graph --against=interpreter
//
// Exit codes: 0 right, 1 the user's mistake, 2 other bits.
#include "tiny_compile/cli/commands.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/base/output_file.h"
#include "tiny_compile/cli/arguments.h"
#include "tiny_compile/cli/bisect.h"
#include "tiny_compile/cli/charts.h"
#include "tiny_compile/cli/demo_model.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/cli/layout_picture.h"
#include "tiny_compile/cli/picture.h"
#include "tiny_compile/cli/subject.h"
#include "tiny_compile/cli/tree_picture.h"
#include "tiny_compile/cli/tune.h"
#include "tiny_compile/compile/bad_index.h"
#include "tiny_compile/compile/call_record.h"
#include "tiny_compile/compile/explain.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/graph/op_reference.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tensor/npy.h"
#include "tiny_compile/tile/interpreter.h"

namespace tiny_compile {
namespace {

constexpr int kUsersMistake = 1, kDiffers = 2;  // exit codes beside 0

Matmul matmul_of(const Arguments& arguments) {
  const std::string whose = arguments.option("matmul", "generated");
  if (arguments.options.count("matmul") && arguments.option("backend", "cpp") != "cuda")
    fail("--matmul chooses among those of --backend=cuda; other back ends generate theirs");
  if (whose == "generated") return Matmul::Generated;
  if (whose == "library") return Matmul::Library;
  if (whose == "tf32") return Matmul::LibraryTf32;
  fail("no matmul '", whose, "': there are generated, library and tf32");
}

Pipeline pipeline_of(const Arguments& arguments) {
  Pipeline pipeline = with_library(default_pipeline(), matmul_of(arguments));
  if (arguments.option("backend", "cpp") == "eager") return {};
  if (arguments.options.count("passes")) {
    Pipeline chosen;
    std::istringstream names(arguments.option("passes", ""));
    for (std::string name; std::getline(names, name, ',');)
      chosen.push_back(until(pipeline, name).back());
    return chosen;
  }
  return arguments.options.count("until") ? until(pipeline, arguments.option("until", ""))
                                          : pipeline;
}

Device device_of(const Arguments& arguments) {
  const std::string backend = arguments.option("backend", "cpp");
  if (backend != "cpp" && backend != "cuda" && backend != "eager")
    fail("no backend '", backend, "': there are cpp, cuda, eager and, of run, interpreter");
  return backend == "cuda" ? cuda : cpu;
}

// As asked for; it must be one of the target that the other option names.
Machine machine_option(const Arguments& arguments, const char* other, Target target) {
  const Machine machine = parse_machine(arguments.option("machine", ""));
  const bool gpu = target_of(machine) == Target::Cuda;
  if (target_of(machine) != target)
    fail("--machine=", machine.name, " is a ", gpu ? "GPU" : "CPU", ": it needs --", other, "=",
         gpu ? "cuda" : "cpp");
  return machine;
}

std::vector<Tensor> inputs_of(const Arguments& arguments, const Subject& subject) {
  const uint64_t number = number_option(arguments, "seed");
  std::vector<Tensor> given;
  for (const std::string& path : arguments.in) given.push_back(load_npy(path));
  return subject.is_program ? seeded_inputs(subject.program, number, given)
                            : seeded_inputs(subject.graph, number, given);
}

using Call = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

// So many calls as are asked for, each with what the one before hands on; the last results.
std::vector<Tensor> repeated(const Arguments& arguments, std::vector<Tensor> inputs,
                             const Call& call) {
  const uint64_t calls = number_option(arguments, "calls");
  if (calls == 0) fail("--calls=0 leaves no result");
  const Carry carry = carry_of(arguments.option("carry", ""));
  std::vector<Tensor> outputs;
  for (uint64_t number = 0; number < calls; number++) {
    if (number > 0) inputs = carried(carry, inputs, outputs);
    outputs.clear();  // the next call finds their addresses free, and can be a replay
    outputs = call(inputs);
  }
  return outputs;
}

std::vector<Tensor> reference(const Subject& subject, std::span<const Tensor> inputs) {
  return subject.is_program ? interpret(subject.program, inputs)
                            : interpret(subject.graph, inputs);
}

// What TC_DEBUG_CALLS writes down: calls of graphs.
Call recorded(const Subject& subject, const Call& call) {
  if (subject.is_program) return call;
  return [&subject, call](std::span<const Tensor> inputs) {
    CallRecord record(subject.graph, inputs);
    return record.end(call(inputs));
  };
}

// Calls of what is built, which leave the inputs as they are, also those that the program may
// write over.
Call keeping_inputs(const Program& program, const Built& built) {
  std::vector<bool> donated;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role == Role::Input) donated.push_back(buffer.donated);
  }
  return [donated, run = built.run](std::span<const Tensor> inputs) {
    std::vector<Tensor> given(inputs.begin(), inputs.end());
    for (size_t k = 0; k < given.size(); k++) {
      if (donated[k]) given[k] = copy_to(contiguous_copy(given[k]), given[k].device());
    }
    return run(given);
  };
}

// The one asked for, the one that the text is for, or the device's.
Machine machine_of(const Arguments& arguments, const Subject& subject, Device device) {
  if (arguments.options.count("machine"))
    return machine_option(arguments, "backend", target_of(device));
  if (device == cpu) return subject.machine(Target::Cpp);
  return subject.is_program ? on_device(subject.program, device).machine : machine_on(device);
}

// What is compiled: with --symbolic, for any sizes.
Staged staged_for(const Arguments& arguments, const Subject& subject, const Pipeline& pipeline,
                  const Machine& machine) {
  if (!arguments.options.count("symbolic")) return subject.staged(pipeline, machine);
  Arguments any = arguments;
  any.sizes.clear();
  return parse_subject(any, subject.text).staged(pipeline, machine);
}

std::vector<Tensor> compute(const Arguments& arguments, const Subject& subject,
                            const std::vector<Tensor>& inputs) {
  if (arguments.option("backend", "cpp") == "interpreter")
    return repeated(arguments, inputs, recorded(subject, [&](std::span<const Tensor> given) {
                      return subject.tiles ? interpret(*subject.tiles, given)
                                           : reference(subject, given);
                    }));
  const Device device = device_of(arguments);
  const Pipeline pipeline = pipeline_of(arguments);
  Staged staged =
      staged_for(arguments, subject, pipeline, machine_of(arguments, subject, device));
  if (!subject.is_program) staged = recordable(std::move(staged));
  std::vector<Tensor> there;
  for (const Tensor& input : inputs) there.push_back(copy_to(input, device));
  const Built built = build(staged.program, staged.source, device.index);
  try {
    std::vector<Tensor> outputs =
        repeated(arguments, there, recorded(subject, keeping_inputs(staged.program, built)));
    for (Tensor& output : outputs) output = copy_to(output, cpu);
    return outputs;
  } catch (const IndexError&) {
    if (subject.is_program) throw;
    rethrow_index_error(subject.graph, subject.graph.name, inputs);
  }
}

int run(const Arguments& arguments, std::ostream& out) {
  const Subject subject = parse_subject(arguments);
  require_numbers(arguments, subject);
  const std::vector<Tensor> inputs = inputs_of(arguments, subject);
  const std::vector<Tensor> outputs = compute(arguments, subject, inputs);
  for (size_t k = 0; k < outputs.size(); k++) out << summary(k, outputs[k]) << "\n";
  const std::string directory = arguments.option("out", "");
  for (size_t k = 0; k < outputs.size() && !directory.empty(); k++) {
    mkdir(directory.c_str(), 0777);
    save_npy(directory + "/" + std::to_string(k) + ".npy", outputs[k]);
  }
  const std::string against = arguments.option("against", "");
  if (against.empty()) return 0;
  if (against != "interpreter")
    fail("--against=", against, ": only the interpreter is a reference");
  const std::vector<Tensor> wanted =
      repeated(arguments, inputs,
               [&](std::span<const Tensor> given) { return reference(subject, given); });
  for (size_t k = 0; k < outputs.size(); k++) {
    const std::optional<int64_t> at = first_difference(wanted[k], outputs[k]);
    if (!at) continue;
    out << "output " << k << " differs from the interpreter's, first at element " << *at << ": "
        << element_difference(wanted[k], outputs[k], *at) << "\n";
    return kDiffers;
  }
  out << "the same bits as the interpreter's\n";
  return 0;
}

Target target_option(const Arguments& arguments) {
  const std::string target = arguments.option("target", "cpp");
  if (target != "cpp" && target != "cuda")
    fail("no target '", target, "': there are cpp and cuda");
  return target == "cpp" ? Target::Cpp : Target::Cuda;
}

Machine machine_of(const Arguments& arguments, const Subject& subject) {
  if (!arguments.options.count("machine")) return subject.machine(target_option(arguments));
  const bool says = arguments.options.count("target") > 0;
  return says ? machine_option(arguments, "target", target_option(arguments))
              : parse_machine(arguments.option("machine", ""));
}

int emit(const Arguments& arguments, std::ostream& out) {
  target_option(arguments);
  const Subject subject = parse_subject(arguments);
  const Machine machine = machine_of(arguments, subject);
  out << subject.staged(pipeline_of(arguments), machine).source.text;
  return 0;
}

int print_text(const Arguments& arguments, std::ostream& out) {
  const Subject subject = parse_subject(arguments);
  if (!arguments.options.count("until") && !arguments.options.count("passes")) {
    out << (subject.tiles        ? print(*subject.tiles)
            : subject.is_program ? print(subject.program)
                                 : print(subject.graph));
    return 0;
  }
  const Pipeline pipeline = pipeline_of(arguments);
  const Staged staged = subject.staged(pipeline, machine_of(arguments, subject));
  const bool is_graph =
      !pipeline.empty() && std::holds_alternative<GraphPass>(pipeline.back().run);
  const bool is_tiled =
      !pipeline.empty() && std::holds_alternative<Tiling>(pipeline.back().run);
  out << (is_graph   ? print(staged.graph)
          : is_tiled ? print(staged.tiles)
                     : print(staged.program));
  return 0;
}

// Times of one machine under another's name would mislead.
void require_here(const Machine& machine, Device device) {
  const Machine here = machine_on(device);
  if (device == cpu ? machine.cores == here.cores : machine == here) return;
  fail("tc bench measures, and --machine=", machine.name, " is not what runs it here, ",
       str(here), ": tc explain --machine says what the model expects there");
}

// For a machine that need not be here.
Explanation predicted(const Arguments& arguments, const Subject& subject) {
  for (const char* name : {"seed", "in"}) {
    if (arguments.options.count(name))
      fail("--", name, " has no effect in tc explain --machine, which runs nothing");
  }
  const Machine machine = arguments.options.count("backend")
                              ? machine_of(arguments, subject, device_of(arguments))
                              : parse_machine(arguments.option("machine", ""));
  const Pipeline pipeline = pipeline_of(arguments);
  if (subject.tiles) return explain_for(*subject.tiles, machine, pipeline);
  return subject.is_program ? explain_for(subject.program, machine, pipeline)
                            : explain_for(subject.graph, machine, pipeline);
}

Explanation measured(const Arguments& arguments, const Subject& subject) {
  const bool on_gpu = subject.tiles && !arguments.options.count("backend");
  const Device device = on_gpu ? cuda : device_of(arguments);
  if (arguments.options.count("machine"))
    require_here(machine_of(arguments, subject, device), device);
  std::vector<Tensor> inputs = inputs_of(arguments, subject);
  for (Tensor& input : inputs) input = copy_to(input, device);
  const Pipeline pipeline = pipeline_of(arguments);
  if (subject.tiles) return explain(*subject.tiles, inputs, pipeline);
  return subject.is_program ? explain(subject.program, inputs, pipeline)
                            : explain(subject.graph, inputs, pipeline);
}

int explain_text(const Arguments& arguments, std::ostream& out) {
  const Subject subject = parse_subject(arguments);
  require_numbers(arguments, subject);
  const bool predicts = arguments.command == "explain" && arguments.options.count("machine");
  const Explanation e = predicts ? predicted(arguments, subject) : measured(arguments, subject);
  const bool json = arguments.options.count("json") > 0;
  out << (json ? e.json() : arguments.command == "bench" ? e.ladder() : e.str());
  return 0;
}

// The program with each kernel's fastest schedule; what came of each stands before it.
int tune_text(const Arguments& arguments, std::ostream& out) {
  const Subject subject = parse_subject(arguments);
  require_numbers(arguments, subject);
  if (arguments.option("backend", "cpp") == "eager") fail("tc tune is for cpp and cuda");
  const Device device = device_of(arguments);
  const Pipeline pipeline = until(pipeline_of(arguments), "schedule");
  const uint64_t seconds =
      arguments.options.count("seconds") ? number_option(arguments, "seconds") : 10;
  const Program program =
      subject.staged(pipeline, machine_of(arguments, subject, device)).program;
  const std::string text = tuned_text(program, device, static_cast<double>(seconds));
  out << text;
  const std::string directory = arguments.option("out", "");
  if (directory.empty()) return 0;
  mkdir(directory.c_str(), 0777);
  write_whole(directory + "/" + program.name + ".program", {text});
  return 0;
}

// Pictures ---------------------------------------------------------------------------------------

// The file's text, or the demo's graph.
std::string text_of_picture(const Arguments& arguments) {
  return arguments.file.empty() ? print(demo_graph()) : text_of(arguments);
}

std::string roofline_of(const Arguments& arguments, const std::string& text) {
  Roof roof;
  if (arguments.options.count("roof")) roof = parse_roof(arguments.option("roof", ""));
  if (text.find_first_not_of(" \t\r\n") != std::string::npos &&
      text[text.find_first_not_of(" \t\r\n")] == '{') {
    const Json record = parse_json(text);
    const std::vector<Dot> dots = record_dots(record, roof);
    std::string title = "Roofline";
    for (const char* key : {"device", "cpu", "date", "commit"}) {
      if (record.find(key)) title += std::string(", ") + record.find(key)->text;
    }
    return roofline(dots, roof, title);
  }
  const Subject subject = parse_subject(arguments, text);
  require_numbers(arguments, subject);
  const Program before = subject.staged({}).program,
                after = subject.staged(pipeline_of(arguments)).program;
  std::vector<Dot> dots = kernel_dots(before, roof, true);
  for (const Dot& dot : kernel_dots(after, roof, false)) dots.push_back(dot);
  return roofline(
      dots, roof,
      after.name + ": the most that a machine allows each kernel, as traced (rings) and fused");
}

std::string tree_of(const Arguments& arguments) {
  const std::string length = arguments.option("length", "11");
  if (length.empty() || length.size() > 15 ||
      length.find_first_not_of("0123456789") != std::string::npos)
    fail("--length=", length, " is no number");
  return tree_picture(std::strtoll(length.c_str(), nullptr, 10));
}

// On a GPU where nobody says: there alone schedules have layouts.
std::string layouts_of_text(const Arguments& arguments, const Subject& subject) {
  const bool says = arguments.options.count("target") || arguments.options.count("machine");
  const Machine machine = says                 ? machine_of(arguments, subject)
                          : subject.is_program ? subject.program.machine
                                               : default_machine(Target::Cuda);
  const Staged staged = subject.staged(until(default_pipeline(), "plan_memory"), machine);
  return layout_picture(staged.program, arguments.option("kernel", ""));
}

std::vector<Drawing> drawings_of(const Arguments& arguments, const Subject& subject) {
  const Pipeline pipeline = pipeline_of(arguments);
  if (arguments.kind == "graph")
    return {subject.is_program ? fused_drawing(subject.program, pipeline)
                               : fused_drawing(subject.graph, pipeline)};
  if (subject.is_program) fail("picture passes needs a graph: a program is past its passes");
  return film_strip(subject.graph, pipeline);
}

int picture(const Arguments& arguments, std::ostream& out) {
  const std::string& kind = arguments.kind;
  const std::string format = arguments.option("format", "svg");
  const bool is_drawing = kind == "graph" || kind == "passes";
  if (!is_drawing && format != "svg") fail("picture ", kind, " is SVG only, not ", format);
  if (kind == "tree") {
    out << tree_of(arguments);
    return 0;
  }
  const std::string text = text_of_picture(arguments);
  if (kind == "roofline") {
    out << roofline_of(arguments, text);
    return 0;
  }
  const Subject subject = parse_subject(arguments, text);
  require_numbers(arguments, subject);
  out << (is_drawing         ? render(drawings_of(arguments, subject), format)
          : kind == "layout" ? layouts_of_text(arguments, subject)
                             : memory_chart(subject.staged(pipeline_of(arguments)).program));
  return 0;
}

int ops(const Arguments&, std::ostream& out) {
  out << op_reference() << "\nAny op that computes may have (again): computed anew.\n";
  return 0;
}

int verify_text(const Arguments& arguments, std::ostream& out) {
  parse_subject(arguments);
  out << arguments.file << ": right\n";
  return 0;
}

int dispatch(const Arguments& arguments, std::ostream& out) {
  static const std::map<std::string, int (*)(const Arguments&, std::ostream&)> commands = {
      {"ops", ops},
      {"print", print_text},
      {"verify", verify_text},
      {"picture", picture},
      {"run", run},
      {"emit", emit},
      {"explain", explain_text},
      {"bench", explain_text},
      {"tune", tune_text}};
  const auto command = commands.find(arguments.command);
  if (command == commands.end()) fail("no command '", arguments.command, "'\n", usage());
  check_options(arguments);
  return command->second(arguments, out);
}

bool asks_for_help(const std::vector<std::string>& words) {
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  return std::any_of(words.begin(), words.end(), asks) ||
         (!words.empty() && words[0] == "help");
}

}  // namespace

int run_tc(const std::vector<std::string>& words, std::istream& in, std::ostream& out,
           std::ostream& problems) {
  try {
    if (asks_for_help(words)) {
      out << (words[0] == "bisect" ? bisect_usage() : usage());
      return 0;
    }
    if (!words.empty() && words[0] == "bisect")
      return bisect_runs({words.begin() + 1, words.end()}, out);
    Arguments arguments = parse_arguments(words);
    arguments.input = &in;
    return dispatch(arguments, out);
  } catch (const OtherBits& error) {
    problems << error.what() << "\n";
    return kDiffers;
  } catch (const Error& error) {
    problems << error.what() << "\n";
  } catch (const std::exception& error) {
    problems << "out of memory or another failure of the system: " << error.what() << "\n";
  }
  return kUsersMistake;
}

}  // namespace tiny_compile
