// May two kernels be one loop, and which? The heart of fusion.
//
//   rows(i: 8) { r0 = max(j: 4) load x[i*4 + j] ; store m[i] = r0 }
//   rows(i: 8, j: 4) { store d[i*4 + j] = sub(load x[i*4 + j], load m[i]) }
// =>
//   rows(i: 8) { r0 = max(j: 4) load x[i*4 + j] ; store m[i] = r0
//                store d[i*4 + j] for (j: 4) = sub(load x[i*4 + j], r0) }
//
// The buffer that both touch says which loops are the same: the consumer's axes become the
// producer's. Rows that only one side has become inner loops of its steps. The consumer's loads
// of what the producer stores at the same point become the stored value itself.
#include "tiny_compile/loops/merge.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/align.h"
#include "tiny_compile/loops/apart.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/columns.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/join.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/work.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLongRow = 32768;  // elements
constexpr int64_t kHeldRow = 16384;  // of a GPU's row, that a block of a cluster holds
constexpr int64_t kHalf = 2;         // bytes

// Of a size the most, whose products numbers may not hold.
int64_t times(int64_t count, const Expr& extent) {
  return clamp_to_bounds(Wide{count} * extent.bounds().high);
}

MergePlan refuse(std::string reason) {
  MergePlan plan;
  plan.refusal = std::move(reason);
  return plan;
}

// Rows and matched pieces, if the loops line up at all.
MergePlan line_up(const Group& second, Nest first_nest, Nest second_nest) {
  const auto pieces = common_pieces(first_nest, second_nest);
  if (!pieces) return refuse("their loops do not divide each other");
  MergePlan plan;
  plan.pieces = *pieces;
  plan.first = std::move(first_nest);
  plan.second = std::move(second_nest);
  std::vector<int> covered;
  for (size_t p = 0; p < plan.pieces.size(); p++) {
    const int axis = plan.second[plan.pieces[p].second].axis;
    if (axis < 0 && plan.indirect >= 0) return refuse("it chooses two places by data");
    if (axis < 0) plan.indirect = static_cast<int>(p);
    covered.push_back(axis);
  }
  for (int axis : all_axes(second)) {
    if (!contains(covered, axis)) plan.unmatched.push_back(axis);
  }
  return plan;
}

// Chooses the merged rows. A sequential side keeps its rows; both sequential must
// have the same.
void choose_rows(const Group& first, const Group& second, MergePlan& plan) {
  const bool keeps_first = first.sequential(), keeps_second = second.sequential();
  size_t first_rows = 0;
  for (const Piece& piece : plan.pieces) {
    const int a = plan.first[piece.first].axis, b = plan.second[piece.second].axis;
    const bool row_of_first = first.is_row(a), row_of_second = b >= 0 && second.is_row(b);
    if (keeps_first && row_of_first && !row_of_second)
      plan.refusal = "its rows are loops of the other";
    if (keeps_second && row_of_second && !row_of_first)
      plan.refusal = "its rows are loops of the other";
    if (keeps_first && keeps_second && row_of_first != row_of_second)
      plan.refusal = "their rows differ";
    plan.row_piece.push_back(row_of_first && row_of_second);
  }
  std::vector<int> in_nest;
  for (const Loop& loop : plan.first) in_nest.push_back(loop.axis);
  for (int row : first.rows) first_rows += contains(in_nest, row) ? 0 : 1;
  if (first_rows > 0) plan.refusal = "their rows differ";
  for (int axis : plan.unmatched) {
    if (keeps_second && second.is_row(axis))
      plan.refusal = "it would repeat the other's work for each of its rows";
  }
  if (plan.indirect < 0) return;
  const int chosen = plan.first[plan.pieces[plan.indirect].first].axis;
  if (!keeps_first || first.is_row(chosen)) plan.refusal = "it reads rows chosen by data";
}

// Extra loops must be inside the shared ones, or memory would be walked across its grain.
bool extra_loops_are_inside(const Group& second, const MergePlan& plan) {
  bool outside = false;
  for (int row : second.rows) {
    const bool extra = contains(plan.unmatched, row);
    if (!extra && outside) return false;
    outside = outside || extra;
  }
  return true;
}

// Rows that cannot keep the machine busy while each has much to do.
bool are_few(const Machine& machine, int64_t rows) { return rows < rows_to_fill(machine) / 8; }

