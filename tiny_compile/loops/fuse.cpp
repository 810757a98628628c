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
// A matmul that is left to the library (Program::matmul) stays alone until the others are
// fused; it then takes in its one reader where the library can do all of it.
#include "tiny_compile/loops/fuse.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/columns.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/fold.h"
#include "tiny_compile/loops/group_graph.h"
#include "tiny_compile/loops/inline.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/merge.h"
#include "tiny_compile/loops/read_again.h"
#include "tiny_compile/loops/read_past_pads.h"
#include "tiny_compile/loops/work.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostRefusals = 1000;
constexpr size_t kMostSiblings = 16;   // groups that each reader of a buffer is tried with
constexpr size_t kMostResults = 32;    // stores of a kernel that siblings join, or that is long
constexpr size_t kMostReads = 128;     // buffers that a fused kernel reads
constexpr int kMostWaiting = 4;        // large ones that nobody else reads
constexpr int64_t kLarge = 1 << 20;    // elements
constexpr int64_t kRow = 64;           // elements that one number may stand for
constexpr size_t kMostScalars = 2048;  // of one: compilers need more than linear time
constexpr size_t kMostWritten = 1280;  // of all its steps in C++, where each computes its own
const std::string kAgain = "it is computed again, later";
const std::string kLibrary = "matmul is left to the library: ";

class Fusion {
 public:
  explicit Fusion(Program program)
      : program_(std::move(program)),
        groups_(program_.buffers.size()),
        all_readers_(program_.buffers.size()),
        refusals_(program_.refusals) {
    for (const Kernel& kernel : program_.kernels) {
      is_left_.push_back(program_.matmul != Matmul::Generated &&
                         library_matmul(program_, kernel).matmul);
      for (int buffer : loaded_buffers(kernel)) {
        all_readers_[buffer]++;
        if (is_left_.back()) library_reads_.insert(buffer);
      }
    }
  }

  Program run() {
    for (size_t k = 0; k < program_.kernels.size(); k++) take(k);
    add_epilogues();
    join_again();
    join_siblings();
    add_folds();
    return finish();
  }

  // Only what shares reads: of a program that was fused, and reads other arrays since.
  Program join() {
    for (size_t k = 0; k < program_.kernels.size(); k++) add(k);
    join_siblings();
    return finish();
  }

 private:
  int add(size_t kernel) {
    const int id = groups_.add(program_.kernels[kernel]);
    if (is_left_[kernel]) library_.insert(id);
    return id;
  }

  // The kernel becomes a group, and as far as it may, part of the groups it reads from.
  void take(size_t kernel) {
    int id = add(kernel);
    std::set<int> refused;
    for (bool changed = true; changed;) {
      changed = false;
      for (int producer : groups_.producers(id)) {
        if (refused.count(producer) || is_library(producer)) continue;
        if (const std::string reason = kept_apart(producer, id); !reason.empty()) {
          refused.insert(producer);
          refuse(producer, id, reason);
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
        refuse(producer, id, again == reason ? reason : str(reason, "; ", again));
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
                       [&](int buffer) { return all_readers_[buffer] > 1; });
  }

  std::string join_consumer(int producer, int id) {
    std::string reason = groups_.waits_between(producer, id)
                             ? "another kernel lies between them"
                             : too_large(producer, id);
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
        if (!comes_again(producer, id) || keeps_again(id, producer) || is_library(producer) ||
            !kept_apart(producer, id).empty() || !join_consumer(producer, id).empty())
          continue;
        groups_.group(producer).kernel.again = again;
        break;
      }
    }
  }

  bool is_library(int id) const { return library_.count(id) > 0; }

  // A large result that nobody else reads lies in memory until the kernel runs.
  bool waits(int buffer) const {
    const Expr& size = program_.buffers[buffer].size;
    return groups_.writer(buffer) >= 0 && all_readers_[buffer] == 1 && size.is_constant() &&
           size.constant() >= kLarge;
  }

