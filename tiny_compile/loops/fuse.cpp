// Which kernels may become one? Kernels are taken in order; each is offered to the groups whose
// results it reads, then, where that is refused, takes a cheap producer's formula into itself;
// groups that share reads are joined last. Only pairs that share a buffer are ever considered.
//
//   add_2, gelu_3 (reads t2)   =>   add_gelu_3, and t2 is gone
//
// Two kernels must not merge if a third one lies between them: P -> Q -> C and P -> C would
// make the merged kernel wait for itself. `above` holds the groups that each group waits for.
//
// A matmul that is left to the library (Program::matmul) stays alone until the others are
// fused; it then takes in its one reader where the library can do all of it.
#include "tiny_compile/loops/fuse.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/columns.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/inline.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/merge.h"
#include "tiny_compile/loops/read_again.h"
#include "tiny_compile/loops/read_past_pads.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostRefusals = 1000;
constexpr size_t kMostSiblings = 16;   // groups that each reader of a buffer is tried with
constexpr int kMostResults = 32;       // stores of a kernel that siblings join
constexpr size_t kMostReads = 128;     // buffers that a fused kernel reads
constexpr int kMostWaiting = 4;        // large ones that nobody else reads
constexpr int64_t kLarge = 1 << 20;    // elements
constexpr size_t kMostScalars = 2048;  // of one: compilers need more than linear time
constexpr size_t kMostWords = 5;       // ops named in a fused kernel's name
constexpr int kMostChoices = 3;        // operands of a concat that is evaluated step by step
const std::string kLibrary = "matmul is left to the library: ";

struct Member {
  std::unique_ptr<Group> group;    // null once another took it in
  std::vector<std::string> words;  // op names, for the kernel's name
  std::string number;              // "12" of "add_12"
  GroupSet above;                  // groups it waits for
  std::set<int> reads, writes;     // buffers; what it reads of its own does not count
  bool library = false;            // a matmul that is left to the library
};

class Fusion {
 public:
  explicit Fusion(const Program& program)
      : program_(program),
        writer_(program.buffers.size(), -1),
        readers_(program.buffers.size()),
        all_readers_(program.buffers.size()) {
    for (const Kernel& kernel : program.kernels)
      for (int buffer : loaded_by(kernel)) all_readers_[buffer]++;
  }

  Program run() {
    for (const Kernel& kernel : program_.kernels) take(kernel);
    add_epilogues();
    join_siblings();
    add_folds();
    return finish();
  }

