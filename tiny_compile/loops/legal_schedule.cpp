// May a kernel be run as its schedule says?
//
//   schedule columns lanes=24    =>  "lanes=24: a power of two, 16 to 1024"
//   schedule columns lanes=32    =>  "lanes=32 is for columns on the CPU", of a CUDA program
//   schedule columns, of a dot   =>  "schedule columns is for reductions of at most ..."
//
// A schedule changes no bit, so whatever is legal here must be obeyed exactly by every generator;
// what one of them cannot do is refused.
#include "tiny_compile/loops/legal_schedule.h"

#include <algorithm>
#include <iterator>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/dot_axes.h"
#include "tiny_compile/loops/eighths.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/library_matmul.h"
#include "tiny_compile/loops/panel_shape.h"
#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/loops/scan_shape.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/loops/sort_rules.h"
#include "tiny_compile/loops/split_sort.h"
#include "tiny_compile/loops/streamed_stores.h"
#include "tiny_compile/loops/strips.h"
#include "tiny_compile/loops/transposed_loads.h"

namespace tiny_compile {
namespace {

std::string range_text(const FieldValues& values) {
  if (values.kind == FieldValues::Ends) return str(values.least, " or ", values.most);
  if (values.kind == FieldValues::Powers)
    return str(values.least == 0 ? "0 or " : "", "a power of two, ",
               std::max<int64_t>(values.least, 1), " to ", values.most);
  return values.most == INT64_MAX ? str("at least ", values.least)
                                  : str(values.least, " to ", values.most);
}

bool takes(const FieldValues& values, int64_t value) {
  if (value < values.least || value > values.most) return false;
  switch (values.kind) {
    case FieldValues::Range: return true;
    case FieldValues::Powers: return value == 0 || is_power_of_two(value);
    case FieldValues::Ends: return value == values.least || value == values.most;
  }
  return false;
}

std::string why_wrong_fields(const Schedule& s) {
  for (const ScheduleField& field : fields(s)) {
    if (field.value != field.otherwise && !takes(field.values, field.value))
      return str(field.name, "=", field.value, ": ", range_text(field.values));
  }
  if (s.algorithm >= kMostAlgorithms)
    return str("algorithm=", s.algorithm, ": 0 to ", kMostAlgorithms - 1);
  return s.algorithm == 0 || s.split_k == 0
             ? ""
             : str("split_k=", s.split_k, ": of algorithm=0 alone; others have their own");
}

// "rows, columns on the CPU"
std::string names_of(const std::vector<FieldReader>& readers) {
  std::string text;
  for (size_t r = 0; r < readers.size(); r++) {
    const Target target = readers[r].target;
    const bool is_last = r + 1 == readers.size() || readers[r + 1].target != target;
    text += str(r > 0 ? ", " : "", name_of(readers[r].strategy),
                !is_last                 ? ""
                : target == Target::Cuda ? " on cuda"
                                         : " on the CPU");
  }
  return text;
}

// A field that the program's generator does not read for this strategy.
std::string why_foreign(const Schedule& schedule, Target target) {
  for (const ScheduleField& field : fields(schedule)) {
    if (field.value != field.otherwise && !is_read(field, target, schedule.strategy))
      return str(field.name, "=", field.value, " is for ", names_of(field.readers));
  }
  return "";
}

// Whether a vendor's library is asked, and can do it.
std::string why_no_call(const Program& program, const Kernel& kernel) {
  if (program.target != Target::Cuda || program.matmul == Matmul::Generated)
    return "is for cuda and products that are left to a vendor's library; this program's are "
           "generated, with the interpreter's bits: tiles";
  const LibraryMatch match = library_matmul(program, kernel);
  return match.matmul ? "" : "is for what the library can do: " + match.reason;
}

// One Dot of numbers and stores of points.
bool is_one_dot(const Kernel& kernel) {
  const Step* dot = nullptr;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Dot && !dot)
      dot = &step;
    else if (step.kind != StepKind::Store || !step.inner.empty())
      return false;
  }
  return dot && (is_float(kernel.scalars[dot->value].dtype) ||
                 is_integer(kernel.scalars[dot->value].dtype));
}

// CUDA's tiles: floats, the left operand free of the last row axis, the right one of the row axis
// before it.
bool is_plain_matmul(const Kernel& kernel) {
  const DotAxes axes = dot_axes(kernel);
  const Step& dot = kernel.steps[axes.step];
  if (kernel.rows < 1 || !is_float(kernel.scalars[dot.value].dtype)) return false;
  const auto mentions = [&](int scalar, int axis) {
    const std::vector<bool> parts = below(kernel, scalar);
    for (size_t id = 0; id < parts.size(); id++) {
      if (parts[id] && depends_on(kernel.scalars[id].index, kernel.axes[axis].name))
        return true;
    }
    return false;
  };
  return !mentions(dot.value, kernel.rows - 1) &&
         (kernel.rows < 2 || !mentions(dot.rhs, kernel.rows - 2));
}

