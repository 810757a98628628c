#include "tiny_compile/loops/grouped.h"

#include <algorithm>

#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/work.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostRefusals = 1000;
constexpr size_t kMostReads = 128;     // buffers that a kernel of several reads
constexpr int kMostWaiting = 4;        // large ones that nobody else reads
constexpr int64_t kLarge = 1 << 20;    // elements
constexpr size_t kMostScalars = 2048;  // of one: compilers need more than linear time
constexpr size_t kMostWritten = 1280;  // of all its steps in C++, where each computes its own

}  // namespace

bool is_scheduled(const Kernel& kernel) {
  return kernel.schedule.has_value() || !kernel.sized.empty();
}

bool is_past_fusion(const Program& program) {
  return std::all_of(program.kernels.begin(), program.kernels.end(), is_scheduled);
}

Grouped::Grouped(Program given)
    : program(std::move(given)),
      groups(program.buffers.size()),
      readers(program.buffers.size()),
      refusals_(program.refusals) {
  for (const Kernel& kernel : program.kernels)
    for (const int buffer : loaded_buffers(kernel)) readers[buffer]++;
}

void Grouped::add_all() {
  for (const Kernel& kernel : program.kernels) groups.add(kernel);
}

// A large result that nobody else reads lies in memory until the kernel runs.
bool Grouped::waits(int buffer) const {
  const Expr& size = program.buffers[buffer].size;
  return groups.writer(buffer) >= 0 && readers[buffer] == 1 && size.is_constant() &&
         size.constant() >= kLarge;
}

std::string Grouped::too_large(int first, int second) const {
  const size_t scalars =
      groups.group(first).kernel.scalars.size() + groups.group(second).kernel.scalars.size();
  if (scalars > kMostScalars) return "together they compute too much for one kernel";
  if (program.target == Target::Cpp && scalars > kMostWritten / 8) {
    const auto stays = [&](int buffer) {
      return program.buffers[buffer].role == Role::Output || readers[buffer] > 1;
    };
    if (written_out(groups.group(first), groups.group(second), stays) > kMostWritten)
      return "each of their steps would compute a long chain of values anew";
    if (groups.results_of(first, second) > kMostResults)
      return "together they write too many buffers";
  }
  std::set<int> reads = groups.reads(first);
  for (const int buffer : groups.reads(second))
    if (groups.writer(buffer) != first) reads.insert(buffer);
  if (reads.size() > kMostReads) return "together they read too many buffers";
  const auto waiting =
      std::count_if(reads.begin(), reads.end(), [&](int b) { return waits(b); });
  return waiting > kMostWaiting ? "together they would keep many large results waiting" : "";
}

void Grouped::refuse(int first, int second, const std::string& reason) {
  const std::string refusal = groups.name(first) + " + " + groups.name(second) + ": " + reason;
  if (refusals_.size() < kMostRefusals &&
      std::count(refusals_.begin(), refusals_.end(), refusal) == 0)
    refusals_.push_back(refusal);
}

// From the last kernel to the first, so that a result whose readers are gone goes with them.
Program Grouped::finish() const {
  Program result = program;
  result.kernels.clear();
  result.launches.clear();
  result.refusals = refusals_;
  const std::vector<int> order = groups.topological_order();
  std::vector<bool> loaded(program.buffers.size());
  for (size_t k = order.size(); k-- > 0;) {
    const Group& group = groups.group(order[k]);
    Kernel kernel = without_dead_stores(program, without_repeats(group.finish()), loaded);
    if (kernel.steps.empty()) continue;
    if (is_scheduled(group.kernel)) kernel = group.kernel;
    for (int buffer : loaded_buffers(kernel)) loaded[buffer] = true;
    kernel.name = groups.name(order[k]);
    result.kernels.push_back(std::move(kernel));
  }
  std::reverse(result.kernels.begin(), result.kernels.end());
  for (size_t k = 0; k < result.kernels.size(); k++)
    result.launches.push_back({static_cast<int>(k)});
  return drop_unused_buffers(std::move(result));
}

}  // namespace tiny_compile
