// What is there to choose from? Products of a few values, of which legality takes its pick:
//
//   exp over 4096x1024, cpp    pointwise {stream=0,1} x {grain=1,16,256,4096,65536,...}; of a transpose x {keep=1,0}
//                       cuda   pointwise rows [serial a] · grid · warp b · lane 32 · [vector c]
//   a product, library         library {algorithm=0 x split_k, algorithm=1,2,...}, and tiles
//   column sums, cuda          layouts rows grid · warp a · register b · lane c · vector d
//                                      loop register e · serial f · warp g · lane 32/c · vector h
//
// Neither a cost nor a preference is known here; schedule/cost.h orders what stands in the list.
#include "tiny_compile/schedule/enumerate.h"

#include <algorithm>
#include <string>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/loops/point_packs.h"
#include "tiny_compile/loops/scan_shape.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/loops/transposed_loads.h"
#include "tiny_compile/schedule/deal.h"
#include "tiny_compile/schedule/outline.h"
#include "tiny_compile/schedule/panel_tiles.h"
#include "tiny_compile/schedule/scanned_rows.h"
#include "tiny_compile/schedule/scattered_rows.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostWarps = 32;
constexpr int64_t kMostElementsTried = 64;  // of a thread at a time; more are legal
constexpr int64_t kMostVector = 8;
constexpr int64_t kMostWarpsOfPoints = 16, kMostSlabs = 4;
constexpr int64_t kMostRowsBeside = 64, kMostEachTried = 16, kMostScatteredBeside = 16;

std::vector<int64_t> powers(int64_t from, int64_t to, int64_t factor = 2) {
  std::vector<int64_t> values;
  for (int64_t n = from; n <= to; n *= factor) values.push_back(n);
  return values;
}

// What matters of a kernel for the choice among fields.
struct Extents {
  int64_t rows = 1, longest = 1;
  int loops = 0;                        // steps that go over elements of a row
  bool sorts = false, squares = false;  // of what lies across, to be kept
};

Extents extents_of(const Kernel& kernel) {
  Extents e;
  e.rows = std::max<int64_t>(1, row_count(kernel).bounds().high);
  for (const Step& step : kernel.steps) {
    e.longest = std::max(e.longest, inner_count(kernel, step).bounds().high);
    e.loops += !step.inner.empty();
    e.sorts = e.sorts || step.kind == StepKind::Sort;
  }
  e.squares = kernel.rows > 0 && e.loops == 0 && !transposed_loads(kernel).empty();
  return e;
}

// The values of a field worth a try; the first is the machine's default or the generator's choice.
std::vector<int64_t> values_of(const ScheduleField& field, const Extents& e) {
  const std::string name = field.name;
  if (name == "lanes") return powers(16, 1024);
  if (name == "unroll") return {1, 8};
  if (name == "keep")
    return e.loops > 1 || e.squares ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{1};
  if (name == "stream") return {0, 1};
  if (name == "grain") return powers(1, e.rows, 16);
  if (name == "each")
    return e.sorts ? std::vector<int64_t>{4, 1, 2, 8, 16} : std::vector<int64_t>{4, 8, 2};
  if (name == "slice") return {16, 8, 32};
  if (name == "algorithm") return {0, 1, 2, 3, 4, 5, 6, 7};
  if (name == "split_k") return {0, 2, 4, 8, 16};
  return {field.otherwise};
}

// Collects schedules that legality takes.
class Legal {
 public:
  Legal(const Program& program, const Kernel& kernel, size_t most)
      : program_(program), kernel_(kernel), most_(most) {}

  bool is_full() const { return found.size() >= most_; }
  void add(const Schedule& schedule) {
    if (is_full()) return;
    kernel_.schedule = schedule;
    if (why_illegal(program_, kernel_).empty()) found.push_back(schedule);
  }
  std::vector<Schedule> found;

 private:
  const Program& program_;
  Kernel kernel_;
  size_t most_;
};

// Every schedule in the list with each value of the field.
std::vector<Schedule> multiply(const std::vector<Schedule>& list, const char* field,
                               const std::vector<int64_t>& values) {
  std::vector<Schedule> product;
  for (const Schedule& schedule : list) {
    for (const int64_t value : values) {
      product.push_back(schedule);
      set_field(product.back(), field, value);
    }
  }
  return product;
}

void add_fields(Legal& legal, const Program& program, const Kernel& kernel, Strategy strategy) {
  const Extents extents = extents_of(kernel);
  Schedule first;
  first.strategy = strategy;
  std::vector<Schedule> all = {first};
  for (const ScheduleField& field : fields(first)) {
    if (is_read(field, program.target, strategy))
      all = multiply(all, field.name, values_of(field, extents));
  }
  for (const Schedule& schedule : all) legal.add(schedule);
}

// A deal gives threads more than there is to do: a smaller one has the same text.
bool has_idle_parts(const Deal& d, int64_t rows, int64_t longest) {
  const int64_t elements = d.vector * d.lanes() * d.warps * d.registers;
  const int64_t least_rows = d.row_vector * d.row_lanes * d.row_warps;
  return elements > power_of_two_from(longest) || least_rows > power_of_two_from(rows);
}

// All vectors: of rows, or of loops, never of both.
std::vector<Deal> vectors() {
  std::vector<Deal> deals;
  for (const int64_t width : powers(1, kMostVector)) deals.push_back({.row_vector = width});
  for (const int64_t width : powers(2, kMostVector)) deals.push_back({.vector = width});
  return deals;
}

