// How is a sum over the first axis fast? Neighbouring columns are lanes: every loop runs over a
// strip of them, and memory is read along its grain. The contract's tree wants row r beside row
// r + 512 first; visiting rows in bit-reversed order, a stack of ten partial strips does it:
//
//   rows 0, 512, 256, 768, ...     push 0; push 512, add: {0,512};
//                                  push 256; push 768, add, add: {0,512,256,768}; ...
//
// A full chunk pushes eight rows at a time, added in registers.
#include "tiny_compile/codegen/cpp_columns.h"

#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cpp_scatter.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/graph/chunk_tree.h"
#include "tiny_compile/loops/empty.h"

namespace tiny_compile {
namespace {

constexpr const char* kEach = "for (long long l = 0; l < width; l++) ";
constexpr int64_t kShort = 16;  // elements of a lane that registers hold

class ColumnsWriter {
 public:
  explicit ColumnsWriter(KernelText& text)
      : text_(text),
        out_(text.out),
        kernel_(text.kernel),
        lane_(kernel_.rows - 1),
        lanes_(schedule_of(kernel_).lanes) {
    text.scalars.register_name = [](int step) { return str("r", step, "[l]"); };
  }

  // A unit is a quarter of a strip: one thread does whole strips, many share one.
  void write(KernelEntry& entry) {
    const Axis& lane = kernel_.axes[lane_];
    const int64_t part = columns_unit(schedule_of(kernel_));
    const std::string extent = c_operand(lane.extent);
    const Expr strips = ceil_div(lane.extent, part);
    entry.units = strips;
    for (int row = 0; row < lane_; row++) entry.units = entry.units * kernel_.axes[row].extent;
    entry.at_once = lanes_ / part;
    defined_.assign(kernel_.scalars.size(), false);
    define({0, false});
    out_.open("for (long long unit = begin, next; unit < end; unit = next)");
    const std::string all = c_operand(strips);
    out_.line(str("next = unit - unit % ", all, " + ", all, ";"));
    out_.line(str("if (next > unit + ", entry.at_once, ") next = unit + ", entry.at_once, ";"));
    out_.line("if (next > end) next = end;");
    out_.line(str("const long long start = unit % ", all, " * ", part,
                  ", most = (next - unit) * ", part, ";"));
    out_.line(str("const long long width = ", extent, " - start < most ? ", extent,
                  " - start : most;"));
    const int64_t most = entry.units.bounds().high;
    text_.unpack_rows(lane_, floor_div(Expr::symbol(tile_symbol("unit"), 0, most - 1), strips));
    define({row_mask(kernel_) & ~(uint64_t{1} << lane_), false});
    for (size_t s = 0; s < kernel_.steps.size(); s++)
      write_step(kernel_.steps[s], static_cast<int>(s));
    out_.close();
  }

 private:
  // Constants and what the whole strip shares, wherever it is used.
  void define(const LoopScope& scope) {
    std::vector<const Step*> steps;
    for (const Step& step : kernel_.steps) steps.push_back(&step);
    text_.define(text_.needed(steps), scope, defined_);
  }

  void write_step(const Step& step, int number) {
    switch (step.kind) {
      case StepKind::Scan: return write_scan(step, number);
      case StepKind::Sort: fail("kernel ", kernel_.name, " sorts columns side by side");
      case StepKind::Scatter:
        if (has_chunks(kernel_, step))
          return write_scatter_chunks(text_, step, lane_, defined_);
        break;
      case StepKind::Reduce:
        return is_scan(step) ? write_scan(step, number) : write_reduce(step, number);
      case StepKind::Dot: CHECK(false, "a matmul in columns");
      default: break;
    }
    for (int axis : step.inner) text_.open_loop(axis);
    open_lanes();
    define_in_lanes(step);
    write_point(step);
    out_.close();
    for (size_t k = 0; k < step.inner.size(); k++) out_.close();
  }

  std::string place_of(const Step& step) const {
    const std::vector<int> chosen =
        step.kind == StepKind::Scatter ? std::vector<int>{step.other} : std::vector<int>{};
    return str(pointer_name(text_.program.buffers[step.buffer]), "[",
               text_.scalars.index(step.index, chosen), "]");
  }

  void write_point(const Step& step) {
    const std::string place = place_of(step), value = text_.scalars.name(step.value);
    if (step.kind == StepKind::Store)
      return out_.line(str(place, " = ", to_storage(text_.calls, step.dtype, value), ";"));
    const std::string mask = step.mask < 0 ? "" : text_.scalars.name(step.mask) + " && ";
    out_.line(str("if (", mask, text_.calls("tc_in_range"), "(", text_.scalars.name(step.other),
                  ", ", c_text(step.limit), ")) ", updated(text_.calls, step, place, value)));
  }

