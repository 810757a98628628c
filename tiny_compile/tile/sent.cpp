// Who waits for what nobody sends waits for ever, and what comes twice is taken for something else. So before
// a tile runs, all threads of one cluster go through its sends; and no send may depend on which cluster it is:
//
//   if lane < 4 { send given[(rank*8 + warp)*4 + lane] = $7 }    each of the 128 elements, once
//   if lane < 3 { .. }                                           "nobody sends given[3]"
#include "tiny_compile/tile/sent.h"

#include <algorithm>

#include "tiny_compile/tile/integers.h"

namespace tiny_compile {
namespace {

bool has_sends(const Statement& statement) { return contains(statement, StatementKind::Send); }

class Sends {
 public:
  explicit Sends(const Tile& tile)
      : tile_(tile), integers_(tile, 0), sent_(tile.arrays.size()) {}

  std::string why_not() {
    depends_on_block_ = {"block"};
    run(tile_.body, integers_.all());
    for (size_t a = 0; a < sent_.size() && why_.empty(); a++) {
      const auto missing = std::find(sent_[a].begin(), sent_[a].end(), false);
      if (missing != sent_[a].end())
        why_ = str("nobody sends ", tile_.arrays[a].name, "[", missing - sent_[a].begin(), "]");
    }
    return why_;
  }

 private:
  void run(const Body& body, const Threads& threads) {
    for (size_t n = 0; n < body.size() && why_.empty(); n++) {
      const Statement& s = body[n];
      if (s.kind == StatementKind::Let) {
        if (s.value >= 0 || depends_on_block(s.index)) depends_on_block_.push_back(s.name);
        integers_.set(s.name, threads, integers_.evaluate(s.index, threads));
      }
      if (has_sends(s)) run(s, n == 0 ? s : body[n - 1], threads);
    }
  }

  void run(const Statement& s, const Statement& before, const Threads& threads) {
    const Statement& condition = s.kind == StatementKind::Else ? before : s;
    const bool by_data = condition.kind == StatementKind::If && condition.value >= 0;
    if (by_data || depends_on_block(condition.index) || depends_on_block(condition.place)) {
      why_ = "what is sent is not the same in all clusters";
      return;
    }
    switch (s.kind) {
      case StatementKind::Send: return send(s, threads);
      case StatementKind::For: return repeat(s, threads);
      case StatementKind::If:
      case StatementKind::Else:
        return run(s.body,
                   integers_.those_where(condition, s.kind == StatementKind::If, threads));
      default: return run(s.body, threads);
    }
  }

  void repeat(const Statement& s, const Threads& threads) {
    for (int64_t i = 0; i < s.index.constant() && why_.empty(); i++) {
      integers_.set(s.name, threads, Integers(threads.size(), i));
      run(s.body, threads);
    }
  }

  void send(const Statement& s, const Threads& threads) {
    const Array& array = tile_.arrays[s.array];
    std::vector<bool>& sent = sent_[s.array];
    sent.resize(static_cast<size_t>(array.size.constant()));
    for (int64_t e : integers_.evaluate(s.index, threads)) {
      if (e < 0 || e >= array.size.constant())
        why_ = str("sends ", array.name, "[", e, "] of ", array.size, " elements");
      else if (sent[e])
        why_ = str(array.name, "[", e, "] is sent twice");
      if (!why_.empty()) return;
      sent[e] = true;
    }
  }

  bool depends_on_block(const Expr& index) const {
    return std::any_of(depends_on_block_.begin(), depends_on_block_.end(),
                       [&](const std::string& name) { return depends_on(index, name); });
  }

  const Tile& tile_;
  ThreadIntegers integers_;
  std::vector<std::vector<bool>> sent_;        // elements of each array
  std::vector<std::string> depends_on_block_;  // names, or on data
  std::string why_;
};

}  // namespace

std::string why_not_sent_once(const Tile& tile) {
  const bool sends = std::any_of(tile.body.begin(), tile.body.end(), has_sends);
  return sends ? Sends(tile).why_not() : "";
}

}  // namespace tiny_compile
