// How do columns scan and scatter fast? Neighbouring columns are lanes: every innermost loop goes over a
// strip of them, and memory is read along its grain. Kernels that only reduce and store are tiles
// (tile/columns.h).
#include "tiny_compile/codegen/cpp_columns.h"

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cpp_scatter.h"
#include "tiny_compile/codegen/scan.h"

namespace tiny_compile {
namespace {

class ColumnsWriter {
 public:
  explicit ColumnsWriter(KernelText& given)
      : text(given),
        out(given.out),
        kernel(given.kernel),
        lane(kernel.rows - 1),
        lanes(schedule_of(kernel).lanes) {
    text.scalars.register_name = in_lane;
  }

  // A unit is a quarter of a strip: one thread does whole strips, many share one.
  void write(KernelEntry& entry) {
    const Expr& columns = kernel.axes[lane].extent;
    const int64_t part = columns_unit(schedule_of(kernel));
    const std::string extent = c_operand(columns);
    const Expr strips = ceil_div(columns, part);
    entry.units = strips;
    for (int row = 0; row < lane; row++) entry.units = entry.units * kernel.axes[row].extent;
    entry.at_once = lanes / part;
    defined.assign(kernel.scalars.size(), false);
    define({0, false});
    out.open("for (long long unit = begin, next; unit < end; unit = next)");
    const std::string all = c_operand(strips);
    out.line(str("next = unit - unit % ", all, " + ", all, ";"));
    out.line(str("if (next > unit + ", entry.at_once, ") next = unit + ", entry.at_once, ";"));
    out.line("if (next > end) next = end;");
    out.line(str("const long long start = unit % ", all, " * ", part,
                 ", most = (next - unit) * ", part, ";"));
    out.line(str("const long long width = ", extent, " - start < most ? ", extent,
                 " - start : most;"));
    const int64_t most = entry.units.bounds().high;
    text.unpack_rows(lane, floor_div(Expr::symbol(tile_symbol("unit"), 0, most - 1), strips));
    define({row_mask(kernel) & ~(uint64_t{1} << lane), false});
    for (size_t s = 0; s < kernel.steps.size(); s++)
      write_step(kernel.steps[s], static_cast<int>(s));
    out.close();
  }

 private:
  static constexpr const char* kEach = "for (long long l = 0; l < width; l++) ";

  void open_lanes() {
    out.line("#pragma GCC ivdep");
    out.open("for (long long l = 0; l < width; l++)");
    text.declare(kernel.axes[lane].name, "start + l");
  }

  // What the step needs of an element in a lane.
  void define_in_lanes(const Step& step) {
    std::vector<bool> here = defined;
    text.define(text.needed({&step}), element_scope(kernel, step.inner), here);
  }

  // Constants and what the whole strip shares, wherever it is used.
  void define(const LoopScope& scope) {
    std::vector<const Step*> steps;
    for (const Step& step : kernel.steps) steps.push_back(&step);
    text.define(text.needed(steps), scope, defined);
  }

  void write_step(const Step& step, int number) {
    switch (step.kind) {
      case StepKind::Scan: return write_scan(step, number);
      case StepKind::Sort: fail("kernel ", kernel.name, " sorts columns side by side");
      case StepKind::Scatter:
        if (has_chunks(kernel, step)) return write_scatter_chunks(text, step, lane, defined);
        break;
      case StepKind::Reduce:
        return is_scan(step) ? write_scan(step, number) : write_reduce(step, number);
      case StepKind::Dot: CHECK(false, "a matmul in columns");
      default: break;
    }
    for (int axis : step.inner) text.open_loop(axis);
    write_points(step);
    for (size_t k = 0; k < step.inner.size(); k++) out.close();
  }

  // What all lanes share is computed and asked before them.
  void write_points(const Step& step) {
    const LoopScope in_lanes = element_scope(kernel, step.inner);
    const LoopScope shared = {in_lanes.axes & ~(uint64_t{1} << lane), false};
    const std::vector<int> ids = text.needed({&step});
    std::vector<bool> here = defined;
    text.define(ids, shared, here);
    const auto is_shared = [&](int scalar) {
      return scalar < 0 || shared.holds(text.needs(scalar));
    };
    const bool scatters = step.kind == StepKind::Scatter;
    const bool asks_once = scatters && is_shared(step.other) && is_shared(step.mask);
    if (asks_once) out.open("if (" + condition_of(step) + ")");
    open_lanes();
    text.define(ids, in_lanes, here);
    const std::string place = place_of(step), value = text.scalars.name(step.value);
    out.line(scatters ? str(asks_once ? "" : str("if (", condition_of(step), ") "),
                            updated(text.calls, step, place, value))
                      : str(place, " = ", to_storage(text.calls, step.dtype, value), ";"));
    out.close();
    if (asks_once) out.close();
  }