constexpr int kMostEach = 8;        // of a product
constexpr int kMostThreads = 1024;  // of a block

// Of a GPU's product: each thread stages as much as all others, and shared memory holds both slices.
std::string why_illegal_tiles(const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  if (!is_power_of_two(s.each) || s.each > kMostEach)
    return str("schedule tiles each=", s.each, ": 1, 2, 4 or 8 rows and columns of a thread");
  if (!is_power_of_two(s.slice) || s.each * s.slice < kTileSide)
    return str("schedule tiles slice=", s.slice, ": a power of two, from ", kTileSide / s.each,
               " on with each=", s.each, ", so that every thread stages an element");
  const DType operand = kernel.scalars[kernel.steps[dot_axes(kernel).step].value].dtype;
  const int64_t bytes = 2 * s.slice * slice_stride(s) * size_of(compute_type(operand));
  return bytes <= kDeclaredShared
             ? ""
             : str("schedule tiles slice=", s.slice, ": ", bytes,
                   " bytes of shared memory, of which a block has ", kDeclaredShared);
}

// Of a GPU's rows: only those have elements dealt out that are sorted in registers, or merged.
std::string why_illegal_sort(const Program& program, const Kernel& kernel) {
  const int each = kernel.schedule->each;
  if (each == Schedule{}.each) return "";
  const std::string head = str("schedule rows each=", each, ": ");
  const Step& step = kernel.steps[0];
  if (step.kind != StepKind::Sort) return head + "for rows that are sorted";
  if (!sizes(program).empty()) return head + "where sizes are symbols, a thread has an element";
  const int most = most_sorted(kernel, step);
  if (!is_power_of_two(each) || each > most)
    return str(head, "a power of two, 1 to ", most, ", of elements that a thread ",
               step.rhs < 0 ? "sorts" : "merges");
  const int64_t run = sorted_run(kernel, step).constant();
  if (step.rhs < 0 && each > static_cast<int64_t>(power_of_two_from(run)))
    return str(head, run, " elements are sorted together");
  if (step.rhs >= 0 || (run <= kSortedRun && power_of_two_from(run) / each <= kMostThreads))
    return "";
  return str(head, run, " elements are more than ", kMostThreads, " threads hold");
}

// Of a GPU's rows or columns: those that are scanned, sorted or scattered have fields for it.
std::string why_illegal_rows(const Program& program, const Kernel& kernel) {
  const bool scatters =
      std::any_of(kernel.steps.begin(), kernel.steps.end(),
                  [](const Step& step) { return step.kind == StepKind::Scatter; });
  if (scatters) return why_illegal_scatter(program, kernel);
  const Schedule &s = *kernel.schedule, d;
  if (s.run != d.run)
    return str("schedule ", name_of(s.strategy), " run=", s.run,
               ": of a result that blocks own runs of");
  const std::string reason = why_illegal_scan(program, kernel);
  return reason.empty() ? why_illegal_sort(program, kernel) : reason;
}

// Rows and points of a CPU, of whose results some have to go past the caches.
std::string why_no_stream(const Program& program, const Kernel& kernel) {
  const Schedule& s = *kernel.schedule;
  if (!s.stream || has_streamed_stores(program, kernel, s)) return "";
  return str("schedule ", name_of(s.strategy),
             " stream=1: no results lie in lines along their loop, unread, which could go past "
             "the caches");
}

// Rows of a CPU.
std::string why_illegal_row_by_row(const Program& program, const Kernel& kernel) {
  if (kernel.schedule->unroll == 8 && !adds_eighths(program, kernel))
    return "schedule rows unroll=8: no reduction of floats has a full chunk of 1024 elements "
           "that "
           "are cheap, in one loop, and not kept for later steps";
  return why_no_stream(program, kernel);
}

// Points of a CPU.
std::string why_illegal_near(const Program& program, const Kernel& kernel) {
  const int64_t squares = has_squares(kernel) ? bytes_of_squares(kernel) : 0;
  if (squares > program.machine.l2)
    return str("schedule pointwise: squares of what lies across take ", squares,
               " bytes, L2 has ", program.machine.l2, "; keep=0 reads it where it lies");
  return why_no_stream(program, kernel);
}

// Columns of a CPU.
std::string why_illegal_strips(const Program& program, const Kernel& kernel) {
  const int lanes = kernel.schedule->lanes;
  const int64_t bytes = strip_bytes(kernel).of(lanes);
  return bytes <= program.machine.l2 ? ""
                                     : str("schedule columns lanes=", lanes, ": arrays of ",
                                           bytes, " bytes, L2 has ", program.machine.l2);
}

