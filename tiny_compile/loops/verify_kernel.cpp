// May every later stage trust this kernel? Its scalars and steps have the right types, use what
// is there, and stay within their buffers.
//
//   store y[i0 + 1] for 8 elements of y  =>  Refusal: y[i0 + 1] leaves the buffer's 8 elements
#include "tiny_compile/loops/verify_kernel.h"

#include <algorithm>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/coverage.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/mask_facts.h"
#include "tiny_compile/loops/order_updates.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

struct CheckedKernel : Suspect {
  MaskFacts facts;
};

// --- axes and scalars ---

void check_axes(const CheckedKernel& k, const std::set<std::string>& size_names) {
  std::vector<std::string> names;
  for (const Axis& axis : k.kernel->axes) {
    names.push_back(axis.name);
    k.require(!size_names.count(axis.name), "the loop ", axis.name, " is called like a size");
  }
  std::sort(names.begin(), names.end());
  k.require(std::adjacent_find(names.begin(), names.end()) == names.end(),
            "two axes have one name");
  k.require(k.kernel->rows <= static_cast<int>(k.kernel->axes.size()), "more rows than axes");
  for (const Axis& axis : k.kernel->axes)
    k.require(axis.extent.is_constant() ? axis.extent.constant() >= 1
                                        : axis.extent.bounds().high >= 1,
              axis.name, " counts to ", axis.extent, ": what is empty has no kernel");
  k.require(!k.kernel->steps.empty(), "no steps");
}

void check_scalar(const CheckedKernel& k, int id) {
  const Scalar& s = k.kernel->scalars[id];
  for (int operand : s.operands)
    k.require(operand >= 0 && operand < id, "scalar $", id, " uses $", operand,
              ", which is not earlier");
  k.require(s.mask < id, "scalar $", id, " is masked by a later scalar");
  if (s.kind == ScalarKind::Load)
    k.require(s.buffer >= 0 && s.buffer < static_cast<int>(k.program.buffers.size()), "$", id,
              " loads from no buffer");
  k.require(s.operands.size() == s.limits.size() || s.limits.empty(), "$", id,
            " has places without limits");
  const bool places = s.kind == ScalarKind::Load || s.kind == ScalarKind::Index;
  k.require(!places || s.operands.size() == s.limits.size(), "$", id,
            " has places without limits");
  if (s.kind == ScalarKind::Register)
    k.require(s.step >= 0 && s.step < static_cast<int>(k.kernel->steps.size()) &&
                  makes_register(k.kernel->steps[s.step]),
              "$", id, " reads a register that no step makes");
  const std::string reason = why_ill_typed(k.program, *k.kernel, id);
  k.require(reason.empty(), reason);
}

// --- indices ---

// It can be computed: no divisor is 0, no part of it leaves 64 bits.
void check_index(const CheckedKernel& k, const Expr& index) {
  const Expr* divisor = doubtful_divisor(index);
  k.require(!divisor, "[", index, "] divides by ", divisor ? *divisor : Expr(0),
            ", which is not always positive");
  k.require(largest_part(index) < kUnbounded, "[", index, "] leaves 64 bits");
}

void check_symbols(const CheckedKernel& k, int step, const Expr& index,
                   const std::vector<std::string>& open, size_t chosen) {
  for (const Symbol& symbol : symbols(index)) {
    bool known = symbol.kind == SymbolKind::Size;
    if (symbol.kind == SymbolKind::Axis)
      known = std::find(open.begin(), open.end(), symbol.name) != open.end();
    for (size_t c = 0; c < chosen; c++) known = known || symbol == indirect(c);
    k.require(known, "step ", step, " uses ", symbol.name, " outside its loop");
  }
}

// A loop's symbol that goes up to a symbolic size.
bool has_extent(const Expr& symbol) { return !symbol.operands().empty(); }

