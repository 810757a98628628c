// How is IR text taken apart? One character or word at a time, each error with line and caret.
#include "tiny_compile/base/text_cursor.h"

#include <algorithm>
#include <numeric>

namespace tiny_compile {
namespace {

constexpr int64_t kDefaultHigh = int64_t{1} << 40;  // of a size without bounds

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '.'; }

// How many insertions, deletions and replacements lead from one word to the other.
size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); j++) {
      const size_t replaced = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  size_t least = std::min<size_t>(3, word.size());
  std::string nearest;
  if (word.size() > 20) return "";
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word);
}

Location place_of(std::string_view comment) {
  if (comment.find_first_of(" \t\r") != std::string_view::npos) return {};
  const size_t colon = comment.rfind(':');
  if (colon == std::string_view::npos) return {std::string(comment), 0};
  const std::string_view digits = comment.substr(colon + 1);
  const bool is_line = !digits.empty() && digits.size() <= 9 &&
                       std::all_of(digits.begin(), digits.end(), is_digit);
  if (!is_line) return {std::string(comment), 0};
  return {std::string(comment.substr(0, colon)), std::stoi(std::string(digits))};
}

void TextCursor::skip_blanks() {
  while (next_is(' ') || next_is('\t') || next_is('\r')) at_++;
}

void TextCursor::skip_space() {
  while (true) {
    skip_blanks();
    if (next_is('#')) at_ = std::min(text_.find('\n', at_), text_.size());
    if (!next_is('\n')) return;
    at_++;
  }
}

bool TextCursor::accept(char c) {
  skip_blanks();
  if (!next_is(c)) return false;
  at_++;
  return true;
}

void TextCursor::expect(char c, const char* after) {
  if (accept(c)) return;
  error(at_, str("expected '", c, "' after ", after));
}

bool TextCursor::accept_word(std::string_view wanted) {
  const size_t start = at_;
  if (word() == wanted) return true;
  at_ = start;
  return false;
}

std::string_view TextCursor::word() {
  skip_blanks();
  const size_t start = at_;
  while (!at_end() && is_word(text_[at_])) at_++;
  return text_.substr(start, at_ - start);
}

std::string TextCursor::identifier(const char* what) {
  skip_blanks();
  const size_t start = at_;
  const std::string_view found = word();
  if (!is_identifier(found)) {
    error(start, str("expected ", what, ": letters, digits, '_' and '.', first no digit"));
  }
  return std::string(found);
}

int64_t TextCursor::number() {
  skip_blanks();
  const size_t start = at_;
  const bool is_negative = accept('-');
  int64_t value = 0;
  if (at_end() || !is_digit(text_[at_])) {
    const std::string_view found = word();
    error(start, found.empty() ? "expected a number" : str("expected a number, not ", found));
  }
  for (; !at_end() && is_digit(text_[at_]); at_++) {
    const bool overflows = __builtin_mul_overflow(value, int64_t{10}, &value) ||
                           __builtin_add_overflow(value, text_[at_] - '0', &value);
    if (overflows) error(start, "this number does not fit 64 bits");
  }
  return is_negative ? -value : value;
}

DeclaredSizes TextCursor::sizes() {
  DeclaredSizes result;
  if (!accept('[')) return result;
  do {
    skip_space();
    const size_t start = at_;
    const Expr size = declared_size();
    if (!result.emplace(size.name(), size).second)
      error(start, size.name() + " is declared twice");
    skip_space();
  } while (accept(','));
  expect(']', "the sizes");
  return result;
}

Expr TextCursor::declared_size() {  // n: 2..4096
  const size_t start = at_;
  const std::string name = identifier("the name of a size");
  if (name.find('.') != std::string::npos) error(start, "a size's name holds no '.'");
  Interval bounds = {0, kDefaultHigh};
  if (accept(':')) {
    bounds.low = number();
    expect('.', "the least value (bounds are written 2..4096)");
    expect('.', "the least value (bounds are written 2..4096)");
    bounds.high = number();
  }
  if (bounds.low > bounds.high) error(start, str("the bounds of ", name, " are empty"));
  if (bounds.low < -kUnbounded || bounds.high > kUnbounded) {
    error(start, str("the bounds of ", name, " are beyond 2^62"));
  }
  return Expr::symbol({name, SymbolKind::Size}, bounds.low, bounds.high);
}

std::string_view TextCursor::comment() {
  skip_blanks();
  if (!next_is('#')) return "";
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  const std::string_view whole = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end;
  const size_t first = whole.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return whole.substr(first, whole.find_last_not_of(" \t\r") + 1 - first);
}

void TextCursor::end_line() {
  comment();
  if (!at_end() && !next_is('\n')) error(at_, "expected the end of the line");
}

}  // namespace tiny_compile
