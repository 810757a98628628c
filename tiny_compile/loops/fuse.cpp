// Which kernels may become one? Kernels are taken in order; each is offered to the groups whose
// results it reads, then, where that is refused, takes a cheap producer's formula into itself;
// groups that share reads are joined last. Only pairs that share a buffer are ever considered.
//
//   add_2, gelu_3 (reads t2)   =>   add_gelu_3, and t2 is gone
//
// Two kernels must not merge if a third one lies between them: P -> Q -> C and P -> C would
// make the merged kernel wait for itself. `above` holds the groups that each group waits for.
#include "tiny_compile/loops/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "tiny_compile/loops/inline.h"
#include "tiny_compile/loops/merge.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostRefusals = 1000;
constexpr size_t kMostSiblings = 16;  // readers of one buffer that are tried with each other
constexpr size_t kMostWords = 5;      // ops named in a fused kernel's name

struct Member {
  std::unique_ptr<Group> group;    // null once another took it in
  std::vector<std::string> words;  // op names, for the kernel's name
  std::string number;              // "12" of "add_12"
  std::vector<bool> above;         // groups it waits for
  int order = 0;                   // of its first kernel
};

class Fusion {
 public:
  explicit Fusion(const Program& program)
      : program_(program), writer_(program.buffers.size(), -1) {}

  Program run() {
    readers_.resize(program_.buffers.size());
    for (const Kernel& kernel : program_.kernels) take(kernel);
    join_siblings();
    return finish();
  }

 private:
  // The kernel becomes a group, and as far as it may, part of the groups it reads from.
  void take(const Kernel& kernel) {
    int id = static_cast<int>(members_.size());
    const size_t cut = kernel.name.rfind('_');
    members_.push_back({std::make_unique<Group>(kernel),
                        {kernel.name.substr(0, cut)},
                        kernel.name.substr(cut + 1),
                        {},
                        id});
    note_accesses(id);
    update_above(id);
    std::set<int> refused;
    for (bool changed = true; changed;) {
      changed = false;
      for (int producer : producers(id)) {
        if (refused.count(producer)) continue;
        const std::string reason = waits_between(producer, id)
                                       ? "another kernel lies between them"
                                       : merge_consumer(program_, *group(producer), *group(id));
        if (reason.empty()) {
          absorb(producer, id);
          id = producer;
          changed = true;
        } else if (!inline_into(id, producer)) {
          refused.insert(producer);
          refuse(producer, id, reason);
          continue;
        } else {
          changed = true;
        }
        break;
      }
    }
  }

  bool inline_into(int consumer, int producer) {
    bool any = false;
    for (int buffer : reads(consumer)) {
      if (writer_[buffer] != producer || group(producer)->store_to(buffer) < 0) continue;
      const bool only_user =
          program_.buffers[buffer].role == Role::Temporary && users_left(buffer) == 1;
      const std::string reason =
          inline_producer(program_, *group(consumer), *group(producer), buffer, only_user);
      if (!reason.empty()) continue;
      any = true;
      readers_[buffer].erase(consumer);
    }
    if (!any) return false;
    note_accesses(consumer);
    update_above(consumer);
    return true;
  }

  // Kernels of the unfused program that still have to read the buffer.
  int users_left(int buffer) {
    if (all_readers_.empty()) {
      all_readers_.resize(program_.buffers.size());
      for (const Kernel& kernel : program_.kernels) {
        std::set<int> seen;
        for (const Scalar& s : kernel.scalars) {
          if (s.kind == ScalarKind::Load && seen.insert(s.buffer).second)
            all_readers_[s.buffer]++;
        }
      }
    }
    return all_readers_[buffer];
  }

  void join_siblings() {
    for (size_t buffer = 0; buffer < readers_.size(); buffer++) {
      std::vector<int> readers(readers_[buffer].begin(), readers_[buffer].end());
      if (readers.size() > kMostSiblings) readers.resize(kMostSiblings);
      for (size_t i = 0; i < readers.size(); i++) {
        for (size_t j = i + 1; j < readers.size(); j++) try_siblings(readers[i], readers[j]);
      }
    }
  }

