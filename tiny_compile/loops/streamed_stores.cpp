// An ordinary store first reads the line that it will overwrite: half of the traffic of a copy. Past the caches go
// whole lines, so results have to lie along the innermost loop:
//
//   store y[i0*300 + i1], points of (i0: 64, i1: 300)    along i1: yes
//   store y[i1*64 + i0]                                  across it: no
//   store y[i0] = r0, rows of (i0: 64)                   a result a row: no
#include "tiny_compile/loops/streamed_stores.h"

#include <algorithm>

#include "tiny_compile/loops/divided_rows.h"
#include "tiny_compile/loops/transposed_loads.h"

namespace tiny_compile {

std::vector<std::vector<const Step*>> stores_together(const Kernel& kernel) {
  std::vector<std::vector<const Step*>> all;
  const Step* before = nullptr;
  for (const Step& step : kernel.steps) {
    const bool stores = step.kind == StepKind::Store;
    if (stores && before && before->inner == step.inner)
      all.back().push_back(&step);
    else if (stores)
      all.push_back({&step});
    before = stores ? &step : nullptr;
  }
  return all;
}

bool can_stream(const Program& program, const Kernel& kernel,
                const std::vector<const Step*>& stores, const Axis& along) {
  int64_t bytes = 0;
  for (const Step* step : stores) bytes += kStreamed * size_of(step->dtype);
  if (bytes > program.machine.l1) return false;
  const std::vector<bool> read = buffers_read(program, kernel);
  const Expr axis = along.symbol();
  return std::all_of(stores.begin(), stores.end(), [&](const Step* step) {
    return !read[step->buffer] && coefficient(step->index, axis) == 1 &&
           !depends_on(step->index - axis, along.name);
  });
}

bool has_streamed_stores(const Program& program, Kernel kernel, const Schedule& schedule) {
  const bool is_points = schedule.strategy == Strategy::Pointwise;
  kernel.schedule = schedule;
  if (is_points && !has_squares(kernel))
    kernel = with_short_last_row_unrolled(std::move(kernel));
  const std::vector<std::vector<const Step*>> all = stores_together(kernel);
  return std::any_of(all.begin(), all.end(), [&](const std::vector<const Step*>& stores) {
    const std::vector<int>& inner = stores[0]->inner;
    const int along = inner.empty() ? kernel.rows - 1 : inner.back();
    return along >= 0 && is_points == inner.empty() &&
           can_stream(program, kernel, stores, kernel.axes[static_cast<size_t>(along)]);
  });
}

}  // namespace tiny_compile
