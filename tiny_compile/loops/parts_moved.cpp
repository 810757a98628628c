// What was a fused kernel made of? From what it writes back to what it reads:
//
//   add_1: t1 = x + b      gelu_2: y = gelu(t1)      =>      add_gelu_2: y of x, b
//
// gelu_2 writes y and reads t1, which add_gelu_2 does not read, so that add_1 is a part as well. Buffers
// keep their names when others go.
#include "tiny_compile/loops/parts_moved.h"

#include <algorithm>
#include <map>
#include <set>

#include "tiny_compile/loops/bytes_moved.h"
#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

using Names = std::set<std::string>;

Names names_of(const Program& program, const std::vector<int>& buffers) {
  Names names;
  for (const int buffer : buffers) names.insert(program.buffers[buffer].name);
  return names;
}

struct Moved {
  Names reads;
  int64_t bytes = 0;
};

// By the buffers that they write.
std::multimap<std::string, int> writers_of(const Program& program) {
  std::multimap<std::string, int> writers;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    for (const std::string& name : names_of(program, stored_buffers(program.kernels[k])))
      writers.insert({name, static_cast<int>(k)});
  }
  return writers;
}

std::vector<Moved> moved_by(const Program& program) {
  std::vector<Moved> parts;
  for (const Kernel& kernel : program.kernels)
    parts.push_back({names_of(program, loaded_buffers(kernel)), bytes_moved(program, kernel)});
  return parts;
}

// Whether bytes_moved counts, and does not estimate: each place is a sum of loops of known lengths, and is read
// whole: a mask that keeps 17 of 50 is not asked.
bool is_counted_exactly(const Kernel& kernel) {
  const auto is_loop = [&](const Term& term) {
    return term.factor.is_constant() ||
           std::any_of(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& axis) {
             return axis.extent.is_constant() && term.factor == axis.symbol();
           });
  };
  const auto is_plain_sum = [&](const Expr& index) {
    const std::vector<Term> parts = terms(index);
    return std::all_of(parts.begin(), parts.end(), is_loop);
  };
  return std::all_of(kernel.scalars.begin(), kernel.scalars.end(),
                     [&](const Scalar& s) {
                       return s.kind != ScalarKind::Load ||
                              (s.mask < 0 && is_plain_sum(s.index));
                     }) &&
         std::all_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
           return makes_register(step) || is_plain_sum(step.index);
         });
}

}  // namespace

std::string why_moves_more(const Program& lowered, const Program& fused) {
  const std::multimap<std::string, int> writers = writers_of(lowered);
  const std::vector<Moved> parts = moved_by(lowered);
  for (const Kernel& kernel : fused.kernels) {
    if (!is_counted_exactly(kernel)) continue;
    const Names reads = names_of(fused, loaded_buffers(kernel)),
                writes = names_of(fused, stored_buffers(kernel));
    const auto is_new = [&](const std::string& name) { return writers.count(name) == 0; };
    if (std::any_of(writes.begin(), writes.end(), is_new)) continue;  // read_again.h's own
    std::vector<std::string> wanted(writes.begin(), writes.end());
    std::set<int> taken;
    int64_t bytes = 0;
    while (!wanted.empty()) {
      const auto [first, last] = writers.equal_range(wanted.back());
      wanted.pop_back();
      for (auto at = first; at != last; ++at) {
        if (!taken.insert(at->second).second) continue;
        bytes += parts[at->second].bytes;
        for (const std::string& name : parts[at->second].reads)
          if (reads.count(name) == 0) wanted.push_back(name);
      }
    }
    const int64_t moved = bytes_moved_at_least(fused, kernel);
    if (moved > bytes)
      return str(kernel.name, " moves ", moved, " bytes, what it was made of ", bytes);
  }
  return "";
}

}  // namespace tiny_compile
