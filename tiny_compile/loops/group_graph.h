// Which growing kernels read from which: what fusion asks before it makes two of them one, and
// what it changes when it has.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tiny_compile/loops/group.h"

namespace tiny_compile {

// Groups have numbers, in the order in which they came; one that another took in keeps none.
class GroupGraph {
 public:
  explicit GroupGraph(size_t buffers) { grow(buffers); }
  void grow(size_t buffers);  // there are so many now

  int add(const Kernel& kernel);
  void replace(int id, Kernel kernel);  // of the same reads and writes
  void set_writer(int buffer, int id) { writer_[buffer] = id; }
  void absorb(int first, int second);  // first's kernel has become the whole
  void note_reads(int id);             // a group's loads have changed

  const std::set<int>& alive() const { return alive_; }
  Group& group(int id) const { return *members_[id].group; }
  std::string name(int id) const;
  const std::set<int>& reads(int id) const { return members_[id].reads; }  // not of its own
  const std::set<int>& writes(int id) const { return members_[id].writes; }
  int writer(int buffer) const { return writer_[buffer]; }  // -1: an input
  const std::set<int>& readers(int buffer) const { return readers_[buffer]; }
  size_t buffers() const { return readers_.size(); }
  bool read_elsewhere(int buffer, int first, int second) const;  // by a third group
  size_t results_of(int first, int second) const;                // buffers they write that are

  std::vector<int> producers(int id) const;  // latest first
  bool waits_for(int id, int other) const { return members_[id].above.has(other); }
  bool waits_between(int producer, int consumer) const;  // producer -> a third -> consumer
  bool brings_waits(int id, int producer) const;  // id waits for others than the producer does
  std::vector<int> topological_order() const;

 private:
  struct Member {
    std::unique_ptr<Group> group;    // null once another took it in
    std::vector<std::string> words;  // op names, for the kernel's name
    std::string number;              // "12" of "add_12"
    GroupSet above;                  // groups it waits for
    std::set<int> reads, writes;     // buffers
  };
  void pass_on(int first, int second);

  std::vector<Member> members_;
  std::set<int> alive_;                 // members that no other took in
  std::vector<int> writer_;             // the group that writes a buffer
  std::vector<std::set<int>> readers_;  // the groups that load a buffer
};

}  // namespace tiny_compile
