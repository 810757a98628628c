// Do all elements of a pack have the same guard?
//
//   load x[i0*64 + i1] if lt(i1, 64), four at a time   =>   if (e < 64) pack_3 = ...
//   load x[at0*4096 + i1], at0 = $2                    =>   if (tc_in_range(load_2, 50257)) ..
//
// A pack starts at a multiple of its width. A comparison with a multiple of it therefore says the
// same of all its elements, and so does what does not step along them.
#include "tiny_compile/codegen/cuda_guard.h"

#include <cstdlib>

#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/narrow.h"

namespace tiny_compile {
namespace {

constexpr int kMostConditions = 8;

class Guard {
 public:
  Guard(KernelText& text, int axis, int vector, const std::vector<bool>& defined)
      : text_(text), kernel_(text.kernel), axis_(axis), vector_(vector), defined_(defined) {}

  // A bool, as the start of the pack has it; "" where others may have another.
  std::string condition(int id) {
    if (!varies(id)) return is_known(id) ? text_.scalars.name(id) : "";
    const Scalar& scalar = kernel_.scalars[id];
    if (scalar.kind != ScalarKind::Apply || ++conditions_ > kMostConditions) return "";
    if (scalar.op != Op::bitwise_and) return comparison(scalar);
    const std::string a = condition(scalar.operands[0]), b = condition(scalar.operands[1]);
    return a.empty() || b.empty() ? "" : a + " && " + b;
  }

  bool varies(int id) const { return text_.needs(id).axes >> axis_ & 1; }
  bool is_known(int id) const { return defined_[id] || text_.scalars.is_trivial(id); }

 private:
  std::string comparison(const Scalar& scalar) const {
    if (scalar.op != Op::lt && scalar.op != Op::ge) return "";
    const auto lhs = integer_of(kernel_, scalar.operands[0]),
               rhs = integer_of(kernel_, scalar.operands[1]);
    if (!lhs || !rhs || !rhs->is_constant() || std::abs(rhs->bounds().low) == kUnbounded)
      return "";
    const Axis& axis = kernel_.axes[axis_];
    if (!is_contiguous(*lhs - *rhs, axis.symbol(), vector_)) return "";
    const Expr start =
        substitute(*lhs, {{axis.name, Expr::index(tile_symbol("e"), axis.extent)}});
    return str(text_.scalars.index(start), scalar.op == Op::lt ? " < " : " >= ", *rhs);
  }

  KernelText& text_;
  const Kernel& kernel_;
  const int axis_, vector_;
  const std::vector<bool>& defined_;
  int conditions_ = 0;
};

}  // namespace

std::optional<std::string> guard_of_pack(KernelText& text, int id, int axis, int vector,
                                         const std::vector<bool>& defined) {
  const Scalar& load = text.kernel.scalars[id];
  Guard guard(text, axis, vector, defined);
  std::vector<std::string> all;
  if (load.mask >= 0) all.push_back(guard.condition(load.mask));
  for (size_t k = 0; k < load.operands.size(); k++) {
    const int chosen = load.operands[k];
    if (guard.varies(chosen) || !guard.is_known(chosen)) return {};
    all.push_back(str(text.calls("tc_in_range"), "(", text.scalars.name(chosen), ", ",
                      load.limits[k], ")"));
  }
  for (const std::string& condition : all) {
    if (condition.empty()) return {};
  }
  return join(all, " && ");
}

}  // namespace tiny_compile
