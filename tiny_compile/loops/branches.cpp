// Which points of a concat need the tanh of one of its parts? Those of the part:
//
//   store y[i0] = where($2, tanh(load x[i0] if $2 else 0.0), load z[i0 - 64] if $3 else 0.0)
// =>
//   float where_7 = load_6;
//   if (lt_2) {
//     const float tanh_5 = tc_tanh(load_4);
//     where_7 = tanh_5;
//   }
//
// A scalar belongs to a `where` if all its users do, or are that `where`, which takes it where the
// condition is true. Conditions on data stay without branches: neighbouring threads would part.
#include "tiny_compile/loops/branches.h"

#include <algorithm>
#include <numeric>

#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/simplify_under_mask.h"

namespace tiny_compile {
namespace {

constexpr int kNobody = -1, kUnknown = -2;

// Whether a condition lets most points by, as a pad's does: a branch would part their work for
// nothing.
bool holds_mostly(const Kernel& kernel, int condition) {
  std::vector<int> axes(kernel.axes.size());
  std::iota(axes.begin(), axes.end(), 0);
  const int64_t all = points_under(kernel, -1, axes);
  return points_under(kernel, condition, axes) > all - all / 4;
}

class Owners {
 public:
  explicit Owners(const Kernel& kernel)
      : kernel_(kernel),
        axes_(axes_of_scalars(kernel)),
        owner_(kernel.scalars.size(), kUnknown) {
    for (const Step& step : kernel_.steps) {
      for (const int root : step.roots()) add_user(root, kNobody);
    }
    for (size_t id = owner_.size(); id-- > 0;) find_operands(static_cast<int>(id));
  }

  std::vector<std::vector<int>> branches() {
    std::vector<std::vector<int>> found(owner_.size());
    for (size_t id = 0; id < owner_.size(); id++) {
      const bool is_dear = std::any_of(found[id].begin(), found[id].end(), [&](int other) {
        return is_costly(kernel_.scalars[other]);
      });
      std::vector<int> passed_on = {static_cast<int>(id)};
      if (!is_dear) passed_on.insert(passed_on.end(), found[id].begin(), found[id].end());
      if (!is_dear) found[id].clear();
      if (owner_[id] < 0) continue;
      std::vector<int>& outer = found[owner_[id]];
      outer.insert(outer.end(), passed_on.begin(), passed_on.end());
    }
    for (std::vector<int>& branch : found) std::sort(branch.begin(), branch.end());
    return found;
  }

 private:
  void add_user(int id, int owner) {
    if (id < 0) return;
    owner_[id] = owner_[id] == kUnknown || owner_[id] == owner ? owner : kNobody;
  }

  // Its users are known by now: they have greater numbers.
  void find_operands(int id) {
    const Scalar& scalar = kernel_.scalars[id];
    if (owner_[id] == kUnknown) owner_[id] = kNobody;
    if (owner_[id] >= 0 && !can_wait(id, owner_[id])) owner_[id] = kNobody;
    const bool chooses = is_choice(scalar);
    for (size_t k = 0; k < scalar.operands.size(); k++)
      add_user(scalar.operands[k], chooses && k == 1 ? id : owner_[id]);
    add_user(scalar.mask, owner_[id]);
  }

  // Of the same loops as the choice, so that nothing is done once an element instead of once a row.
  bool can_wait(int id, int choice) const {
    const Scalar& scalar = kernel_.scalars[id];
    const bool computes = scalar.kind == ScalarKind::Apply || scalar.kind == ScalarKind::Philox;
    return computes && is_float(scalar.dtype) && axes_[id] == axes_[choice];
  }

  bool is_choice(const Scalar& scalar) const {
    if (scalar.kind != ScalarKind::Apply || scalar.op != Op::where ||
        kernel_.scalars[scalar.operands[0]].kind == ScalarKind::Constant ||
        holds_mostly(kernel_, scalar.operands[0]))
      return false;
    const std::vector<int> below =
        evaluated_for(kernel_, {scalar.operands[0]}, [](int) { return false; });
    return std::all_of(below.begin(), below.end(), [&](int id) {
      const ScalarKind kind = kernel_.scalars[id].kind;
      const bool is_index = kind == ScalarKind::Index && kernel_.scalars[id].operands.empty();
      return is_index || kind == ScalarKind::Constant || kind == ScalarKind::Apply;
    });
  }

  const Kernel& kernel_;
  std::vector<uint64_t> axes_;
  std::vector<int> owner_;
};

}  // namespace

std::vector<std::vector<int>> costly_branches(const Kernel& kernel) {
  return Owners(kernel).branches();
}

bool has_branch(const std::vector<std::vector<int>>& branches) {
  return std::any_of(branches.begin(), branches.end(),
                     [](const std::vector<int>& branch) { return !branch.empty(); });
}

}  // namespace tiny_compile
