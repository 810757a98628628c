// Which kernels may start together? Those that do the same to other buffers, of any size where that
// is all they are told (counted.h), and that do not wait for each other:
//
//   launch mul_3                       launch mul_3, mul_5, mul_7
//   launch mul_5                =>     launch sum_9
//   launch mul_7
//   launch sum_9 (reads all three)
//
// A GPU takes microseconds to start a kernel, longer than a small one runs: an optimiser is a
// kernel for each tensor of a model. Launches go in an order in which they may run; one that has
// its like further down waits until nothing else can go.
#include "tiny_compile/loops/group_launches.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/counted.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/order.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostWaiting = 1 << 20;  // bytes of temporaries that a kernel may keep alive
constexpr int64_t kTableBytes = 4000;      // of the 4096 that a launch's parameters may have
constexpr int kAlone = -1;

std::string why_alone(const Program& program, const Kernel& kernel) {
  const auto multiplies = [](const Step& step) { return step.kind == StepKind::Dot; };
  if (program.matmul != Matmul::Generated &&
      std::any_of(kernel.steps.begin(), kernel.steps.end(), multiplies))
    return "it may be a call of the library";
  std::set<int> used;
  for (int buffer : loaded_buffers(kernel)) used.insert(buffer);
  for (int buffer : stored_buffers(kernel)) used.insert(buffer);
  if (most_in_launch(used.size()) < 2) return "its buffers alone fill a launch's parameters";
  int64_t bytes = 0;
  for (int b : used) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.role == Role::Temporary)
      bytes += buffer.size.bounds().high * size_of(buffer.type.dtype);
  }
  if (bytes > kMostWaiting)
    return str("it would keep ", bytes, " bytes of temporaries alive until the others go");
  return "";
}

// What each launch does: equal numbers, equal work; kAlone where there is no other, or a reason to
// stay alone, which the refusals tell.
struct Works {
  std::vector<int> of;
  std::vector<std::string> refusals;
};

Works works_of(const Program& program) {
  std::unordered_map<KernelKey, std::vector<int>, KernelKeyHash> alike;
  for (size_t launch = 0; launch < program.launches.size(); launch++) {
    const std::vector<int>& kernels = program.launches[launch];
    if (kernels.size() == 1)
      alike[work_of(program, program.kernels[kernels[0]])].push_back(static_cast<int>(launch));
  }
  Works works{std::vector<int>(program.launches.size(), kAlone), {}};
  for (const auto& [key, launches] : alike) {
    if (launches.size() < 2) continue;
    for (const int launch : launches) {
      const Kernel& kernel = program.kernels[program.launches[launch][0]];
      const std::string reason = why_alone(program, kernel);
      if (reason.empty())
        works.of[launch] = launches[0];
      else
        works.refusals.push_back(
            str(kernel.name, ": not in one launch with others like it: ", reason));
    }
  }
  std::sort(works.refusals.begin(), works.refusals.end());
  return works;
}

class Grouper {
 public:
  Grouper(const Program& program, const std::vector<int>& works)
      : program_(program), works_(works), waits_(works.size()), readers_(works.size()) {
    std::vector<int> writer(program.buffers.size(), -1);
    for (size_t launch = 0; launch < works.size(); launch++) {
      left_[works[launch]]++;
      for (const int id : program.launches[launch])
        for (const int buffer : stored_buffers(program.kernels[id]))
          writer[buffer] = static_cast<int>(launch);
    }
    for (size_t launch = 0; launch < works.size(); launch++) {
      std::set<int> before;
      for (const int id : program.launches[launch])
        for (const int buffer : loaded_buffers(program.kernels[id]))
          before.insert(writer[buffer]);
      before.erase(-1);
      before.erase(static_cast<int>(launch));
      waits_[launch] = before.size();
      for (const int other : before) readers_[other].push_back(static_cast<int>(launch));
      if (before.empty()) ready_[works[launch]].insert(static_cast<int>(launch));
    }
  }

  std::vector<std::vector<int>> run() {
    std::vector<std::vector<int>> result;
    while (!ready_.empty()) {
      std::vector<int> kernels;
      for (const int launch : take()) {
        const std::vector<int>& own = program_.launches[launch];
        kernels.insert(kernels.end(), own.begin(), own.end());
      }
      result.push_back(std::move(kernels));
    }
    return result;
  }

