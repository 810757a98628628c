#include "tiny_compile/codegen/cpp_column_text.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int64_t kLine = 64;  // bytes

}  // namespace

ColumnText::ColumnText(KernelText& given)
    : text(given),
      out(given.out),
      kernel(given.kernel),
      lane(kernel.rows - 1),
      lanes(schedule_of(kernel).lanes) {}

void ColumnText::open_lanes() {
  out.line("#pragma GCC ivdep");
  out.open("for (long long l = 0; l < width; l++)");
  text.declare(kernel.axes[lane].name, "start + l");
}

void ColumnText::define_in_lanes(const Step& step) {
  std::vector<bool> here = defined;
  text.define(text.needed({&step}), element_scope(kernel, step.inner), here);
}

void ColumnText::open_elements(const Step& step, const std::string& first,
                               const std::string& stop) {
  out.open(str("for (long long e = ", first, "; e < ", stop, "; e++)"));
  ask_for(step, "e + 1");
  text.unpack_inner(step, "e");
  open_lanes();
  define_in_lanes(step);
}

void ColumnText::ask_for(const Step& step, const std::string& next) {
  const Expr most = inner_count(kernel, step);
  const Axis& columns = kernel.axes[lane];
  Substitution there =
      unflatten(kernel, step.inner, Expr::index(tile_symbol("next"), max(most, 1)));
  there.push_back({columns.name, Expr::index(tile_symbol("start"), columns.extent)});
  std::vector<std::string> asked;
  for (int id : text.needed({&step})) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind != ScalarKind::Load || !load.operands.empty() ||
        coefficient(load.index, columns.symbol()) != 1)
      continue;
    const auto turns = [&](int axis) { return depends_on(load.index, kernel.axes[axis].name); };
    if (std::none_of(step.inner.begin(), step.inner.end(), turns)) continue;
    const Buffer& buffer = text.program.buffers[load.buffer];
    asked.push_back(
        str("for (long long l = 0; l < width; l += ", kLine / size_of(buffer.type.dtype),
            ") __builtin_prefetch(", pointer_name(buffer), " + ",
            c_text(substitute(load.index, there)), " + l);"));
  }
  if (asked.empty()) return;
  out.open("");
  text.declare("next", next);
  for (const std::string& line : asked) out.line(line);
  out.close();
}

std::string ColumnText::value_of(const Step& step, DType type) const {
  const DType from = kernel.scalars[step.value].dtype;
  return (compute_type(from) == type ? "" : str("(", c_type(type), ")")) +
         text.scalars.name(step.value);
}

void ColumnText::write_element(const Step& step, DType type) {
  out.open(
      str("auto element = [&](long long e, long long l) __attribute__((always_inline)) -> ",
          c_type(type)));
  text.declare(kernel.axes[lane].name, "start + l");
  text.unpack_inner(step, "e");
  define_in_lanes(step);
  const std::string value = value_of(step, type);
  out.line(
      str("return ",
          step.op == Op::sum_exp ? str(text.calls("tc_exp"), "(", value, " - most[l])") : value,
          ";"));
  out.close(";");
}

}  // namespace tiny_compile