  void try_siblings(int first, int second) {
    if (!group(first) || !group(second)) return;
    if (members_[second].above[first] || members_[first].above[second]) return;
    const std::string reason = merge_sibling(program_, *group(first), *group(second));
    if (reason.empty()) return absorb(first, second);
    refuse(first, second, reason);
  }

  // Whether a path producer -> other group -> consumer exists.
  bool waits_between(int producer, int consumer) const {
    if (members_[producer].above[consumer]) return true;
    for (int other : producers(consumer)) {
      if (other != producer && members_[other].above[producer]) return true;
    }
    return false;
  }

  void absorb(int first, int second) {
    Member& into = members_[first];
    Member& from = members_[second];
    for (const std::string& word : from.words) {
      if (into.words.size() < kMostWords && into.words.back() != word)
        into.words.push_back(word);
    }
    into.number = from.number;
    into.group->kernel.where.insert(into.group->kernel.where.end(),
                                    from.group->kernel.where.begin(),
                                    from.group->kernel.where.end());
    for (int& writer : writer_) {
      if (writer == second) writer = first;
    }
    for (int buffer : reads(second)) readers_[buffer].erase(second);
    from.group = nullptr;
    for (size_t g = 0; g < from.above.size(); g++) {
      if (from.above[g]) into.above[g] = true;
    }
    into.above[first] = false;
    note_accesses(first);
    for (size_t g = 0; g < members_.size(); g++) {
      std::vector<bool>& above = members_[g].above;
      if (!members_[g].group || static_cast<int>(g) == first ||
          !(above[first] || above[second]))
        continue;
      above[first] = true;
      above[second] = false;
      for (size_t k = 0; k < above.size(); k++) above[k] = above[k] || into.above[k];
    }
  }

