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

std::set<int> read_by_scheduled(const Program& program) {
  std::set<int> buffers;
  for (const Kernel& kernel : program.kernels) {
    if (!is_scheduled(kernel)) continue;
    for (int buffer : loaded_buffers(kernel)) buffers.insert(buffer);
  }
  return buffers;
}

struct Fusion : Grouped {
  explicit Fusion(Program given)
      : Grouped(std::move(given)), scheduled_reads(read_by_scheduled(program)) {}

  const std::set<int> scheduled_reads;  // buffers
  std::set<std::pair<int, int>> tried;  // siblings
};

// --- what keeps two apart ---

bool is_given(const Grouped& g, int id) { return is_scheduled(g.groups.group(id).kernel); }

// Whether each of a row's steps would find out anew which of a long concat's operands it reads.
bool chooses_again(const Grouped& g, int producer, int id) {
  const Group& writes = g.groups.group(producer);
  if (!g.groups.group(id).sequential()) return false;
  return std::any_of(g.groups.reads(id).begin(), g.groups.reads(id).end(), [&](int buffer) {
    const int store = g.groups.writer(buffer) == producer ? writes.store_to(buffer) : -1;
    return store >= 0 && chooses(writes.kernel, writes.kernel.steps[store]);
  });
}

// Returned, or read by what has a schedule.
bool stays_in_memory(const Fusion& f, int buffer) {
  return f.program.buffers[buffer].role == Role::Output || f.scheduled_reads.count(buffer) > 0;
}

// Whether a reduction down columns would compute anew what it can read.
bool adds_columns_of(const Fusion& f, int producer, int id) {
  const Group &writes = f.groups.group(producer), &adds = f.groups.group(id);
  if (writes.sequential() || column_length(adds.kernel, adds.rows) == 0) return false;
  bool costly = is_apart_from_points(f.program, adds.kernel, adds.rows);
  for (int buffer : f.groups.reads(id)) {
    if (f.groups.writer(buffer) != producer) continue;
    const int store = writes.store_to(buffer);
    if (store < 0 || !stays_in_memory(f, buffer)) return false;
    costly = costly || is_costly(writes.kernel, writes.kernel.steps[store]);
  }
  return costly;
}

// Why the two stay apart whatever else they are; "" where they may not.
std::string kept_apart(const Fusion& f, int producer, int id) {
  if (is_given(f, id)) return kScheduled;
  if (chooses_again(f, producer, id))
    return str("its steps would each choose among more than ", kMostChoices, " buffers");
  return adds_columns_of(f, producer, id) ? "it adds up columns of what is in memory anyway"
                                          : "";
}

// What is computed again waits for its readers: in a kernel that runs earlier it would be kept.
bool comes_again(const Grouped& g, int producer, int id) {
  return g.groups.group(id).kernel.again > g.groups.group(producer).kernel.again;
}

int64_t elements(const Grouped& g, int buffer) {
  return g.program.buffers[buffer].size.bounds().high;
}

// Whether a kernel computes again what would be kept if it were part of `other`, which runs
// earlier: where a reader of it waits for more than the two do. A number of each row may wait.
bool keeps_again(const Grouped& g, int id, int other) {
  const auto is_known = [&](int producer) {
    return producer == id || producer == other || g.groups.waits_for(id, producer) ||
           g.groups.waits_for(other, producer);
  };
  const auto waits_for_more = [&](int reader) {
    const std::vector<int> above = g.groups.producers(reader);
    return !std::all_of(above.begin(), above.end(), is_known);
  };
  int64_t most = 0;
  for (const int buffer : g.groups.reads(id)) most = std::max(most, elements(g, buffer));
  const std::set<int>& writes = g.groups.writes(id);
  return g.groups.group(id).kernel.again > 0 &&
         std::any_of(writes.begin(), writes.end(), [&](int buffer) {
           const std::set<int>& readers = g.groups.readers(buffer);
           return g.program.buffers[buffer].role != Role::Output &&
                  elements(g, buffer) > most / kRow &&
                  std::any_of(readers.begin(), readers.end(), waits_for_more);
         });
}

// --- with what it reads ---

// Whether others that read one number of the producer would wait for what the consumer waits for.
bool delays_others(const Grouped& g, int producer, int id) {
  if (!g.groups.brings_waits(id, producer)) return false;
  const std::set<int>& writes = g.groups.writes(producer);
  return std::all_of(
             writes.begin(), writes.end(),
             [&](int buffer) { return g.program.buffers[buffer].size.bounds().high == 1; }) &&
         std::any_of(writes.begin(), writes.end(),
                     [&](int buffer) { return g.readers[buffer] > 1; });
}

