// Which schedule is a call's? That in whose ranges all of its sizes are, and the kernel's own for the
// others. Each is the schedule of a kernel whose sizes have these bounds:
//
//   kernel sum_1 rows(i0: n) { ... }      n: 0..1048576
//     schedule rows
//     schedule for n: 1..1024 layouts ...
//   =>   n = 7: layouts, of n: 1..1024;   n = 0 or 2000: rows
#include "tiny_compile/loops/sized_schedules.h"

#include <algorithm>

#include "tiny_compile/loops/legal_schedule.h"

namespace tiny_compile {
namespace {

Symbol symbol_of(const SizeRange& range) { return {range.size, SymbolKind::Size}; }

const Expr* value_of(const Substitution& values, const SizeRange& range) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& value) {
    return value.first == symbol_of(range);
  });
  return found == values.end() ? nullptr : &found->second;
}

enum class Fit { None, Some, All };

// How many of the sizes that there may still be are in the ranges.
Fit fit(const std::vector<SizeRange>& when, const Substitution& values) {
  Fit result = Fit::All;
  for (const SizeRange& range : when) {
    const Expr* value = value_of(values, range);
    if (!value) {
      result = Fit::Some;
      continue;
    }
    const auto [low, high] = value->bounds();
    if (high < range.low || low > range.high) return Fit::None;
    if (low < range.low || high > range.high) result = Fit::Some;
  }
  return result;
}

bool meet(const std::vector<SizeRange>& a, const std::vector<SizeRange>& b) {
  return std::none_of(a.begin(), a.end(), [&](const SizeRange& one) {
    return std::any_of(b.begin(), b.end(), [&](const SizeRange& other) {
      return one.size == other.size && (one.high < other.low || other.high < one.low);
    });
  });
}

std::string why_wrong_range(const std::vector<Expr>& declared, const SizeRange& range) {
  const auto size = std::find_if(declared.begin(), declared.end(),
                                 [&](const Expr& s) { return s.name() == range.size; });
  if (size == declared.end()) return "the program has no size " + range.size;
  const auto [low, high] = size->bounds();
  return low <= range.low && range.low <= range.high && range.high <= high
             ? ""
             : str(range.size, ": ", range.low, "..", range.high, " is not within ", low, "..",
                   high);
}

std::string why_wrong(const Program& program, const Kernel& kernel, size_t n) {
  const std::vector<SizeRange>& when = kernel.sized[n].when;
  if (program.target != Target::Cuda) return "on cuda alone";
  if (when.empty()) return "for no size";
  const std::vector<Expr> declared = sizes(program);
  for (const SizeRange& range : when) {
    if (const std::string why = why_wrong_range(declared, range); !why.empty()) return why;
  }
  for (size_t other = 0; other < n; other++) {
    if (meet(when, kernel.sized[other].when)) return "some of its sizes have another schedule";
  }
  const Program own = for_sizes(program, kernel, n);
  if (own.kernels.empty()) return "of these sizes nothing is done";
  Kernel one = own.kernels[0];
  one.schedule = kernel.sized[n].schedule;
  return why_illegal(own, one);
}

}  // namespace

bool hold(const std::vector<SizeRange>& when, const Substitution& numbers) {
  return fit(when, numbers) == Fit::All;
}

Program for_sizes(const Program& program, const Kernel& kernel, size_t n) {
  Substitution bounds;
  for (const SizeRange& range : kernel.sized[n].when)
    bounds.push_back({symbol_of(range), Expr::symbol(symbol_of(range), range.low, range.high)});
  Program own;
  own.name = program.name;
  own.target = program.target;
  own.machine = program.machine;
  own.matmul = program.matmul;
  own.buffers = program.buffers;
  own.kernels = {kernel};
  own.kernels[0].schedule = kernel.sized[n].schedule;
  own.kernels[0].sized.clear();
  own.launches = {{0}};
  return substitute(own, bounds);
}

std::string why_wrong_sizes(const Program& program, const Kernel& kernel) {
  for (size_t n = 0; n < kernel.sized.size(); n++) {
    const std::string why = why_wrong(program, kernel, n);
    if (!why.empty()) return str("schedule for ", str(kernel.sized[n].when), ": ", why);
  }
  return "";
}

Kernel with_schedule_for(Kernel kernel, const Substitution& values) {
  std::vector<SizedSchedule> left;
  for (const SizedSchedule& one : kernel.sized) {
    const Fit how = fit(one.when, values);
    if (how == Fit::Some) left.push_back(one);
    if (how != Fit::All) continue;
    kernel.schedule = one.schedule;
    left.clear();
    break;
  }
  kernel.sized = std::move(left);
  return kernel;
}

}  // namespace tiny_compile
