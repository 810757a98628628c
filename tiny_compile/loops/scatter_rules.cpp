// Question: may these rows be scattered together? A block that owns a run of the result needs an index that
// all columns share; a table in shared memory integers, whose sum is the same in any order; threads that
// sort updates by place enough of these, or few rows. Else a thread does its row.
#include "tiny_compile/loops/scatter_rules.h"

#include <algorithm>
#include <map>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/split_scatter.h"

namespace tiny_compile {
namespace {

constexpr int64_t kFewUpdates = 1024;               // of a row: no block is wanted
constexpr int64_t kMostTargets = int64_t{1} << 31;  // of a row whose updates are sorted
constexpr int kWarp = 32, kMostThreads = 1024;      // of a warp, a block
constexpr int kMostEach = 16;
constexpr int kMostApart = 4;         // columns of a thread that are no neighbours,
constexpr int64_t kLeastBeside = 16;  // of so many threads side by side

// A store of the whole row, and then a scatter into it.
bool is_base_and_scatter(const Kernel& kernel) {
  if (kernel.steps.size() != 2) return false;
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  return base.kind == StepKind::Store && scatter.kind == StepKind::Scatter &&
         base.buffer == scatter.buffer && base.inner.size() <= 1;
}

// The scatter's places are the base's, with the index for the base's loop.
bool same_places(const Kernel& kernel) {
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  const Expr& count = scatter.limit;
  const Expr target =
      count.is_constant(1) ? 0 : Expr::index(Symbol{"target", SymbolKind::Tile}, count);
  Substitution loop;
  for (int axis : base.inner) loop.push_back({kernel.axes[axis].name, target});
  return inner_count(kernel, base) == count &&
         substitute(base.index, loop) == substitute(scatter.index, {{indirect(0), target}});
}

bool scatters_runs(const Program& program, const Kernel& kernel) {
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  const int64_t updates = inner_count(kernel, scatter).constant();
  const uint64_t rows = (uint64_t{1} << kernel.rows) - 1;
  const int64_t most = scatter.order < 0 ? kMostListed : kMostOrdered;
  return scatter.mask < 0 && scatter.limit.constant() >= 2 && updates >= 1 && updates <= most &&
         !buffers_read(program, kernel)[base.buffer] &&
         (axes_of_scalars(kernel)[scatter.rhs] & rows) == 0 && same_places(kernel) &&
         (base.inner.empty() ||
          std::count(scatter.inner.begin(), scatter.inner.end(), base.inner[0]) == 0);
}

// Whether what chooses neighbouring updates' targets lies side by side in memory, or is not read.
bool reads_along_memory(const Kernel& kernel, const Step& scatter) {
  Step only;
  only.value = scatter.rhs;
  const std::vector<bool> needed = reachable(kernel, only);
  const Expr update = kernel.axes[scatter.inner[0]].symbol();
  for (size_t id = 0; id < needed.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (needed[id] && scalar.kind == ScalarKind::Load && coefficient(scalar.index, update) != 1)
      return false;
  }
  return true;
}

bool scatters_to_tables(const Program& program, const Kernel& kernel) {
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  if (scatter.op != Op::scatter_add || is_float(scatter.dtype) || scatter.inner.size() != 1)
    return false;
  const int64_t targets = scatter.limit.constant(),
                updates = inner_count(kernel, scatter).constant();
  return targets > 0 &&
         targets * std::max<int64_t>(size_of(scatter.dtype), 4) <=
             table_bytes(program.machine) &&
         updates >= kFewUpdates && updates < int64_t{1} << 31 && same_places(kernel) &&
         reads_along_memory(kernel, scatter) && !buffers_read(program, kernel)[base.buffer];
}

// Of so many rows a thread each is as good, where none has chunks.
bool fills_alone(const Program& program, const Kernel& kernel) {
  return 32 * row_count(kernel).constant() >= threads_to_fill(program.machine);
}

bool scatters_chunks(const Program& program, const Kernel& kernel) {
  bool chunks = false, scatters = false;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Store && step.kind != StepKind::Scatter) return false;
    if (step.kind == StepKind::Store) continue;
    if (step.limit.is_constant(0) || step.limit.constant() >= kMostTargets ||
        inner_count(kernel, step).constant() >= kMostTargets - 1024)
      return false;
    scatters = true;
    chunks = chunks || goes_in_chunks(kernel, step);
  }
  return scatters && !loads_what_it_stores(program, kernel) &&
         (chunks || !fills_alone(program, kernel));
}

}  // namespace

