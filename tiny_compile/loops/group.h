// A kernel that grows while others are fused into it.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {

// A kernel that is still growing: its axes stand in any order, `rows` lists those
// that are rows.
struct Group {
  Kernel kernel;
  std::vector<int> rows;
  std::unique_ptr<ScalarTable> table;
  int repeated =
      0;  // work of what was taken in and is computed elsewhere, or at other points, too

  explicit Group(Kernel start);
  void add_step(Step step);
  bool is_row(int axis) const;
  int count(StepKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  bool has(StepKind kind) const { return count(kind) > 0; }
  bool sequential() const;         // has steps that work through a row: anything but stores
  int store_to(int buffer) const;  // the step that stores its final values, or -1
  Kernel finish() const;           // rows first, normal

 private:
  void note(const Step& step, int number);
  std::array<int, static_cast<size_t>(StepKind::Scatter) + 1> counts_ = {};
  std::map<int, int> stores_;  // buffer -> the step, -1 where other steps write it too
};

// Rows, then the steps' loops; axes that were cut into pieces are neither.
std::vector<int> all_axes(const Group& group);

inline bool contains(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// A set of groups, by number: 64 to a word, so that joining two is cheap.
class GroupSet {
 public:
  bool has(int id) const {
    const size_t word = static_cast<size_t>(id) / 64;
    return word < words_.size() && (words_[word] >> (id % 64) & 1);
  }
  void add(int id) {
    words_.resize(std::max(words_.size(), static_cast<size_t>(id) / 64 + 1));
    words_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  }
  void remove(int id) {
    if (has(id)) words_[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (id % 64));
  }
  bool add_all(const GroupSet& other) {  // whether that was news
    words_.resize(std::max(words_.size(), other.words_.size()));
    uint64_t news = 0;
    for (size_t k = 0; k < other.words_.size(); k++) {
      news |= other.words_[k] & ~words_[k];
      words_[k] |= other.words_[k];
    }
    return news != 0;
  }

 private:
  std::vector<uint64_t> words_;
};

int64_t points(const Group& group);  // of all its axes

// The load through which two groups are lined up: of those that count, the one with the most loops.
const Scalar* widest_load(const Group& group, const std::function<bool(const Scalar&)>& counts);

}  // namespace tiny_compile