// The index where loops of symbolic sizes turn as seldom as they can.
Expr of_least_sizes(const Expr& index) {
  std::vector<Expr> parts;
  collect_symbols(index, parts);
  Substitution least;
  for (const Expr& part : parts) {
    if (!has_extent(part)) continue;
    const int64_t extent = std::max<int64_t>(part.operands()[0].bounds().low, 1);
    least.push_back({part.symbol(), Expr::index(part.symbol(), extent)});
  }
  return substitute(index, least);
}

// Once the sizes are known, all is; until then an index that is written without them is not
// negative for the least of them, and another one not always.
bool may_be_within(CheckedKernel& k, const Expr& index, const Expr& size, int mask) {
  if (k.facts.within(index, size, mask)) return true;
  if (has_size(index)) return index.bounds().high >= 0;
  std::vector<Expr> parts;
  collect_symbols(index, parts);
  const bool of_sizes =
      !size.is_constant() || std::any_of(parts.begin(), parts.end(), has_extent);
  return of_sizes && (mask >= 0 || of_least_sizes(index).bounds().low >= 0);
}

bool lies_in_a_row(CheckedKernel& k, const Rows& rows, const Expr& index, int mask) {
  return is_own(rows, index) || k.facts.within(mod(index, rows.stride), rows.row, mask);
}

// A place chosen below a limit of 0 is none, and nobody goes there.
void check_bounds(CheckedKernel& k, int buffer, const Expr& index, int mask,
                  const std::vector<Expr>& limits) {
  const Buffer& b = k.program.buffers[buffer];
  const bool never = std::any_of(limits.begin(), limits.end(),
                                 [](const Expr& limit) { return limit.is_constant(0); });
  k.require(never || may_be_within(k, index, b.size, mask), b.name, "[", index,
            "] leaves the buffer's ", b.size, " elements",
            mask < 0 ? "" : ", as far as its mask tells");
  k.require(b.role == Role::Input || lies_in_a_row(k, rows_of(b), index, mask), b.name, "[",
            index, "] lies between the rows of its shape");
}

// --- steps ---

bool is_scalar(const CheckedKernel& k, int id) {
  return id >= 0 && id < static_cast<int>(k.kernel->scalars.size());
}

// Points that run beside each other do not write the same element: the place depends on every
// loop. (Whether i0 + i1 meets itself is not asked.)
void check_place(const CheckedKernel& k, int number, const std::vector<std::string>& open) {
  const Step& s = k.kernel->steps[number];
  for (const Axis& axis : k.kernel->axes) {
    const bool loops = std::find(open.begin(), open.end(), axis.name) != open.end() &&
                       axis.extent.bounds().high > 1;
    k.require(!loops || depends_on(s.index, axis.name), "step ", number, " stores ",
              axis.extent, " values of ", axis.name, " in one place");
  }
}

// What a block's threads add in one tree; the place is one for all of them.
void check_fold(const CheckedKernel& k, int number, std::vector<std::string>& open) {
  k.require(k.kernel->rows > 0, "step ", number, " folds no rows");
  const Expr& rows = k.kernel->axes[k.kernel->rows - 1].extent;
  const int64_t count = rows.is_constant() ? rows.constant() : 0;
  k.require(count > 0 && count <= 1024 && (count & (count - 1)) == 0, "step ", number,
            " folds ", rows, " rows: a power of two up to 1024");
  const DType dtype = k.kernel->scalars[k.kernel->steps[number].value].dtype;
  k.require(is_float(dtype) && !is_half(dtype), "step ", number, " folds ", dtype,
            ": f32 or f64");
  open.erase(open.begin() + k.kernel->rows - 1);
}

// Its values are there, of the right types, and a buffer, if it writes one.
void check_form(const CheckedKernel& k, int number) {
  const Step& s = k.kernel->steps[number];
  k.require(is_scalar(k, s.value), "step ", number, " has no value");
  const bool two = s.kind == StepKind::Dot || s.kind == StepKind::Scatter;
  k.require(!two || is_scalar(k, s.rhs), "step ", number, " has no second value");
  k.require(s.mask < 0 || is_scalar(k, s.mask), "step ", number, " has no mask");
  k.require(makes_register(s) ||
                (s.buffer >= 0 && s.buffer < static_cast<int>(k.program.buffers.size())),
            "step ", number, " writes no buffer");
  const std::string reason = why_ill_typed(k.program, *k.kernel, s);
  k.require(reason.empty(), "step ", number, " ", reason);
}