bool is_dot(const Step& step) { return step.kind == StepKind::Dot; }

bool stores_points(const Step& step) {
  return step.kind == StepKind::Store && step.inner.empty();
}

std::string why_illegal_pointwise(const Program& program, const Kernel& kernel) {
  if (!std::all_of(kernel.steps.begin(), kernel.steps.end(), stores_points))
    return "schedule pointwise is for stores alone";
  if (kernel.rows == 0) return "schedule pointwise needs a row axis";
  if (const std::string reason = why_illegal_points(program, kernel); !reason.empty())
    return reason;
  return program.target == Target::Cpp ? why_illegal_near(program, kernel) : "";
}

std::string why_illegal_columns(const Program& program, const Kernel& kernel) {
  if (can_go_in_columns(program, kernel))
    return program.target == Target::Cpp ? why_illegal_strips(program, kernel)
                                         : why_illegal_rows(program, kernel);
  return "schedule columns is for 8 rows or more, without "
         "dots, folds and sorts, of at most "
         "1048576 elements (sum_exp for cuda, or of a size: 1024); on the CPU where L2 "
         "holds 16 of them, and what they update in chunks lies side by side";
}

std::string why_illegal_product(const Program& program, const Kernel& kernel) {
  const auto dots = std::count_if(kernel.steps.begin(), kernel.steps.end(), is_dot),
             stores = std::count_if(kernel.steps.begin(), kernel.steps.end(), stores_points);
  if (dots != 1 || dots + stores != std::ssize(kernel.steps))
    return "schedule tiles is for one dot and stores";
  if (!can_be_tiled(program, kernel))
    return "schedule tiles is for a dot of numbers; on cuda of floats, its left factor free of "
           "the last row axis and its right one of the one before";
  return program.target == Target::Cpp ? why_illegal_panels(program, kernel)
                                       : why_illegal_tiles(kernel);
}

}  // namespace

bool can_go_in_columns(const Program& program, const Kernel& kernel) {
  if (program.target == Target::Cuda && scans_in_groups(program, kernel))
    return kernel.rows > 0;
  for (const Step& step : kernel.steps) {
    if (step.kind == StepKind::Dot || step.kind == StepKind::Fold ||
        step.kind == StepKind::Sort)
      return false;
    if (step.kind != StepKind::Reduce) continue;
    const Expr length = inner_count(kernel, step);
    const int64_t count = length.bounds().high;
    const bool exponentials =
        step.op == Op::sum_exp && (program.target == Target::Cuda || !length.is_constant());
    if (count > (exponentials ? kChunk : kChunk * kChunk)) return false;
  }
  if (kernel.rows == 0) return false;
  if (program.target == Target::Cpp &&
      (!shares_places(kernel) || strip_bytes(kernel).of(kLeastLanes) > program.machine.l2))
    return false;
  const Interval lanes = kernel.axes[kernel.rows - 1].extent.bounds();
  return (program.target == Target::Cpp ? lanes.high : lanes.low) >= 8;
}

bool can_be_tiled(const Program& program, const Kernel& kernel) {
  return is_one_dot(kernel) && (program.target == Target::Cpp || is_plain_matmul(kernel));
}

bool can_be_called(const Program& program, const Kernel& kernel) {
  return program.target == Target::Cuda && why_no_call(program, kernel).empty();
}

std::string why_illegal(const Program& program, const Kernel& kernel) {
  const bool folds = std::any_of(kernel.steps.begin(), kernel.steps.end(),
                                 [](const Step& step) { return step.kind == StepKind::Fold; });
  if (folds && program.target == Target::Cpp)
    return "folds rows, which the C++ back end does not";
  if (!kernel.schedule) return "";
  if (folds && kernel.schedule->strategy != Strategy::Layouts)
    return str("schedule ", name_of(kernel.schedule->strategy),
               ": rows that fold are laid out, as layouts rows warp 4 · serial 8 loop ...");
  for (const std::string& reason :
       {why_wrong_fields(*kernel.schedule), why_foreign(*kernel.schedule, program.target)}) {
    if (!reason.empty()) return "schedule " + reason;
  }
  switch (kernel.schedule->strategy) {
    case Strategy::Layouts: return why_illegal_layouts(program, kernel);
    case Strategy::Rows:
      return program.target == Target::Cpp ? why_illegal_row_by_row(program, kernel)
                                           : why_illegal_rows(program, kernel);
    case Strategy::Pointwise: return why_illegal_pointwise(program, kernel);
    case Strategy::Columns: return why_illegal_columns(program, kernel);
    case Strategy::Library: {
      const std::string reason = why_no_call(program, kernel);
      return reason.empty() ? "" : "schedule library " + reason;
    }
    case Strategy::Tiles: break;
  }
  return why_illegal_product(program, kernel);
}

}  // namespace tiny_compile
