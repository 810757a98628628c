// Where is each scalar computed? In the outermost scope that knows all it depends on:
//   $1 = rsqrt(r0)         needs the row           => once a row, before the loop that uses it
//   $2 = mul($1, load x[i0*64 + j0])  needs j0     => in the loop over j0
#include "tiny_compile/codegen/cpp_kernel.h"

#include <algorithm>

#include "tiny_compile/loops/costly_values.h"
#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

uint64_t axes_in(const Kernel& kernel, const Expr& index) {
  uint64_t mask = 0;
  for (const Symbol& symbol : symbols(index)) {
    for (size_t a = 0; a < kernel.axes.size(); a++) {
      if (Symbol(kernel.axes[a].name) == symbol) mask |= uint64_t{1} << a;
    }
  }
  return mask;
}

bool computes_with_doubles(const Kernel& kernel) {
  const auto is_double = [](const auto& value) { return value.dtype == DType::f64; };
  return std::any_of(kernel.scalars.begin(), kernel.scalars.end(), is_double) ||
         std::any_of(kernel.steps.begin(), kernel.steps.end(), is_double);
}

}  // namespace

void Text::line(const std::string& text) {
  text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n";
}
void Text::open(const std::string& text) {
  line(text.empty() ? "{" : text + " {");
  depth_++;
}
void Text::close(const std::string& suffix) {
  depth_--;
  line("}" + suffix);
}

KernelText::KernelText(const Program& p, const Kernel& k, bool cuda)
    : calls(cuda), scalars(p, k, calls), program(p), kernel(k), sizes(tiny_compile::sizes(p)) {
  CHECK(kernel.axes.size() < 64, "a kernel of ", kernel.axes.size(), " axes");
  calls.doubles = computes_with_doubles(kernel);
  const std::vector<uint64_t> loops = loops_that_may_not_turn(kernel);
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    LoopScope scope{axes_in(kernel, scalar.index) | loops[id],
                    scalar.kind == ScalarKind::Register};
    std::vector<int> below = scalar.operands;
    if (scalar.mask >= 0) below.push_back(scalar.mask);
    for (int operand : below) {
      scope.axes |= needs_[operand].axes;
      scope.registers = scope.registers || needs_[operand].registers;
    }
    needs_.push_back(scope);
  }
}

uint64_t row_mask(const Kernel& kernel) { return (uint64_t{1} << kernel.rows) - 1; }

LoopScope element_scope(const Kernel& kernel, const std::vector<int>& inner) {
  LoopScope scope{row_mask(kernel), true};
  for (int axis : inner) scope.axes |= uint64_t{1} << axis;
  return scope;
}

void KernelText::begin_function(const std::string& function) {
  out.open(str("extern \"C\" void ", function,
               "(void* const* buffers, long long begin, long long end)"));
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < program.buffers.size(); b++) {
    if (!read[b] && !written[b]) continue;
    const Buffer& buffer = program.buffers[b];
    // g++ has no vectors of bool: its bytes are numbers, 0 or 1.
    const std::string element = buffer.type.dtype == DType::boolean
                                    ? "unsigned char"
                                    : storage_type(calls, buffer.type.dtype);
    const std::string type = str(written[b] ? "" : "const ", element, "*");
    out.line(str(type, written[b] && read[b] ? " " : " __restrict ", pointer_name(buffer),
                 " = (", type, ")buffers[", b, "];"));
  }
  if (sizes.empty()) return;
  out.line(str("const long long* const sizes = (const long long*)buffers[",
               program.buffers.size(), "];"));
  for (size_t k = 0; k < sizes.size(); k++) declare(sizes[k].name(), str("sizes[", k, "]"));
}

std::string KernelText::own() const {
  return str("buffers[", program.buffers.size() + !sizes.empty(), "]");
}

void KernelText::declare(const std::string& name, const std::string& value) {
  out.line(str("const ", integer, " ", name, " = ", value, ";"));
}

void KernelText::unpack(const std::vector<int>& axes, Expr number,
                        const std::string& innermost) {
  for (size_t k = axes.size(); k-- > 0;) {
    const Axis& axis = kernel.axes[axes[k]];
    const bool renamed = k + 1 == axes.size() && !innermost.empty();
    declare(renamed ? innermost : axis.name, k == 0 ? number : mod(number, axis.extent));
    number = floor_div(number, axis.extent);
  }
}

void KernelText::unpack_rows(const std::string& number) {
  unpack_rows(kernel.rows,
              Expr::symbol(tile_symbol(number), 0, row_count(kernel).bounds().high - 1));
}

void KernelText::unpack_rows(int count, Expr number) {
  std::vector<int> rows;
  for (int row = 0; row < count; row++) rows.push_back(row);
  unpack(rows, std::move(number));
}

void KernelText::unpack_inner(const Step& step, const std::string& number) {
  unpack(step.inner,
         Expr::symbol(tile_symbol(number), 0, inner_count(kernel, step).bounds().high - 1));
}

void KernelText::define(const std::vector<int>& ids, const LoopScope& scope,
                        std::vector<bool>& defined) {
  for (int id : ids) {
    if (defined[id] || scalars.is_trivial(id) || !scope.holds(needs_[id])) continue;
    defined[id] = true;
    out.line(scalars.definition(id));
    behind_definition(id);
  }
}

std::vector<int> KernelText::needed(const std::vector<const Step*>& steps) const {
  std::vector<bool> wanted(kernel.scalars.size());
  for (const Step* step : steps) {
    for (int root : step->roots()) {
      if (root >= 0) wanted[root] = true;
    }
  }
  std::vector<int> ids;
  for (size_t id = wanted.size(); id-- > 0;) {
    if (!wanted[id]) continue;
    ids.push_back(static_cast<int>(id));
    for (int operand : kernel.scalars[id].operands) wanted[operand] = true;
    if (kernel.scalars[id].mask >= 0) wanted[kernel.scalars[id].mask] = true;
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

}  // namespace tiny_compile