  // Every lane's groups end at the same rows.
  void write_scan(const Step& step, int number) {
    const ScanText scan(kernel_, step);
    const std::string count = c_text(inner_count(kernel_, step));
    const std::string nothing = scan.op + "::identity()", reg = str("r", number, "[l]");
    if (makes_register(step))
      out_.line(str("alignas(64) ", scan.type, " r", number, "[", lanes_, "];"));
    out_.open("");
    out_.line(str("alignas(64) ", scan.type, " within[", lanes_, "], before[", lanes_, "];"));
    out_.line(str("alignas(64) ", scan.groups(), " groups[", lanes_, "];"));
    open_lanes();
    define_row(step);
    const bool starts = step.kind == StepKind::Scan && step.other >= 0;
    out_.line(str("within[l] = ", nothing, ";"));
    out_.line(str("before[l] = ", starts ? text_.scalars.name(step.other) : nothing, ";"));
    out_.line("tc_begin(groups[l], before[l]);");
    out_.close();
    out_.open(str("for (long long e = 0; e < ", count, "; e++)"));
    out_.line(str("if (e > 0 && e % 16 == 0) ", kEach,
                  "before[l] = tc_next(groups[l], within[l]), within[l] = ", nothing, ";"));
    text_.unpack_inner(step, "e");
    open_lanes();
    define_in_lanes(step);
    write_scanned(step, scan);
    out_.close();
    out_.close();
    if (makes_register(step)) out_.line(str(kEach, reg, " = tc_total(groups[l], within[l]);"));
    out_.close();
  }

  void write_scanned(const Step& step, const ScanText& scan) {
    const std::string value = scan.lifted(text_.scalars.name(step.value), "e");
    out_.line(str("const ", scan.type, " next = ", scan.of("within[l]", value), ";"));
    if (!makes_register(step)) {
      const std::string now = scan.of("before[l]", step.exclusive ? "within[l]" : "next");
      out_.line(str(step.mask < 0 ? "" : str("if (", text_.scalars.name(step.mask), ") "),
                    place_of(step), " = ",
                    to_storage(text_.calls, step.dtype, scan.result(now)), ";"));
    }
    out_.line("within[l] = next;");
  }

  void define_row(const Step& step) {
    std::vector<bool> defined = defined_;
    text_.define(text_.needed({&step}), {row_mask(kernel_), true}, defined);
  }

  void open_lanes() {
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = 0; l < width; l++)");
    text_.declare(kernel_.axes[lane_].name, "start + l");
  }

  void define_in_lanes(const Step& step) {
    std::vector<bool> defined = defined_;
    text_.define(text_.needed({&step}), element_scope(kernel_, step.inner), defined);
  }

  // A loop over elements first .. stop - 1 of the row, and in it one over the lanes.
  void open_elements(const Step& step, const std::string& first, const std::string& stop) {
    out_.open(str("for (long long e = ", first, "; e < ", stop, "; e++)"));
    text_.unpack_inner(step, "e");
    open_lanes();
    define_in_lanes(step);
  }

  void declare_lanes(DType dtype, const std::string& name, const Literal& start) {
    out_.line(str("alignas(64) ", value_type(dtype), " ", name, "[", lanes_, "];"));
    out_.line(str(kEach, name, "[l] = ", literal_text(text_.calls, start), ";"));
  }

  std::string value_of(const Step& step, DType type) const {
    const DType from = kernel_.scalars[step.value].dtype;
    return (compute_type(from) == type ? "" : str("(", c_type(type), ")")) +
           text_.scalars.name(step.value);
  }

