// Which of the shared functions does a kernel need? tc_sigmoid brings tc_exp along; nothing
// else is emitted, because the compiler's time goes with the length of the text.
#include "tiny_compile/codegen/prelude.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "prelude_text.h"  // generated: kPreludeText, the text of base/prelude*.h

namespace tiny_compile {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The distinct words of `text` that begin with tc_.
std::set<std::string_view> names_in(std::string_view text) {
  std::set<std::string_view> names;
  for (size_t at = 0; (at = text.find("tc_", at)) != std::string_view::npos;) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) end++;
    if (at == 0 || !is_word(text[at - 1])) names.insert(text.substr(at, end - at));
    at = end;
  }
  return names;
}

// A definition: text between blank lines, less the comments above it, and the name it
// defines: the first tc_ word of its first line that is no type of another definition
// ("TC_FN tc_f16 tc_to_f16(").
struct Definition {
  std::string_view text;
  std::string_view name;
};

std::string_view defined_name(std::string_view text) {
  const size_t parenthesis = text.find('('), brace = text.find('{');
  const std::string_view head = text.substr(0, std::min({parenthesis, brace, text.size()}));
  const size_t start = head.rfind("tc_");
  if (start == std::string_view::npos) return {};
  size_t end = start;
  while (end < head.size() && is_word(head[end])) end++;
  return head.substr(start, end - start);
}

std::vector<Definition> definitions() {
  std::vector<Definition> result;
  std::string_view text = kPreludeText;
  while (!text.empty()) {
    const size_t blank = text.find("\n\n");
    std::string_view block = text.substr(0, blank);
    text = blank == std::string_view::npos ? std::string_view() : text.substr(blank + 2);
    while (!block.empty() &&
           (block[0] == '\n' || block.starts_with("//") || block.starts_with("#pragma once"))) {
      const size_t newline = block.find('\n');
      block =
          newline == std::string_view::npos ? std::string_view() : block.substr(newline + 1);
    }
    if (!block.empty()) result.push_back({block, defined_name(block)});
  }
  return result;
}

// #ifdef __CUDACC__ / A / #else / B / #endif  =>  A for CUDA, B for C++
std::string for_target(std::string_view text, bool cuda) {
  std::string result;
  bool written = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    if (line.starts_with("#ifdef __CUDACC__")) written = cuda;
    if (line.starts_with("#else")) written = !cuda;
    if (line.starts_with("#endif")) written = true;
    if (written && line[0] != '#') result += line;
  }
  return result;
}

bool mentions_double(std::string_view text) {
  return text.find("double") != std::string_view::npos;
}

// Whether a definition is the overload for double: its first lines up to the '{' say so.
bool is_for_double(const Definition& definition) {
  return mentions_double(definition.text.substr(0, definition.text.find('{')));
}

// Marks what has one of the names, and what that needs. Overloads for double are left out.
void want(const std::vector<Definition>& all, const std::set<std::string>& names, bool doubles,
          std::vector<bool>& wanted) {
  std::multimap<std::string_view, size_t> by_name;
  for (size_t d = 0; d < all.size(); d++) by_name.insert({all[d].name, d});
  std::vector<std::string_view> queue(names.begin(), names.end());
  std::set<std::string_view> seen(names.begin(), names.end());
  while (!queue.empty()) {
    const auto [begin, end] = by_name.equal_range(queue.back());
    queue.pop_back();
    for (auto it = begin; it != end; ++it) {
      const Definition& definition = all[it->second];
      if (!doubles && is_for_double(definition)) continue;
      wanted[it->second] = true;
      for (std::string_view used : names_in(definition.text)) {
        if (seen.insert(used).second) queue.push_back(used);
      }
    }
  }
}

}  // namespace

std::string prelude_for(const Calls& calls, bool cuda) {
  const std::vector<Definition> all = definitions();
  std::vector<bool> wanted(all.size());
  want(all, calls.names(), calls.doubles, wanted);
  bool doubles = false;  // a function of float may compute in double: tc_exp((double)x)
  for (size_t d = 0; d < all.size(); d++)
    doubles = doubles || (wanted[d] && all[d].text.find("(double)") != std::string_view::npos);
  if (doubles) want(all, calls.names(), true, wanted);
  std::string result;
  for (size_t d = 0; d < all.size(); d++) {
    if (wanted[d]) result += "\n" + for_target(std::string(all[d].text) + "\n", cuda);
  }
  return result;
}

}  // namespace tiny_compile