  // Loads of what the group itself stores do not count.
  std::vector<int> reads(int id) const {
    std::vector<int> result;
    for (const Scalar& scalar : members_[id].group->kernel.scalars) {
      if (scalar.kind == ScalarKind::Load && writer_[scalar.buffer] != id)
        result.push_back(scalar.buffer);
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  std::vector<int> producers(int id) const {  // latest first
    std::set<int, std::greater<>> result;
    for (int buffer : reads(id)) {
      if (writer_[buffer] >= 0) result.insert(writer_[buffer]);
    }
    return {result.begin(), result.end()};
  }

  void note_accesses(int id) {
    for (const Step& step : group(id)->kernel.steps) {
      if (!makes_register(step)) writer_[step.buffer] = id;
    }
    for (int buffer : reads(id)) readers_[buffer].insert(id);
  }

  void update_above(int id) {
    std::vector<bool> above(program_.kernels.size());
    for (int producer : producers(id)) {
      above[producer] = true;
      const std::vector<bool>& further = members_[producer].above;
      for (size_t g = 0; g < further.size(); g++) above[g] = above[g] || further[g];
    }
    members_[id].above = std::move(above);
  }

  Group* group(int id) const { return members_[id].group.get(); }

  std::string name(int id) const {
    return join(members_[id].words, "_") + "_" + members_[id].number;
  }

  void refuse(int first, int second, const std::string& reason) {
    if (refusals_.size() < kMostRefusals)
      refusals_.push_back(name(first) + " + " + name(second) + ": " + reason);
  }

  // Temporaries that nobody loads any more are not stored.
  void drop_dead_stores() {
    std::vector<bool> loaded(program_.buffers.size());
    for (const Member& member : members_) {
      if (!member.group) continue;
      const std::vector<bool> read = buffers_read(program_, member.group->kernel);
      for (size_t b = 0; b < read.size(); b++) loaded[b] = loaded[b] || read[b];
    }
    for (Member& member : members_) {
      if (!member.group) continue;
      auto dead = [&](const Step& step) {
        return step.kind == StepKind::Store && !loaded[step.buffer] &&
               member.group->store_to(step.buffer) >= 0 &&
               program_.buffers[step.buffer].role == Role::Temporary;
      };
      Kernel& kernel = member.group->kernel;
      std::vector<int> numbers;
      std::vector<Step> kept;
      for (const Step& step : kernel.steps) {
        numbers.push_back(static_cast<int>(kept.size()));
        if (!dead(step)) kept.push_back(step);
      }
      if (kept.size() == kernel.steps.size()) continue;
      kernel.steps = std::move(kept);
      for (Scalar& scalar : kernel.scalars) {
        if (scalar.kind == ScalarKind::Register) scalar.step = numbers[scalar.step];
      }
      changed_ = true;
      if (kernel.steps.empty()) member.group = nullptr;
    }
  }

  Program finish() {
    for (Member& member : members_) {
      if (member.group) member.group = std::make_unique<Group>(member.group->finish());
    }
    do {
      changed_ = false;
      drop_dead_stores();
      for (Member& member : members_) {
        if (!member.group || !changed_) continue;
        member.group = std::make_unique<Group>(member.group->finish());
        if (member.group->kernel.steps.empty())
          member.group = nullptr;  // only a dead register was left
      }
    } while (changed_);
    Program result = program_;
    result.kernels.clear();
    result.launches.clear();
    result.refusals = refusals_;
    for (int id : topological_order()) {
      Kernel kernel = std::move(members_[id].group->kernel);
      kernel.name = name(id);
      result.launches.push_back({static_cast<int>(result.kernels.size())});
      result.kernels.push_back(std::move(kernel));
    }
    return drop_unused_buffers(std::move(result));
  }

  std::vector<int> topological_order() const {
    std::vector<int> waiting(members_.size()), order;
    std::vector<std::vector<int>> below(members_.size());
    std::set<int> ready;
    for (size_t id = 0; id < members_.size(); id++) {
      if (!members_[id].group) continue;
      for (int producer : producers(static_cast<int>(id))) {
        if (!members_[producer].group) continue;
        waiting[id]++;
        below[producer].push_back(static_cast<int>(id));
      }
      if (waiting[id] == 0) ready.insert(static_cast<int>(id));
    }
    while (!ready.empty()) {
      const int id = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(id);
      for (int next : below[id]) {
        if (--waiting[next] == 0) ready.insert(next);
      }
    }
    for (size_t id = 0; id < members_.size(); id++)
      CHECK(!members_[id].group || waiting[id] == 0, "fusion made a cycle at ",
            name(static_cast<int>(id)));
    return order;
  }

  static Program drop_unused_buffers(Program program) {
    std::vector<bool> used(program.buffers.size());
    for (size_t b = 0; b < used.size(); b++)
      used[b] = program.buffers[b].role != Role::Temporary;
    for (const Kernel& kernel : program.kernels) {
      const std::vector<bool> read = buffers_read(program, kernel),
                              written = buffers_written(program, kernel);
      for (size_t b = 0; b < used.size(); b++) used[b] = used[b] || read[b] || written[b];
    }
    std::vector<int> numbers(used.size(), -1);
    std::vector<Buffer> kept;
    for (size_t b = 0; b < used.size(); b++) {
      if (!used[b]) continue;
      numbers[b] = static_cast<int>(kept.size());
      kept.push_back(program.buffers[b]);
    }
    program.buffers = std::move(kept);
    for (int& output : program.outputs) output = numbers[output];
    for (Kernel& kernel : program.kernels) {
      for (Scalar& scalar : kernel.scalars) {
        if (scalar.buffer >= 0) scalar.buffer = numbers[scalar.buffer];
      }
      for (Step& step : kernel.steps) {
        if (step.buffer >= 0) step.buffer = numbers[step.buffer];
      }
    }
    return program;
  }

  const Program& program_;
  std::vector<Member> members_;
  std::vector<int> writer_;             // the group that writes a buffer, -1 for inputs
  std::vector<std::set<int>> readers_;  // the groups that load a buffer
  std::vector<int> all_readers_;        // kernels of the unfused program that load it
  std::vector<std::string> refusals_;
  bool changed_ = false;
};

}  // namespace

Program fuse(const Program& program) { return Fusion(program).run(); }

}  // namespace tiny_compile
