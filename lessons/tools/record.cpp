// How does a dated record become a table? A reader of JSON that keeps numbers as they are written,
// then one line of Markdown a row.
#include "lessons/tools/record.h"

#include <cctype>
#include <sstream>
#include <vector>

#include "tiny_compile/base/error.h"

namespace tiny_compile::lessons {
namespace {

struct Json {
  std::string text;                // of a number, a string, true, null
  std::vector<std::string> names;  // of an object's members; of an array's elements, ""
  std::vector<Json> members;

  const Json* find(const std::string& dotted) const {
    const size_t dot = dotted.find('.');
    for (size_t i = 0; i < names.size(); i++) {
      if (names[i] != dotted.substr(0, dot)) continue;
      return dot == dotted.npos ? &members[i] : members[i].find(dotted.substr(dot + 1));
    }
    return nullptr;
  }
};

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read() {
    Json value;
    const char open = peek();
    if (open == '{' || open == '[') {
      read_members(value, open == '{', open == '{' ? '}' : ']');
    } else if (open == '"') {
      value.text = read_string();
    } else {
      while (at_ < text_.size() &&
             std::string_view(",]} \n\t\r").find(text_[at_]) == std::string_view::npos)
        value.text += text_[at_++];
    }
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) at_++;
    if (at_ == text_.size()) fail("the record ends early: it is not whole JSON");
    return text_[at_];
  }
  std::string read_string() {
    std::string result;
    for (at_++; at_ < text_.size() && text_[at_] != '"'; at_++) {
      if (text_[at_] == '\\') at_++;
      result += text_[at_];
    }
    at_++;
    return result;
  }
  void read_members(Json& value, bool named, char close) {
    at_++;
    while (peek() != close) {
      std::string name;
      if (named) {
        name = read_string();
        peek();
        at_++;  // the colon
      }
      value.names.push_back(name);
      value.members.push_back(read());
      if (peek() == ',') at_++;
    }
    at_++;
  }

  const std::string& text_;
  size_t at_ = 0;
};

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
  const Json record = JsonReader(json).read();
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
