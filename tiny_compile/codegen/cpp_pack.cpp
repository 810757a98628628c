// How does any operand become a panel? Its element at row m and step k is a scalar of the kernel: a
// load with strides, a window, a mask, a conversion. A loop evaluates it along the direction in
// which memory lies, into the panel where that is a row of lanes, else into lines that are
// transposed 64 steps at a time.
//
//   lanes lie side by side:   for k: for l: panel[k*32 + l] = x[k*1000 + first + l]
//   steps lie side by side:   for l: for k: lines[l*64 + k] = w[(first + l)*1000 + k]; transpose
#include "tiny_compile/codegen/cpp_pack.h"

#include <algorithm>
#include <cmath>

namespace tiny_compile {
namespace {

// Cycles an element when a loop runs along the list's last axis: what it jumps, how soon it ends.
double cost_along(const DotView& view, const std::vector<int>& list, int scalar) {
  if (list.empty()) return 4;
  const Axis& axis = view.kernel.axes[list.back()];
  const std::vector<bool> parts = below(view.kernel, scalar);
  double cost =
      8.0 / static_cast<double>(std::clamp<int64_t>(axis.extent.bounds().high, 1, 64));
  for (size_t id = 0; id < parts.size(); id++) {
    const Scalar& load = view.kernel.scalars[id];
    if (!parts[id] || load.kind != ScalarKind::Load) continue;
    const int64_t step = coefficient(load.index, axis.symbol());
    const bool sum = !depends_on(load.index - axis.symbol() * step, axis.name);
    cost += !sum ? 2 : std::abs(step) > 1 ? 1 : 0.2;
  }
  return cost;
}

class PackWriter {
 public:
  PackWriter(const Program& program, const Packing& packing)
      : text_(program, packing.view.kernel), out_(text_.out), packing_(packing) {
    only_.kind = StepKind::Dot;
    only_.value = packing.scalar;
  }

  const KernelText& write() {
    const Packing& p = packing_;
    const DotView& view = p.view;
    const bool along_depth =
        cost_along(view, view.lists[1], p.scalar) < cost_along(view, view.lists[0], p.scalar);
    out_.open(str("for (long long panel = ", p.first, "; panel < ", p.stop,
                  "; panel += ", p.width, ")"));
    out_.line(str("const long long lanes = ", p.stop, " - panel < ", p.width, " ? ", p.stop,
                  " - panel : ", p.width, ";"));
    out_.line(str(p.type.type, "* const to = ", p.target, " + (panel - ", p.first,
                  ") * (stop_k - first_k);"));
    if (along_depth)
      write_lines();
    else
      write_lanes();
    out_.close();
    return text_;
  }

 private:
  void write_value(const std::string& target, std::vector<bool> defined) {
    text_.define(ids(), {~uint64_t{0}, false}, defined);
    out_.line(
        str(target, " = (", packing_.type.type, ")", text_.scalars.name(packing_.scalar), ";"));
  }

  std::vector<int> ids() const { return text_.needed({&only_}); }

  // What does not depend on this list is defined once the other's axes are.
  std::vector<bool> define_without(const std::vector<int>& list) {
    uint64_t axes = ~uint64_t{0};
    for (int axis : list) axes &= ~(uint64_t{1} << axis);
    std::vector<bool> defined(text_.kernel.scalars.size());
    text_.define(ids(), {axes, false}, defined);
    return defined;
  }

  // A run of lanes, then the steps: where the axes of depth stand is counted up, not divided out.
  void write_lanes() {
    const std::vector<int>&lanes = packing_.view.lists[0], &depth = packing_.view.lists[1];
    open_runs(text_, lanes, "panel", "lanes");
    text_.unpack(depth, Expr::symbol(tile_symbol("first_k"), 0, INT32_MAX), "", "long long");
    out_.open("for (long long k = first_k; k < stop_k; k++)");
    out_.line(str(packing_.type.type, "* const line = to + (k - first_k) * ", packing_.width,
                  " + done;"));
    const std::vector<bool> defined = define_without(lanes);
    write_run(text_, lanes, packing_.width,
              [&](const std::string& at) { write_value(str("line[", at, "]"), defined); });
    count_up(depth);
    out_.close();
    out_.close();
    out_.open(str("if (lanes < ", packing_.width, ")"));
    out_.line(
        str("for (long long k = 0; k < stop_k - first_k; k++) for (long long l = lanes; l < ",
            packing_.width, "; l++) to[k * ", packing_.width, " + l] = 0;"));
    out_.close();
  }

  void count_up(const std::vector<int>& list) {
    for (size_t a = list.size(); a-- > 1;) {
      const Axis& axis = text_.kernel.axes[list[a]];
      out_.open(str("if (++", axis.name, " == ", c_operand(axis.extent), ")"));
      out_.line(axis.name + " = 0;");
    }
    if (!list.empty()) out_.line(text_.kernel.axes[list[0]].name + "++;");
    for (size_t a = 1; a < list.size(); a++) out_.close();
  }

