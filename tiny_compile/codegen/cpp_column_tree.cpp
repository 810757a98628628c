// How is a long sum down columns fast? The contract's tree wants row r beside row r + 512 first;
// visiting rows in bit-reversed order, a stack of ten partial strips does it:
//
//   rows 0, 512, 256, 768, ...     push 0; push 512, add: {0,512};
//                                  push 256; push 768, add, add: {0,512,256,768}; ...
//
// A full chunk pushes eight rows at a time, added in registers.
#include "tiny_compile/codegen/cpp_column_tree.h"

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/loops/empty.h"

namespace tiny_compile {
namespace {

class ColumnTree : ColumnText {
 public:
  ColumnTree(const ColumnText& columns, const Step& step, const std::string& reg, DType type)
      : ColumnText(columns), step_(step), reg_(reg), type_(type) {}

  void write_known(int64_t count) {
    const int64_t full = count / kChunk, rest = count % kChunk, chunks = full + (rest > 0);
    const bool exponentials = step_.op == Op::sum_exp;
    if (exponentials) out.line(str("alignas(64) ", c_type(type_), " most[", lanes, "];"));
    write_element(step_, type_);
    out.line(str("alignas(64) ", c_type(type_), " stack[12][", lanes, "];"));
    if (chunks > 1)
      out.line(str("alignas(64) ", c_type(type_), " part[", chunks, "][", lanes, "]",
                   exponentials ? str(", mosts[", chunks, "][", lanes, "];") : ";"));
    out.line("int height = 0;");
    auto finish = [&](const std::string& target) {
      out.line("height = 0;");
      out.line(str(kEach, target, "[l] = stack[0][l];"));
    };
    const std::string target = chunks > 1 ? "part[c]" : reg_;
    if (full > 0) {
      out.open(str("for (long long c = 0; c < ", full, "; c++)"));
      if (exponentials) write_most("1024 * c", str(kChunk), chunks > 1 ? "c" : "");
      write_eights("1024 * c");
      finish(target);
      out.close();
    }
    if (rest > 0) {
      if (exponentials) write_most(str(kChunk * full), str(rest), chunks > 1 ? str(full) : "");
      write_rows(str(kChunk * full), rest, "element(e, l)");
      finish(chunks > 1 ? str("part[", full, "]") : reg_);
    }
    if (chunks > 1) {
      if (exponentials) bring_to_one_most(chunks);
      write_rows("0", chunks, "part[e][l]");
      finish(reg_);
    }
  }

  // Of a length that is a size.
  void write_sized(const Expr& count) {
    const int64_t chunks = ceil_divide(count.bounds().high, kChunk);
    if (step_.op == Op::sum_exp) {
      out.line(str("alignas(64) ", c_type(type_), " most[", lanes, "];"));
      write_most("0", c_text(count), "");
    }
    write_element(step_, type_);
    text.declare("count", count);
    out.line(str("alignas(64) ", c_type(type_), " stack[12][", lanes, "];"));
    out.line("int height = 0;");
    const auto finish = [&](const std::string& target, const std::string& value) {
      out.line("height = 0;");
      out.line(str(kEach, target, "[l] = ", value, ";"));
    };
    if (chunks > 1) {
      text.declare("full", "count / 1024");
      text.declare("rest", "count % 1024");
      text.declare("chunks", "full + (rest > 0)");
      out.line(str("alignas(64) ", c_type(type_), " part[", chunks, "][", lanes, "];"));
      out.open("for (long long c = 0; c < full; c++)");
      write_eights("1024 * c");
      finish("part[c]", "stack[0][l]");
      out.close();
      out.open("if (rest > 0)");
      write_sized_rows("1024 * full", "rest", "element(e, l)");
      finish("part[full]", "stack[0][l]");
      out.close();
    }
    write_sized_rows("0", chunks > 1 ? "chunks" : "count",
                     chunks > 1 ? "part[e][l]" : "element(e, l)");
    finish(reg_, count.bounds().low > 0
                     ? "stack[0][l]"
                     : str("count > 0 ? stack[0][l] : ",
                           literal_text(text.calls, of_nothing(step_.op, type_))));
  }

 private:
  // A strip on top of the stack, then as many additions as the number of strips so
  // far asks for.
  void push(const std::string& turn) {
    out.open(str("for (long long done = ", turn, "; done & 1; done >>= 1)"));
    out.line("height--;");
    out.line("#pragma GCC ivdep");
    out.line(str(
        kEach, "stack[height - 1][l] = ",
        combine(text.calls, step_.op, type_, "stack[height - 1][l]", "stack[height][l]"), ";"));
    out.close();
  }

