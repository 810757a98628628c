// Which kernels may become one? Kernels are taken in order; each is offered to the groups whose
// results it reads, then, where that is refused, takes a cheap producer's formula into itself;
// what a gradient computes again joins what computed it first, and groups that share reads are joined
// last. Only pairs that share a buffer are ever considered.
//
//   add_2, gelu_3 (reads t2)   =>   add_gelu_3, and t2 is gone
//
// Two kernels must not merge if a third one lies between them: P -> Q -> C and P -> C would
// make the merged kernel wait for itself. `above` holds the groups that each group waits for.
//
// What has a schedule is past fusion, and stays as it is: a product that is left to a vendor's
// library (use_library.h), say.
#include "tiny_compile/loops/fuse.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/columns.h"
#include "tiny_compile/loops/grouped.h"
#include "tiny_compile/loops/inline.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/merge.h"
#include "tiny_compile/loops/read_again.h"
#include "tiny_compile/loops/read_past_pads.h"
#include "tiny_compile/loops/work.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostSiblings = 16;  // groups that each reader of a buffer is tried with
constexpr int64_t kRow = 64;          // elements that one number may stand for
const std::string kAgain = "it is computed again, later";
const std::string kScheduled = "it has a schedule, and reads its operands from memory";

class Fusion {
 public:
  explicit Fusion(Program given)
      : all_(std::move(given)), program_(all_.program), groups_(all_.groups) {
    for (const Kernel& kernel : program_.kernels) {
      if (!is_scheduled(kernel)) continue;
      for (int buffer : loaded_buffers(kernel)) scheduled_reads_.insert(buffer);
    }
  }

  Program run() {
    for (size_t k = 0; k < program_.kernels.size(); k++) take(k);
    join_again();
    join_siblings();
    return all_.finish();
  }

  // Only what shares reads: of a program that was fused, and reads other arrays since.
  Program join() {
    all_.add_all();
    join_siblings();
    return all_.finish();
  }

