// What does a text hold, and what is it for? The first word that is no comment says whether it is a
// graph or a program; behind a program there may be tiles.
//
//   "# softmax\nprogram f on cuda {...}"   =>   a program, for h200
#include "tiny_compile/cli/subject.h"

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/cli/inputs.h"
#include "tiny_compile/graph/sizes.h"

namespace tiny_compile {
namespace {

Tiles with_machine(Tiles tiles, const Machine& machine) {
  if (target_of(machine) != tiles.program.target)
    fail(tiles.program.target == Target::Cuda
             ? "tiles are for a GPU: give --target=cuda, or --backend=cuda to run them"
             : "tiles are for a CPU: give --target=cpp, or --backend=cpp to run them");
  tiles.program = for_machine(std::move(tiles.program), machine);
  return tiles;
}

}  // namespace

Staged Subject::staged(const Pipeline& pipeline, const Machine& machine) const {
  if (tiles) return run_pipeline(pipeline, with_machine(*tiles, machine), true);
  return is_program ? run_pipeline(pipeline, for_machine(program, machine), true)
                    : run_pipeline(pipeline, graph, true, machine);
}

std::string text_of(const Arguments& arguments) {
  return arguments.file == "-" ? read_text(*arguments.input, "the standard input")
                               : read_text(arguments.file);
}

Subject parse_subject(const Arguments& arguments, const std::string& text) {
  size_t start = text.find_first_not_of(" \t\r\n");
  while (start != std::string::npos && text[start] == '#')
    start = text.find_first_not_of(" \t\r\n", text.find('\n', start));
  Subject subject;
  try {
    subject.is_program = start != std::string::npos && text.compare(start, 7, "program") == 0;
    if (subject.is_program && holds_tile(text)) subject.tiles = parse_tiles(text);
    if (subject.is_program)
      subject.program = subject.tiles ? subject.tiles->program : parse_program(text);
    else
      subject.graph = parse_graph(text);
  } catch (const Error& error) {
    fail(arguments.file, ":", error.what());
  }
  const Substitution numbers = bind_sizes(subject.sizes(), arguments.sizes);
  subject.graph = substitute(subject.graph, numbers);
  subject.program = substitute(subject.program, numbers);
  if (!numbers.empty() && subject.is_program) verify_for(numbers, subject.program);
  if (!numbers.empty() && !subject.is_program) verify_for(numbers, subject.graph);
  subject.text = text;
  subject.start = start;
  return subject;
}

Subject parse_subject(const Arguments& arguments) {
  return parse_subject(arguments, text_of(arguments));
}

void require_numbers(const Arguments& arguments, const Subject& subject) {
  const std::string kind = arguments.kind.empty() ? "" : " " + arguments.kind;
  require_numbers(subject.sizes(), "tc " + arguments.command + kind, arguments.file,
                  subject.text, subject.start);
}

}  // namespace tiny_compile