 private:
  static std::set<int> loaded_by(const Kernel& kernel) {
    std::set<int> buffers;
    for (const Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Load) buffers.insert(scalar.buffer);
    }
    return buffers;
  }

  // The kernel becomes a group, and as far as it may, part of the groups it reads from.
  void take(const Kernel& kernel) {
    int id = add_member(kernel);
    std::set<int> refused;
    for (bool changed = true; changed;) {
      changed = false;
      for (int producer : producers(id)) {
        if (refused.count(producer) || members_[producer].library) continue;
        if (const std::string reason = kept_apart(producer, id); !reason.empty()) {
          refused.insert(producer);
          refuse(producer, id, reason);
          continue;
        }
        std::string reason = waits_between(producer, id) ? "another kernel lies between them"
                                                         : too_large(producer, id);
        if (reason.empty()) reason = merge_consumer(program_, *group(producer), *group(id));
        if (reason.empty()) {
          absorb(producer, id);
          id = producer;
          changed = true;
          break;
        }
        const std::string again = inline_into(id, producer);
        if (again.empty()) {
          changed = true;
          break;
        }
        refused.insert(producer);
        refuse(producer, id, again == reason ? reason : str(reason, "; ", again));
      }
    }
  }

  int add_member(const Kernel& kernel) {
    const int id = static_cast<int>(members_.size());
    const size_t cut = kernel.name.rfind('_');
    Member member;
    member.group = std::make_unique<Group>(kernel);
    member.words = {kernel.name.substr(0, cut)};
    member.number = kernel.name.substr(cut + 1);
    member.library =
        program_.matmul != Matmul::Generated && library_matmul(program_, kernel).matmul;
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
  void note_reads(int id) {
    Member& member = members_[id];
    for (int buffer : member.reads) readers_[buffer].erase(id);
    member.reads.clear();
    for (int buffer : loaded_by(member.group->kernel)) {
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

  // A large result that nobody else reads lies in memory until the kernel runs.
  bool waits(int buffer) const {
    const Expr& size = program_.buffers[buffer].size;
    return writer_[buffer] >= 0 && all_readers_[buffer] == 1 && size.is_constant() &&
           size.constant() >= kLarge;
  }

  // Why one kernel would be too large to hold both; "" if it would not.
  std::string too_large(int first, int second) const {
    if (group(first)->kernel.scalars.size() + group(second)->kernel.scalars.size() >
        kMostScalars)
      return "together they compute too much for one kernel";
    std::set<int> reads = members_[first].reads;
    for (const int buffer : members_[second].reads)
      if (writer_[buffer] != first) reads.insert(buffer);
    if (reads.size() > kMostReads) return "together they read too many buffers";
    const auto waiting =
        std::count_if(reads.begin(), reads.end(), [&](int b) { return waits(b); });
    return waiting > kMostWaiting ? "together they would keep many large results waiting" : "";
  }

  // "" if the consumer computes one of the producer's results itself now.
  std::string inline_into(int consumer, int producer) {
    std::string reason = too_large(consumer, producer);
    if (!reason.empty()) return reason;
    bool any = false;
    reason = "its row's work is done once";
    for (int buffer : members_[consumer].reads) {
      if (writer_[buffer] != producer || group(producer)->store_to(buffer) < 0) continue;
      const bool only_user =
          program_.buffers[buffer].role == Role::Temporary && all_readers_[buffer] == 1;
      const std::string refusal =
          inline_producer(program_, *group(consumer), *group(producer), buffer, only_user);
      any = any || refusal.empty();
      reason = refusal;
    }
    if (any) note_reads(consumer);
    return any ? "" : reason;
  }

  void add_epilogues() {
    const std::set<int> groups = alive_;
    for (int id : groups) {
      if (!members_[id].library) continue;
      std::set<int> readers;
      for (int buffer : members_[id].writes)
        readers.insert(readers_[buffer].begin(), readers_[buffer].end());
      for (int reader : readers) {
        if (members_[reader].library) continue;
        const std::string reason =
            readers.size() > 1 ? "several kernels read its result" : add_epilogue(id, reader);
        if (!reason.empty()) refuse(id, reader, kLibrary + reason);
      }
    }
  }

  // "" if the matmul and its only reader are one call of the library, of the same matrices.
  std::string add_epilogue(int matmul, int reader) {
    Kernel kernel;
    if (const std::string reason = with_epilogue(matmul, reader, kernel); !reason.empty())
      return reason;
    members_[matmul].group = std::make_unique<Group>(kernel);
    absorb(matmul, reader);
    return "";
  }

  std::string with_epilogue(int matmul, int reader, Kernel& kernel) const {
    if (waits_between(matmul, reader)) return "another kernel lies between them";
    const Kernel& alone = group(matmul)->kernel;
    Group both(alone);
    if (const std::string reason = merge_consumer(program_, both, *group(reader));
        !reason.empty())
      return reason;
    std::vector<bool> loaded(program_.buffers.size());
    for (size_t b = 0; b < loaded.size(); b++)
      loaded[b] = readers_[b].size() > readers_[b].count(reader);
    kernel = without_dead_stores(program_, both.finish(), loaded);
    const LibraryMatch match = library_matmul(program_, kernel);
    if (!match.matmul) return match.reason;
    const LibraryMatmul before = *library_matmul(program_, alone).matmul;
    if (match.matmul->m * match.matmul->n != before.m * before.n ||
        match.matmul->calls() > before.calls())
      return "its result would be written in pieces";
    return "";
  }

  // Why the two stay apart whatever else they are; "" where they may not.
  std::string kept_apart(int producer, int id) const {
    if (members_[id].library) return kLibrary + "it reads its operands from memory";
    if (chooses_again(producer, id))
      return str("its steps would each choose among more than ", kMostChoices, " buffers");
    return adds_columns_of(producer, id) ? "it adds up columns of what is in memory anyway"
                                         : "";
  }

  // Whether each of a row's steps would find out anew which of a long concat's operands it reads.
  bool chooses_again(int producer, int id) const {
    const Group& writes = *group(producer);
    if (!group(id)->sequential()) return false;
    return std::any_of(members_[id].reads.begin(), members_[id].reads.end(), [&](int buffer) {
      const int store = writer_[buffer] == producer ? writes.store_to(buffer) : -1;
      return store >= 0 && choices(writes.kernel, writes.kernel.steps[store]) > kMostChoices;
    });
  }

  // Returned, or read by the library.
  bool stays_in_memory(int buffer) const {
    return program_.buffers[buffer].role == Role::Output ||
           std::any_of(readers_[buffer].begin(), readers_[buffer].end(),
                       [&](int reader) { return members_[reader].library; });
  }

  // Whether a reduction down columns would compute anew what it can read.
  bool adds_columns_of(int producer, int id) const {
    const Group &writes = *group(producer), &adds = *group(id);
    if (writes.sequential() || column_length(adds.kernel, adds.rows) == 0) return false;
    bool costly = has_long_columns(program_, adds.kernel, adds.rows);
    for (int buffer : members_[id].reads) {
      if (writer_[buffer] != producer) continue;
      const int store = writes.store_to(buffer);
      if (store < 0 || !stays_in_memory(buffer)) return false;
      costly = costly || is_costly(writes.kernel, writes.kernel.steps[store]);
    }
    return costly;
  }

  // Each reader of a buffer joins the first group of readers that takes it.
  void join_siblings() {
    for (size_t buffer = 0; buffer < readers_.size(); buffer++) {
      std::vector<int> apart;  // the last few that did not join
      const std::vector<int> readers(readers_[buffer].begin(), readers_[buffer].end());
      for (int reader : readers) {
        std::erase_if(apart, [&](int id) { return is_full(id); });
        const bool joined = std::any_of(apart.begin(), apart.end(),
                                        [&](int first) { return join_sibling(first, reader); });
        if (!joined && apart.size() < kMostSiblings) apart.push_back(reader);
      }
    }
  }

  // Sums of columns become part of a kernel that goes over the rows of what they add.
  void add_folds() {
    if (program_.target != Target::Cuda) return;
    const std::set<int> groups = alive_;
    std::set<int> folding;
    std::vector<bool> loaded;
    for (const std::set<int>& readers : readers_) loaded.push_back(!readers.empty());
    for (int id : groups) {
      if (!group(id)->has(StepKind::Reduce)) continue;
      const std::optional<Kernel> fold = as_fold(
          program_, collapse_axes(without_dead_stores(program_, group(id)->finish(), loaded)));
      if (!fold) continue;
      const std::vector<int> above = producers(id);
      std::set<int> others(above.begin(), above.end());
      for (int buffer : members_[id].reads)
        others.insert(readers_[buffer].begin(), readers_[buffer].end());
      const auto taken = std::find_if(others.begin(), others.end(),
                                      [&](int other) { return fold_into(other, id, *fold); });
      if (taken != others.end()) folding.insert(*taken);
    }
    for (int id : folding) cut(id);
  }

  bool fold_into(int first, int second, const Kernel& fold) {
    if (first == second || !group(first)->has(StepKind::Reduce)) return false;
    auto rows = std::make_unique<Group>(collapse_axes(group(first)->finish()));
    std::string reason = why_no_folds(rows->kernel, fold);
    if (reason.empty() && waits_between(first, second))
      reason = "another kernel lies between them";
    if (reason.empty()) reason = too_large(first, second);
    if (reason.empty() && reads_folds(first, second))
      reason = "it reads sums that are known after the last row";
    if (reason.empty())
      reason = members_[second].above.has(first) ? merge_consumer(program_, *rows, Group(fold))
                                                 : merge_sibling(program_, *rows, Group(fold));
    if (reason.empty()) reason = why_not_cut(rows->finish());
    if (!reason.empty()) return refuse(first, second, reason), false;
    members_[first].group = std::move(rows);
    absorb(first, second);
    return true;
  }

  bool reads_folds(int first, int second) const {
    const std::set<int>& reads = members_[second].reads;
    return std::any_of(reads.begin(), reads.end(), [&](int buffer) {
      return writer_[buffer] == first && group(first)->store_to(buffer) < 0;
    });
  }

  void cut(int id) {
    Kernel kernel = group(id)->finish();
    kernel.name = name(id);
    CutFolds parts = cut_folds(program_, kernel);
    for (std::vector<int>* list : {&writer_, &all_readers_})
      list->resize(program_.buffers.size(), -1);
    readers_.resize(program_.buffers.size());
    members_[id].group = std::make_unique<Group>(std::move(parts.rows));
    for (int buffer : loaded_by(parts.finish)) writer_[buffer] = id;
    add_member(parts.finish);
  }

  bool is_full(int id) const { return group(id)->count(StepKind::Store) >= kMostResults; }

  bool join_sibling(int first, int second) {
    if (members_[second].above.has(first) || members_[first].above.has(second)) return false;
    if (!tried_.insert({first, second}).second) return false;
    std::string reason = too_large(first, second);
    if (reason.empty()) reason = merge_sibling(program_, *group(first), *group(second));
    if (!reason.empty()) return refuse(first, second, reason), false;
    absorb(first, second);
    return true;
  }

  // Whether a path producer -> other group -> consumer exists.
  bool waits_between(int producer, int consumer) const {
    if (members_[producer].above.has(consumer)) return true;
    for (int other : producers(consumer)) {
      if (other != producer && members_[other].above.has(producer)) return true;
    }
    return false;
  }

  void absorb(int first, int second) {
    Member& into = members_[first];
    Member from = std::move(members_[second]);
    members_[second].group = nullptr;
    alive_.erase(second);
    for (const std::string& word : from.words) {
      if (into.words.size() < kMostWords && into.words.back() != word)
        into.words.push_back(word);
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
  void pass_on(int first, int second) {
    for (int id : alive_) {
      GroupSet& above = members_[id].above;
      if (id == first || !(above.has(first) || above.has(second))) continue;
      above.remove(second);
      above.add(first);
      above.add_all(members_[first].above);
    }
  }

  std::vector<int> producers(int id) const {  // latest first
    std::set<int, std::greater<>> result;
    for (int buffer : members_[id].reads)
      if (writer_[buffer] >= 0) result.insert(writer_[buffer]);
    return {result.begin(), result.end()};
  }

  Group* group(int id) const { return members_[id].group.get(); }

  std::string name(int id) const {
    return join(members_[id].words, "_") + "_" + members_[id].number;
  }

  void refuse(int first, int second, const std::string& reason) {
    if (refusals_.size() < kMostRefusals)
      refusals_.push_back(name(first) + " + " + name(second) + ": " + reason);
  }

  // From the last kernel to the first, so that a result whose readers are gone goes with them.
  Program finish() {
    Program result = program_;
    result.kernels.clear();
    result.launches.clear();
    result.refusals = refusals_;
    const std::vector<int> order = topological_order();
    std::vector<bool> loaded(program_.buffers.size());
    for (size_t k = order.size(); k-- > 0;) {
      Kernel kernel =
          without_dead_stores(program_, without_repeats(group(order[k])->finish()), loaded);
      if (kernel.steps.empty()) continue;
      for (int buffer : loaded_by(kernel)) loaded[buffer] = true;
      kernel.name = name(order[k]);
      result.kernels.push_back(std::move(kernel));
    }
    std::reverse(result.kernels.begin(), result.kernels.end());
    for (size_t k = 0; k < result.kernels.size(); k++)
      result.launches.push_back({static_cast<int>(k)});
    return drop_unused_buffers(std::move(result));
  }

  std::vector<int> topological_order() const {
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

  Program program_;
  std::vector<Member> members_;
  std::set<int> alive_;                  // members that no other took in
  std::vector<int> writer_;              // the group that writes a buffer, -1 for inputs
  std::vector<std::set<int>> readers_;   // the groups that load a buffer
  std::vector<int> all_readers_;         // how many kernels of the unfused program do
  std::set<std::pair<int, int>> tried_;  // siblings
  std::vector<std::string> refusals_;
};

}  // namespace

Program fuse(const Program& program) {
  return has_schedule(program) ? program : read_again(Fusion(read_past_pads(program)).run());
}

}  // namespace tiny_compile
