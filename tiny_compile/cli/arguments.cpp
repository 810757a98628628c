// What did the user ask tc for? One table of options: what each means, and in which commands.
//
//   {"run", "soft.graph", "--seed=7"}  ->  command run, file soft.graph, seed 7
#include "tiny_compile/cli/arguments.h"

#include <algorithm>
#include <cstdlib>

#include "tiny_compile/cli/inputs.h"

namespace tiny_compile {
namespace {

constexpr const char* kCommands =
    R"(tc print|verify|run|emit|explain|bench|tune FILE  FILE: text of a graph, program or tiles; - reads stdin
tc picture KIND [FILE]                          graph passes memory layout roofline tree; of the
                                                demo's function where there is no FILE
tc bisect A B [--graph=FILE]                    where two lists of stages, dumps or tcs part:
                                                tc bisect --help
tc ops                                          the op reference
)";

// An option, and the commands and kinds of pictures in which it has an effect.
struct Option {
  const char *name, *value, *takers, *meaning;
};

constexpr const char kStaged[] = "print run emit explain bench graph passes memory roofline";
constexpr Option kOptions[] = {
    {"size", " n=37",
     "print verify run emit explain bench tune graph passes memory layout roofline",
     "a number for a symbolic size; may be repeated"},
    {"symbolic", "", "run", "compiled for any sizes; those of --size are this call's"},
    {"until", "=STAGE", kStaged,
     "stop after simplify fold cse dce lower fuse fold_columns schedule plan_memory tile emit"},
    {"passes", "=a,b,c", kStaged, "only these stages (lower, tile and emit are implied)"},
    {"target", "=cpp|cuda", "print emit layout", "for which back end (cpp; layout: cuda)"},
    {"machine", "=h200|a100|cpu:16", "print run emit explain bench layout",
     "for which: also h100, rtx4090, cpu:N, or a name and its numbers; explain: by the model"},
    {"matmul", "=generated|library|tf32", "run explain bench tune",
     "whose matmuls on cuda: kernels with the CPU's bits, or cuBLASLt (generated)"},
    {"backend", "=cpp|cuda|eager|interpreter", "run explain bench tune",
     "who computes (interpreter: of run alone; tune: cpp and cuda)"},
    {"seed", "=N", "run explain bench", "inputs are drawn from N(0, 1) or small integers (1)"},
    {"in", " FILE.npy", "run explain bench", "an input, in order; may be repeated"},
    {"calls", "=N", "run",
     "call it so often (1) and take the last results; a GPU replays the third call"},
    {"carry", "=1:0,2:1", "run", "output 1 of a call is the next one's input 0, ..."},
    {"out", " DIR", "run tune", "write outputs as DIR/0.npy, ...; tune: DIR/NAME.program"},
    {"seconds", "=N", "tune", "for all kernels together, about (10)"},
    {"against", "=interpreter", "run",
     "compare; exits with 2 and names the first element that differs"},
    {"json", "", "explain bench", "as JSON"},
    {"format", "=svg|mermaid|dot", "graph passes memory layout roofline tree",
     "the last four: svg alone"},
    {"kernel", "=NAME", "layout", "of this kernel alone"},
    {"length", "=N", "tree", "of a sum of N elements (11)"},
    {"roof", "=GB/s,Gop/s", "roofline",
     "the machine (4800,67000: an H200); FILE may be a record"},
};

const Option& find_option(const std::string& name) {
  for (const Option& option : kOptions) {
    if (option.name == name) return option;
  }
  fail("no option --", name, "\n", usage());
}

void check_kind(const std::string& kind) {
  for (const char* known : {"graph", "passes", "memory", "layout", "roofline", "tree"}) {
    if (kind == known) return;
  }
  fail("no picture '", kind, "': there are graph, passes, memory, layout, roofline and tree");
}

}  // namespace

std::string usage() {
  std::string text = kCommands;
  const char* takers = "";
  for (const Option& option : kOptions) {
    if (std::string(takers) != option.takers) text += str("\n  ", option.takers, "\n");
    takers = option.takers;
    std::string line = str("    --", option.name, option.value);
    line.resize(std::max<size_t>(line.size() + 2, 24), ' ');
    text += line + option.meaning + "\n";
  }
  return text;
}

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments result;
  for (size_t i = 0; i < words.size(); i++) {
    const std::string& word = words[i];
    if (word.rfind("--", 0) != 0) {
      const bool is_kind = result.command == "picture" && result.kind.empty();
      (result.command.empty() ? result.command : is_kind ? result.kind : result.file) = word;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    find_option(name);
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (equals == std::string::npos && name != "json" && name != "symbolic") {
      if (i + 1 == words.size()) fail("--", name, " needs a value");
      value = words[++i];
    }
    if (name == "in") result.in.push_back(value);
    if (name == "size") result.sizes.push_back(size_value(value));
    result.options[name] = value;
  }
  if (result.command.empty()) fail(usage());
  if (result.command == "picture" && result.kind.empty())
    fail("tc picture needs a KIND: graph, passes, memory, layout, roofline or tree\n", usage());
  if (result.file.empty() && result.command != "ops" && result.command != "picture")
    fail("tc ", result.command, " needs a FILE\n", usage());
  return result;
}

void check_options(const Arguments& arguments) {
  const bool picture = arguments.command == "picture";
  if (picture) check_kind(arguments.kind);
  const std::string taker = picture ? arguments.kind : arguments.command;
  for (const auto& [name, value] : arguments.options) {
    const std::string takers = find_option(name).takers;
    if (str(" ", takers, " ").find(str(" ", taker, " ")) == std::string::npos)
      fail("--", name, " has no effect in tc ", picture ? "picture " : "", taker, ", but in ",
           takers, name == "target" ? "; who runs it: --backend" : "");
  }
}

uint64_t number_option(const Arguments& arguments, const std::string& name) {
  const std::string text = arguments.option(name, "1");
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
    fail("--", name, "=", text, " is no number");
  return std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace tiny_compile
