// What a command is about: the graph, program or tiles that its FILE holds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tiny_compile/cli/arguments.h"
#include "tiny_compile/compile/pipeline.h"

namespace tiny_compile {

// A graph, or a program, and what the pipeline made of it.
struct Subject {
  bool is_program = false;
  Graph graph;
  Program program;
  std::optional<Tiles> tiles;  // of the program, where the text holds some
  std::string text;
  size_t start = 0;  // of the graph or program in it

  std::vector<Expr> sizes() const {
    return is_program ? tiny_compile::sizes(program) : symbols(graph);
  }

  // What it is for where nobody says: a program's text does.
  Machine machine(Target target) const {
    const bool says = is_program && (target == Target::Cpp || program.target == target);
    return says ? program.machine : default_machine(target);
  }

  Staged staged(const Pipeline& pipeline) const {
    return staged(pipeline, machine(Target::Cpp));
  }
  Staged staged(const Pipeline& pipeline, const Machine& machine) const;
};

std::string text_of(const Arguments& arguments);  // of FILE, or of the standard input

// With numbers for the sizes that --size gives. Throws tc::Error with file, line and column.
Subject parse_subject(const Arguments& arguments, const std::string& text);
Subject parse_subject(const Arguments& arguments);

// What kernels are generated for and run with are numbers; tc::Error where a size is none.
void require_numbers(const Arguments& arguments, const Subject& subject);

}  // namespace tiny_compile