  std::string condition_of(const Step& step) {
    return str(step.mask < 0 ? "" : text.scalars.name(step.mask) + " && ",
               text.calls("tc_in_range"), "(", text.scalars.name(step.other), ", ",
               c_text(step.limit), ")");
  }

  std::string place_of(const Step& step) const {
    const std::vector<int> chosen =
        step.kind == StepKind::Scatter ? std::vector<int>{step.other} : std::vector<int>{};
    return str(pointer_name(text.program.buffers[step.buffer]), "[",
               text.scalars.index(step.index, chosen), "]");
  }

  // Every lane's groups end at the same rows.
  void write_scan(const Step& step, int number) {
    const ScanText scan(kernel, step);
    const std::string count = c_text(inner_count(kernel, step));
    const std::string nothing = scan.op + "::identity()", reg = in_lane(number);
    if (makes_register(step))
      out.line(str("alignas(64) ", scan.type, " ", lanes_of(number), "[", lanes, "];"));
    out.open("");
    out.line(str("alignas(64) ", scan.type, " within[", lanes, "], before[", lanes, "];"));
    out.line(str("alignas(64) ", scan.groups(), " groups[", lanes, "];"));
    open_lanes();
    define_row(step);
    const bool starts = step.kind == StepKind::Scan && step.other >= 0;
    out.line(str("within[l] = ", nothing, ";"));
    out.line(str("before[l] = ", starts ? text.scalars.name(step.other) : nothing, ";"));
    out.line("tc_begin(groups[l], before[l]);");
    out.close();
    out.open(str("for (long long e = 0; e < ", count, "; e++)"));
    out.line(str("if (e > 0 && e % 16 == 0) ", kEach,
                 "before[l] = tc_next(groups[l], within[l]), within[l] = ", nothing, ";"));
    text.unpack_inner(step, "e");
    open_lanes();
    define_in_lanes(step);
    write_scanned(step, scan);
    out.close();
    out.close();
    if (makes_register(step)) out.line(str(kEach, reg, " = tc_total(groups[l], within[l]);"));
    out.close();
  }

  void write_scanned(const Step& step, const ScanText& scan) {
    const std::string value = scan.lifted(text.scalars.name(step.value), "e");
    out.line(str("const ", scan.type, " next = ", scan.of("within[l]", value), ";"));
    if (!makes_register(step)) {
      const std::string now = scan.of("before[l]", step.exclusive ? "within[l]" : "next");
      out.line(str(step.mask < 0 ? "" : str("if (", text.scalars.name(step.mask), ") "),
                   place_of(step), " = ", to_storage(text.calls, step.dtype, scan.result(now)),
                   ";"));
    }
    out.line("within[l] = next;");
  }

  void define_row(const Step& step) {
    std::vector<bool> here = defined;
    text.define(text.needed({&step}), {row_mask(kernel), true}, here);
  }

  // Beside a scan or a scatter lane after lane, each as a row (tile/columns.h has the fast way).
  void write_reduce(const Step& step, int number) {
    const std::string reg = str("r", number);
    out.line(str("alignas(64) ", register_type(step), " ", lanes_of(number), "[", lanes, "];"));
    out.open("for (long long l = 0; l < width; l++)");
    text.declare(kernel.axes[lane].name, "start + l");
    for (int before = 0; before < number; before++) {
      if (makes_register(kernel.steps[before]))
        out.line(str("const auto r", before, " = ", lanes_of(before), "[l];"));
    }
    text.scalars.register_name = [](int of_step) { return str("r", of_step); };
    write_reduction(text, step, number, defined);
    text.scalars.register_name = in_lane;
    out.line(str(lanes_of(number), "[l] = ", reg, ";"));
    out.close();
  }

  static const char* register_type(const Step& step) {
    return is_arg(step) ? "long long" : value_type(step.dtype);
  }

  static std::string lanes_of(int step) { return str("lanes_of_r", step); }
  static std::string in_lane(int step) { return lanes_of(step) + "[l]"; }

  KernelText& text;
  Text& out;
  const Kernel& kernel;
  const int lane;  // the axis
  const int64_t lanes;
  std::vector<bool> defined;  // before the lanes
};

}  // namespace

void write_columns(KernelText& text, KernelEntry& entry) { ColumnsWriter(text).write(entry); }

}  // namespace tiny_compile
