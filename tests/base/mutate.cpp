// Which texts break parsers? Valid ones with a word, a number or a line changed.
#include <algorithm>

#include "tests/base/mutate.h"

#include "tiny_compile/graph/op.h"

namespace tiny_compile::tests {
namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }

// Pieces that parsers trip over.
constexpr const char* kSplices[] = {"%0",
                                    "%99999999999999999999",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    "(",
                                    ")",
                                    "((((((((",
                                    "-1",
                                    "0",
                                    "1",
                                    "4611686018427387904",
                                    "n",
                                    "m",
                                    "*n",
                                    "/0",
                                    "/n",
                                    "min(",
                                    "max(n, m)",
                                    "# a.cpp:99999999999",
                                    "\n",
                                    "\xff",
                                    "return",
                                    "graph",
                                    ": f32[]",
                                    ": bool[2,3]",
                                    " = input y",
                                    "value=nan",
                                    "value=1e999",
                                    "strides=[1,1]",
                                    "axes=[0,0]",
                                    "keepdim=1",
                                    ",",
                                    ", %0",
                                    "i64",
                                    "f16",
                                    "..",
                                    "[n: 0..1]",
                                    "*4611686018427387904"};

// Another number in place of the next one behind `at`.
std::string with_number(std::string text, size_t at, Random& random) {
  constexpr const char* kNumbers[] = {"0",
                                      "1",
                                      "2",
                                      "3",
                                      "4",
                                      "6",
                                      "281474976710657",
                                      "9223372036854775807",
                                      "99999999999999999999",
                                      "-1",
                                      "n"};
  const size_t start = text.find_first_of("0123456789", at);
  if (start == std::string::npos) return text;
  const size_t end = std::min(text.find_first_not_of("0123456789", start), text.size());
  return text.replace(start, end - start, kNumbers[below(random, std::size(kNumbers))]);
}

// Another op in place of the next one behind `at`.
std::string with_op(std::string text, size_t at, Random& random) {
  const size_t start = text.find("= ", at);
  if (start == std::string::npos) return text;
  const size_t end = std::min(text.find_first_of(" \n", start + 2), text.size());
  return text.replace(start + 2, end - start - 2,
                      info(static_cast<Op>(below(random, kOpCount))).name);
}

// The lines from `at` on end behind another line: what lies between is lost or repeated.
std::string with_line_moved(const std::string& text, size_t at, Random& random) {
  const size_t from = text.find('\n', at), to = text.find('\n', below(random, text.size()));
  if (from == std::string::npos || to == std::string::npos) return text;
  return text.substr(0, from) + text.substr(to);
}

std::string mutated_once(std::string text, const std::vector<std::string>& corpus,
                         Random& random) {
  const size_t at = below(random, text.size()), length = below(random, 12) + 1;
  const std::string& other = corpus[below(random, corpus.size())];
  switch (below(random, 10)) {
    case 0: text[at] = static_cast<char>(random()); return text;
    case 1: text[at] = " ,[]{}()%:=.#\n"[below(random, 14)]; return text;
    case 2: return text.erase(at, length);
    case 3: return text.insert(at, text.substr(at, length * 4));
    case 4: return text.insert(at, kSplices[below(random, std::size(kSplices))]);
    case 5: return text.substr(0, at + 1);
    case 6: return text.insert(at, other.substr(below(random, other.size()), length * 6));
    case 7: return with_number(std::move(text), at, random);
    case 8: return with_op(std::move(text), at, random);
    default: return with_line_moved(text, at, random);
  }
}

}  // namespace

std::string mutated(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string text = corpus[below(random, corpus.size())];
  const size_t mutations = below(random, 3) > 0 ? 1 : 2 + below(random, 4);
  for (size_t n = 0; n < mutations && !text.empty(); n++)
    text = mutated_once(text, corpus, random);
  return text;
}

}  // namespace tiny_compile::tests
