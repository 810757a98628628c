// What does a window share with the next one? Of a sum of three neighbours two:
//
//   store y[i0] = add(add(f(x[i0 - 1]), f(x[i0])), f(x[i0 + 1])), four points a thread
// =>
//   for (int w = 0; w < 6; w++) slide[w] = f(x[e + w - 1])
//   for (int v = 0; v < 4; v++) y[e + v] = slide[v] + slide[v + 1] + slide[v + 2]
//
// A scalar slides if what it becomes when the axis goes on by a few points is a scalar of the kernel
// as well, masks included: so f and its loads are done 6 times, not 12. A compiler does not see it
// where loads have masks.
#include "tiny_compile/loops/slides.h"

#include <algorithm>

#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/kept_values.h"

namespace tiny_compile {
namespace {

constexpr int64_t kFurthest = 8;

// Of each scalar, which one it is where the axis is `distance` further on; -1 for none.
std::vector<int> moved_on(const Kernel& kernel, int axis, int64_t distance) {
  const size_t count = kernel.scalars.size();
  const Axis& along = kernel.axes[axis];
  Kernel copy = kernel;
  ScalarTable table(copy);
  ScalarMapping on;
  on.axes = {{along.name, along.symbol() + distance}};
  std::vector<int> ids = clone_with_mapping(kernel, {}, on, table);
  for (int& id : ids) id = id < static_cast<int>(count) ? id : -1;
  return ids;
}

std::vector<int> below(const Kernel& kernel, int id) {
  return evaluated_for(kernel, {id}, [](int) { return false; });
}

bool may_slide(const Kernel& kernel, int id, uint64_t axes, int axis) {
  const Scalar& scalar = kernel.scalars[id];
  const bool computes = scalar.kind == ScalarKind::Apply || scalar.kind == ScalarKind::Load;
  if (!computes || !is_float(scalar.dtype) || !(axes >> axis & 1)) return false;
  const std::vector<int> all = below(kernel, id);
  return std::any_of(all.begin(), all.end(),
                     [&](int part) { return kernel.scalars[part].kind == ScalarKind::Load; });
}

// Whether it is less work, and all that lies between the first and the last is some point's.
bool pays(const Slide& slide, int64_t vector) {
  if (vector + slide.longest >= vector * static_cast<int64_t>(slide.members.size()))
    return false;
  std::vector<int64_t> far;
  for (const auto& [id, distance] : slide.members) far.push_back(distance);
  std::sort(far.begin(), far.end());
  for (size_t k = 1; k < far.size(); k++) {
    if (far[k] - far[k - 1] > vector) return false;
  }
  return true;
}

}  // namespace

std::vector<Slide> slides_of(const Kernel& kernel, const std::vector<int>& ids, int axis,
                             int64_t vector) {
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  std::map<int, Slide> found;  // by its first
  std::map<int, bool> follows;
  for (int64_t distance = 1; distance <= kFurthest; distance++) {
    const std::vector<int> on = moved_on(kernel, axis, distance);
    for (const int id : ids) {
      if (on[id] < 0 || on[id] == id || follows[id] || !may_slide(kernel, id, axes[id], axis))
        continue;
      follows[on[id]] = true;
      Slide& slide = found[id];
      slide.first = id;
      slide.members[id] = 0;
      slide.members[on[id]] = slide.longest = distance;
    }
  }
  std::vector<Slide> slides;
  std::vector<bool> inside(kernel.scalars.size());
  for (auto at = found.rbegin(); at != found.rend(); ++at) {
    const Slide& slide = at->second;
    if (follows[slide.first] || inside[slide.first] || !pays(slide, vector)) continue;
    for (const auto& [id, distance] : slide.members) {
      for (int part : below(kernel, id)) inside[part] = true;
    }
    slides.push_back(slide);
  }
  return slides;
}

}  // namespace tiny_compile