ScatterShape::ScatterShape(const Kernel& kernel) {
  int64_t updates = 1;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Scatter)
      updates = std::max(updates, std::min(inner_count(kernel, step).constant(), kChunk));
  }
  most_own = static_cast<int>(power_of_two_from(updates));
  const Schedule s = schedule_of(kernel);
  own = std::min(s.each, most_own);
  threads = most_own / own;
  rows = std::max(s.beside, fewest_rows());
}

int ScatterShape::fewest_rows() const { return kWarp / std::min(threads, kWarp); }

RunShape::RunShape(const Program& program, const Kernel& kernel)
    : vector(1),
      apart(1),
      columns(row_count(kernel).constant()),
      packs(columns),
      targets(kernel.steps[1].limit.constant()),
      updates(inner_count(kernel, kernel.steps[1]).constant()),
      run(schedule_of(kernel).run),
      is_ordered(kernel.steps[1].order >= 0) {
  if (kernel.rows == 0) return;
  const Step &base = kernel.steps[0], &scatter = kernel.steps[1];
  const std::vector<int> ids =
      evaluated_for(kernel, {base.value, scatter.value}, [](int) { return false; });
  widest = widest_pack(program, kernel, ids, {&base}, kernel.rows - 1,
                       last_row_axis(kernel).extent.constant());
  const int each = schedule_of(kernel).each;
  while (widest == 1 && 2 * most_apart <= kMostApart &&
         2 * most_apart * kLeastBeside <= columns)
    most_apart *= 2;
  vector = std::min(widest, each);
  apart = std::min(most_apart, each);
  packs = ceil_divide(columns, of_pack());
}

int64_t RunShape::most_targets() const {
  return std::min(targets, (run + packs - 2) / packs + 1);
}

// "" where blocks have such runs.
static std::string why_no_runs(const Program& program, const Kernel& kernel,
                               const std::string& head) {
  const Schedule s = schedule_of(kernel), d;
  if (!is_power_of_two(s.each) || s.each > 8)
    return str(head, "each=", s.each, ": 1, 2, 4 or 8 points of a pack, at most");
  if (s.resident < 0 || s.resident * RunShape::threads > program.machine.threads)
    return str(head, "resident=", s.resident, ": 0 to ",
               program.machine.threads / RunShape::threads, " blocks of a multiprocessor");
  if (s.run < 1 || s.run > int64_t{1} << 30)
    return str(head, "run=", s.run, ": 1 to 2^30 packs");
  const RunShape shape(program, kernel);
  const int most = std::max(shape.widest, shape.most_apart);
  if (s.each != d.each && s.each > most)
    return str(head, "each=", s.each, ": a pack has at most ", most,
               most == 1 ? " point" : " points");
  if (shape.most_targets() > kMostTargetsOfBlock)
    return str(head, "run=", s.run, ": a share in ", shape.most_targets(),
               " targets, a block has at most ", kMostTargetsOfBlock);
  return ceil_divide(shape.points(), s.run) < int64_t{1} << 31
             ? ""
             : str(head, "run=", s.run, ": more blocks than a GPU starts");
}

// Of the shared memory of a block whose rows' updates are sorted: values, words and values in order, and room for words
// of other warps, of each dtype and of each kind of words once.
static int64_t shared_bytes(const Kernel& kernel, const ScatterShape& shape) {
  std::map<std::string, int64_t> arrays;
  for (const Step& step : kernel.steps) {
    if (step.kind != StepKind::Scatter) continue;
    const int64_t value = size_of(compute_type(step.dtype)),
                  word =
                      4 * word_bits_of_numbers(step.limit.constant() + 1, shape.chunk()).words;
    arrays[str("values", step.dtype)] = shape.chunk() * value;
    if (is_chain(kernel, step)) continue;
    arrays[str("ordered", step.dtype)] = shape.slots() * value;
    arrays[str("words", word)] =
        (shape.slots() + (shape.threads > kWarp ? shape.chunk() : 0)) * word;
  }
  int64_t bytes = 0;
  for (const auto& [name, own] : arrays) bytes += own;
  return shape.rows * bytes;
}

// "" where a block has such rows.
static std::string why_no_chunks(const Program& program, const Kernel& kernel,
                                 const std::string& head) {
  const Schedule s = schedule_of(kernel), d;
  const ScatterShape shape(kernel);
  if (s.each != d.each && s.each > shape.most_own)
    return str(head, "each=", s.each, ": a row has at most ", shape.most_own,
               " updates at a time, filled up to a power of two");
  if (s.beside != d.beside && s.beside < shape.fewest_rows())
    return str(head, "beside=", s.beside, ": a warp has ", shape.fewest_rows(), " rows of ",
               shape.threads, shape.threads == 1 ? " thread each" : " threads each");
  if (!is_power_of_two(s.beside) || int64_t{shape.rows} * shape.threads > kMostThreads)
    return str(head, "beside=", s.beside, ": a power of two, of rows of ", shape.threads,
               " threads each, of which a block has ", kMostThreads);
  const int64_t bytes = shared_bytes(kernel, shape), most = program.machine.block_shared;
  return bytes <= most ? ""
                       : str(head, "each=", s.each, " beside=", s.beside, ": ", bytes,
                             " bytes of shared memory, of which a block has ", most);
}

