// Does every link of a page lead somewhere? Files are looked for from the page's own directory,
// headings by the anchor that GitHub makes of them; other sites are not asked.
#include "lessons/tools/links.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tiny_compile/base/error.h"

namespace tiny_compile::lessons {
namespace {

namespace fs = std::filesystem;

bool has_heading(const fs::path& file, const std::string& anchor) {
  std::ifstream in(file);
  bool fenced = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || !line.starts_with("#")) continue;
    if (anchor_of(line.substr(line.find_first_not_of("# "))) == anchor) return true;
  }
  return false;
}

bool leads_somewhere(const fs::path& page, const std::string& link) {
  const size_t hash = link.find('#');
  const std::string file = link.substr(0, hash);
  const fs::path target = file.empty() ? page : page.parent_path() / file;
  if (!fs::exists(target)) return false;
  if (hash == link.npos || target.extension() != ".md") return true;
  return has_heading(target, link.substr(hash + 1));
}

bool is_relative(const std::string& link) {
  return link.find("://") == link.npos && !link.starts_with("mailto:");
}

}  // namespace

std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (unsigned char c : heading) {
    if (c == ' ') anchor += '-';
    if (std::isalnum(c) || c == '-' || c == '_' || c >= 128) anchor += char(std::tolower(c));
  }
  return anchor;
}

std::vector<std::string> dead_links(const std::string& path, const Lines& lines) {
  static const std::regex link(R"(\]\(([^)\s]+)\))"), source(R"(src(set)?=\"([^"\s]+)\")"),
      named(R"(`((tiny_compile|lessons|tests)/[\w./]+\.\w+)`)");
  std::vector<std::string> dead;
  bool fenced = false;
  for (size_t i = 0; i < lines.size(); i++) {
    if (lines[i].starts_with("```")) fenced = !fenced;
    if (fenced) continue;
    const auto each = [&](const std::regex& pattern, int group, auto visit) {
      for (std::sregex_iterator it(lines[i].begin(), lines[i].end(), pattern), end; it != end;
           ++it)
        visit((*it)[size_t(group)].str());
    };
    const auto check_link = [&](const std::string& target) {
      if (is_relative(target) && !leads_somewhere(path, target))
        dead.push_back(str(path, ":", i + 1, ": the link ", target, " leads nowhere"));
    };
    each(link, 1, check_link);
    each(source, 2, check_link);
    each(named, 1, [&](const std::string& target) {
      if (!fs::exists(target) && !target.ends_with("/mine.cpp"))
        dead.push_back(str(path, ":", i + 1, ": there is no ", target));
    });
  }
  return dead;
}

}  // namespace tiny_compile::lessons
