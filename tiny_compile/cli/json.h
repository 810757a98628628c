// JSON, read: records of measurements and what tc explain --json says.
#pragma once

#include <string>
#include <vector>

namespace tiny_compile {

struct Json {
  std::string text;                // of a number, as written; of a string, true, false, null
  std::vector<std::string> names;  // of an object's members; of an array's elements, ""
  std::vector<Json> members;

  const Json* find(const std::string& dotted) const;  // "tiny_compile.ms"; null: not there
  double number(const std::string& dotted, double otherwise) const;  // also of null
};

// Throws tc::Error where the text ends early.
Json parse_json(const std::string& text);

}  // namespace tiny_compile
