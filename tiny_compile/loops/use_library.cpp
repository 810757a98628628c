// What if a product's factor is no matrix? Where its elements are those of a buffer in another
// order, a kernel that puts them in order makes it one:
//
//   dot(k: 64) load x[(k / 16)*256 + i*16 + k % 16], ..           x is [4 heads, 16, 16]
// =>
//   rows(i: 16, h: 4, d: 16) { store c[i*64 + h*16 + d] = load x[h*256 + i*16 + d] }
//   dot(k: 64) load c[i*64 + k], ..
//
// The copy's loops are cut until its indices are sums of strides, which is what fuse needs to
// make it part of the kernel that writes x. What lies side by side in x does so in the copy, which is the
// factor or its transpose, unless its rows were odd then; products of the same elements share one copy.
// Windows, whose copy would be larger than the buffer, are not copied: their products stay generated.
#include "tiny_compile/loops/use_library.h"

#include <algorithm>

#include "tiny_compile/loops/copy_kernel.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/save_for_gelu.h"

namespace tiny_compile {
namespace {

constexpr int kMostCuts = 8;

// A division or remainder in an index: by what, and the axis that is divided.
struct Cut {
  int axis = -1;
  int64_t by = 0;
};

Cut find_cut(const std::vector<Axis>& axes, const Expr& index) {
  const bool divides = index.kind() == ExprKind::FloorDiv || index.kind() == ExprKind::Mod;
  if (divides && index.operands()[1].is_constant()) {
    for (size_t a = 0; a < axes.size(); a++) {
      const int64_t by = index.operands()[1].constant();
      if (index.operands()[0] == axes[a].symbol() && axes[a].extent.is_constant() &&
          axes[a].extent.constant() % by == 0)
        return {static_cast<int>(a), by};
    }
  }
  if (index.is_constant() || index.kind() == ExprKind::Symbol) return {};
  for (const Expr& operand : index.operands()) {
    if (const Cut cut = find_cut(axes, operand); cut.axis >= 0) return cut;
  }
  return {};
}

// i of 0..1023 by 64  =>  i_a*64 + i_b, in the axes and both indices
void cut_axis(std::vector<Axis>& axes, const Cut& cut, Expr& from, Expr& to) {
  const Axis whole = axes[cut.axis];
  const Axis outer{whole.name + "a", whole.extent.constant() / cut.by};
  const Axis inner{whole.name + "b", cut.by};
  const Substitution parts = {{whole.name, outer.symbol() * cut.by + inner.symbol()}};
  from = substitute(from, parts);
  to = substitute(to, parts);
  axes[cut.axis] = outer;
  axes.insert(axes.begin() + cut.axis + 1, inner);
}

void cut_axes(std::vector<Axis>& axes, Expr& from, Expr& to) {
  for (int cuts = 0; cuts < kMostCuts; cuts++) {
    const Cut cut = find_cut(axes, from);
    if (cut.axis < 0) break;
    cut_axis(axes, cut, from, to);
  }
}

// Whether neighbours along some of the axes are neighbours in memory.
bool lies_along(std::vector<Axis> axes, Expr index) {
  Expr none = 0;
  cut_axes(axes, index, none);
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
    return std::abs(coefficient(index, axis.symbol())) == 1;
  });
}

// Whether as many elements as the axes have go by 16 bytes, as the library's fast kernels do.
bool are_aligned(const std::vector<Axis>& axes, int64_t size) {
  int64_t bytes = size;
  for (const Axis& axis : axes)
    bytes = axis.extent.is_constant() ? bytes * axis.extent.constant() % 16 : 0;
  return bytes % 16 == 0;
}

// Whether two copies put the same elements in the same order.
bool same_copy(const Kernel& a, const Kernel& b) {
  return a.axes == b.axes && a.scalars == b.scalars && a.steps[0].index == b.steps[0].index;
}

class Copies {
 public:
  // `made` are those of products before.
  Copies(Program& program, const std::vector<Kernel>& made, const Kernel& kernel)
      : program_(program), made_(made), kernel_(kernel) {}

  // The product with its first and/or second factor copied, if it can be.
  bool add(bool first, bool second) {
    const Step dot = *std::find_if(kernel_.steps.begin(), kernel_.steps.end(),
                                   [](const Step& s) { return s.kind == StepKind::Dot; });
    return (!first || copy(dot.value, "lhs", dot)) && (!second || copy(dot.rhs, "rhs", dot));
  }
  const Kernel& multiplying() const { return kernel_; }
  const std::vector<Kernel>& copies() const { return copies_; }

