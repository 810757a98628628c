// A CPU does turns of a loop of vectors side by side, so no two may change the same place:
//
//   for l: 20 = 0 .. 20 vector { $0 = load k[l] ; update scatter_add $0 < 5: y[at0*20 + l] = $1 }   =>  ""
//   .. y[at0*20] = $1                                         =>  "updates places that two turns may choose"
#include "tiny_compile/tile/turns.h"

#include <algorithm>
#include <vector>

namespace tiny_compile {
namespace {

class Turns {
 public:
  Turns(const Statement& loop, const std::vector<bool>& known) : loop_(loop), known_(known) {}

  std::string why_meet(const Body& body) {
    for (const Statement& s : body) {
      const std::string why = why_meet(s);
      if (!why.empty()) return why;
    }
    return "";
  }

 private:
  std::string why_meet(const Statement& s) {
    switch (s.kind) {
      case StatementKind::Let:
        if (s.value < 0) {
          written_.push_back({s.name, substitute(s.index, written_)});
        } else if (!is_known(s.value)) {
          chosen_.push_back(s.name);
        }
        return "";
      case StatementKind::Set:
      case StatementKind::Store:
        return is_chosen(s.index) ? "sets places that data chooses" : "";
      case StatementKind::Update:
        return has_own_places(s.index) ? "" : "updates places that two turns may choose";
      default: return why_meet(s.body);
    }
  }

  bool is_known(int scalar) const {
    return scalar >= 0 && scalar < static_cast<int>(known_.size()) && known_[scalar];
  }

  bool is_chosen(const Expr& index) const {
    const Expr written = substitute(index, written_);
    return std::any_of(chosen_.begin(), chosen_.end(),
                       [&](const std::string& name) { return depends_on(written, name); });
  }

  // Each turn has places of its own, whatever data chooses: so far as its integer is in the index at all.
  bool has_own_places(const Expr& index) const {
    return !is_chosen(index) && depends_on(substitute(index, written_), loop_.name);
  }

  const Statement& loop_;
  const std::vector<bool>& known_;
  Substitution written_;             // names in the body, in those around it
  std::vector<std::string> chosen_;  // by data, in a turn
};

}  // namespace

std::string why_turns_meet(const Statement& loop, const std::vector<bool>& known) {
  const bool is_alone = loop.index.bounds().high - loop.from.bounds().low <= 1;
  return is_alone ? "" : Turns(loop, known).why_meet(loop.body);
}

}  // namespace tiny_compile