// The kernel's own, which may be told of registers, and all that deals make.
void add_layouts(Legal& legal, const Program& program, const Kernel& kernel) {
  if (!can_be_laid_out(program, kernel)) return;
  const Schedule own = schedule_of(kernel);
  if (own.strategy == Strategy::Layouts) legal.add(own);
  const int64_t rows = row_count(kernel).constant(), longest = extents_of(kernel).longest;
  for (Deal deal : vectors()) {
    for (const int64_t lanes : powers(1, kLanes)) {
      for (const int64_t warps : powers(1, kMostWarps)) {
        for (const int64_t registers : powers(1, kMostElementsTried)) {
          for (const int64_t row_warps : powers(1, kMostWarps / warps)) {
            deal.row_lanes = lanes, deal.warps = warps, deal.registers = registers;
            deal.row_warps = row_warps;
            if (has_idle_parts(deal, rows, longest)) continue;
            const Schedule dealt = laid_out(program, kernel, deal);
            if (dealt != own) legal.add(dealt);
          }
        }
      }
    }
  }
}

void add_points(Legal& legal, const Program& program, const Kernel& kernel) {
  Schedule points{.strategy = Strategy::Pointwise};
  if (program.target == Target::Cpp || !sizes(program).empty())
    return add_fields(legal, program, kernel, points.strategy);
  for (const int64_t vector : powers(1, kMostVector)) {
    for (const int64_t warps : powers(2, kMostWarpsOfPoints)) {
      for (const int64_t slabs : powers(1, kMostSlabs)) {
        points.rows = layout_of_points(slabs, warps, vector);
        for (const bool parted : {false, true}) {
          points.parted = parted;
          legal.add(points);
        }
      }
    }
  }
}

void add_scans(Legal& legal, const Program& program, const Kernel& kernel) {
  const Schedule chosen = scanned_rows(program, kernel);
  legal.add(chosen);
  for (Schedule scan :
       {Schedule{.strategy = Strategy::Rows, .groups = kMostGroups},
        Schedule{.strategy = Strategy::Rows}, Schedule{.strategy = Strategy::Columns}}) {
    for (const int64_t beside : powers(1, kMostRowsBeside)) {
      for (const int resident : {chosen.resident, 0}) {
        scan.beside = static_cast<int>(beside);
        scan.resident = resident;
        if (scan != chosen) legal.add(scan);
      }
    }
  }
}

// Of a CPU's product: the policy's cut, and those that differ from it in one field.
void add_panels(Legal& legal, const Program& program, const Kernel& kernel) {
  if (!can_be_tiled(program, kernel)) return;
  const Schedule chosen = panel_tiles(program, kernel);
  legal.add(chosen);
  const auto vary = [&](const char* field, const std::vector<int64_t>& values) {
    for (const int64_t value : values) {
      Schedule other = chosen;
      set_field(other, field, value);
      if (other != chosen) legal.add(other);
    }
  };
  vary("down", {12, 8, 6, 4});
  vary("across", {8, 16, 32, 64});
  vary("panels_down", {2 * chosen.panels_down, ceil_divide(chosen.panels_down, 2)});
  vary("panels_across", {2 * chosen.panels_across, ceil_divide(chosen.panels_across, 2)});
  vary("depth", {2 * chosen.depth, ceil_divide(chosen.depth, 2)});
  vary("kept", {2, 1, 0});
  vary("packs_rows", {0, 1});
}

// The policy's schedule of a scatter, and those with another number of updates for a thread, and of packs that a block
// owns or of rows that it has.
void add_scatters(Legal& legal, const Program& program, const Kernel& kernel) {
  const Schedule chosen = scattered_rows(program, kernel, {});
  legal.add(chosen);
  const bool has_runs = scatters_by(program, kernel) == ScatterBy::Runs;
  const int64_t run = chosen.run, quarter = std::max<int64_t>(run / 4, 1);
  const std::vector<int64_t> runs = {quarter, 2 * quarter, run, 2 * run, 4 * run};
  for (const int64_t each : powers(1, kMostEachTried)) {
    for (const int64_t value : has_runs ? runs : powers(1, kMostScatteredBeside)) {
      Schedule other = chosen;
      set_field(other, "each", each);
      set_field(other, has_runs ? "run" : "beside", value);
      if (other != chosen) legal.add(other);
    }
  }
}

}  // namespace

std::vector<Schedule> enumerate(const Program& program, const Kernel& kernel, size_t most) {
  if (has_symbolic_sizes(kernel)) return {};
  Legal legal(program, kernel, most);
  if (program.target == Target::Cpp)
    add_panels(legal, program, kernel);
  else
    for (const Strategy strategy : {Strategy::Library, Strategy::Tiles})
      add_fields(legal, program, kernel, strategy);
  add_points(legal, program, kernel);
  if (program.target == Target::Cuda && scans_in_groups(program, kernel))
    add_scans(legal, program, kernel);
  else if (program.target == Target::Cuda && scatters_by(program, kernel) != ScatterBy::Thread)
    add_scatters(legal, program, kernel);
  else
    for (const Strategy strategy : {Strategy::Columns, Strategy::Rows})
      add_fields(legal, program, kernel, strategy);
  add_layouts(legal, program, kernel);
  return legal.found;
}

}  // namespace tiny_compile
