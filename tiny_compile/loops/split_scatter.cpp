// How do thousands of updates to ten targets keep a whole machine busy without changing a bit? The
// contract adds them up in chunks of 1024, each with results of its own that are combined with the
// targets in order (graph/scan.h). So a chunk may be a row, and what it gives its targets a buffer:
//
//   store y[j0] for (j0: 10) = load x[j0]
//   scatter y[at0; at0 = load k[j1] < 10] for (j1: 1048576) = scatter_add load d[j1]
// =>
//   rows(i0: 1024) { store p[i0*10 + j0] for (j0: 10) = where(i0 < 1, load x[j0], -0.0)
//                    scatter p[i0*10 + at0; at0 = load k[..] < 10] for (j1: 1024) = scatter_add
//                      load d[i0*1024 + j1] }
//   rows(i0: 10)   { store y[i0] = load p[i0]
//                    scatter y[i0 + at0; at0 = 0 < 1] for (j0: 1023) = scatter_add
//                      load p[(j0 + 1)*10 + i0] }
//
// Integers add up in any order: their chunks may be longer, and are at most a thousand.
//
// The identity that a chunk leaves where it has no update changes no target. A scatter of up to
// 1024 updates goes on from the data, so the second kernel adds the chunks one after the other; of
// more chunks it has several scatters.
#include "tiny_compile/loops/split_scatter.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/split.h"

namespace tiny_compile {
namespace {

constexpr int64_t kGpuChunks = 4, kCpuChunks = 64;
constexpr int64_t kMostChunks = 1 << 16;  // 64 scatters of the second kernel
constexpr int64_t kMostLongChunks = 1 << 10;
constexpr int64_t kBlock = 256;  // threads that share a table
constexpr int64_t kWord = 4;     // bytes of a sum in it

struct Counts {
  int64_t rows, targets, updates;
  int64_t length;  // of a chunk
  int64_t chunks() const { return ceil_divide(updates, length); }
};

// Of integers, so that there are not more partial results than updates, nor chunks than needed.
int64_t chunk_length(const Machine& machine, const Step& scatter, int64_t updates) {
  const int64_t targets = std::max<int64_t>(scatter.limit.constant(), 1);
  if (scatters_in_chunks(scatter.op, scatter.dtype) || targets > table_bytes(machine) / kWord)
    return kChunk;
  const int64_t chunks = std::clamp<int64_t>(updates / targets, 1, kMostLongChunks);
  return std::max<int64_t>(ceil_divide(updates, chunks * kChunk), 1) * kChunk;
}

Counts counts_of(const Program& program, const Kernel& kernel) {
  const Step& scatter = kernel.steps[1];
  const int64_t updates = inner_count(kernel, scatter).constant();
  return {row_count(kernel).constant(), scatter.limit.constant(), updates,
          chunk_length(program.machine, scatter, updates)};
}

Expr row_of(const Kernel& kernel) {
  Expr row = 0;
  for (int a = 0; a < kernel.rows; a++)
    row = row * kernel.axes[a].extent + kernel.axes[a].symbol();
  return row;
}

Expr chosen() { return Expr::index(indirect(0), 1); }

// Where the partial results of a chunk lie: those of a target side by side, row after row.
Expr place(const Counts& counts, const Expr& chunk, const Expr& target, const Expr& row) {
  return (chunk * counts.targets + target) * counts.rows + row;
}

// Axes: the chunk, the kernel's rows, the targets, a chunk's updates.
class ChunkKernel {
 public:
  ChunkKernel(const Kernel& kernel, const Counts& counts, int buffer)
      : source_(kernel), counts_(counts), buffer_(buffer), table_(result_) {
    result_.name = kernel.name + "_chunks";
    result_.where = kernel.where;
    result_.axes = {{"chunk", counts.chunks()}};
    for (int a = 0; a < kernel.rows; a++) result_.axes.push_back(kernel.axes[a]);
    result_.rows = kernel.rows + 1;
    result_.axes.push_back({"target", counts.targets});
    result_.axes.push_back({"e", std::min(counts.updates, counts.length)});
  }

  Kernel write() {
    add_base();
    add_updates();
    return normalize(std::move(result_));
  }

 private:
  Expr symbol(int axis) const { return result_.axes[axis].symbol(); }
  Expr chunk() const { return symbol(0); }

  int less(const Expr& a, const Expr& b) {
    return table_.apply(Op::lt, DType::boolean, {table_.index(a), table_.index(b)});
  }

  // The first chunk goes on from the data, the others from the identity.
  void add_base() {
    const Step& base = source_.steps[0];
    ScalarMapping how;
    how.mask = less(chunk(), 1);
    if (!base.inner.empty())
      how.axes = {{source_.axes[base.inner[0]].name, symbol(result_.rows)}};
    const std::vector<int> ids =
        clone_with_mapping(source_, reachable(source_, base), how, table_);
    const int nothing = table_.constant(identity(source_.steps[1].op, base.dtype));
    Step step = base;
    step.inner = {result_.rows};
    step.buffer = buffer_;
    step.index = place(counts_, chunk(), symbol(result_.rows), row_of(source_));
    step.value = table_.apply(Op::where, base.dtype, {how.mask, ids[base.value], nothing});
    result_.steps.push_back(step);
  }

