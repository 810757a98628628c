// How is a variance taken in one read, without a loss of digits? Each chunk of 1024 elements is
// taken about its own mean while it is near (registers, the first cache), and the chunks' moments
// are merged (Chan, Golub, LeVeque 1979, for all chunks at once). In sums alone, so that whatever
// runs sums, in whatever loops, gives these bits:
//
//   x [R, C*1024]  ->  d = x - first, the chunk's first element: a large mean goes without error
//                      mean_c = sum(d) / n_c,  m2_c = sum((d - mean_c)^2)          one kernel
//                      g_c = (first_c - first_0) + mean_c,  g = sum(n_c * g_c) / n
//                      m2 = sum(m2_c + n_c * (g_c - g)^2)                          a small one
//
// What is left of a row behind its last whole chunk is a short one of its own. Of several axes,
// the longest run of neighbours is cut into chunks; the others are merged with the chunks. A
// row of at most 1024 elements is one chunk and needs no second kernel. Nor does a longer one along the
// last axes, as a norm's is: its elements lie side by side as a rule, so that a kernel can hold them, take
// them all about one mean, and still know them when it normalises.
#include "tiny_compile/trace/variance.h"

#include <algorithm>
#include <vector>

#include "tiny_compile/trace/custom_vjp.h"
#include "tiny_compile/trace/functions.h"

namespace tiny_compile {
namespace {

constexpr int64_t kChunk = 1024;
constexpr int64_t kHeldRow = 32768;  // elements that a block or two of a large GPU hold

// Runs of neighbouring reduced axes as one axis each: [N, C, H, W] over {0, 2, 3} is
// [N, C, H*W] over {0, 2}. Without any, an axis of 1 is added.
struct Runs {
  SizeList shape;
  Sizes axes;
};

Runs joined(const SizeList& shape, const Sizes& reduced) {
  Runs runs;
  int64_t last = -2;  // the reduced axis before this one
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); axis++) {
    const bool reduces = std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
    const bool joins = reduces && last == axis - 1;
    if (reduces) last = axis;
    if (joins) {
      runs.shape.back() = runs.shape.back() * shape[axis];
      continue;
    }
    if (reduces) runs.axes.push_back(static_cast<int64_t>(runs.shape.size()));
    runs.shape.push_back(shape[axis]);
  }
  if (runs.axes.empty()) {
    runs.axes = {static_cast<int64_t>(runs.shape.size())};
    runs.shape.push_back(Size(1));
  }
  return runs;
}

// Chunks of one length, [.., chunks, 1, ..]: their mean is first + offset, m2 the sum of the
// squared deviations from it.
struct Moments {
  Tensor first, offset, m2;
  Size chunks, length;  // of a symbol either may be 0: there is no such part then
};

bool may_be_zero(const Size& size) { return size.expr().bounds().low <= 0; }

// The first element along an axis; 0 where it is empty, which the shape may leave open.
Tensor first_along(const Tensor& x, int64_t axis) {
  if (!may_be_zero(x.size(axis))) return slice(x, axis, 0, 1);
  Sizes pads(2 * (x.dim() - axis), 0);
  pads.back() = 1;
  return slice(pad(x, pads), axis, 0, 1);
}

// Of x[.., from .. from + chunks*length, ..] as [.., chunks, length, ..].
Moments moments(const Tensor& x, int64_t axis, const Size& from, const Size& chunks,
                const Size& length) {
  const bool whole = same_expression(chunks * length, x.size(axis));
  const Tensor all = whole ? x : slice(x, axis, from, from + chunks * length);
  SizeList shape = all.sizes();
  if (!chunks.is_number(1)) shape[axis] = length;
  shape.insert(shape.begin() + axis, chunks);
  const Tensor v = reshape(all, shape);
  Moments result;
  result.chunks = chunks;
  result.length = length;
  result.first = first_along(v, axis + 1);
  const Tensor shifted = v - result.first;
  result.offset = sum(shifted, {axis + 1}, true) / result.length;
  const Tensor deviation = shifted - result.offset;
  result.m2 = sum(deviation * deviation, {axis + 1}, true);
  return result;
}

bool are_ones(const SizeList& shape, const Sizes& axes) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](int64_t axis) { return shape[axis].is_number(1); });
}

// Over axes that stay, as 1.
Tensor total_over(const Tensor& x, const Sizes& axes) {
  return are_ones(x.sizes(), axes) ? x : sum(x, axes, true);
}

// x * (part / total). The quotient is of f64, as it is in C++, and rounded once.
Tensor weighted(const Tensor& x, const Size& part, const Size& total) {
  if (part.is_number() && total.is_number())
    return x * (static_cast<double>(part) / static_cast<double>(total));
  const Tensor quotient = as_tensor(part, DType::f64, {}) / total;
  return x * cast_to(quotient, x.dtype(), {});
}

// What a part adds to a sum: nothing if there is no such part.
Tensor if_present(const Moments& part, const Tensor& share) {
  const Size count = part.chunks * part.length;
  return may_be_zero(count) ? where(as_tensor(count, DType::i64, {}) > 0, share, -0.0) : share;
}

