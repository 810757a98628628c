// Reading IR text: what the parsers of Graph and Program share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/expr.h"

namespace tiny_compile {

using DeclaredSizes = std::map<std::string, Expr, std::less<>>;

// A position in a text, and the small steps that move it. Errors throw through fail_in_text.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  [[noreturn]] void error(size_t position, const std::string& message) const {
    fail_in_text(text_, position, message);
  }
  bool at_end() const { return at_ >= text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[at_] == c; }
  void skip_blanks();  // within a line
  void skip_space();   // lines and comments as well
  bool accept(char c);
  void expect(char c, const char* after);
  bool accept_word(std::string_view wanted);  // the next word, if it is this one
  std::string_view word();  // letters, digits, '_' and '.'; "" where there is none
  std::string identifier(const char* what);
  int64_t number();
  DeclaredSizes sizes();  // "[n: 2..4096, m: 0..16]", or nothing
  std::string_view
  comment();        // "# mlp.cpp:14" up to the end of the line; "" where there is none
  void end_line();  // only blanks or a comment may follow

 protected:
  std::string_view text_;
  size_t at_ = 0;

 private:
  Expr declared_size();
};

// Letters, digits, '_' and '.'; first a letter or '_'.
bool is_identifier(std::string_view text);

// "mlp.cpp:14" => {mlp.cpp, 14}; "fuse" => {fuse, 0}; several words are a remark, no place.
Location place_of(std::string_view comment);

// "; did you mean 'add'?", or "" where no name is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace tiny_compile
