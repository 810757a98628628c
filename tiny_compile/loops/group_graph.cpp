#include "tiny_compile/loops/group_graph.h"

#include <algorithm>
#include <functional>

#include "tiny_compile/base/error.h"
#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostWords = 5;  // ops named in a fused kernel's name

}  // namespace

void GroupGraph::grow(size_t buffers) {
  writer_.resize(buffers, -1);
  readers_.resize(buffers);
}

void GroupGraph::replace(int id, Kernel kernel) {
  members_[id].group = std::make_unique<Group>(std::move(kernel));
}

int GroupGraph::add(const Kernel& kernel) {
  const int id = static_cast<int>(members_.size());
  const size_t cut = kernel.name.rfind('_');
  Member member;
  member.group = std::make_unique<Group>(kernel);
  member.words = {kernel.name.substr(0, cut)};
  member.number = kernel.name.substr(cut + 1);
  for (const Step& step : kernel.steps) {
    if (makes_register(step)) continue;
    member.writes.insert(step.buffer);
    writer_[step.buffer] = id;
  }
  members_.push_back(std::move(member));
  alive_.insert(id);
  note_reads(id);
  return id;
}

// Who reads what, and waits for whom, after the group's loads have changed.
void GroupGraph::note_reads(int id) {
  Member& member = members_[id];
  for (int buffer : member.reads) readers_[buffer].erase(id);
  member.reads.clear();
  for (int buffer : loaded_buffers(member.group->kernel)) {
    if (writer_[buffer] == id) continue;
    member.reads.insert(buffer);
    readers_[buffer].insert(id);
  }
  member.above = {};
  for (int producer : producers(id)) {
    member.above.add(producer);
    member.above.add_all(members_[producer].above);
  }
}

bool GroupGraph::waits_between(int producer, int consumer) const {
  if (members_[producer].above.has(consumer)) return true;
  for (int other : producers(consumer)) {
    if (other != producer && members_[other].above.has(producer)) return true;
  }
  return false;
}

bool GroupGraph::brings_waits(int id, int producer) const {
  const std::vector<int> above = producers(id);
  return std::any_of(above.begin(), above.end(), [&](int other) {
    return other != producer && !waits_for(producer, other);
  });
}

void GroupGraph::absorb(int first, int second) {
  Member& into = members_[first];
  Member from = std::move(members_[second]);
  members_[second].group = nullptr;
  alive_.erase(second);
  for (const std::string& word : from.words) {
    if (into.words.size() < kMostWords && into.words.back() != word) into.words.push_back(word);
  }
  into.number = from.number;
  std::vector<Location>& where = into.group->kernel.where;
  where.insert(where.end(), from.group->kernel.where.begin(), from.group->kernel.where.end());
  bool has_readers = false;
  for (int buffer : from.writes) {
    writer_[buffer] = first;
    has_readers = has_readers || !readers_[buffer].empty();
  }
  for (int buffer : from.reads) {
    readers_[buffer].erase(second);
    if (writer_[buffer] == first) continue;
    readers_[buffer].insert(first);
    into.reads.insert(buffer);
  }
  into.writes.merge(from.writes);
  from.above.remove(first);
  if (into.above.add_all(from.above) || has_readers) pass_on(first, second);
}

// Whoever waits for the first, or waited for the second, waits for all that the first does.
void GroupGraph::pass_on(int first, int second) {
  for (int id : alive_) {
    GroupSet& above = members_[id].above;
    if (id == first || !(above.has(first) || above.has(second))) continue;
    above.remove(second);
    above.add(first);
    above.add_all(members_[first].above);
  }
}

std::vector<int> GroupGraph::producers(int id) const {
  std::set<int, std::greater<>> result;
  for (int buffer : members_[id].reads)
    if (writer_[buffer] >= 0) result.insert(writer_[buffer]);
  return {result.begin(), result.end()};
}

std::string GroupGraph::name(int id) const {
  return join(members_[id].words, "_") + "_" + members_[id].number;
}

std::vector<int> GroupGraph::topological_order() const {
  std::vector<int> waiting(members_.size()), order;
  std::vector<std::vector<int>> below(members_.size());
  std::set<int> ready;
  for (int id : alive_) {
    for (int producer : producers(id)) {
      waiting[id]++;
      below[producer].push_back(id);
    }
    if (waiting[id] == 0) ready.insert(id);
  }
  while (!ready.empty()) {
    const int id = ready.extract(ready.begin()).value();
    order.push_back(id);
    for (int next : below[id])
      if (--waiting[next] == 0) ready.insert(next);
  }
  for (int id : alive_) CHECK(waiting[id] == 0, "fusion made a cycle at ", name(id));
  return order;
}

bool GroupGraph::read_elsewhere(int buffer, int first, int second) const {
  return std::any_of(readers_[buffer].begin(), readers_[buffer].end(),
                     [&](int reader) { return reader != first && reader != second; });
}

size_t GroupGraph::results_of(int first, int second) const {
  size_t count = 0;
  for (const int group : {first, second})
    for (const int buffer : writes(group)) count += read_elsewhere(buffer, first, second);
  return count;
}

}  // namespace tiny_compile
