// A scan's threads have a group of 16 elements each. A tile of a block is 16 of them for each row, or 256:
//
//   x [771,28996] along 1    rows groups=256 beside=1        8 tiles of 4096 elements
//   x [4096,192] along 1     rows groups=256 beside=21       a row has 12 groups, and is one tile
//   x [28996,771] along 0    columns beside=32               114 tiles of 256 elements
//
// A tile is whole rows or one group of a higher level: 256 elements or 4096. So what stands before
// the next one is known from the tiles' totals alone (graph/scan.h).
#include "tiny_compile/loops/scan_shape.h"

#include "tiny_compile/loops/bounds.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/scan_rules.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostThreads = 1024;

void count(ScanDirections& all, const Kernel& kernel, const Expr& index) {
  const int64_t step = distance(index, kernel.axes[scan_of(kernel).inner[0]].symbol());
  if (step == 0) return;
  const bool beside =
      kernel.rows > 0 && distance(index, kernel.axes[kernel.rows - 1].symbol()) == 1;
  if (step == 1 || step == -1)
    all.along++;
  else if (beside)
    all.across++;
}

// Of an element and its padding in shared memory: an odd number of words of 16 bytes for a group.
int64_t bytes_of_group(int64_t size) { return (size | 1) * 16; }

}  // namespace

// Elements, places, and totals of two tiles and of their groups.
int64_t shared_of_scan(const Kernel& kernel, const ScanShape& shape) {
  const Step& scan = scan_of(kernel);
  const int64_t value = size_of(compute_type(kernel.scalars[scan.value].dtype)),
                place = !gives_places(scan)         ? 0
                        : shape.length <= INT32_MAX ? 4
                                                    : 8,
                threads = 32 * shape.warps(),
                totals = threads + kGroup * (shape.along ? 1 : shape.block_rows);
  const int64_t elements = bytes_of_group(value) + (place > 0 ? bytes_of_group(place) : 0);
  return (shape.along ? threads * (elements + 16) : 0) + (3 * totals + 64) * (value + place);
}

const Step& scan_of(const Kernel& kernel) {
  return *std::find_if(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
    return is_scan(step) && !is_beside_places(kernel, step);
  });
}

ScanDirections loads_of_scan(const Kernel& kernel) {
  ScanDirections result;
  for (const Scalar& scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Load && scalar.operands.empty())
      count(result, kernel, scalar.index);
  }
  return result;
}

ScanDirections stores_of_scan(const Kernel& kernel) {
  ScanDirections result;
  for (const Step& step : kernel.steps) {
    if (!makes_register(step) && !step.inner.empty()) count(result, kernel, step.index);
  }
  return result;
}

ScanShape scan_shape(const Kernel& kernel) {
  const Schedule schedule = schedule_of(kernel);
  ScanShape shape;
  shape.length = kernel.axes[scan_of(kernel).inner[0]].extent.constant();
  shape.rows = row_count(kernel).constant();
  shape.along = schedule.strategy == Strategy::Rows;
  shape.block_rows = schedule.beside;
  const int64_t needed = ceil_divide(shape.length, kGroup);
  shape.groups = std::min<int64_t>(
      schedule.groups, needed > kGroup ? ceil_divide(needed, kGroup) * kGroup : needed);
  if (!shape.along || shape.block_rows < kRowsToTurn) return shape;
  const ScanDirections loads = loads_of_scan(kernel), stores = stores_of_scan(kernel);
  shape.loads_transposed = loads.across > loads.along;
  shape.stores_transposed = stores.across > stores.along;
  return shape;
}

bool scans_in_groups(const Program& program, const Kernel& kernel) {
  const auto scans = [&](const Step& step) {
    return is_scan(step) && !is_beside_places(kernel, step);
  };
  if (std::count_if(kernel.steps.begin(), kernel.steps.end(), scans) != 1) return false;
  const Step& scan = scan_of(kernel);
  const bool total = makes_register(scan);
  if (scan.inner.size() != 1 || !inner_count(kernel, scan).is_constant() ||
      !row_count(kernel).is_constant())
    return false;
  if (!gives_places(scan) &&
      compute_type(kernel.scalars[scan.value].dtype) != compute_type(scan.dtype))
    return false;
  const auto fits = [&](const Step& step) {
    if (is_scan(step)) return true;
    if (step.kind != StepKind::Store) return false;
    return total ? step.inner.empty() && &step > &scan : step.inner == scan.inner;
  };
  return std::all_of(kernel.steps.begin(), kernel.steps.end(), fits) &&
         !loads_what_it_stores(program, kernel) && sizes(program).empty();
}

std::string why_illegal_scan(const Program& program, const Kernel& kernel) {
  const Schedule &s = *kernel.schedule, d;
  const std::string head = str("schedule ", name_of(s.strategy));
  if (!scans_in_groups(program, kernel)) {
    const bool has_fields =
        s.groups != d.groups || s.beside != d.beside || s.resident != d.resident;
    return has_fields ? str(head, " groups=", s.groups, " beside=", s.beside,
                            " resident=", s.resident, ": for one scan of numbers of elements")
                      : "";
  }
  const bool along = s.strategy == Strategy::Rows;
  if (s.groups != kGroup && !(along && s.groups == kMostGroups))
    return str(head, " groups=", s.groups, ": ", kGroup,
               along ? str(" or ", kMostGroups) : " of columns", " groups of 16 at a time");
  const ScanShape shape = scan_shape(kernel);
  if (s.groups > kGroup && shape.groups <= kGroup)
    return str(head, " groups=", s.groups, ": a row has ", shape.groups, " groups of 16");
  if (s.beside < 1 || shape.threads() > kMostThreads)
    return str(head, " beside=", s.beside, ": 1 to ", kMostThreads / shape.groups,
               " rows side by side, of ", shape.groups, " threads each");
  const int64_t warps = shape.warps(), most = program.machine.threads / 32;
  if (s.resident < 0 || s.resident > program.machine.blocks || s.resident * warps > most)
    return str(head, " resident=", s.resident, ": a multiprocessor holds at most ", most,
               " warps, a block has ", warps);
  const int64_t bytes = shared_of_scan(kernel, shape);
  return bytes <= program.machine.block_shared
             ? ""
             : str(head, " beside=", s.beside, ": ", bytes,
                   " bytes of shared memory, of which a block has ",
                   program.machine.block_shared);
}

}  // namespace tiny_compile
