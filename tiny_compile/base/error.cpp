// Error messages with a place in them. fail_in_text("a b\nc d", 6, "no") throws
// "line 2, column 3: no" followed by the line and a caret below its column.
#include "tiny_compile/base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tiny_compile {

std::string Location::str() const {
  if (file.empty()) return "?";
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

std::string replace_all(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

void fail_at(const Location& where, const std::string& message) {
  throw Error(where.file.empty() ? message : where.str() + ": " + message);
}

void fail_in_text(std::string_view text, size_t position, const std::string& message) {
  position = std::min(position, text.size());
  const std::string_view before = text.substr(0, position);
  const size_t line_number =
      1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t newline = before.rfind('\n');
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  std::string line(text.substr(start, text.find('\n', position) - start));
  size_t column = position - start;
  constexpr size_t kMostShown = 160;  // a window of a very long line still holds the caret
  if (line.size() > kMostShown) {
    const size_t from = column > kMostShown / 2 ? column - kMostShown / 2 : 0;
    line = line.substr(from, kMostShown);
    column -= from;
  }
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  throw Error(tiny_compile::str("line ", line_number, ", column ", position - start + 1, ": ",
                                message, "\n  ", line, "\n  ", std::string(column, ' '), "^"));
}

std::string numbered_lines(const std::string& source, int64_t first, int64_t last,
                           int64_t marked) {
  std::istringstream lines(source);
  std::string line, text;
  for (int64_t number = 1; number <= last && std::getline(lines, line); number++) {
    if (number >= first) text += str(number == marked ? "> " : "  ", number, " | ", line, "\n");
  }
  return text;
}

namespace detail {

void check_failed(const char* file, int line, const char* condition,
                  const std::string& message) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n%s\n", file, line, condition,
               message.c_str());
  std::abort();
}

}  // namespace detail
}  // namespace tiny_compile