  // Why one kernel would be too large to hold both; "" if it would not.
  std::string too_large(int first, int second) const {
    const size_t scalars = groups_.group(first).kernel.scalars.size() +
                           groups_.group(second).kernel.scalars.size();
    if (scalars > kMostScalars) return "together they compute too much for one kernel";
    if (program_.target == Target::Cpp && scalars > kMostWritten / 8) {
      const auto stays = [&](int buffer) {
        return program_.buffers[buffer].role == Role::Output || all_readers_[buffer] > 1;
      };
      if (written_out(groups_.group(first), groups_.group(second), stays) > kMostWritten)
        return "each of their steps would compute a long chain of values anew";
      if (groups_.results_of(first, second) > kMostResults)
        return "together they write too many buffers";
    }
    std::set<int> reads = groups_.reads(first);
    for (const int buffer : groups_.reads(second))
      if (groups_.writer(buffer) != first) reads.insert(buffer);
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
    for (int buffer : groups_.reads(consumer)) {
      if (groups_.writer(buffer) != producer || groups_.group(producer).store_to(buffer) < 0)
        continue;
      const bool only_user =
          program_.buffers[buffer].role == Role::Temporary && all_readers_[buffer] == 1;
      const std::string refusal = inline_producer(program_, groups_.group(consumer),
                                                  groups_.group(producer), buffer, only_user);
      any = any || refusal.empty();
      reason = refusal;
    }
    if (any) groups_.note_reads(consumer);
    return any ? "" : reason;
  }