std::string why_illegal_scatter(const Program& program, const Kernel& kernel) {
  const ScatterBy by = scatters_by(program, kernel);
  const Schedule s = schedule_of(kernel), d;
  const std::string head = str("schedule ", name_of(s.strategy), " ");
  if (s.groups != d.groups) return str(head, "groups=", s.groups, ": of rows that are scanned");
  if (s.beside != d.beside && by != ScatterBy::Chunks)
    return str(head, "beside=", s.beside, ": of rows that are scattered in chunks");
  if (by == ScatterBy::Runs) return why_no_runs(program, kernel, head);
  if (s.run != d.run || s.resident != d.resident)
    return str(head, "run=", s.run, " resident=", s.resident,
               ": of a result that blocks own runs of");
  if (by == ScatterBy::Thread)
    return s.each == d.each ? "" : str(head, "each=", s.each, ": a thread has a row by itself");
  if (!is_power_of_two(s.each) || s.each > kMostEach)
    return str(head, "each=", s.each, ": a power of two, 1 to ", kMostEach,
               ", of a thread's updates");
  return by == ScatterBy::Chunks ? why_no_chunks(program, kernel, head) : "";
}

bool scatters_across(const Kernel& kernel) {
  const auto scatters = [](const Step& step) { return step.kind == StepKind::Scatter; };
  const auto step = std::find_if(kernel.steps.begin(), kernel.steps.end(), scatters);
  if (kernel.rows == 0 || step == kernel.steps.end() || step->inner.empty()) return false;
  const Expr row = last_row_axis(kernel).symbol(),
             along = kernel.axes[static_cast<size_t>(step->inner.back())].symbol();
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const Scalar& scalar) {
    return scalar.kind == ScalarKind::Load && depends_on(scalar.index, along.symbol()) &&
           coefficient(scalar.index, row) == 1 && coefficient(scalar.index, along) != 1;
  });
}

bool is_chain(const Kernel& kernel, const Step& step) {
  const Scalar& chosen = kernel.scalars[step.rhs];
  return step.limit.is_constant(1) && step.mask < 0 && !goes_in_chunks(kernel, step) &&
         chosen.kind == ScalarKind::Constant &&
         chosen.value == Literal::of_integer(DType::i64, 0);
}

ScatterBy scatters_by(const Program& program, const Kernel& kernel) {
  const auto scatters = [](const Step& step) { return step.kind == StepKind::Scatter; };
  if (std::none_of(kernel.steps.begin(), kernel.steps.end(), scatters) ||
      !sizes(program).empty())
    return ScatterBy::Thread;
  const bool is_pair = is_base_and_scatter(kernel);
  if (is_pair && scatters_runs(program, kernel)) return ScatterBy::Runs;
  if (is_pair && scatters_to_tables(program, kernel)) return ScatterBy::Tables;
  return scatters_chunks(program, kernel) ? ScatterBy::Chunks : ScatterBy::Thread;
}

bool shares_places(const Kernel& kernel) {
  const int lane = kernel.rows - 1;
  const Expr row = kernel.axes[static_cast<size_t>(lane)].symbol();
  const std::vector<uint64_t> axes = axes_of_scalars(kernel);
  const auto differs = [&](int id) {  // between neighbouring rows
    const std::vector<bool> parts = below(kernel, id);
    for (size_t part = 0; part < parts.size(); part++) {
      if (parts[part] && kernel.scalars[part].kind == ScalarKind::Register) return true;
    }
    return (axes[static_cast<size_t>(id)] >> lane & 1) != 0;
  };
  return std::none_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    if (!goes_in_chunks(kernel, step)) return false;
    return differs(step.rhs) || (step.mask >= 0 && differs(step.mask)) ||
           coefficient(step.index, row) != 1 || depends_on(step.index - row, row.symbol());
  });
}

bool goes_in_chunks(const Kernel& kernel, const Step& step) {
  return step.kind == StepKind::Scatter && scatters_in_chunks(step.op, step.dtype) &&
         inner_count(kernel, step).bounds().high > kChunk;
}

}  // namespace tiny_compile