// Rows that one loop after the other would read from memory again, as kernels of chunks do (split.h), of which
// there are many.
bool are_read_again(const Machine& machine, int64_t rows, int64_t longest) {
  return target_of(machine) == Target::Cuda && rows < rows_to_fill(machine) &&
         longest > machine.cluster * kHeldRow && longest > machine.l2 / (kHalf * rows) &&
         longest % kChunk == 0;
}

// What a kernel goes through in a row: all its loops together, and the longest of its steps.
struct Loops {
  int64_t all = 1, longest = 1;
};

bool are_left_apart(const Machine& machine, int64_t rows, const Loops& loops) {
  return (are_few(machine, rows) && loops.all > kLongRow) ||
         are_read_again(machine, rows, loops.longest);
}

// Of the second, in a row of the merged kernel.
Loops loops_of_second(const Group& second, const MergePlan& plan) {
  Loops loops;
  const auto through = [&](const auto& is_in) {
    int64_t inner = 1;
    for (size_t p = 0; p < plan.pieces.size(); p++)
      if (!plan.row_piece[p] && is_in(plan.second[plan.pieces[p].second].axis))
        inner = times(inner, plan.pieces[p].extent);
    for (int axis : plan.unmatched)
      if (is_in(axis)) inner = times(inner, second.kernel.axes[axis].extent);
    return inner;
  };
  loops.all = through([](int) { return true; });
  for (const Step& step : second.kernel.steps)
    loops.longest =
        std::max(loops.longest, through([&](int axis) {
                   return axis < 0 || second.is_row(axis) || contains(step.inner, axis);
                 }));
  return loops;
}

// Few rows with much to do each: the merged kernel would leave the machine idle.
bool serialises(const Program& program, const Group& second, const MergePlan& plan) {
  int64_t rows = 1;
  for (size_t p = 0; p < plan.pieces.size(); p++)
    if (plan.row_piece[p]) rows = times(rows, plan.pieces[p].extent);
  return are_left_apart(program.machine, rows, loops_of_second(second, plan));
}

bool is_all_rows(const MergePlan& plan) {
  return std::count(plan.row_piece.begin(), plan.row_piece.end(), false) == 0;
}

// Few rows reduce much each, which is split (split.h) unless other loops come with it.
bool is_split_alone(const Program& program, const Group& first, const Group& second,
                    const MergePlan& plan) {
  int64_t rows = 1, longest = 1;
  for (int row : first.rows) rows = times(rows, first.kernel.axes[row].extent);
  for (const Step& step : first.kernel.steps) {
    int64_t inner = 1;
    for (int axis : step.inner) inner = times(inner, first.kernel.axes[axis].extent);
    if (step.kind == StepKind::Reduce) longest = std::max(longest, inner);
  }
  const bool brings_loops =
      second.sequential() || !is_all_rows(plan) || !plan.unmatched.empty();
  return brings_loops && are_left_apart(program.machine, rows, {longest, longest});
}

// Whether a group reads and writes rows one after the other where the other goes down columns: what
// is stored along a column is another matter (a strip of them, transposed in fast memory).
bool goes_along(const Program& program, const Group& group, const MergePlan& plan,
                bool is_first) {
  if (group.sequential()) return has_long_columns(program, group.kernel, group.rows);
  bool along = false;
  for (size_t p = 0; p < plan.pieces.size(); p++) {
    const Piece& piece = plan.pieces[p];
    const int axis = is_first ? plan.first[piece.first].axis : plan.second[piece.second].axis;
    if (axis == group.rows.back()) along = plan.row_piece[p];
  }
  return along;
}

void check_columns(const Program& program, const Group& first, const Group& second,
                   MergePlan& plan) {
  if (is_all_rows(plan) && plan.unmatched.empty()) return;  // a number or few a column
  const auto is_long = [&](const Group& group) {
    return has_long_columns(program, group.kernel, group.rows);
  };
  if ((is_long(first) && goes_along(program, second, plan, false)) ||
      (!is_all_rows(plan) && is_long(second) && goes_along(program, first, plan, true)))
    plan.refusal = "what goes down long columns goes down them alone";
}

// The consumer's points become loops inside the producer's rows.
bool adds_loops(const Group& producer, const MergePlan& plan) {
  return producer.sequential() || !plan.unmatched.empty();
}

void check_matmul(const Group& first, MergePlan& plan) {
  if (!first.has(StepKind::Dot)) return;
  if (!plan.unmatched.empty() || !is_all_rows(plan))
    plan.refusal = "a matmul's epilogue works on one element at a time";
}

constexpr const char* kSortsAlone =
    "a sort goes over its row many times: it has its kernel alone";