// The names of the loops that a step is in.
std::vector<std::string> open_loops(const CheckedKernel& k, int number) {
  std::vector<std::string> open;
  for (int row = 0; row < k.kernel->rows; row++) open.push_back(k.kernel->axes[row].name);
  for (int axis : k.kernel->steps[number].inner) {
    k.require(axis >= k.kernel->rows && axis < static_cast<int>(k.kernel->axes.size()), "step ",
              number, " loops over a row");
    open.push_back(k.kernel->axes[axis].name);
  }
  return open;
}

void check_needed(CheckedKernel& k, int number, const std::vector<std::string>& open) {
  const std::vector<bool> needed = reachable(*k.kernel, k.kernel->steps[number]);
  for (size_t id = 0; id < needed.size(); id++) {
    if (!needed[id]) continue;
    const Scalar& scalar = k.kernel->scalars[id];
    check_symbols(k, number, scalar.index, open, scalar.operands.size());
    check_index(k, scalar.index);
    if (scalar.kind == ScalarKind::Load)
      check_bounds(k, scalar.buffer, scalar.index, scalar.mask, scalar.limits);
    k.require(scalar.kind != ScalarKind::Register || scalar.step < number, "step ", number,
              " reads a register before it is made");
  }
}

// Where a step writes.
void check_target(CheckedKernel& k, int number, std::vector<std::string> open) {
  const Step& s = k.kernel->steps[number];
  const bool scatters = s.kind == StepKind::Scatter;
  check_index(k, s.index);
  if (s.kind == StepKind::Fold) check_fold(k, number, open);
  check_symbols(k, number, s.index, open, scatters ? 1 : 0);
  const std::vector<Expr> limits = scatters ? std::vector<Expr>{s.limit} : std::vector<Expr>{};
  const bool covers_row = s.mask >= 0 && (s.kind == StepKind::Scan || s.kind == StepKind::Sort);
  if (!covers_row) check_bounds(k, s.buffer, s.index, s.mask, limits);
  if (!scatters) check_place(k, number, open);
}

void check_step(CheckedKernel& k, int number) {
  const Step& s = k.kernel->steps[number];
  const auto require_none = [&](const std::string& wrong) {
    k.require(wrong.empty(), "step ", number, " ", wrong);
  };
  k.at.step = number;
  check_form(k, number);
  const std::vector<std::string> open = open_loops(k, number);
  check_needed(k, number, open);
  if (s.kind == StepKind::Scan || (s.kind == StepKind::Reduce && has_running_results(s.op)))
    require_none(why_wrong_scan(k.program, *k.kernel, number));
  if (s.kind == StepKind::Sort) require_none(why_wrong_sort(k.program, *k.kernel, number));
  if (makes_register(s)) return;
  require_none(why_wrong_order(k.program, *k.kernel, number));
  check_target(k, number, open);
}

void check_schedule(CheckedKernel& k) {
  k.at.schedule = k.kernel->schedule.has_value() || !k.kernel->sized.empty();
  const std::string reason = why_illegal(k.program, *k.kernel);
  k.require(reason.empty(), reason);
  const std::string sized = why_wrong_sizes(k.program, *k.kernel);
  k.require(sized.empty(), sized);
}

}  // namespace

void check_kernel(const Program& program, int number, const std::set<std::string>& size_names) {
  const Kernel& kernel = program.kernels[number];
  CheckedKernel k{{program, &kernel, {.kernel = number}}, MaskFacts(kernel)};
  check_axes(k, size_names);
  for (size_t id = 0; id < kernel.scalars.size(); id++) check_scalar(k, static_cast<int>(id));
  for (size_t s = 0; s < kernel.steps.size(); s++) check_step(k, static_cast<int>(s));
  k.at.step = -1;
  check_schedule(k);
}

}  // namespace tiny_compile
