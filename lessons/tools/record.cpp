// How does a dated record become a table? Each of its rows is a line of Markdown.
#include "lessons/tools/record.h"

#include <sstream>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/cli/json.h"

namespace tiny_compile::lessons {
namespace {

std::string cell(const Json& row, const std::string& field) {
  const Json* value = row.find(field);
  if (!value) fail("the record's row has no field '", field, "'");
  return value->text;
}

std::string heading(const Json& record) {
  std::string text = "Measured";
  const std::pair<const char*, const char*> parts[] = {{"date", " on "},
                                                       {"device", " on "},
                                                       {"cpu", " on "},
                                                       {"commit", ", commit "},
                                                       {"command", ", by `"}};
  for (const auto& [key, before] : parts) {
    const Json* value = record.find(key);
    if (value) text += before + value->text;
  }
  return text + (record.find("command") ? "`:" : ":");
}

}  // namespace

std::string render_record(const std::string& json, const std::string& argument) {
  const Json record = parse_json(json);
  std::istringstream words(argument.substr(argument.find('#') + 1));
  std::string row_name;
  words >> row_name;
  std::vector<std::string> fields;
  for (std::string field; std::getline(words >> std::ws, field, ',');) fields.push_back(field);
  const Json* rows = record.find("rows");
  if (!rows || fields.empty())
    fail("write FILE.json#row and the fields to show, with commas between them");
  std::string head = "|", line = "|", body;
  for (const std::string& field : fields) {
    head += " " + field + " |";
    line += "---|";
  }
  for (const Json& row : rows->members) {
    const Json* name = row.find("row") ? row.find("row") : row.find("name");
    if (row_name != "*" && (!name || name->text != row_name)) continue;
    body += "|";
    for (const std::string& field : fields) body += " " + cell(row, field) + " |";
    body += "\n";
  }
  if (body.empty()) fail("the record has no row '", row_name, "'");
  return heading(record) + "\n\n" + head + "\n" + line + "\n" + body + "\n";
}

}  // namespace tiny_compile::lessons