  void add_epilogues() {
    const std::set<int> groups = groups_.alive();
    for (int id : groups) {
      if (!is_library(id)) continue;
      std::set<int> readers;
      for (int buffer : groups_.writes(id))
        readers.insert(groups_.readers(buffer).begin(), groups_.readers(buffer).end());
      for (int reader : readers) {
        if (is_library(reader)) continue;
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
    groups_.replace(matmul, kernel);
    groups_.absorb(matmul, reader);
    return "";
  }

  std::string with_epilogue(int matmul, int reader, Kernel& kernel) const {
    if (groups_.waits_between(matmul, reader)) return "another kernel lies between them";
    const Kernel& alone = groups_.group(matmul).kernel;
    Group both(alone);
    if (const std::string reason = merge_consumer(program_, both, groups_.group(reader));
        !reason.empty())
      return reason;
    std::vector<bool> loaded(program_.buffers.size());
    for (size_t b = 0; b < loaded.size(); b++)
      loaded[b] = groups_.readers(b).size() > groups_.readers(b).count(reader);
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
    if (is_library(id)) return kLibrary + "it reads its operands from memory";
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

  // Returned, or read by the library.
  bool stays_in_memory(int buffer) const {
    return program_.buffers[buffer].role == Role::Output || library_reads_.count(buffer) > 0;
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

  // Sums of columns become part of a kernel that goes over the rows of what they add.
  void add_folds() {
    if (program_.target != Target::Cuda) return;
    const std::set<int> groups = groups_.alive();
    std::set<int> folding;
    std::vector<bool> loaded;
    for (size_t b = 0; b < groups_.buffers(); b++)
      loaded.push_back(!groups_.readers(static_cast<int>(b)).empty());
    for (int id : groups) {
      if (!groups_.group(id).has(StepKind::Reduce)) continue;
      const std::optional<Kernel> fold = as_fold(
          program_,
          collapse_axes(without_dead_stores(program_, groups_.group(id).finish(), loaded)));
      if (!fold) continue;
      const std::vector<int> above = groups_.producers(id);
      std::set<int> others(above.begin(), above.end());
      for (int buffer : groups_.reads(id))
        others.insert(groups_.readers(buffer).begin(), groups_.readers(buffer).end());
      const auto taken = std::find_if(others.begin(), others.end(),
                                      [&](int other) { return fold_into(other, id, *fold); });
      if (taken != others.end()) folding.insert(*taken);
    }
    for (int id : folding) cut(id);
  }

  bool fold_into(int first, int second, const Kernel& fold) {
    if (first == second || !groups_.group(first).has(StepKind::Reduce)) return false;
    Group rows(collapse_axes(groups_.group(first).finish()));
    std::string reason = why_no_folds(rows.kernel, fold);
    if (reason.empty() && groups_.waits_between(first, second))
      reason = "another kernel lies between them";
    if (reason.empty()) reason = too_large(first, second);
    if (reason.empty() && reads_folds(first, second))
      reason = "it reads sums that are known after the last row";
    if (reason.empty())
      reason = groups_.waits_for(second, first) ? merge_consumer(program_, rows, Group(fold))
                                                : merge_sibling(program_, rows, Group(fold));
    if (reason.empty()) reason = why_not_cut(rows.finish());
    if (!reason.empty()) return refuse(first, second, reason), false;
    groups_.replace(first, rows.finish());
    groups_.absorb(first, second);
    return true;
  }

  bool reads_folds(int first, int second) const {
    const std::set<int>& reads = groups_.reads(second);
    return std::any_of(reads.begin(), reads.end(), [&](int buffer) {
      return groups_.writer(buffer) == first && groups_.group(first).store_to(buffer) < 0;
    });
  }

  void cut(int id) {
    Kernel kernel = groups_.group(id).finish();
    kernel.name = groups_.name(id);
    CutFolds parts = cut_folds(program_, kernel);
    all_readers_.resize(program_.buffers.size(), -1);
    groups_.grow(program_.buffers.size());
    groups_.replace(id, std::move(parts.rows));
    for (int buffer : loaded_buffers(parts.finish)) groups_.set_writer(buffer, id);
    groups_.add(parts.finish);
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
    std::string reason = too_large(first, second);
    if (reason.empty() && (keeps_again(first, second) || keeps_again(second, first)))
      reason = kAgain;
    if (reason.empty())
      reason = merge_sibling(program_, groups_.group(first), groups_.group(second));
    if (!reason.empty()) return refuse(first, second, reason), false;
    groups_.absorb(first, second);
    return true;
  }

  void refuse(int first, int second, const std::string& reason) {
    const std::string refusal =
        groups_.name(first) + " + " + groups_.name(second) + ": " + reason;
    if (refusals_.size() < kMostRefusals &&
        std::count(refusals_.begin(), refusals_.end(), refusal) == 0)
      refusals_.push_back(refusal);
  }

  // From the last kernel to the first, so that a result whose readers are gone goes with them.
  Program finish() {
    Program result = program_;
    result.kernels.clear();
    result.launches.clear();
    result.refusals = refusals_;
    const std::vector<int> order = groups_.topological_order();
    std::vector<bool> loaded(program_.buffers.size());
    for (size_t k = order.size(); k-- > 0;) {
      Kernel kernel = without_dead_stores(
          program_, without_repeats(groups_.group(order[k]).finish()), loaded);
      if (kernel.steps.empty()) continue;
      for (int buffer : loaded_buffers(kernel)) loaded[buffer] = true;
      kernel.name = groups_.name(order[k]);
      result.kernels.push_back(std::move(kernel));
    }
    std::reverse(result.kernels.begin(), result.kernels.end());
    for (size_t k = 0; k < result.kernels.size(); k++)
      result.launches.push_back({static_cast<int>(k)});
    return drop_unused_buffers(std::move(result));
  }

  Program program_;
  GroupGraph groups_;
  std::vector<bool> is_left_;     // to the library, of each kernel of the unfused program
  std::set<int> library_;         // matmuls that are left to the library
  std::set<int> library_reads_;   // buffers that they read
  std::vector<int> all_readers_;  // how many kernels of the unfused program do
  std::set<std::pair<int, int>> tried_;  // siblings
  std::vector<std::string> refusals_;
};

}  // namespace

Program fuse(const Program& program) {
  if (has_schedule(program)) return program;
  const Program fused = Fusion(read_past_pads(program)).run();
  Program read = read_again(fused);
  return read == fused ? fused : Fusion(std::move(read)).join();
}

}  // namespace tiny_compile