  void add_updates() {
    const Step& scatter = source_.steps[1];
    const Expr element = chunk() * counts_.length + symbol(result_.rows + 1);
    ScalarMapping how;
    how.axes = {{source_.axes[scatter.inner[0]].name, element}};
    if (counts_.updates % counts_.length != 0) how.mask = less(element, counts_.updates);
    const std::vector<int> ids =
        clone_with_mapping(source_, reachable(source_, scatter), how, table_);
    Step step = scatter;
    step.inner = {result_.rows + 1};
    step.buffer = buffer_;
    const Expr target = Expr::index(indirect(0), counts_.targets);
    step.index = place(counts_, chunk(), target, row_of(source_));
    step.value = ids[scatter.value];
    step.rhs = ids[scatter.rhs];
    step.mask = scatter.mask < 0 ? how.mask : ids[scatter.mask];
    if (scatter.mask >= 0 && how.mask >= 0)
      step.mask = table_.apply(Op::bitwise_and, DType::boolean, {how.mask, ids[scatter.mask]});
    result_.steps.push_back(step);
  }

  const Kernel& source_;
  const Counts counts_;
  const int buffer_;
  Kernel result_;
  ScalarTable table_;
};

// A row for each target of each of the kernel's rows: the first chunk's result, and the others'.
Kernel combined(const Program& program, const Kernel& kernel, const Counts& counts,
                int buffer) {
  Kernel result;
  result.name = kernel.name;
  result.where = kernel.where;
  result.axes = {{"target", counts.targets}};
  for (int a = 0; a < kernel.rows; a++) result.axes.push_back(kernel.axes[a]);
  result.rows = kernel.rows + 1;
  ScalarTable table(result);
  const Expr target = result.axes[0].symbol(), row = row_of(kernel);
  const auto at = [&](const Expr& where) {
    return substitute(kernel.steps[1].index, {{indirect(0), where}});
  };
  Step store = kernel.steps[0];
  store.inner = {};
  store.index = at(target);
  store.value = table.load(program, buffer, place(counts, 0, target, row));
  result.steps.push_back(store);
  for (int64_t from = 1; from < counts.chunks(); from += kChunk) {
    const Expr extent = std::min(kChunk, counts.chunks() - from);
    if (from == 1 || result.axes.back().extent != extent)
      result.axes.push_back({str("chunk_", from), extent});
    const int axis = static_cast<int>(result.axes.size()) - 1;
    Step step = kernel.steps[1];
    step.inner = {axis};
    step.index = at(target + chosen());
    step.limit = 1;
    step.rhs = table.index(0);
    step.mask = -1;
    step.value = table.load(program, buffer,
                            place(counts, from + result.axes[axis].symbol(), target, row));
    result.steps.push_back(step);
  }
  return normalize(std::move(result));
}

bool is_base_and_scatter(const Kernel& kernel) {
  if (kernel.steps.size() != 2) return false;
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  return base.kind == StepKind::Store && scatter.kind == StepKind::Scatter &&
         (scatter.op == Op::scatter_add || scatter.op == Op::scatter_prod) &&
         base.buffer == scatter.buffer && base.inner.size() <= 1 && scatter.inner.size() == 1 &&
         row_count(kernel).is_constant() && scatter.limit.is_constant() &&
         inner_count(kernel, scatter).is_constant();
}

// Each is scattered by some threads of a GPU, or by a core of a CPU.
int64_t many_rows(const Machine& machine) {
  return target_of(machine) == Target::Cuda ? threads_to_fill(machine) / 64 : machine.cores;
}

}  // namespace

int64_t table_bytes(const Machine& machine) {
  return target_of(machine) == Target::Cuda ? shared_of_each(machine, machine.threads / kBlock)
                                            : machine.l1 * 3 / 4;
}

bool can_split_scatter(const Program& program, const Kernel& kernel) {
  if (!is_base_and_scatter(kernel)) return false;
  const Counts counts = counts_of(program, kernel);
  const bool gpu = program.target == Target::Cuda;
  const bool few = counts.targets > 0 && counts.chunks() * counts.targets <= counts.updates;
  return few && counts.rows > 0 && counts.rows < many_rows(program.machine) &&
         counts.chunks() >= (gpu ? kGpuChunks : kCpuChunks) && counts.chunks() <= kMostChunks &&
         inner_count(kernel, kernel.steps[0]).is_constant(counts.targets) &&
         !buffers_read(program, kernel)[kernel.steps[0].buffer];
}

std::vector<Kernel> split_scatter(Program& program, const Kernel& kernel) {
  const Counts counts = counts_of(program, kernel);
  const Expr size = counts.chunks() * counts.targets * counts.rows;
  const int buffer =
      add_temporary(program, "p", kernel.name, {kernel.steps[1].dtype, {size}}, size);
  return {ChunkKernel(kernel, counts, buffer).write(),
          combined(program, kernel, counts, buffer)};
}

}  // namespace tiny_compile
