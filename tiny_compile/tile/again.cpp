// What a shortcut does in a hurry is done again where it was not exact, by some threads of a warp: so it must not
// matter that it was done before.
//
//   t0[0] = $7             =>  ""
//   $8 = t0[0]; t0[0] = $7   =>  "reads t0 before it sets it"
#include "tiny_compile/tile/again.h"

#include <set>

namespace tiny_compile {
namespace {

bool is_done_once(StatementKind kind) {
  switch (kind) {
    case StatementKind::Store:
    case StatementKind::StoreAll:
    case StatementKind::Update:
    case StatementKind::UpdateAll:
    case StatementKind::Barrier:
    case StatementKind::ClusterBarrier:
    case StatementKind::ClusterStart:
    case StatementKind::Send:
    case StatementKind::Await:
    case StatementKind::Shortcut: return true;
    default: return false;
  }
}

class Again {
 public:
  Again(const Tile& tile, bool once) : tile_(tile), once_(once) {}

  std::string why_not(const Body& body) {
    for (const Statement& s : body) {
      if (s.kind == StatementKind::Let && s.value >= 0 && !once_)
        return "chooses no places by data";
      if (is_done_once(s.kind)) return "stores nothing, waits for nobody and has none in it";
      const std::string why =
          s.kind == StatementKind::Define ? why_not_read(s) : why_not(s.body);
      if (!why.empty()) return why;
      if (s.kind != StatementKind::Load && s.kind != StatementKind::Set) continue;
      if (!once_ && read_first_.count(s.array))
        return "reads " + tile_.arrays[s.array].name + " before it sets it";
      written_.insert(s.array);
    }
    return "";
  }

 private:
  std::string why_not_read(const Statement& s) {
    const Scalar& scalar = tile_.kernel.scalars[s.value];
    if (once_ && s.array < 0 && scalar.op == Op::div)
      return "below a highest exponent has no quotients";
    const bool is_element = scalar.kind == ScalarKind::Element;
    if (scalar.kind == ScalarKind::Votes || (is_element && !scalar.limits.empty()))
      return "reads nothing of other lanes";
    const int array = is_element ? scalar.step : s.array;
    if (array >= 0 && !written_.count(array)) read_first_.insert(array);
    return "";
  }

  const Tile& tile_;
  const bool once_;
  std::set<int> written_, read_first_;  // arrays
};

}  // namespace

std::string why_not_again(const Tile& tile, const Body& body, bool once) {
  return Again(tile, once).why_not(body);
}

}  // namespace tiny_compile