std::string join_consumer(Fusion& f, int producer, int id) {
  std::string reason = f.groups.waits_between(producer, id) ? "another kernel lies between them"
                                                            : f.too_large(producer, id);
  if (reason.empty() && delays_others(f, producer, id))
    reason = "others need its result, and would wait for more";
  if (reason.empty())
    reason = merge_consumer(f.program, f.groups.group(producer), f.groups.group(id));
  if (reason.empty()) f.groups.absorb(producer, id);
  return reason;
}

// "" if the consumer computes one of the producer's results itself now.
std::string inline_into(Fusion& f, int consumer, int producer) {
  std::string reason = f.too_large(consumer, producer);
  if (!reason.empty()) return reason;
  bool any = false;
  reason = "its row's work is done once";
  for (int buffer : f.groups.reads(consumer)) {
    if (f.groups.writer(buffer) != producer || f.groups.group(producer).store_to(buffer) < 0)
      continue;
    const bool only_user =
        f.program.buffers[buffer].role == Role::Temporary && f.readers[buffer] == 1;
    const std::string refusal = inline_producer(f.program, f.groups.group(consumer),
                                                f.groups.group(producer), buffer, only_user);
    any = any || refusal.empty();
    reason = refusal;
  }
  if (any) f.groups.note_reads(consumer);
  return any ? "" : reason;
}

// The kernel becomes a group, and as far as it may, part of the groups it reads from.
void take(Fusion& f, size_t kernel) {
  int id = f.groups.add(f.program.kernels[kernel]);
  std::set<int> refused;
  for (bool changed = true; changed;) {
    changed = false;
    for (int producer : f.groups.producers(id)) {
      if (refused.count(producer) || is_given(f, producer)) continue;
      if (const std::string reason = kept_apart(f, producer, id); !reason.empty()) {
        refused.insert(producer);
        f.refuse(producer, id, reason);
        continue;
      }
      const std::string reason =
          comes_again(f, producer, id) ? kAgain : join_consumer(f, producer, id);
      if (reason.empty()) {
        id = producer;
        changed = true;
        break;
      }
      const std::string again = inline_into(f, id, producer);
      if (again.empty()) {
        changed = true;
        break;
      }
      refused.insert(producer);
      f.refuse(producer, id, again == reason ? reason : str(reason, "; ", again));
    }
  }
}

// What is computed again is not kept by those who read it at once.
void join_again(Fusion& f) {
  const std::set<int> groups = f.groups.alive();
  for (const int id : groups) {
    for (const int producer : f.groups.producers(id)) {
      const int again = f.groups.group(producer).kernel.again;
      if (!comes_again(f, producer, id) || keeps_again(f, id, producer) ||
          is_given(f, producer) || !kept_apart(f, producer, id).empty() ||
          !join_consumer(f, producer, id).empty())
        continue;
      f.groups.group(producer).kernel.again = again;
      break;
    }
  }
}

// --- with what reads the same ---

bool is_full(const Grouped& g, int id) {
  return g.groups.group(id).count(StepKind::Store) >= static_cast<int>(kMostResults);
}

bool join_sibling(Fusion& f, int first, int second) {
  if (f.groups.waits_for(second, first) || f.groups.waits_for(first, second)) return false;
  if (!f.tried.insert({first, second}).second) return false;
  std::string reason =
      is_given(f, first) || is_given(f, second) ? kScheduled : f.too_large(first, second);
  if (reason.empty() && (keeps_again(f, first, second) || keeps_again(f, second, first)))
    reason = kAgain;
  if (reason.empty())
    reason = merge_sibling(f.program, f.groups.group(first), f.groups.group(second));
  if (!reason.empty()) return f.refuse(first, second, reason), false;
  f.groups.absorb(first, second);
  return true;
}

// Each reader of a buffer joins the first group of readers that takes it.
void join_siblings(Fusion& f) {
  for (size_t buffer = 0; buffer < f.groups.buffers(); buffer++) {
    std::vector<int> apart;  // the last few that did not join
    const std::vector<int> readers(f.groups.readers(buffer).begin(),
                                   f.groups.readers(buffer).end());
    for (int reader : readers) {
      std::erase_if(apart, [&](int id) { return is_full(f, id); });
      const bool joined = std::any_of(apart.begin(), apart.end(), [&](int first) {
        return join_sibling(f, first, reader);
      });
      if (!joined && apart.size() < kMostSiblings) apart.push_back(reader);
    }
  }
}

}  // namespace

Program fuse(const Program& program) {
  if (is_past_fusion(program)) return program;
  Fusion first(read_past_pads(program));
  for (size_t k = 0; k < first.program.kernels.size(); k++) take(first, k);
  join_again(first);
  join_siblings(first);
  const Program fused = first.finish();
  const Program read = read_again(fused);  // some read other arrays now
  return read == fused ? fused : join_what_shares_reads(read);
}

Program join_what_shares_reads(const Program& program) {
  Fusion fusion(program);
  fusion.add_all();
  join_siblings(fusion);
  return fusion.finish();
}

}  // namespace tiny_compile