  void write_lines() {
    const std::vector<int>&lanes = packing_.view.lists[0], &depth = packing_.view.lists[1];
    const std::string& name = packing_.type.name;
    out_.line(str("constexpr int filled = (", packing_.width, " + tc_lanes_", name,
                  " - 1) / tc_lanes_", name, " * tc_lanes_", name, ";"));
    out_.line(str("alignas(64) ", packing_.type.type, " lines[filled * 64];"));
    out_.line("for (long long l = 64 * lanes; l < 64 * filled; l++) lines[l] = 0;");
    out_.open("for (long long k = first_k; k < stop_k; k += 64)");
    out_.line("const long long steps = stop_k - k < 64 ? stop_k - k : 64;");
    out_.open("for (long long l = 0; l < lanes; l++)");
    text_.unpack(lanes, Expr::symbol(tile_symbol("panel"), 0, INT32_MAX) +
                            Expr::symbol(tile_symbol("l"), 0, 63));
    const std::vector<bool> defined = define_without(depth);
    open_runs(text_, depth, "k", "steps");
    out_.line(str(packing_.type.type, "* const line = lines + 64 * l + done;"));
    write_run(text_, depth, "64",
              [&](const std::string& at) { write_value(str("line[", at, "]"), defined); });
    out_.close();
    out_.close();
    out_.line(str("tc_transpose_", name, "<", packing_.width,
                  ">(lines, steps, to + (k - first_k) * ", packing_.width, ");"));
    out_.close();
  }

  KernelText text_;
  Text& out_;
  const Packing& packing_;
  Step only_;
};

}  // namespace

void open_runs(KernelText& text, const std::vector<int>& list, const std::string& start,
               const std::string& count) {
  Text& out = text.out;
  if (list.size() < 2) {
    out.open("");
    out.line(str("const long long done = 0, run = ", count, ", from = ", start, ";"));
    return;
  }
  const Axis& last = text.kernel.axes[list.back()];
  const std::string extent = c_operand(last.extent);
  out.open(str("for (long long done = 0, run; done < ", count, "; done += run)"));
  out.line(str("const long long at = ", start, " + done, from = at % ", extent, ";"));
  out.line(str("run = ", extent, " - from < ", count, " - done ? ", extent, " - from : ", count,
               " - done;"));
  text.unpack({list.begin(), list.end() - 1},
              floor_div(Expr::symbol(tile_symbol("at"), 0, INT64_MAX / 4), last.extent));
}

void write_run(KernelText& text, const std::vector<int>& list, const std::string& whole,
               const std::function<void(const std::string&)>& body) {
  Text& out = text.out;
  const Expr extent = list.size() < 2 ? Expr(0) : text.kernel.axes[list.back()].extent;
  const std::string length = c_operand(extent),
                    most = list.size() < 2
                               ? whole
                               : str(length, " < ", whole, " ? ", length, " : ", whole);
  out.line(
      str(extent.is_constant() ? "constexpr int" : "const long long", " most = ", most, ";"));
  out.open("const auto element = [&](long long e) __attribute__((always_inline))");
  if (!list.empty()) text.declare(text.kernel.axes[list.back()].name, "from + e");
  body("e");
  out.close(";");
  out.open(
      "if (__builtin_expect(run == most, 1))");  // g++ does not vectorise what it takes for rare
  out.line("#pragma GCC ivdep");
  out.line("for (int e = 0; e < most; e++) element(e);");
  out.close();
  out.open("else");
  out.line("#pragma GCC ivdep");
  out.line("for (long long e = 0; e < run; e++) element(e);");
  out.close();
}

std::optional<Packed> packed_from(const DotView& view, int scalar) {
  if (view.lists[0].size() != 1 || view.lists[1].size() != 1) return std::nullopt;
  const Axis &lane = view.kernel.axes[view.lists[0][0]],
             &step = view.kernel.axes[view.lists[1][0]];
  const std::vector<bool> parts = below(view.kernel, scalar);
  for (size_t id = 0; id < parts.size(); id++) {
    const Scalar& load = view.kernel.scalars[id];
    if (!parts[id] || !is_plain(load)) continue;
    const Packed packed{load.buffer, load.index, coefficient(load.index, lane.symbol()),
                        coefficient(load.index, step.symbol())};
    const Expr rest = load.index - lane.symbol() * packed.lane - step.symbol() * packed.step;
    if (depends_on(rest, lane.name) || depends_on(rest, step.name)) continue;
    if ((packed.lane == 1 && packed.step != 0) || (packed.step == 1 && packed.lane != 0))
      return packed;
  }
  return std::nullopt;
}

void write_pack(KernelText& text, const Packing& packing) {
  text.paste(PackWriter(text.program, packing).write());
}

}  // namespace tiny_compile
