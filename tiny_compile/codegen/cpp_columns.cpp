// How is a sum over the first axis fast? Neighbouring columns are lanes: every loop runs over a
// strip of them, and memory is read along its grain. Long sums are cpp_column_tree's, short ones
// registers of a lane.
#include "tiny_compile/codegen/cpp_columns.h"

#include "tiny_compile/codegen/cpp_column_tree.h"
#include "tiny_compile/codegen/cpp_scatter.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/graph/chunk_tree.h"
#include "tiny_compile/loops/passes_of.h"

namespace tiny_compile {
namespace {

constexpr int64_t kShort = 16;  // elements of a lane that registers hold

class ColumnsWriter : ColumnText {
 public:
  explicit ColumnsWriter(KernelText& given) : ColumnText(given) {
    text.scalars.register_name = [](int step) { return str("r", step, "[l]"); };
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
    const std::string nothing = scan.op + "::identity()", reg = str("r", number, "[l]");
    if (makes_register(step))
      out.line(str("alignas(64) ", scan.type, " r", number, "[", lanes, "];"));
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

  void declare_lanes(DType dtype, const std::string& name, const Literal& start) {
    out.line(str("alignas(64) ", value_type(dtype), " ", name, "[", lanes, "];"));
    out.line(str(kEach, name, "[l] = ", literal_text(text.calls, start), ";"));
  }

  void write_reduce(const Step& step, int number) {
    const DType type = accumulator(step.op, kernel.scalars[step.value].dtype);
    const Expr count = inner_count(kernel, step);
    const std::string reg = str("r", number);
    const bool arg = step.op == Op::argmax || step.op == Op::argmin;
    const bool tree =
        is_float(type) && (step.op == Op::sum || step.op == Op::prod || step.op == Op::sum_exp);
    if (arg) {
      out.line(str("long long ", reg, "[", lanes, "];"));
      declare_lanes(type, str("best_", reg), Literal::of(type, 0));
    } else {
      declare_lanes(type, reg, tree ? Literal::of(type, 0) : identity(step.op, type));
    }
    out.open("");
    const bool short_one =
        count.is_constant() && !count.is_constant(0) && count.constant() <= kShort;
    if (short_one && step.op != Op::sum_exp)
      write_short(step, reg, type, count.constant());
    else if (arg)
      write_arg(step, reg, type, count);
    else if (tree)
      write_column_tree(*this, step, reg, type);
    else
      write_plain(step, reg, type, count);
    out.close();
    if (is_half(step.dtype))
      out.line(str(kEach, reg, "[l] = ", rounded(text.calls, step.dtype, reg + "[l]"), ";"));
  }

  // Few elements are registers of a lane: all are read before the tree goes over them.
  void write_short(const Step& step, const std::string& reg, DType type, int64_t count) {
    const bool arg = step.op == Op::argmax || step.op == Op::argmin;
    write_element(step, type);
    out.line("#pragma GCC ivdep");
    out.open("for (long long l = 0; l < width; l++)");
    std::vector<std::string> values;
    for (int64_t e = 0; e < count; e++) {
      values.push_back(str("v", e));
      out.line(str("const ", c_type(type), " v", e, " = element(", e, ", l);"));
    }
    if (arg) write_first_of(step, type, values);
    const std::string result = arg ? "place" : tree_of(step, type, std::move(values));
    out.line(str(reg, "[l] = ", result, ";"));
    out.close();
  }

  // place: of the values, which is the first NaN, else the first of the largest.
  void write_first_of(const Step& step, DType type, const std::vector<std::string>& values) {
    const std::string by = step.op == Op::argmax ? " > " : " < ";
    out.line(str(c_type(type), " best = v0;"));
    out.line("int place = 0;");
    for (size_t e = 1; e < values.size(); e++) {
      const std::string& v = values[e];
      out.line(str("place = (best == best) & ((", v, " != ", v, ") | (", v, by, "best)) ? ", e,
                   " : place;"));
      out.line(str("best = place == ", e, " ? ", v, " : best;"));
    }
  }

  std::string tree_of(const Step& step, DType type, std::vector<std::string> values) {
    const std::string sum =
        in_order(std::move(values), [&](const std::string& a, const std::string& b) {
          return "(" + combine(text.calls, step.op, type, a, b) + ")";
        });
    const bool most = is_float(type) && (step.op == Op::max || step.op == Op::min);
    return most ? str(sum, " + ", literal_text(text.calls, Literal::of(type, 0))) : sum;
  }

  // Reductions whose order cannot matter: one accumulator a lane.
  void write_plain(const Step& step, const std::string& reg, DType type, const Expr& count) {
    open_elements(step, "0", c_text(count));
    out.line(str(reg, "[l] = ",
                 combine(text.calls, step.op, type, reg + "[l]", value_of(step, type)), ";"));
    out.close();
    out.close();
    if (is_float(type))
      out.line(str(kEach, reg, "[l] += ", literal_text(text.calls, Literal::of(type, 0)), ";"));
    else if (size_of(type) == 8)  // g++ 12 -O3 loses factors of products that are narrowed next
      out.line(str("__asm__(\"\" : \"+m\"(", reg, "));"));
  }

  void write_arg(const Step& step, const std::string& reg, DType type, const Expr& count) {
    const std::string best = str("best_", reg, "[l]");
    open_elements(step, "0", c_text(count));
    out.line(str("const ", c_type(type), " value = ", value_of(step, type), ";"));
    out.line(str("const bool better = e == 0 || (", best, " == ", best,
                 " && (value != value || value ", step.op == Op::argmax ? ">" : "<", " ", best,
                 "));"));
    out.line(str(best, " = better ? value : ", best, ";"));
    out.line(str(reg, "[l] = better ? e : ", reg, "[l];"));
    out.close();
    out.close();
  }
};

}  // namespace

void write_columns(KernelText& text, KernelEntry& entry) { ColumnsWriter(text).write(entry); }

}  // namespace tiny_compile
