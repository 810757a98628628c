// A definition in a C++ file, found by its name, so that lessons quote without markers in sources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tiny_compile::lessons {

// A function, type, variable, alias or macro at namespace or class scope.
struct Definition {
  std::string name;           // "cse", "Graph::append"; namespaces are left out
  size_t begin = 0, end = 0;  // bytes of the source, the comment directly above included
  bool has_body = false;      // not only declared
};

std::vector<Definition> find_definitions(std::string_view source);

// The text of one definition, without the indentation that all of its lines share. `name` is a
// name ("cse", "append"), the end of a qualified one ("Graph::append"), or the beginning of a
// signature where there are overloads ("print(const Graph& graph)"). Definitions with a body
// hide declarations. Throws tc::Error where none or more than one is left, naming what is there.
std::string quote(const std::string& path, const std::string& source, const std::string& name);

}  // namespace tiny_compile::lessons