  void write_reduce(const Step& step, int number) {
    const DType type = accumulator(step.op, kernel_.scalars[step.value].dtype);
    const Expr count = inner_count(kernel_, step);
    const std::string reg = str("r", number);
    const bool arg = step.op == Op::argmax || step.op == Op::argmin;
    const bool tree =
        is_float(type) && (step.op == Op::sum || step.op == Op::prod || step.op == Op::sum_exp);
    if (arg) {
      out_.line(str("long long ", reg, "[", lanes_, "];"));
      declare_lanes(type, str("best_", reg), Literal::of(type, 0));
    } else {
      declare_lanes(type, reg, tree ? Literal::of(type, 0) : identity(step.op, type));
    }
    out_.open("");
    const bool short_one =
        count.is_constant() && !count.is_constant(0) && count.constant() <= kShort;
    if (short_one && step.op != Op::sum_exp)
      write_short(step, reg, type, count.constant());
    else if (arg)
      write_arg(step, reg, type, count);
    else if (tree && count.is_constant())
      write_tree(step, reg, type, count.constant());
    else if (tree)
      write_sized_tree(step, reg, type, count);
    else
      write_plain(step, reg, type, count);
    out_.close();
    if (is_half(step.dtype))
      out_.line(str(kEach, reg, "[l] = ", rounded(text_.calls, step.dtype, reg + "[l]"), ";"));
  }

  // Few elements are registers of a lane: all are read before the tree goes over them.
  void write_short(const Step& step, const std::string& reg, DType type, int64_t count) {
    const bool arg = step.op == Op::argmax || step.op == Op::argmin;
    write_element(step, type);
    out_.line("#pragma GCC ivdep");
    out_.open("for (long long l = 0; l < width; l++)");
    std::vector<std::string> values;
    for (int64_t e = 0; e < count; e++) {
      values.push_back(str("v", e));
      out_.line(str("const ", c_type(type), " v", e, " = element(", e, ", l);"));
    }
    if (arg) write_first_of(step, type, values);
    const std::string result = arg ? "place" : tree_of(step, type, std::move(values));
    out_.line(str(reg, "[l] = ", result, ";"));
    out_.close();
  }

  // place: of the values, which is the first NaN, else the first of the largest.
  void write_first_of(const Step& step, DType type, const std::vector<std::string>& values) {
    const std::string by = step.op == Op::argmax ? " > " : " < ";
    out_.line(str(c_type(type), " best = v0;"));
    out_.line("int place = 0;");
    for (size_t e = 1; e < values.size(); e++) {
      const std::string& v = values[e];
      out_.line(str("place = (best == best) & ((", v, " != ", v, ") | (", v, by, "best)) ? ", e,
                    " : place;"));
      out_.line(str("best = place == ", e, " ? ", v, " : best;"));
    }
  }

  std::string tree_of(const Step& step, DType type, std::vector<std::string> values) {
    const std::string sum =
        in_order(std::move(values), [&](const std::string& a, const std::string& b) {
          return "(" + combine(text_.calls, step.op, type, a, b) + ")";
        });
    const bool most = is_float(type) && (step.op == Op::max || step.op == Op::min);
    return most ? str(sum, " + ", literal_text(text_.calls, Literal::of(type, 0))) : sum;
  }

  // Reductions whose order cannot matter: one accumulator a lane.
  void write_plain(const Step& step, const std::string& reg, DType type, const Expr& count) {
    open_elements(step, "0", c_text(count));
    out_.line(str(reg, "[l] = ",
                  combine(text_.calls, step.op, type, reg + "[l]", value_of(step, type)), ";"));
    out_.close();
    out_.close();
    if (is_float(type))
      out_.line(
          str(kEach, reg, "[l] += ", literal_text(text_.calls, Literal::of(type, 0)), ";"));
    else if (size_of(type) == 8)  // g++ 12 -O3 loses factors of products that are narrowed next
      out_.line(str("__asm__(\"\" : \"+m\"(", reg, "));"));
  }

  void write_arg(const Step& step, const std::string& reg, DType type, const Expr& count) {
    const std::string best = str("best_", reg, "[l]");
    open_elements(step, "0", c_text(count));
    out_.line(str("const ", c_type(type), " value = ", value_of(step, type), ";"));
    out_.line(str("const bool better = e == 0 || (", best, " == ", best,
                  " && (value != value || value ", step.op == Op::argmax ? ">" : "<", " ", best,
                  "));"));
    out_.line(str(best, " = better ? value : ", best, ";"));
    out_.line(str(reg, "[l] = better ? e : ", reg, "[l];"));
    out_.close();
    out_.close();
  }

  // element(e, l): element e of the row in lane l, for a sum of exponentials less
  // the lane's maximum.
  void write_element(const Step& step, DType type) {
    out_.open(
        str("auto element = [&](long long e, long long l) __attribute__((always_inline)) -> ",
            c_type(type)));
    text_.declare(kernel_.axes[lane_].name, "start + l");
    text_.unpack_inner(step, "e");
    define_in_lanes(step);
    const std::string value = value_of(step, type);
    out_.line(str(
        "return ",
        step.op == Op::sum_exp ? str(text_.calls("tc_exp"), "(", value, " - most[l])") : value,
        ";"));
    out_.close(";");
  }