// How a kernel goes over what another writes together with it.
MergePlan line_up_consumer(const Program& program, const Group& producer,
                           const Group& consumer) {
  const Scalar* load =
      widest_load(consumer, [&](const Scalar& s) { return producer.store_to(s.buffer) >= 0; });
  CHECK(load, "a consumer that does not read");
  const Step& store = producer.kernel.steps[producer.store_to(load->buffer)];
  auto written = nest_of(producer.kernel, store.index, {});
  auto read = nest_of(consumer.kernel, load->index, load->limits);
  const Expr& size = program.buffers[load->buffer].size;
  if (!written || !read || !covers(*written, size) || !covers(*read, size))
    return refuse("it reads other places than the ones written at the same point");
  MergePlan plan = line_up(consumer, *written, *read);
  if (plan.refusal.empty()) choose_rows(producer, consumer, plan);
  if (plan.refusal.empty()) check_matmul(producer, plan);
  if (plan.refusal.empty() && !producer.sequential() && !extra_loops_are_inside(consumer, plan))
    plan.refusal = "it repeats the whole result, outside its loops";
  if (plan.refusal.empty()) check_columns(program, producer, consumer, plan);
  return plan;
}

Expr constant_of(const Expr& index) {
  Expr constant = 0;
  for (const Term& term : terms(index))
    if (term.factor.is_constant()) constant = term.coefficient;
  return constant;
}

// The axes of both as nests, where they have the same ones and read the same places by them, however the
// indices are made: (i*1024 + j) / 3136 is no sum of loops.
std::optional<std::pair<Nest, Nest>> same_axes(const Group& first, const Expr& ours,
                                               const Group& second, const Expr& theirs) {
  const std::vector<int> a = all_axes(first), b = all_axes(second);
  if (a.size() != b.size()) return std::nullopt;
  Nest of_first, of_second;
  Substitution names;
  Expr stride = 1;
  for (size_t k = a.size(); k-- > 0;) {
    const Axis &one = first.kernel.axes[a[k]], &other = second.kernel.axes[b[k]];
    if (!(one.extent == other.extent)) return std::nullopt;
    if (!one.extent.is_constant(1) && !depends_on(ours, one.name)) return std::nullopt;
    of_first.insert(of_first.begin(), {a[k], stride, one.extent});
    of_second.insert(of_second.begin(), {b[k], stride, other.extent});
    names.emplace_back(Symbol(other.name), Expr(one.symbol()));
    stride = stride * one.extent;
  }
  if (!(substitute(theirs, names) == ours)) return std::nullopt;
  return std::pair{std::move(of_first), std::move(of_second)};
}

// How two kernels that read the same could go over it together.
MergePlan line_up_shared(const Program& program, const Group& first, const Group& second) {
  std::set<int> loaded;
  for (const Scalar& s : first.kernel.scalars) {
    if (s.kind == ScalarKind::Load) loaded.insert(s.buffer);
  }
  auto shared = [&](const Scalar& s) {
    return s.operands.empty() && loaded.count(s.buffer) > 0;
  };
  const Scalar* theirs = widest_load(second, shared);
  if (!theirs) return refuse("they share no read");
  const Scalar* ours = widest_load(
      first, [&](const Scalar& s) { return s.buffer == theirs->buffer && s.operands.empty(); });
  if (!ours) return refuse("they share no read");
  const Expr offset = constant_of(ours->index);  // of the second half of rows, say
  auto a = nest_of(first.kernel, ours->index - offset, {}),
       b = nest_of(second.kernel, theirs->index - offset, {});
  const Expr& size = program.buffers[theirs->buffer].size;
  const bool same = a && b && (same_loops(*a, *b) || (covers(*a, size) && covers(*b, size)));
  const auto axes = same ? std::nullopt : same_axes(first, ours->index, second, theirs->index);
  if (!same && !axes) return refuse("they read other places");
  MergePlan plan = same ? line_up(second, *a, *b) : line_up(second, axes->first, axes->second);
  if (plan.refusal.empty()) choose_rows(first, second, plan);
  if (plan.refusal.empty() && !plan.unmatched.empty()) plan.refusal = "their rows differ";
  return plan;
}

// Whether one of them reduces all that the other does, as a softmax's gradient does what the softmax does: then
// both go down their columns as often as that one alone.
bool adds_no_pass(const Program& program, const Group& first, const Group& second) {
  Group both(first.finish());
  const MergePlan plan = line_up_shared(program, both, second);
  if (!plan.refusal.empty() || !join_groups(both, second, plan).empty()) return false;
  const auto reductions = [](const Group& group) {
    const Kernel kernel = without_repeats(group.finish());
    return std::count_if(kernel.steps.begin(), kernel.steps.end(),
                         [](const Step& step) { return step.kind == StepKind::Reduce; });
  };
  return reductions(both) <= std::max(reductions(first), reductions(second));
}