  // Rows first .. first + count - 1 in bit-reversed order, missing ones as the identity.
  // `value` reads row e in lane l.
  void write_rows(const std::string& first, int64_t count, const std::string& value) {
    int bits = 0;
    while ((int64_t{1} << bits) < count) bits++;
    const bool whole = (int64_t{1} << bits) == count;
    write_turns({str(bits), str(bits - 1), str(int64_t{1} << bits)}, first,
                whole ? "" : str(count), value);
  }

  // The same for as many rows as `count` says while it runs.
  void write_sized_rows(const std::string& first, const std::string& count,
                        const std::string& value) {
    out.open("");
    out.line("int bits = 0;");
    out.line(str("while (1ll << bits < ", count, ") bits++;"));
    write_turns({"bits", "bits - 1", "1ll << bits"}, first, count, value);
    out.close();
  }

  struct Turns {
    std::string bits, highest, all;  // of their numbers, of these bits the highest; how many
  };

  // `count`: rows that are there, "" for all.
  void write_turns(const Turns& turns, const std::string& first, const std::string& count,
                   const std::string& value) {
    out.open(str("for (long long turn = 0; turn < ", turns.all, "; turn++)"));
    out.line("long long r = 0;");
    out.line(str("for (int b = 0; b < ", turns.bits, "; b++) r |= (turn >> b & 1) << (",
                 turns.highest, " - b);"));
    text.declare("e", first + " + r");
    const std::string all = str(kEach, "stack[height][l] = ");
    if (count.empty()) {
      out.line("#pragma GCC ivdep");
      out.line(all + value + ";");
    } else {
      out.line(str("if (r < ", count, ") ", all, value, ";"));
      out.line(str("else ", all, literal_text(text.calls, identity(step_.op, type_)), ";"));
    }
    out.line("height++;");
    push("turn");
    out.close();
  }

  // A full chunk, eight rows of it at a time: r, r + 128, ..., r + 896.
  void write_eights(const std::string& first) {
    out.open("for (long long turn = 0; turn < 128; turn++)");
    out.line("long long r = 0;");
    out.line("for (int b = 0; b < 7; b++) r |= (turn >> b & 1) << (6 - b);");
    text.declare("e", first + " + r");
    const std::string eighths =
        of_eighths([](int part) { return str("element(e + ", 128 * part, ", l)"); },
                   [&](const std::string& a, const std::string& b) {
                     return "(" + combine(text.calls, step_.op, type_, a, b) + ")";
                   });
    out.line("#pragma GCC ivdep");
    out.line(str(kEach, "stack[height][l] = ", eighths, ";"));
    out.line("height++;");
    push("turn");
    out.close();
  }

  // The lanes' maxima of a chunk, clamped to finite.
  void write_most(const std::string& first, const std::string& count,
                  const std::string& chunk) {
    out.line(str(kEach, "most[l] = ", literal_text(text.calls, identity(Op::max, type_)), ";"));
    open_elements(step_, first, first + " + " + count);
    out.line(str("most[l] = ", text.calls("tc_maximum"), "(most[l], ", value_of(step_, type_),
                 ");"));
    out.close();
    out.close();
    const std::string largest = literal_text(
        text.calls,
        Literal::of(type_, type_ == DType::f64 ? 0x1.fffffffffffffp+1023 : 0x1.fffffep+127f));
    out.line(str(kEach, "most[l] = ", text.calls("tc_minimum"), "(", text.calls("tc_maximum"),
                 "(most[l], -", largest, "), ", largest, ");"));
    if (!chunk.empty()) out.line(str(kEach, "mosts[", chunk, "][l] = most[l];"));
  }

  // Chunk sums, each against its own maximum, brought to the largest of these.
  void bring_to_one_most(int64_t chunks) {
    const std::string over = str("for (int c = 0; c < ", chunks, "; c++) ", kEach),
                      most = text.calls("tc_maximum"), exp = text.calls("tc_exp");
    out.line(str(kEach, "most[l] = mosts[0][l];"));
    out.line(str(over, "most[l] = ", most, "(most[l], mosts[c][l]);"));
    out.line(str(over, "part[c][l] = part[c][l] * ", exp, "(mosts[c][l] - most[l]);"));
  }

  const Step& step_;
  const std::string& reg_;
  const DType type_;
};

}  // namespace

void write_column_tree(const ColumnText& columns, const Step& step, const std::string& reg,
                       DType type) {
  const Expr count = inner_count(columns.kernel, step);
  ColumnTree tree(columns, step, reg, type);
  if (count.is_constant())
    tree.write_known(count.constant());
  else
    tree.write_sized(count);
}

}  // namespace tiny_compile