  // A strip on top of the stack, then as many additions as the number of strips so
  // far asks for.
  void push(const Step& step, DType type, const std::string& turn) {
    out_.open(str("for (long long done = ", turn, "; done & 1; done >>= 1)"));
    out_.line("height--;");
    out_.line("#pragma GCC ivdep");
    out_.line(str(
        kEach, "stack[height - 1][l] = ",
        combine(text_.calls, step.op, type, "stack[height - 1][l]", "stack[height][l]"), ";"));
    out_.close();
  }

  // Rows first .. first + count - 1 in bit-reversed order, missing ones as the identity.
  // `value` reads row e in lane l.
  void write_rows(const Step& step, DType type, const std::string& first, int64_t count,
                  const std::string& value) {
    int bits = 0;
    while ((int64_t{1} << bits) < count) bits++;
    const bool whole = (int64_t{1} << bits) == count;
    write_turns(step, type, {str(bits), str(bits - 1), str(int64_t{1} << bits)}, first,
                whole ? "" : str(count), value);
  }

  // The same for as many rows as `count` says while it runs.
  void write_sized_rows(const Step& step, DType type, const std::string& first,
                        const std::string& count, const std::string& value) {
    out_.open("");
    out_.line("int bits = 0;");
    out_.line(str("while (1ll << bits < ", count, ") bits++;"));
    write_turns(step, type, {"bits", "bits - 1", "1ll << bits"}, first, count, value);
    out_.close();
  }

  struct Turns {
    std::string bits, highest, all;  // of their numbers, of these bits the highest; how many
  };

  // `count`: rows that are there, "" for all.
  void write_turns(const Step& step, DType type, const Turns& turns, const std::string& first,
                   const std::string& count, const std::string& value) {
    out_.open(str("for (long long turn = 0; turn < ", turns.all, "; turn++)"));
    out_.line("long long r = 0;");
    out_.line(str("for (int b = 0; b < ", turns.bits, "; b++) r |= (turn >> b & 1) << (",
                  turns.highest, " - b);"));
    text_.declare("e", first + " + r");
    const std::string all = str(kEach, "stack[height][l] = ");
    if (count.empty()) {
      out_.line("#pragma GCC ivdep");
      out_.line(all + value + ";");
    } else {
      out_.line(str("if (r < ", count, ") ", all, value, ";"));
      out_.line(str("else ", all, literal_text(text_.calls, identity(step.op, type)), ";"));
    }
    out_.line("height++;");
    push(step, type, "turn");
    out_.close();
  }

  // A full chunk, eight rows of it at a time: r, r + 128, ..., r + 896.
  void write_eights(const Step& step, DType type, const std::string& first) {
    out_.open("for (long long turn = 0; turn < 128; turn++)");
    out_.line("long long r = 0;");
    out_.line("for (int b = 0; b < 7; b++) r |= (turn >> b & 1) << (6 - b);");
    text_.declare("e", first + " + r");
    const std::string eighths =
        of_eighths([](int part) { return str("element(e + ", 128 * part, ", l)"); },
                   [&](const std::string& a, const std::string& b) {
                     return "(" + combine(text_.calls, step.op, type, a, b) + ")";
                   });
    out_.line("#pragma GCC ivdep");
    out_.line(str(kEach, "stack[height][l] = ", eighths, ";"));
    out_.line("height++;");
    push(step, type, "turn");
    out_.close();
  }

  void write_tree(const Step& step, const std::string& reg, DType type, int64_t count) {
    const int64_t full = count / kChunk, rest = count % kChunk, chunks = full + (rest > 0);
    const bool exponentials = step.op == Op::sum_exp;
    if (exponentials) out_.line(str("alignas(64) ", c_type(type), " most[", lanes_, "];"));
    write_element(step, type);
    out_.line(str("alignas(64) ", c_type(type), " stack[12][", lanes_, "];"));
    if (chunks > 1)
      out_.line(str("alignas(64) ", c_type(type), " part[", chunks, "][", lanes_, "]",
                    exponentials ? str(", mosts[", chunks, "][", lanes_, "];") : ";"));
    out_.line("int height = 0;");
    auto finish = [&](const std::string& target) {
      out_.line("height = 0;");
      out_.line(str(kEach, target, "[l] = stack[0][l];"));
    };
    const std::string target = chunks > 1 ? "part[c]" : reg;
    if (full > 0) {
      out_.open(str("for (long long c = 0; c < ", full, "; c++)"));
      if (exponentials) write_most(step, type, "1024 * c", str(kChunk), chunks > 1 ? "c" : "");
      write_eights(step, type, "1024 * c");
      finish(target);
      out_.close();
    }
    if (rest > 0) {
      if (exponentials)
        write_most(step, type, str(kChunk * full), str(rest), chunks > 1 ? str(full) : "");
      write_rows(step, type, str(kChunk * full), rest, "element(e, l)");
      finish(chunks > 1 ? str("part[", full, "]") : reg);
    }
    if (chunks > 1) {
      if (exponentials) bring_to_one_most(chunks);
      write_rows(step, type, "0", chunks, "part[e][l]");
      finish(reg);
    }
  }