MergePlan line_up_siblings(const Program& program, const Group& first, const Group& second) {
  MergePlan plan = line_up_shared(program, first, second);
  if (!plan.refusal.empty()) return plan;
  check_columns(program, first, second, plan);
  if (plan.refusal.empty() || program.target != Target::Cuda || !first.sequential() ||
      !second.sequential())
    return plan;
  if (goes_once(first.kernel) && goes_once(second.kernel))
    std::swap(plan.refusal, plan.unless_split);
  else if (adds_no_pass(program, first, second))
    plan.refusal.clear();
  return plan;
}

// Whether the consumer would compute costly values anew in each turn of a loop of its own. (A GPU's
// threads have arithmetic to spare; a CPU would rather read them.)
bool repeats_work(const Program& program, const Group& producer, const Group& consumer,
                  const MergePlan& plan) {
  const auto turns = [](const Expr& extent) { return extent.bounds().high > 1; };
  bool in_loops = false;
  for (size_t p = 0; p < plan.pieces.size(); p++)
    in_loops = in_loops || (!plan.row_piece[p] && turns(plan.pieces[p].extent));
  if (program.target == Target::Cuda || !in_loops ||
      std::none_of(plan.unmatched.begin(), plan.unmatched.end(),
                   [&](int axis) { return turns(consumer.kernel.axes[axis].extent); }))
    return false;
  return reads_costly_values(producer, consumer);
}

// Whether the two are one sum that many rows do a part of (split.h).
bool splits(const Program& program, const Group& first, const Group& second,
            MergePlan (*line_up)(const Program&, const Group&, const Group&)) {
  Group both(first.finish());
  return join_groups(both, second, line_up(program, both, second)).empty() &&
         can_split(program, both.finish());
}

}  // namespace

std::string merge_consumer(const Program& program, Group& producer, const Group& consumer) {
  if (const std::string reason = why_too_long(producer, consumer); !reason.empty())
    return reason;
  if (producer.has(StepKind::Scan) || producer.has(StepKind::Scatter))
    return "its result is known only once the row is finished";
  if (producer.has(StepKind::Sort) || consumer.has(StepKind::Sort)) return kSortsAlone;
  if (program.target == Target::Cuda && consumer.has(StepKind::Scatter))
    return "on a GPU a scatter has its kernel alone, whose threads share rows";
  if (const std::string reason = why_apart(program, producer, consumer); !reason.empty())
    return reason;
  if (consumer.has(StepKind::Dot))
    return "a matmul reads its operands many times: they stay in memory";
  if (producer.has(StepKind::Dot) && consumer.sequential())
    return "a matmul's epilogue works on one element at a time";
  const MergePlan plan = line_up_consumer(program, producer, consumer);
  if (!plan.refusal.empty()) return plan.refusal;
  if (repeats_work(program, producer, consumer, plan))
    return "it would be computed again in each turn of a loop";
  const bool is_long =
      adds_loops(producer, plan) && (serialises(program, consumer, plan) ||
                                     is_split_alone(program, producer, consumer, plan));
  if (is_long && !splits(program, producer, consumer, line_up_consumer))
    return "few rows would each run a long loop alone";
  return join_groups(producer, consumer, plan);
}

std::string merge_sibling(const Program& program, Group& first, const Group& second) {
  for (const Group* group : {static_cast<const Group*>(&first), &second}) {
    if (group->has(StepKind::Dot) || group->has(StepKind::Scatter))
      return "matmuls share no loops";
  }
  if (first.has(StepKind::Sort) || second.has(StepKind::Sort)) return kSortsAlone;
  if (const std::string reason = why_too_long(first, second); !reason.empty()) return reason;
  const MergePlan plan = line_up_siblings(program, first, second);
  if (!plan.refusal.empty()) return plan.refusal;
  std::string long_loop = plan.unless_split;
  if (first.sequential() != second.sequential() && serialises(program, second, plan))
    long_loop = "few rows would each run a long loop alone";
  if (!long_loop.empty() && !splits(program, first, second, line_up_siblings)) return long_loop;
  const int again = std::min(first.kernel.again, second.kernel.again);
  const std::string refusal = join_groups(first, second, plan);
  if (refusal.empty()) first.kernel.again = again;
  return refusal;
}

}  // namespace tiny_compile