 private:
  bool copy(int load, const std::string& side, const Step& dot) {
    const Scalar source = kernel_.scalars[load];
    if (!is_plain(source)) return false;
    const std::vector<Axis> axes = axes_of(load, dot);
    Shape shape, index;
    for (const Axis& axis : axes) {
      if (!axis.extent.is_constant()) return false;
      shape.push_back(axis.extent);
      index.push_back(axis.symbol());
    }
    const Expr &size = program_.buffers[source.buffer].size, count = product(shape);
    if (!size.is_constant() || count.constant() > size.constant()) return false;
    const int buffer = add_buffer(side, source.dtype, shape);
    const Shape strides = row_major_strides(shape);
    Expr place = 0;
    for (size_t a = 0; a < axes.size(); a++) place = place + index[a] * strides[a];
    const Kernel copy = copy_of(axes, source, side, buffer, place);
    const auto before = std::find_if(made_.begin(), made_.end(),
                                     [&](const Kernel& k) { return same_copy(k, copy); });
    kernel_.scalars[load].index = place;
    if (before == made_.end()) {
      copies_.push_back(copy);
      kernel_.scalars[load].buffer = buffer;
    } else {
      program_.buffers.pop_back();
      kernel_.scalars[load].buffer = before->steps[0].buffer;
    }
    return true;
  }

  // The axes that a factor's index mentions: those of all products, then its rows and the sum's, or the
  // other way round.
  std::vector<Axis> axes_of(int load, const Step& dot) const {
    const Expr &index = kernel_.scalars[load].index,
               &other = kernel_.scalars[load == dot.value ? dot.rhs : dot.value].index;
    std::vector<Axis> axes, rows, inner;
    for (int a = 0; a < kernel_.rows; a++) {
      const Axis& axis = kernel_.axes[a];
      if (depends_on(index, axis.name))
        (depends_on(other, axis.name) ? axes : rows).push_back(axis);
    }
    for (int a : dot.inner) {
      if (depends_on(index, kernel_.axes[a].name)) inner.push_back(kernel_.axes[a]);
    }
    const int64_t size = size_of(kernel_.scalars[load].dtype);
    if (lies_along(rows, index) && (are_aligned(rows, size) || !are_aligned(inner, size)))
      std::swap(rows, inner);
    axes.insert(axes.end(), rows.begin(), rows.end());
    axes.insert(axes.end(), inner.begin(), inner.end());
    return axes;
  }

  int add_buffer(const std::string& side, DType dtype, const Shape& shape) {
    Buffer buffer;
    buffer.name = kernel_.name + "_" + side;
    buffer.type = {dtype, shape};
    buffer.size = product(shape);
    program_.buffers.push_back(std::move(buffer));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  Kernel copy_of(std::vector<Axis> axes, const Scalar& source, const std::string& side,
                 int buffer, Expr to) const {
    Expr from = source.index;
    cut_axes(axes, from, to);
    Kernel copy = copy_kernel(program_, axes, {source.buffer, from}, {buffer, to});
    copy.name = str("copy_", side, kernel_.name.substr(kernel_.name.rfind('_')));
    copy.where = kernel_.where;
    return copy;
  }

  Program& program_;  // gets the copies' buffers
  const std::vector<Kernel>& made_;
  Kernel kernel_;
  std::vector<Kernel> copies_;
};

bool has_dot(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Dot; });
}

// The kernel, with copies of its factors before it where they make it match. Adds these to what was made.
std::vector<Kernel> with_copies(Program& program, std::vector<Kernel>& made,
                                const Kernel& kernel) {
  if (!has_dot(kernel) || library_matmul(program, kernel).matmul) return {kernel};
  const size_t buffers = program.buffers.size();
  for (const auto& [first, second] : {std::pair{true, false}, {false, true}, {true, true}}) {
    Copies copies(program, made, kernel);
    if (copies.add(first, second) && library_matmul(program, copies.multiplying()).matmul) {
      std::vector<Kernel> result = copies.copies();
      made.insert(made.end(), result.begin(), result.end());
      result.push_back(normalize(copies.multiplying()));
      return result;
    }
    program.buffers.resize(buffers);
  }
  return {kernel};
}

}  // namespace

Program use_library_matmul(const Program& program, Matmul matmul) {
  Program result = program;
  result.matmul = matmul;
  if (matmul == Matmul::Generated) return result;
  result.kernels.clear();
  result.launches.clear();
  std::vector<Kernel> copies;
  for (const std::vector<int>& launch : program.launches) {
    std::vector<int> last;
    for (const int number : launch) {
      std::vector<Kernel> all = with_copies(result, copies, program.kernels[number]);
      for (size_t k = 0; k < all.size(); k++) {
        const int own = static_cast<int>(result.kernels.size());
        if (k + 1 < all.size())
          result.launches.push_back({own});
        else
          last.push_back(own);
        result.kernels.push_back(std::move(all[k]));
      }
    }
    result.launches.push_back(last);
  }
  result = save_for_gelu(result);
  for (Kernel& kernel : result.kernels) {
    if (program.target == Target::Cuda && library_matmul(result, kernel).matmul)
      kernel.schedule = Schedule{.strategy = Strategy::Library};
  }
  return result;
}

}  // namespace tiny_compile