  // The same of a length that is a size.
  void write_sized_tree(const Step& step, const std::string& reg, DType type,
                        const Expr& count) {
    const int64_t chunks = ceil_divide(count.bounds().high, kChunk);
    if (step.op == Op::sum_exp) {
      out_.line(str("alignas(64) ", c_type(type), " most[", lanes_, "];"));
      write_most(step, type, "0", c_text(count), "");
    }
    write_element(step, type);
    text_.declare("count", count);
    out_.line(str("alignas(64) ", c_type(type), " stack[12][", lanes_, "];"));
    out_.line("int height = 0;");
    const auto finish = [&](const std::string& target, const std::string& value) {
      out_.line("height = 0;");
      out_.line(str(kEach, target, "[l] = ", value, ";"));
    };
    if (chunks > 1) {
      text_.declare("full", "count / 1024");
      text_.declare("rest", "count % 1024");
      text_.declare("chunks", "full + (rest > 0)");
      out_.line(str("alignas(64) ", c_type(type), " part[", chunks, "][", lanes_, "];"));
      out_.open("for (long long c = 0; c < full; c++)");
      write_eights(step, type, "1024 * c");
      finish("part[c]", "stack[0][l]");
      out_.close();
      out_.open("if (rest > 0)");
      write_sized_rows(step, type, "1024 * full", "rest", "element(e, l)");
      finish("part[full]", "stack[0][l]");
      out_.close();
    }
    write_sized_rows(step, type, "0", chunks > 1 ? "chunks" : "count",
                     chunks > 1 ? "part[e][l]" : "element(e, l)");
    finish(reg, count.bounds().low > 0
                    ? "stack[0][l]"
                    : str("count > 0 ? stack[0][l] : ",
                          literal_text(text_.calls, of_nothing(step.op, type))));
  }

  // The lanes' maxima of a chunk, clamped to finite.
  void write_most(const Step& step, DType type, const std::string& first,
                  const std::string& count, const std::string& chunk) {
    out_.line(
        str(kEach, "most[l] = ", literal_text(text_.calls, identity(Op::max, type)), ";"));
    open_elements(step, first, first + " + " + count);
    out_.line(
        str("most[l] = ", text_.calls("tc_maximum"), "(most[l], ", value_of(step, type), ");"));
    out_.close();
    out_.close();
    const std::string largest = literal_text(
        text_.calls,
        Literal::of(type, type == DType::f64 ? 0x1.fffffffffffffp+1023 : 0x1.fffffep+127f));
    out_.line(str(kEach, "most[l] = ", text_.calls("tc_minimum"), "(",
                  text_.calls("tc_maximum"), "(most[l], -", largest, "), ", largest, ");"));
    if (!chunk.empty()) out_.line(str(kEach, "mosts[", chunk, "][l] = most[l];"));
  }

  // Chunk sums, each against its own maximum, brought to the largest of these.
  void bring_to_one_most(int64_t chunks) {
    const std::string over = str("for (int c = 0; c < ", chunks, "; c++) ", kEach),
                      most = text_.calls("tc_maximum"), exp = text_.calls("tc_exp");
    out_.line(str(kEach, "most[l] = mosts[0][l];"));
    out_.line(str(over, "most[l] = ", most, "(most[l], mosts[c][l]);"));
    out_.line(str(over, "part[c][l] = part[c][l] * ", exp, "(mosts[c][l] - most[l]);"));
  }

  KernelText& text_;
  Text& out_;
  const Kernel& kernel_;
  const int lane_;
  const int64_t lanes_;
  std::vector<bool> defined_;
};

}  // namespace

void write_columns(KernelText& text, KernelEntry& entry) { ColumnsWriter(text).write(entry); }

}  // namespace tiny_compile