// Mean and m2 of all parts, over the chunks of each and the axes `merged`; deviations are taken
// from about `origin`.
MeanAndM2 merge(const std::vector<Moments>& parts, const Tensor& origin, const Sizes& merged,
                const Size& total) {
  std::vector<Tensor> places;
  Tensor centre, m2;
  for (const Moments& part : parts) {
    const Tensor moved = part.first - origin;
    places.push_back(moved + part.offset);
    const Tensor mean = weighted(total_over(places.back(), merged), part.length, total);
    const Tensor share = if_present(part, mean);
    centre = centre.defined() ? centre + share : share;
  }
  for (size_t k = 0; k < parts.size(); k++) {
    const Tensor distance = places[k] - centre;
    const Tensor between = distance * distance * parts[k].length;
    const Tensor share = if_present(parts[k], total_over(parts[k].m2 + between, merged));
    m2 = m2.defined() ? m2 + share : share;
  }
  return {origin + centre, m2};
}

// Whether the run along `axis` is all that is reduced, and the last.
bool is_row(const Runs& runs, int64_t axis) {
  const auto is_one = [&](int64_t other) {
    return holds_if_known(runs.shape[other], Relation::Equal, 1).value_or(false);
  };
  for (int64_t other = 0; other < static_cast<int64_t>(runs.shape.size()); other++) {
    const bool reduces =
        std::find(runs.axes.begin(), runs.axes.end(), other) != runs.axes.end();
    if (other != axis && (reduces || other > axis) && !is_one(other)) return false;
  }
  return true;
}

bool has_one_mean(const Runs& runs, int64_t axis) {
  const Size& length = runs.shape[axis];
  if (length.expr().bounds().high <= kChunk) return true;
  return is_row(runs, axis) &&
         holds_if_known(length, Relation::AtMost, kHeldRow).value_or(false);
}

MeanAndM2 of_runs(const Tensor& x, const Runs& runs, const Size& total) {
  const auto longest =
      std::max_element(runs.axes.rbegin(), runs.axes.rend(),
                       [&](int64_t a, int64_t b) { return runs.shape[a] < runs.shape[b]; });
  const int64_t axis = *longest;
  const Tensor v = reshape(x, runs.shape);
  const Size length = runs.shape[axis];
  std::vector<Moments> parts;
  if (has_one_mean(runs, axis)) {
    parts.push_back(moments(v, axis, 0, 1, length));
  } else {
    const Size chunks = length / kChunk, rest = length % kChunk;
    if (!chunks.is_number(0)) parts.push_back(moments(v, axis, 0, chunks, kChunk));
    if (!rest.is_number(0)) parts.push_back(moments(v, axis, chunks * kChunk, 1, rest));
  }
  const Size count(total.expr());  // with what is known by now
  const Moments& all = parts[0];
  if (same_expression(count, all.length)) return {all.first + all.offset, all.m2};
  Sizes merged;
  for (int64_t other : runs.axes) merged.push_back(other > axis ? other + 1 : other);
  Tensor origin = may_be_zero(all.chunks) ? unsqueeze(slice(v, axis, 0, 1), axis) : all.first;
  for (int64_t other : merged) origin = slice(origin, other, 0, 1);
  return merge(parts, origin, merged, count);
}

MeanAndM2 computed(const Tensor& x, const Sizes& axes) {
  SizeList shape = x.sizes();
  Size total = 1;
  for (int64_t axis : axes) {
    total = total * shape[axis];
    shape[axis] = 1;
  }
  if (total == 0) return {mean(x, axes, true), sum(x, axes, true)};
  const MeanAndM2 result = of_runs(x, joined(x.sizes(), axes), total);
  return {reshape(result.mean, shape), reshape(result.m2, shape)};
}

}  // namespace

MeanAndM2 mean_and_m2(const Tensor& x, const Sizes& axes) {
  using In = std::span<const Tensor>;
  const auto value = [&](In in) {
    const MeanAndM2 result = computed(in[0], axes);
    return std::vector{result.mean, result.m2};
  };
  const auto backward = [&](In in, In y, In g) {
    Size count = 1;
    for (int64_t axis : axes) count = count * in[0].size(axis);
    const Tensor deviation = in[0] - y[0];
    return std::vector{deviation * (g[1] * 2.0) + g[0] / count};
  };
  const std::vector<Tensor> results = with_derivative("mean_and_m2", value, backward, {x});
  return {results[0], results[1]};
}

Tensor squared_deviations(const Tensor& x, const Sizes& axes) {
  using In = std::span<const Tensor>;
  return with_derivative(
      "squared_deviations", [&](In in) { return std::vector{computed(in[0], axes).m2}; },
      [&](In in, In, In g) {
        const Tensor deviation = in[0] - mean(in[0], axes, true);
        return std::vector{deviation * (g[0] * 2.0)};
      },
      {x})[0];
}

}  // namespace tiny_compile
