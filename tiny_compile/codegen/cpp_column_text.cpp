#include "tiny_compile/codegen/cpp_column_text.h"

namespace tiny_compile {

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
  text.unpack_inner(step, "e");
  open_lanes();
  define_in_lanes(step);
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
