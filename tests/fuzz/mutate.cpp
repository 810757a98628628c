// What would a careless hand do to this text?
//
//   store y[i0*4 + j0] for (j0: 4) = sub($0, r0)   =>   store y[i0*5 + j0] for (j0: 4) = sub($0, r0)
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <random>
#include <vector>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t count) { return count ? random() % count : 0; }

struct Piece {
  size_t at, length;
};

template <typename Belongs>
std::vector<Piece> pieces(const std::string& text, Belongs belongs) {
  std::vector<Piece> found;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && belongs(text[end])) end++;
    if (end > at) found.push_back({at, end - at});
    at = std::max(end, at + 1);
  }
  return found;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string replaced(const std::string& text, const Piece& piece, const std::string& by) {
  return text.substr(0, piece.at) + by + text.substr(piece.at + piece.length);
}

std::string other_number(Random& random, const std::string& text, const std::string& old) {
  const std::vector<Piece> all = pieces(text, is_digit);
  const Piece& borrowed = all[below(random, all.size())];
  const int64_t value = old.size() < 10 ? std::stoll(old) : 1;
  const std::array<std::string, 12> choices = {str(value + 1),
                                               str(value - 1),
                                               str(value + 1),
                                               str(value - 1),
                                               str(value * 2),
                                               str(value / 2),
                                               str(value + 8),
                                               "0",
                                               "1",
                                               "4000000000",
                                               "1000000000000000000",
                                               text.substr(borrowed.at, borrowed.length)};
  return choices[below(random, choices.size())];
}

std::string with_number(Random& random, const std::string& text) {
  const std::vector<Piece> all = pieces(text, is_digit);
  if (all.empty()) return text;
  const Piece& piece = all[below(random, all.size())];
  return replaced(text, piece, other_number(random, text, text.substr(piece.at, piece.length)));
}

std::string with_word(Random& random, const std::string& text) {
  static constexpr std::array<const char*, 24> kWords = {
      "f32", "f64",         "f16",        "i64",         "i32",   "u8",   "bool",  "sum",
      "max", "argmax",      "sum_exp",    "any",         "add",   "exp",  "where", "lt",
      "ge",  "bitwise_and", "bitwise_or", "bitwise_not", "store", "scan", "j0",    "i0"};
  const std::vector<Piece> all = pieces(text, is_word);
  const Piece& piece = all[below(random, all.size())];
  const Piece& borrowed = all[below(random, all.size())];
  const bool known = random() % 2;
  return replaced(
      text, piece,
      known ? kWords[below(random, kWords.size())] : text.substr(borrowed.at, borrowed.length));
}

std::string with_operator(Random& random, const std::string& text) {
  constexpr std::string_view kOperators = "+-*/%";
  std::vector<Piece> all =
      pieces(text, [&](char c) { return kOperators.find(c) != std::string_view::npos; });
  if (all.empty()) return text;
  return replaced(text, all[below(random, all.size())],
                  std::string(1, kOperators[below(random, kOperators.size())]));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

std::string with_lines(Random& random, const std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  const size_t a = below(random, lines.size()), b = below(random, lines.size());
  switch (random() % 4) {
    case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a)); break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(a), std::string(lines[b]));
      break;
    case 2: std::swap(lines[a], lines[b]); break;
    default:
      if (a + 1 < lines.size()) std::swap(lines[a], lines[a + 1]);
  }
  return join(lines, "");
}

// A schedule line of any kernel, or before the end of one.
std::string with_schedule(Random& random, const std::string& text) {
  static constexpr std::array<const char*, 6> kStrategies = {
      "pointwise",
      "pointwise rows grid · warp 4 · lane 32 · vector 4",
      "pointwise rows serial 2 · grid · lane 32 · vector 2",
      "rows",
      "columns",
      "tiles"};
  static constexpr std::array<const char*, 7> kFields = {"lanes", "unroll", "keep",   "stream",
                                                         "grain", "vector", "cluster"};
  static constexpr std::array<int, 14> kValues = {0,  1,  2,  3,  4,   7,   8,
                                                  16, 20, 32, 64, 100, 128, 1024};
  std::string line = str("    schedule ", kStrategies[below(random, kStrategies.size())]);
  for (size_t k = random() % 3; k-- > 0;)
    line += str(" ", kFields[below(random, kFields.size())], "=",
                kValues[below(random, kValues.size())]);
  std::vector<std::string> lines = lines_of(text);
  std::vector<size_t> ends;
  for (size_t k = 0; k < lines.size(); k++) {
    if (lines[k] == "  }\n") ends.push_back(k);
  }
  if (ends.empty()) return text;
  const size_t end = ends[below(random, ends.size())];
  if (end > 0 && lines[end - 1].starts_with("    schedule "))
    lines[end - 1] = line + "\n";
  else
    lines[end] = line + "\n" + lines[end];
  return join(lines, "");
}

}  // namespace

std::string mutated(const std::string& text, uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15u + 1);
  std::string result = text;
  for (size_t changes = 1 + random() % 3 / 2 + random() % 4 / 3; changes-- > 0;) {
    const size_t kind = random() % 12;
    result = kind < 5    ? with_number(random, result)
             : kind < 7  ? with_word(random, result)
             : kind < 9  ? with_operator(random, result)
             : kind < 11 ? with_lines(random, result)
                         : with_schedule(random, result);
  }
  return result;
}

}  // namespace tiny_compile