 private:
  // What can go alone goes at once, one at a time. Of the others those that wait for nobody else of
  // their kind, else those whose first comes first.
  std::vector<int> take() {
    const auto lateness = [&](const auto& work) {
      const bool waits = work.second.size() < left_[work.first];
      return std::tuple(work.first != kAlone, waits, *work.second.begin());
    };
    const auto next = std::min_element(
        ready_.begin(), ready_.end(),
        [&](const auto& a, const auto& b) { return lateness(a) < lateness(b); });
    const int work = next->first;
    std::set<int>& ready = next->second;
    auto last = std::next(ready.begin(), work == kAlone ? 1 : share_of(ready));
    const std::vector<int> taken(ready.begin(), last);
    ready.erase(ready.begin(), last);
    left_[work] -= taken.size();
    if (ready.empty()) ready_.erase(next);
    for (const int launch : taken) finish(launch);
    return taken;
  }

  // As many as come into one launch: all of them, or equal shares.
  int64_t share_of(const std::set<int>& ready) const {
    int64_t most = INT64_MAX;
    for (const int launch : ready) {
      const Kernel& kernel = program_.kernels[program_.launches[launch][0]];
      most = std::min<int64_t>(
          most, most_in_launch(loaded_buffers(kernel).size() + stored_buffers(kernel).size()));
    }
    const int64_t all = static_cast<int64_t>(ready.size());
    return ceil_divide(all, ceil_divide(all, std::max<int64_t>(most, 1)));
  }

  void finish(int launch) {
    for (const int reader : readers_[launch]) {
      if (--waits_[reader] == 0) ready_[works_[reader]].insert(reader);
    }
  }

  const Program& program_;
  const std::vector<int>& works_;
  std::vector<size_t> waits_;              // launches that it waits for
  std::vector<std::vector<int>> readers_;  // that wait for it
  std::map<int, std::set<int>> ready_;     // by work
  std::map<int, size_t> left_;             // of each work
};

// "" where the groups need hardly more memory.
std::string why_not(const Program& before, const Program& after) {
  const int64_t apart = peak_bytes(order_launches(before)),
                together = peak_bytes(order_launches(after));
  if (together <= apart + std::max(apart / 8, kMostWaiting)) return "";
  return str("kernels in one launch would need ", together, " bytes of temporaries, not ",
             apart);
}

}  // namespace

int most_in_launch(size_t buffers) {
  return static_cast<int>(kTableBytes / (8 * (2 + static_cast<int64_t>(buffers))));
}

namespace {

std::vector<int> rooms_in(const Program& program, const std::vector<int>& launch) {
  std::vector<int> rooms(launch.size());
  if (launch.size() < 2) return rooms;
  std::unordered_map<KernelKey, std::vector<size_t>, KernelKeyHash> alike;
  for (size_t k = 0; k < launch.size(); k++)
    alike[work_of(program, program.kernels[launch[k]])].push_back(k);
  for (const auto& [key, members] : alike) {
    const int most = most_in_launch(key.program.buffers.size());
    if (members.size() < 2 || most < 2) continue;
    const int64_t room = power_of_two_from(static_cast<int64_t>(members.size()));
    for (const size_t k : members) rooms[k] = static_cast<int>(std::min<int64_t>(room, most));
  }
  return rooms;
}

}  // namespace

Program group_launches(const Program& program) {
  if (program.target != Target::Cuda) return program;
  const Works works = works_of(program);
  Program result = program;
  result.refusals.insert(result.refusals.end(), works.refusals.begin(), works.refusals.end());
  const auto launches = Grouper(program, works.of).run();
  if (launches.size() == program.launches.size()) return result;
  Program grouped = with_launches(result, launches);
  const std::string reason = why_not(program, grouped);
  if (reason.empty()) return grouped;
  result.refusals.push_back(reason);
  return result;
}

std::vector<int> rooms_of(const Program& program) {
  std::vector<int> all(program.kernels.size());
  if (program.target != Target::Cuda || !sizes(program).empty()) return all;
  for (const std::vector<int>& launch : program.launches) {
    const std::vector<int> rooms = rooms_in(program, launch);
    for (size_t k = 0; k < launch.size(); k++) all[launch[k]] = rooms[k];
  }
  return all;
}

}  // namespace tiny_compile
