// What is generated in a lesson, and has it drifted?
//   stored "took [..] ms", fresh "took 3.1 ms"  =>  covered: nothing to rewrite
#include "lessons/tools/blocks.h"

#include <algorithm>
#include <sstream>

#include "tiny_compile/base/error.h"

namespace tiny_compile::lessons {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool is_gap(const std::string& line) { return trimmed(line) == "..."; }

bool covers_line(const std::string& stored, const std::string& fresh) {
  size_t at = 0, from = 0;
  for (bool first = true;; first = false) {
    const size_t wild = stored.find("[..]", from);
    const std::string piece = stored.substr(from, wild == stored.npos ? wild : wild - from);
    const bool last = wild == stored.npos;
    if (last && first) return piece == fresh;
    if (last) return fresh.size() >= at + piece.size() && fresh.ends_with(piece);
    const size_t found =
        first ? (fresh.starts_with(piece) ? 0 : fresh.npos) : fresh.find(piece, at);
    if (found == fresh.npos) return false;
    at = found + piece.size();
    from = wild + 4;
  }
}

bool same(const std::string& stored, const std::string& fresh, bool wild) {
  return wild ? covers_line(stored, fresh) : stored == fresh;
}

// cost[i][j]: of the changes that turn stored[i..] into fresh[j..]. A line put in the place of
// another costs less than one gone and one new; what a gap covers is free.
using Costs = std::vector<std::vector<int>>;
Costs costs_of(const Lines& stored, const Lines& fresh, bool wild) {
  Costs cost(stored.size() + 1, std::vector<int>(fresh.size() + 1));
  for (size_t i = stored.size() + 1; i-- > 0;) {
    for (size_t j = fresh.size() + 1; j-- > 0;) {
      if (i == stored.size() && j == fresh.size()) continue;
      int best = 1 << 30;
      const bool gap = wild && i < stored.size() && is_gap(stored[i]);
      if (i < stored.size()) best = std::min(best, cost[i + 1][j] + (gap ? 0 : 2));
      if (j < fresh.size()) best = std::min(best, cost[i][j + 1] + (gap ? 0 : 2));
      if (i < stored.size() && j < fresh.size() && !gap)
        best = std::min(best, cost[i + 1][j + 1] + (same(stored[i], fresh[j], wild) ? 0 : 1));
      cost[i][j] = best;
    }
  }
  return cost;
}

// One aligned pair: the index of a stored line, of a fresh line, or -1.
struct Pair {
  int stored, fresh;
};
std::vector<Pair> align(const Lines& stored, const Lines& fresh, bool wild) {
  const Costs cost = costs_of(stored, fresh, wild);
  std::vector<Pair> pairs;
  size_t i = 0, j = 0;
  while (i < stored.size() || j < fresh.size()) {
    const int here = cost[i][j];
    const bool gap = wild && i < stored.size() && is_gap(stored[i]);
    const bool both = i < stored.size() && j < fresh.size() && !gap;
    if (both && here == cost[i + 1][j + 1] && same(stored[i], fresh[j], wild)) {
      pairs.push_back({int(i++), int(j++)});
    } else if (both && here == cost[i + 1][j + 1] + 1) {
      pairs.push_back({int(i++), -1});
      pairs.push_back({-1, int(j++)});
    } else if (i < stored.size() && here == cost[i + 1][j] + (gap ? 0 : 2)) {
      pairs.push_back({int(i++), -1});
    } else {
      pairs.push_back({gap ? int(i) : -1, int(j++)});
    }
  }
  return pairs;
}

}  // namespace

Lines split_lines(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string join_lines(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<Block> find_blocks(const std::string& path, const Lines& lines) {
  std::vector<Block> blocks;
  bool open = false;
  std::string fence;
  for (size_t i = 0; i < lines.size(); i++) {
    const std::string line = trimmed(lines[i]);
    if (open && line == "<!-- end -->") {
      blocks.back().last = i;
      open = false;
    } else if (!open && fence.empty() && line.starts_with("```")) {
      fence = line.substr(0, line.find_first_not_of('`'));
    } else if (!open && !fence.empty()) {
      if (line == fence) fence.clear();
    } else if (!open) {
      for (const std::string kind : {"code", "run", "record"}) {
        const std::string mark = "<!-- " + kind + ": ";
        if (!line.starts_with(mark) || !line.ends_with("-->")) continue;
        blocks.push_back({kind,
                          trimmed(line.substr(mark.size(), line.size() - mark.size() - 3)),
                          i + 1, i + 1});
        open = true;
      }
    }
  }
  if (open)
    fail(path, ":", blocks.back().first,
         ": this block has no <!-- end -->; write one below it");
  return blocks;
}

bool covers(const Lines& stored, const Lines& fresh) {
  return costs_of(stored, fresh, true)[0][0] == 0;
}

Lines merge(const Lines& stored, const Lines& fresh) {
  Lines result;
  int gap = -1;
  for (const Pair& pair : align(stored, fresh, true)) {
    if (pair.stored >= 0 && is_gap(stored[size_t(pair.stored)])) {
      if (gap != pair.stored) result.push_back(stored[size_t(pair.stored)]);
      gap = pair.stored;
    } else if (pair.fresh >= 0) {
      result.push_back(pair.stored >= 0 ? stored[size_t(pair.stored)]
                                        : fresh[size_t(pair.fresh)]);
    }
  }
  return result;
}

std::string difference(const Lines& before, const Lines& after) {
  const std::vector<Pair> pairs = align(before, after, false);
  std::string text;
  for (size_t k = 0; k < pairs.size(); k++) {
    const auto [old_line, new_line] = pairs[k];
    if (new_line < 0) text += "- " + before[size_t(old_line)] + "\n";
    if (old_line < 0) text += "+ " + after[size_t(new_line)] + "\n";
    if (old_line < 0 || new_line < 0) continue;
    bool near = false;
    for (size_t n = k < 2 ? 0 : k - 2; n < std::min(k + 3, pairs.size()); n++)
      near = near || pairs[n].stored < 0 || pairs[n].fresh < 0;
    if (near) text += "  " + before[size_t(old_line)] + "\n";
  }
  return text;
}

}  // namespace tiny_compile::lessons