 private:
  // The kernel becomes a group, and as far as it may, part of the groups it reads from.
  void take(size_t kernel) {
    int id = groups_.add(program_.kernels[kernel]);
    std::set<int> refused;
    for (bool changed = true; changed;) {
      changed = false;
      for (int producer : groups_.producers(id)) {
        if (refused.count(producer) || is_given(producer)) continue;
        if (const std::string reason = kept_apart(producer, id); !reason.empty()) {
          refused.insert(producer);
          all_.refuse(producer, id, reason);
          continue;
        }
        const std::string reason =
            comes_again(producer, id) ? kAgain : join_consumer(producer, id);
        if (reason.empty()) {
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
        all_.refuse(producer, id, again == reason ? reason : str(reason, "; ", again));
      }
    }
  }

  // What is computed again waits for its readers: in a kernel that runs earlier it would be kept.
  bool comes_again(int producer, int id) const {
    return groups_.group(id).kernel.again > groups_.group(producer).kernel.again;
  }

  // Whether others that read one number of the producer would wait for what the consumer waits for.
  bool delays_others(int producer, int id) const {
    if (!groups_.brings_waits(id, producer)) return false;
    const std::set<int>& writes = groups_.writes(producer);
    return std::all_of(
               writes.begin(), writes.end(),
               [&](int buffer) { return program_.buffers[buffer].size.bounds().high == 1; }) &&
           std::any_of(writes.begin(), writes.end(),
                       [&](int buffer) { return all_.readers[buffer] > 1; });
  }

  std::string join_consumer(int producer, int id) {
    std::string reason = groups_.waits_between(producer, id)
                             ? "another kernel lies between them"
                             : all_.too_large(producer, id);
    if (reason.empty() && delays_others(producer, id))
      reason = "others need its result, and would wait for more";
    if (reason.empty())
      reason = merge_consumer(program_, groups_.group(producer), groups_.group(id));
    if (reason.empty()) groups_.absorb(producer, id);
    return reason;
  }

  // What is computed again is not kept by those who read it at once.
  void join_again() {
    const std::set<int> groups = groups_.alive();
    for (const int id : groups) {
      for (const int producer : groups_.producers(id)) {
        const int again = groups_.group(producer).kernel.again;
        if (!comes_again(producer, id) || keeps_again(id, producer) || is_given(producer) ||
            !kept_apart(producer, id).empty() || !join_consumer(producer, id).empty())
          continue;
        groups_.group(producer).kernel.again = again;
        break;
      }
    }
  }

  bool is_given(int id) const { return is_scheduled(groups_.group(id).kernel); }

  // "" if the consumer computes one of the producer's results itself now.
  std::string inline_into(int consumer, int producer) {
    std::string reason = all_.too_large(consumer, producer);
    if (!reason.empty()) return reason;
    bool any = false;
    reason = "its row's work is done once";
    for (int buffer : groups_.reads(consumer)) {
      if (groups_.writer(buffer) != producer || groups_.group(producer).store_to(buffer) < 0)
        continue;
      const bool only_user =
          program_.buffers[buffer].role == Role::Temporary && all_.readers[buffer] == 1;
      const std::string refusal = inline_producer(program_, groups_.group(consumer),
                                                  groups_.group(producer), buffer, only_user);
      any = any || refusal.empty();
      reason = refusal;
    }
    if (any) groups_.note_reads(consumer);
    return any ? "" : reason;
  }

  // Why the two stay apart whatever else they are; "" where they may not.
  std::string kept_apart(int producer, int id) const {
    if (is_given(id)) return kScheduled;
    if (chooses_again(producer, id))
      return str("its steps would each choose among more than ", kMostChoices, " buffers");
    return adds_columns_of(producer, id) ? "it adds up columns of what is in memory anyway"
                                         : "";
  }

  // Whether each of a row's steps would find out anew which of a long concat's operands it reads.
  bool chooses_again(int producer, int id) const {
    const Group& writes = groups_.group(producer);
    if (!groups_.group(id).sequential()) return false;
    return std::any_of(groups_.reads(id).begin(), groups_.reads(id).end(), [&](int buffer) {
      const int store = groups_.writer(buffer) == producer ? writes.store_to(buffer) : -1;
      return store >= 0 && chooses(writes.kernel, writes.kernel.steps[store]);
    });
  }

  // Returned, or read by what has a schedule.
  bool stays_in_memory(int buffer) const {
    return program_.buffers[buffer].role == Role::Output || scheduled_reads_.count(buffer) > 0;
  }

  // Whether a reduction down columns would compute anew what it can read.
  bool adds_columns_of(int producer, int id) const {
    const Group &writes = groups_.group(producer), &adds = groups_.group(id);
    if (writes.sequential() || column_length(adds.kernel, adds.rows) == 0) return false;
    bool costly = is_apart_from_points(program_, adds.kernel, adds.rows);
    for (int buffer : groups_.reads(id)) {
      if (groups_.writer(buffer) != producer) continue;
      const int store = writes.store_to(buffer);
      if (store < 0 || !stays_in_memory(buffer)) return false;
      costly = costly || is_costly(writes.kernel, writes.kernel.steps[store]);
    }
    return costly;
  }

  // Each reader of a buffer joins the first group of readers that takes it.
  void join_siblings() {
    for (size_t buffer = 0; buffer < groups_.buffers(); buffer++) {
      std::vector<int> apart;  // the last few that did not join
      const std::vector<int> readers(groups_.readers(buffer).begin(),
                                     groups_.readers(buffer).end());
      for (int reader : readers) {
        std::erase_if(apart, [&](int id) { return is_full(id); });
        const bool joined = std::any_of(apart.begin(), apart.end(),
                                        [&](int first) { return join_sibling(first, reader); });
        if (!joined && apart.size() < kMostSiblings) apart.push_back(reader);
      }
    }
  }

  bool is_full(int id) const {
    return groups_.group(id).count(StepKind::Store) >= static_cast<int>(kMostResults);
  }

  // Whether a kernel computes again what would be kept if it were part of `other`, which runs
  // earlier: where a reader of it waits for more than the two do. A number of each row may wait.
  bool keeps_again(int id, int other) const {
    const auto is_known = [&](int producer) {
      return producer == id || producer == other || groups_.waits_for(id, producer) ||
             groups_.waits_for(other, producer);
    };
    const auto waits_for_more = [&](int reader) {
      const std::vector<int> above = groups_.producers(reader);
      return !std::all_of(above.begin(), above.end(), is_known);
    };
    int64_t most = 0;
    for (const int buffer : groups_.reads(id)) most = std::max(most, elements(buffer));
    const std::set<int>& writes = groups_.writes(id);
    return groups_.group(id).kernel.again > 0 &&
           std::any_of(writes.begin(), writes.end(), [&](int buffer) {
             const std::set<int>& readers = groups_.readers(buffer);
             return program_.buffers[buffer].role != Role::Output &&
                    elements(buffer) > most / kRow &&
                    std::any_of(readers.begin(), readers.end(), waits_for_more);
           });
  }

  int64_t elements(int buffer) const { return program_.buffers[buffer].size.bounds().high; }

  bool join_sibling(int first, int second) {
    if (groups_.waits_for(second, first) || groups_.waits_for(first, second)) return false;
    if (!tried_.insert({first, second}).second) return false;
    std::string reason =
        is_given(first) || is_given(second) ? kScheduled : all_.too_large(first, second);
    if (reason.empty() && (keeps_again(first, second) || keeps_again(second, first)))
      reason = kAgain;
    if (reason.empty())
      reason = merge_sibling(program_, groups_.group(first), groups_.group(second));
    if (!reason.empty()) return all_.refuse(first, second, reason), false;
    groups_.absorb(first, second);
    return true;
  }

  Grouped all_;
  const Program& program_;
  GroupGraph& groups_;
  std::set<int> scheduled_reads_;        // buffers
  std::set<std::pair<int, int>> tried_;  // siblings
};

}  // namespace

Program fuse(const Program& program) {
  if (is_past_fusion(program)) return program;
  const Program fused = Fusion(read_past_pads(program)).run();
  Program read = read_again(fused);
  return read == fused ? fused : Fusion(std::move(read)).join();
}

}  // namespace tiny_compile
