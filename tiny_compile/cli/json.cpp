// What does a record say? A reader of JSON that keeps numbers as they are written.
//
//   {"rows": [{"row": "mse", "ms": 1.50}]}   =>   find("rows")->members[0].find("ms")->text "1.50"
#include "tiny_compile/cli/json.h"

#include <cctype>
#include <cstdlib>
#include <string_view>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr int kDeepest = 200;

class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json read(int depth = 0) {
    if (depth > kDeepest) fail("JSON nests more than ", kDeepest, " deep");
    Json value;
    const char open = peek();
    if (open == '{' || open == '[') {
      read_members(value, open == '{', open == '{' ? '}' : ']', depth);
    } else if (open == '"') {
      value.text = read_string();
    } else {
      while (at_ < text_.size() &&
             std::string_view(",:]} \n\t\r").find(text_[at_]) == std::string_view::npos)
        value.text += text_[at_++];
      if (value.text.empty()) fail("not JSON: '", open, "' at character ", at_);
    }
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) at_++;
    if (at_ >= text_.size()) fail("the record ends early: it is not whole JSON");
    return text_[at_];
  }

  std::string read_string() {
    std::string result;
    for (at_++; at_ < text_.size() && text_[at_] != '"'; at_++) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) at_++;
      result += text_[at_];
    }
    at_++;
    return result;
  }

  void read_members(Json& value, bool named, char close, int depth) {
    at_++;
    while (peek() != close) {
      std::string name;
      if (named) {
        if (peek() != '"') fail("not JSON: a member without a name at character ", at_);
        name = read_string();
        if (peek() != ':') fail("not JSON: no ':' at character ", at_);
        at_++;
      }
      value.names.push_back(name);
      value.members.push_back(read(depth + 1));
      if (peek() == ',') at_++;
    }
    at_++;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

const Json* Json::find(const std::string& dotted) const {
  const size_t dot = dotted.find('.');
  for (size_t i = 0; i < names.size(); i++) {
    if (names[i] != dotted.substr(0, dot)) continue;
    return dot == dotted.npos ? &members[i] : members[i].find(dotted.substr(dot + 1));
  }
  return nullptr;
}

double Json::number(const std::string& dotted, double otherwise) const {
  const Json* value = find(dotted);
  if (!value) return otherwise;
  char* end = nullptr;
  const double number = std::strtod(value->text.c_str(), &end);
  return end == value->text.c_str() ? otherwise : number;
}

Json parse_json(const std::string& text) { return JsonReader(text).read(); }

}  // namespace tiny_compile
