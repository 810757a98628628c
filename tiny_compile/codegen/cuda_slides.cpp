// What does a window share with the next one? Of a sum of three neighbours two:
//
//   store y[i0] = add(add(f(x[i0 - 1]), f(x[i0])), f(x[i0 + 1])), four points a thread
// =>
//   for (int w = 0; w < 6; w++) slide_3[w] = f(x[e + w - 1])
//   for (int v = 0; v < 4; v++) y[e + v] = slide_3[v] + slide_3[v + 1] + slide_3[v + 2]
//
// A scalar slides if what it becomes when the axis goes on by a few points is a scalar of the kernel
// as well, masks included: so f and its loads are done 6 times, not 12. A compiler does not see it
// where loads have masks.
#include "tiny_compile/codegen/cuda_slides.h"

#include <algorithm>

#include "tiny_compile/loops/splice.h"

namespace tiny_compile {
namespace {

constexpr int64_t kFurthest = 8;

// Of each scalar, which one it is where the axis is `distance` further on; -1 for none.
std::vector<int> moved_on(const Kernel& kernel, int axis, int64_t distance) {
  const size_t count = kernel.scalars.size();
  const Axis& along = kernel.axes[axis];
  Kernel copy = kernel;
  ScalarTable table(copy);
  Splice on;
  on.axes = {{along.name, along.symbol() + distance}};
  std::vector<int> ids = splice(kernel, {}, on, table);
  for (int& id : ids) id = id < static_cast<int>(count) ? id : -1;
  return ids;
}

bool may_slide(const CudaText& text, int id, int axis) {
  const Scalar& scalar = text.kernel.scalars[id];
  const bool computes = scalar.kind == ScalarKind::Apply || scalar.kind == ScalarKind::Load;
  if (!computes || !is_float(scalar.dtype) || !(text.needs(id).axes >> axis & 1)) return false;
  const std::vector<bool> below = text.below(id);
  for (size_t k = 0; k < below.size(); k++) {
    if (below[k] && text.kernel.scalars[k].kind == ScalarKind::Load) return true;
  }
  return false;
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

std::vector<Slide> slides_of(const CudaText& text, const std::vector<int>& ids, int axis,
                             int64_t vector) {
  std::map<int, Slide> found;  // by its first
  std::map<int, bool> follows;
  for (int64_t distance = 1; distance <= kFurthest; distance++) {
    const std::vector<int> on = moved_on(text.kernel, axis, distance);
    for (const int id : ids) {
      if (on[id] < 0 || on[id] == id || follows[id] || !may_slide(text, id, axis)) continue;
      follows[on[id]] = true;
      Slide& slide = found[id];
      slide.first = id;
      slide.members[id] = 0;
      slide.members[on[id]] = slide.longest = distance;
    }
  }
  std::vector<Slide> slides;
  std::vector<bool> inside(text.kernel.scalars.size());
  for (auto at = found.rbegin(); at != found.rend(); ++at) {
    const Slide& slide = at->second;
    if (follows[slide.first] || inside[slide.first] || !pays(slide, vector)) continue;
    for (const auto& [id, distance] : slide.members) {
      const std::vector<bool> below = text.below(id);
      for (size_t k = 0; k < below.size(); k++) inside[k] = inside[k] || below[k];
    }
    slides.push_back(slide);
  }
  return slides;
}

void write_slides(CudaText& text, const std::vector<Slide>& slides, int axis, int vector,
                  const std::vector<bool>& defined) {
  std::map<int, std::string> places;
  text.set_vector(axis, 1);
  for (const Slide& slide : slides) {
    const std::string name = str("slide_", slide.first);
    const int64_t count = vector + slide.longest;
    text.out.line(
        str(value_type(text.kernel.scalars[slide.first].dtype), " ", name, "[", count, "];"));
    text.out.line("#pragma unroll");
    text.out.open(str("for (int w = 0; w < ", count, "; w++)"));
    text.declare(text.kernel.axes[axis].name, "e + w");
    const std::vector<bool> below = text.below(slide.first);
    std::vector<int> ids;
    for (size_t id = 0; id < below.size(); id++) {
      if (below[id]) ids.push_back(static_cast<int>(id));
    }
    std::vector<bool> here = defined;
    text.define(ids, {row_mask(text.kernel), true}, here);
    text.out.line(str(name, "[w] = ", text.scalars.name(slide.first), ";"));
    text.out.close();
    for (const auto& [id, distance] : slide.members)
      places[id] = str(name, distance ? str("[v + ", distance, "]") : "[v]");
  }
  text.set_vector(axis, vector);
  text.kept_place = [places, before = text.kept_place](int id) {
    const auto place = places.find(id);
    return place == places.end() ? before(id) : place->second;
  };
  for (const auto& [id, place] : places) {
    text.planned[id] = {};
    text.mark_kept({id});
  }
}

}  // namespace tiny_compile
